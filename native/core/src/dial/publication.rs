//! The publications of the fleet's own publisher: `{"p":1763733211123,"n":17,"t":81234567890123,"topic":"room/17","x":"…"}`.
//! `p` is the publisher (when it began, in unix ms), `n` counts the publications of a topic from 1, `t` is when it was sent in
//! ns of the monotonic clock, or instead `w` in µs of the wall clock. Pure, and the same as `fleet/drone/publication.js`.

use super::pieces::number_of;

/// Enough for ns, and less than 64 bits.
const MOST_DIGITS: usize = 18;

/// When a publication was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    MonotonicNs(u64),
    UnixUs(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publication<'a> {
    pub publisher: u64,
    /// From 1.
    pub number: u32,
    pub sent: Sent,
    pub topic: &'a [u8],
}

/// None if it isn't one of ours.
pub fn publication_in(data: &[u8]) -> Option<Publication<'_>> {
    let (publisher, rest) = digits_of(data.strip_prefix(b"{\"p\":")?)?;
    let (number, rest) = digits_of(rest.strip_prefix(b",\"n\":")?)?;
    let (sent, rest) = match rest.strip_prefix(b",\"t\":") {
        Some(rest) => digits_of(rest).map(|(ns, rest)| (Sent::MonotonicNs(ns), rest))?,
        None => digits_of(rest.strip_prefix(b",\"w\":")?).map(|(us, rest)| (Sent::UnixUs(us), rest))?,
    };
    let rest = rest.strip_prefix(b",\"topic\":\"")?;
    let end = rest.iter().position(|byte| *byte == b'"')?;
    let number = u32::try_from(number).ok().filter(|number| *number > 0 && publisher > 0)?;
    rest.ends_with(b"}").then_some(Publication { publisher, number, sent, topic: &rest[..end] })
}

/// The number that the bytes begin with, and what follows it.
fn digits_of(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let count = bytes.iter().take(MOST_DIGITS + 1).take_while(|byte| byte.is_ascii_digit()).count();
    (1..=MOST_DIGITS).contains(&count).then(|| (number_of(&bytes[..count], 10), &bytes[count..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publication_is_read_with_either_clock_and_with_padding() {
        let found = Publication { publisher: 5, number: 17, sent: Sent::MonotonicNs(123), topic: b"room/17" };
        assert_eq!(publication_in(b"{\"p\":5,\"n\":17,\"t\":123,\"topic\":\"room/17\"}"), Some(found));
        assert_eq!(publication_in(b"{\"p\":5,\"n\":17,\"t\":123,\"topic\":\"room/17\",\"x\":\"xxx\"}"), Some(found));
        let wall = publication_in(b"{\"p\":5,\"n\":17,\"w\":1763733211123456,\"topic\":\"room/17\"}");
        assert_eq!(wall, Some(Publication { sent: Sent::UnixUs(1_763_733_211_123_456), ..found }));
    }

    #[test]
    fn anything_else_is_not_ours() {
        for data in [
            "",
            "hello",
            "{}",
            "{\"n\":17}",
            "{\"p\":0,\"n\":1,\"t\":1,\"topic\":\"a\"}",
            "{\"p\":5,\"n\":0,\"t\":1,\"topic\":\"a\"}",
            "{\"p\":5,\"n\":4294967296,\"t\":1,\"topic\":\"a\"}",
            "{\"p\":5,\"n\":1234567890123456789,\"t\":1,\"topic\":\"a\"}",
            "{\"p\":5,\"n\":,\"t\":1,\"topic\":\"a\"}",
            "{\"p\":5,\"n\":1,\"topic\":\"a\"}",
            "{\"p\":5,\"n\":1,\"t\":1,\"topic\":\"a",
            "{\"p\":5,\"n\":1,\"t\":1,\"topic\":\"a\"",
        ] {
            assert_eq!(publication_in(data.as_bytes()), None, "{data}");
        }
    }
}
