//! Reads JSON (RFC 8259), as far as messages of a server need it: the members of an object, and the elements of an array. It accepts
//! some texts that are not valid. Pure.

use std::borrow::Cow;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A string, without escapes.
    Text(Cow<'a, [u8]>),
    /// Anything else, as it is written.
    Other(&'a [u8]),
}

/// Calls `each` with the members of an object. None if it is no object.
pub fn members<'a>(text: &'a [u8], mut each: impl FnMut(&'a [u8], Value<'a>)) -> Option<()> {
    let mut reader = Reader { rest: text };
    reader.list(b'{', b'}', |reader| {
        let name = reader.string()?;
        reader.skip(b':')?;
        let value = reader.value()?;
        each(name, value);
        Some(())
    })?;
    reader.end()
}

/// Calls `each` with the elements of an array, as they are written. None if it is no array.
pub fn elements<'a>(text: &'a [u8], mut each: impl FnMut(&'a [u8])) -> Option<()> {
    let mut reader = Reader { rest: text };
    reader.list(b'[', b']', |reader| {
        let before = reader.blanks();
        reader.value()?;
        each(&before[..before.len() - reader.rest.len()]);
        Some(())
    })?;
    reader.end()
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Skips blanks. Returns what follows.
    fn blanks(&mut self) -> &'a [u8] {
        let count = self.rest.iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
        self.rest = &self.rest[count..];
        self.rest
    }

    fn skip(&mut self, byte: u8) -> Option<()> {
        self.rest = self.blanks().strip_prefix(&[byte])?;
        Some(())
    }

    fn end(&mut self) -> Option<()> {
        self.blanks().is_empty().then_some(())
    }

    /// Items in brackets, with commas between them.
    fn list(&mut self, begin: u8, end: u8, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.skip(begin)?;
        if self.skip(end).is_some() {
            return Some(());
        }
        loop {
            item(self)?;
            if self.skip(end).is_some() {
                return Some(());
            }
            self.skip(b',')?;
        }
    }

    /// What is between the quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.skip(b'"')?;
        let bytes = self.rest;
        let mut at = 0;
        loop {
            at += bytes[at..].iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
            if bytes[at] == b'"' {
                self.rest = &bytes[at + 1..];
                return Some(&bytes[..at]);
            }
            at += 2;
            bytes.get(at)?;
        }
    }

    fn value(&mut self) -> Option<Value<'a>> {
        let before = self.blanks();
        match before.first()? {
            b'"' => return Some(Value::Text(unescaped(self.string()?)?)),
            b'{' | b'[' => self.skip_nested()?,
            _ => {
                let size = before.iter().take_while(|byte| !b",]} \t\r\n".contains(byte)).count();
                self.rest = &before[size..];
            }
        }
        let size = before.len() - self.rest.len();
        (size > 0).then_some(Value::Other(&before[..size]))
    }

    /// An array or an object with everything in it.
    fn skip_nested(&mut self) -> Option<()> {
        let mut depth = 0usize;
        loop {
            match self.rest.first()? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.rest = &self.rest[1..];
            if depth == 0 {
                return Some(());
            }
        }
    }
}

/// Without escapes (section 7).
fn unescaped(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    let Some(first) = text.iter().position(|byte| *byte == b'\\') else { return Some(Cow::Borrowed(text)) };
    let mut out = Vec::with_capacity(text.len());
    out.extend_from_slice(&text[..first]);
    let mut rest = &text[first..];
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let (escape, after) = rest.split_first()?;
        rest = after;
        match escape {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => rest = push_character(rest, &mut out)?,
            other => out.push(*other),
        }
    }
    Some(Cow::Owned(out))
}

/// Appends the character of `\u` and four digits, or of two of them. Returns what follows.
fn push_character<'a>(digits: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (mut unit, mut rest) = unit_of(digits)?;
    if (0xd800..0xdc00).contains(&unit)
        && let Some((low, after)) = rest.strip_prefix(b"\\u").and_then(unit_of)
        && (0xdc00..0xe000).contains(&low)
    {
        unit = 0x1_0000 + ((unit - 0xd800) << 10 | (low - 0xdc00));
        rest = after;
    }
    let character = char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Some(rest)
}

fn unit_of(digits: &[u8]) -> Option<(u32, &[u8])> {
    let (four, rest) = digits.split_at_checked(4)?;
    let four = str::from_utf8(four).ok().filter(|four| four.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    Some((u32::from_str_radix(four, 16).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members_of(text: &str) -> Option<Vec<String>> {
        let mut found = Vec::new();
        members(text.as_bytes(), |name, value| {
            let name = String::from_utf8_lossy(name);
            found.push(match value {
                Value::Text(text) => format!("{name}={}", String::from_utf8_lossy(&text)),
                Value::Other(text) => format!("{name}:{}", String::from_utf8_lossy(text)),
            });
        })?;
        Some(found)
    }

    fn elements_of(text: &str) -> Option<Vec<String>> {
        let mut found = Vec::new();
        elements(text.as_bytes(), |element| found.push(String::from_utf8_lossy(element).into_owned()))?;
        Some(found)
    }

    #[test]
    fn members_are_texts_or_anything_else() {
        let text = " {\"id\":\"a\",\"n\": 1 ,\"list\":[1,{\"]\":\"}\"}],\"no\":null, \"data\":\"\"} ";
        assert_eq!(members_of(text).unwrap(), ["id=a", "n:1", "list:[1,{\"]\":\"}\"}]", "no:null", "data="]);
        assert_eq!(members_of("{}").unwrap(), [""; 0]);
    }

    #[test]
    fn elements_are_there_as_they_are_written() {
        assert_eq!(elements_of("[{\"a\":\"],\"}, \"b\",3 ]").unwrap(), ["{\"a\":\"],\"}", "\"b\"", "3"]);
        assert_eq!(elements_of("[]").unwrap(), [""; 0]);
    }

    #[test]
    fn escapes_are_what_they_stand_for() {
        let text = r#"{"data":"\"\\\/\b\f\n\r\t\u0000\u00e4\u20ac\ud83d\ude00\ud83d-ä"}"#;
        assert_eq!(members_of(text).unwrap(), ["data=\"\\/\u{8}\u{c}\n\r\t\0ä€😀\u{fffd}-ä"]);
    }

    #[test]
    fn what_is_not_complete_is_no_object() {
        let text = r#"{"id":"a\"\u00e4","list":[1,{}],"n":1}"#;
        assert!(members_of(text).is_some());
        for end in 0..text.len() {
            assert_eq!(text.get(..end).and_then(members_of), None, "{end}");
        }
        for text in ["[]", "\"a\"", "{} {}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{\"a\":\"\\u12\"}", "{\"a\":\"\\ux123\"}"] {
            assert_eq!(members_of(text), None, "{text}");
        }
        assert_eq!(elements_of("[1,"), None);
        assert_eq!(elements_of("{}"), None);
    }
}
