//! Writes JSON (RFC 8259): only what messages need. All texts are UTF-8.

/// Adds a member to an object: the first one begins it. `name` is the beginning of an object with this one name.
pub fn push_member(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    let name = name.as_bytes();
    if out.is_empty() {
        out.extend_from_slice(name);
    } else {
        out.push(b',');
        out.extend_from_slice(&name[1..]);
    }
    push_string(out, value);
}

/// As `JSON.stringify` does: only what has to be escaped is.
pub fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    let mut rest = text;
    while let Some(place) = rest.iter().position(|byte| *byte < b' ' || matches!(byte, b'"' | b'\\')) {
        out.extend_from_slice(&rest[..place]);
        push_escaped(out, rest[place]);
        rest = &rest[place + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn push_escaped(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        8 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        12 => b'f',
        b'\r' => b'r',
        b'"' | b'\\' => byte,
        _ => {
            let [high, low] = [byte >> 4, byte & 0xf].map(|digit| HEX[usize::from(digit)]);
            return out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_to_be_escaped_is() {
        let mut out = Vec::new();
        push_string(&mut out, "a\"b\\c/\u{8}\t\n\u{c}\r\u{0}\u{1f}\u{7f}ä€😀\u{2028}".as_bytes());
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "\"a\\\"b\\\\c/\\b\\t\\n\\f\\r\\u0000\\u001f\u{7f}ä€😀\u{2028}\"");
    }

    #[test]
    fn members_follow_each_other() {
        let mut out = Vec::new();
        push_member(&mut out, "{\"a\":", b"1");
        push_member(&mut out, "{\"b\":", b"");
        assert_eq!(out, b"{\"a\":\"1\",\"b\":\"\"");
    }
}
