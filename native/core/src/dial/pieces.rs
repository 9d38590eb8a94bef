//! What `answer` looks for in bytes. Pure.

/// The number of digits in the time a message was sent, in µs.
const TIME_DIGITS: std::ops::RangeInclusive<usize> = 10..=17;

/// Where `wanted` begins. The first `seen` bytes were searched before and don't contain all of it.
pub fn find(bytes: &[u8], wanted: &[u8], seen: usize) -> Option<usize> {
    let from = seen.saturating_sub(wanted.len() - 1);
    bytes[from..].windows(wanted.len()).position(|window| window == wanted).map(|at| from + at)
}

/// Whether the bytes are the beginning of a status line, such as `HTTP/1.1 200`, or could become one.
pub fn begins_as_status_line(bytes: &[u8]) -> bool {
    bytes.iter().zip(b"HTTP/1.v ddd").all(|(byte, expected)| match expected {
        b'v' => b"01".contains(byte),
        b'd' => byte.is_ascii_digit(),
        letter => byte == letter,
    })
}

/// Whether the head has this header (`name` includes the colon) with a value that begins like this. Ignores case.
pub fn has_header(head: &[u8], name: &[u8], value: &[u8]) -> bool {
    head.split(|byte| b"\r\n".contains(byte)).filter_map(|line| after(line, name)).any(|found| {
        let blanks = found.iter().take_while(|byte| b" \t".contains(byte)).count();
        after(&found[blanks..], value).is_some()
    })
}

/// Whether the head has this header (`name` includes the colon) with exactly this value. Ignores the case of the name.
pub fn is_header(head: &[u8], name: &[u8], value: &[u8]) -> bool {
    let mut found = head.split(|byte| b"\r\n".contains(byte)).filter_map(|line| after(line, name));
    found.any(|found| found.trim_ascii() == value)
}

/// The value of a header (`name` includes the colon), if the head has it.
pub fn header_of<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut found = head.split(|byte| b"\r\n".contains(byte)).filter_map(|line| after(line, name));
    found.next().map(<[u8]>::trim_ascii)
}

/// What follows `beginning`, ignoring case.
fn after<'a>(bytes: &'a [u8], beginning: &[u8]) -> Option<&'a [u8]> {
    let (begins, rest) = bytes.split_at_checked(beginning.len())?;
    begins.eq_ignore_ascii_case(beginning).then_some(rest)
}

/// The data of an event: the text after `data:` and an optional space in each of its lines. None if it has no such line.
pub fn data_of(event: &[u8]) -> Option<Vec<u8>> {
    let mut data: Option<Vec<u8>> = None;
    for value in event.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:")) {
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &mut data {
            None => data = Some(value.to_vec()),
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
        }
    }
    data
}

/// When a message was sent, in unix µs, if it begins with the time: `@1763733211123456 text`.
pub fn sent_us(text: &[u8]) -> Option<u64> {
    let text = text.strip_prefix(b"@")?;
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let ends = matches!(text.get(digits), None | Some(b' '));
    (TIME_DIGITS.contains(&digits) && ends).then(|| number_of(&text[..digits], 10))
}

/// The value of some digits. There must be few enough of them.
pub fn number_of(digits: &[u8], radix: u32) -> u64 {
    let values = digits.iter().filter_map(|digit| char::from(*digit).to_digit(radix));
    values.fold(0, |number, value| number * u64::from(radix) + u64::from(value))
}
