//! A block of Server-Sent Events: the lines up to an empty one. Pure, and the same as `fleet/drone/block.js`.

/// What a block says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block<'a> {
    /// The new last event id. An empty one removes it.
    pub id: Option<&'a [u8]>,
    /// None if the block dispatches no event. Of several lines it is the first.
    pub data: Option<&'a [u8]>,
    /// Whether it has a line that no server has a reason to send.
    pub is_odd: bool,
}

/// The size of the first unit: a block with the empty line that ends it, or a line outside of a block, which is empty or a
/// comment. None if it is incomplete. The first `seen` bytes were searched before.
pub fn unit_size(bytes: &[u8], seen: usize) -> Option<usize> {
    if bytes.starts_with(b"\n") {
        return Some(1);
    }
    let end: &[u8] = if bytes.starts_with(b":") { b"\n" } else { b"\n\n" };
    super::pieces::find(bytes, end, seen).map(|at| at + end.len())
}

pub fn block_of(unit: &[u8]) -> Block<'_> {
    let mut block = Block::default();
    for line in unit.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && line[0] != b':') {
        match field_of(line) {
            (b"id", value) if !value.contains(&0) => block.id = Some(value),
            (b"data", value) => block.data = block.data.or(Some(value)),
            (b"event" | b"id", _) => {}
            (b"retry", value) if value.iter().all(u8::is_ascii_digit) => {}
            _ => block.is_odd = true,
        }
    }
    block
}

/// The name and the value of a field.
fn field_of(line: &[u8]) -> (&[u8], &[u8]) {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return (line, b"") };
    let value = &line[colon + 1..];
    (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(unit: &str) -> (Option<&str>, Option<&str>, bool) {
        let Block { id, data, is_odd } = block_of(unit.as_bytes());
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        (id.map(text), data.map(text), is_odd)
    }

    #[test]
    fn the_id_and_the_data_of_a_block_are_found_in_any_order() {
        assert_eq!(block("event: a\nretry: 10\nid: 1\ndata: x\n\n"), (Some("1"), Some("x"), false));
        assert_eq!(block("data:x\n: comment\nid:1\n\n"), (Some("1"), Some("x"), false));
        assert_eq!(block("id: #x\n\n"), (Some("#x"), None, false));
        assert_eq!(block("id\ndata\n\n"), (Some(""), Some(""), false));
        assert_eq!(block("data:  x\ndata: y\n\n"), (None, Some(" x"), false), "one space belongs to the field");
        assert_eq!(block("id: 1\nid: a\0\ndata\n\n"), (Some("1"), Some(""), false), "an id with NUL is ignored");
    }

    #[test]
    fn a_line_that_is_no_field_is_odd() {
        for unit in ["hello\n\n", "id: 1\ndate: x\n\n", "retry: soon\n\n", " id: 1\n\n"] {
            assert!(block_of(unit.as_bytes()).is_odd, "{unit}");
        }
    }

    #[test]
    fn a_unit_is_a_block_or_a_line_outside_of_one() {
        let sizes = [("\nid", Some(1)), (":\n:\n", Some(2)), (": a", None), ("id: 1\n\nx", Some(7)), ("id: 1\n", None), ("", None)];
        for (bytes, size) in sizes {
            assert_eq!(unit_size(bytes.as_bytes(), 0), size, "{bytes}");
        }
        assert_eq!(unit_size(b"id: 1\n\n", 6), Some(7));
    }
}
