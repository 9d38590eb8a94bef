//! What is asked and what must be answered, in the text protocol of memcached and in RESP. The value of a key follows from its
//! number, so an answer can be compared byte for byte.

use crate::random::Random;

/// Values begin at one of so many places in the same bytes.
const VALUES: usize = 4096;
/// No line that is not a value is longer.
const MOST_LINE: usize = 4096;

/// A wrong value that is longer than the right one by more than this is not waited for, because it would fill the memory.
const MOST_EXCESS: usize = 1 << 20;

#[derive(Clone, Copy, PartialEq)]
pub enum Protocol {
    Memcached,
    Resp,
}

#[derive(Clone, Copy)]
pub enum Op {
    Get,
    Set,
}

#[derive(Clone, Copy)]
pub struct Request {
    pub op: Op,
    pub key: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    Hit,
    Miss,
    Stored,
    /// A complete answer, but not the right one: another key, length or value.
    Wrong,
    /// A line that says there was an error.
    Error,
}

#[derive(Debug, PartialEq)]
pub enum Answer {
    /// The rest hasn't arrived.
    Partial,
    Whole {
        bytes: usize,
        verdict: Verdict,
    },
    /// Nothing that this protocol knows: where the next answer would begin is not known.
    Garbled,
}

impl Protocol {
    pub fn named(name: &str) -> Option<Protocol> {
        match name {
            "memcached" => Some(Protocol::Memcached),
            "redis" => Some(Protocol::Resp),
            _ => None,
        }
    }
}

pub struct Dialog {
    protocol: Protocol,
    names: Vec<String>,
    /// The values of all keys: each is a part of it.
    bytes: Vec<u8>,
    size: usize,
    /// What precedes and follows the key in a get, in a set, and in the answer to a get.
    get: [String; 2],
    set: [String; 2],
    hit: [String; 2],
    end: &'static str,
}

impl Dialog {
    pub fn new(protocol: Protocol, keys: usize, size: usize) -> Dialog {
        let names: Vec<String> = (0..keys).map(|key| format!("key-{key:08}")).collect();
        let mut random = Random::new(1);
        let letter = |_| b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[random.below(64)];
        let bytes = (0..VALUES + size).map(letter).collect();
        let name = names[0].len();
        let (get, set, hit, end) = match protocol {
            Protocol::Memcached => (
                ["get ".into(), "\r\n".into()],
                ["set ".into(), format!(" 0 0 {size}\r\n")],
                ["VALUE ".into(), format!(" 0 {size}\r\n")],
                "\r\nEND\r\n",
            ),
            Protocol::Resp => (
                [format!("*2\r\n$3\r\nGET\r\n${name}\r\n"), "\r\n".into()],
                [format!("*3\r\n$3\r\nSET\r\n${name}\r\n"), format!("\r\n${size}\r\n")],
                [format!("${size}\r\n"), String::new()],
                "\r\n",
            ),
        };
        Dialog { protocol, names, bytes, size, get, set, hit, end }
    }

    fn value(&self, key: u32) -> &[u8] {
        let start = key as usize * 31 % VALUES;
        &self.bytes[start..start + self.size]
    }

    pub fn append(&self, Request { op, key }: Request, out: &mut Vec<u8>) {
        let name = self.names[key as usize].as_bytes();
        let ([before, after], value): (_, [&[u8]; 2]) = match op {
            Op::Get => (&self.get, [b"", b""]),
            Op::Set => (&self.set, [self.value(key), b"\r\n"]),
        };
        for part in [before.as_bytes(), name, after.as_bytes(), value[0], value[1]] {
            out.extend_from_slice(part);
        }
    }

    /// Reads the answer to a request at the beginning of `bytes`.
    pub fn read(&self, Request { op, key }: Request, bytes: &[u8]) -> Answer {
        if let Op::Get = op
            && let Some(bytes) = self.hit_bytes(key, bytes)
        {
            return Answer::Whole { bytes, verdict: Verdict::Hit };
        }
        let Some(end) = bytes.iter().take(MOST_LINE).position(|byte| *byte == b'\n') else {
            return if bytes.len() < MOST_LINE { Answer::Partial } else { Answer::Garbled };
        };
        let (line, whole) = (bytes[..end].trim_ascii_end(), |verdict| Answer::Whole { bytes: end + 1, verdict });
        match (op, self.protocol, line) {
            (Op::Get, Protocol::Memcached, b"END") | (Op::Get, Protocol::Resp, b"$-1" | b"_") => whole(Verdict::Miss),
            (Op::Set, Protocol::Memcached, b"STORED") | (Op::Set, Protocol::Resp, b"+OK") => whole(Verdict::Stored),
            (Op::Set, Protocol::Memcached, b"NOT_STORED" | b"EXISTS" | b"NOT_FOUND") => whole(Verdict::Wrong),
            _ if self.is_error(line) => whole(Verdict::Error),
            (Op::Get, ..) => self.read_wrong_value(line, &bytes[end + 1..], end + 1),
            _ => Answer::Garbled,
        }
    }

    /// The length of the right answer to a get, if it is there.
    fn hit_bytes(&self, key: u32, bytes: &[u8]) -> Option<usize> {
        let name = if self.protocol == Protocol::Memcached { self.names[key as usize].as_bytes() } else { b"" };
        let parts = [self.hit[0].as_bytes(), name, self.hit[1].as_bytes(), self.value(key), self.end.as_bytes()];
        let mut rest = bytes;
        for part in parts {
            rest = rest.strip_prefix(part)?;
        }
        Some(bytes.len() - rest.len())
    }

    fn is_error(&self, line: &[u8]) -> bool {
        let starts = |text: &[u8]| line.starts_with(text);
        match self.protocol {
            Protocol::Memcached => line == b"ERROR" || starts(b"CLIENT_ERROR") || starts(b"SERVER_ERROR"),
            Protocol::Resp => starts(b"-"),
        }
    }

    /// A value that is not the right one, or not complete yet.
    fn read_wrong_value(&self, line: &[u8], rest: &[u8], before: usize) -> Answer {
        let line = String::from_utf8_lossy(line);
        let words: Vec<&str> = line.split(' ').collect();
        let length = match (self.protocol, &words[..]) {
            (Protocol::Memcached, ["VALUE", _, _, length]) => length.parse::<usize>().ok(),
            (Protocol::Resp, [word]) => word.strip_prefix('$').and_then(|length| length.parse().ok()),
            _ => None,
        };
        let Some(length) = length.filter(|length| *length <= self.size + MOST_EXCESS) else { return Answer::Garbled };
        let after = length + self.end.len();
        match rest.get(..after) {
            None => Answer::Partial,
            Some(value) if value.ends_with(self.end.as_bytes()) => Answer::Whole { bytes: before + after, verdict: Verdict::Wrong },
            Some(_) => Answer::Garbled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: Request = Request { op: Op::Get, key: 7 };
    const SET: Request = Request { op: Op::Set, key: 7 };

    fn whole(bytes: usize, verdict: Verdict) -> Answer {
        Answer::Whole { bytes, verdict }
    }

    /// What a server must answer to GET.
    fn hit(dialog: &Dialog) -> Vec<u8> {
        let (name, value) = (&dialog.names[7], dialog.value(7));
        let head = match dialog.protocol {
            Protocol::Memcached => format!("VALUE {name} 0 {}\r\n", value.len()),
            Protocol::Resp => format!("${}\r\n", value.len()),
        };
        [head.as_bytes(), value, dialog.end.as_bytes()].concat()
    }

    #[test]
    fn requests_are_those_of_the_protocol() {
        for (protocol, expected) in [
            (Protocol::Memcached, "get key-00000007\r\nset key-00000007 0 0 0\r\n\r\n"),
            (Protocol::Resp, "*2\r\n$3\r\nGET\r\n$12\r\nkey-00000007\r\n*3\r\n$3\r\nSET\r\n$12\r\nkey-00000007\r\n$0\r\n\r\n"),
        ] {
            let (dialog, mut out) = (Dialog::new(protocol, 10, 0), Vec::new());
            [GET, SET].into_iter().for_each(|request| dialog.append(request, &mut out));
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
    }

    #[test]
    fn an_answer_that_arrives_byte_by_byte_is_read_when_it_is_whole() {
        for (protocol, stored) in [(Protocol::Memcached, "STORED\r\n"), (Protocol::Resp, "+OK\r\n")] {
            for size in [0, 1, 100, 5000] {
                let dialog = Dialog::new(protocol, 10, size);
                for (request, answer, verdict) in [(GET, hit(&dialog), Verdict::Hit), (SET, stored.into(), Verdict::Stored)] {
                    for end in 0..answer.len() {
                        assert_eq!(dialog.read(request, &answer[..end]), Answer::Partial);
                    }
                    let more = [&answer[..], b"VALUE"].concat();
                    assert_eq!(dialog.read(request, &more), whole(answer.len(), verdict));
                }
            }
        }
    }

    #[test]
    fn another_value_key_or_length_is_wrong() {
        let dialog = Dialog::new(Protocol::Memcached, 10, 5);
        let value = String::from_utf8_lossy(dialog.value(7)).into_owned();
        for answer in [
            "VALUE key-00000007 0 5\r\nwrong\r\nEND\r\n".to_string(),
            format!("VALUE key-00000008 0 5\r\n{value}\r\nEND\r\n"),
            format!("VALUE key-00000007 0 6\r\n{value}!\r\nEND\r\n"),
            format!("VALUE key-00000007 1 5\r\n{value}\r\nEND\r\n"),
        ] {
            assert_eq!(dialog.read(GET, answer.as_bytes()), whole(answer.len(), Verdict::Wrong), "{answer}");
        }
        let resp = Dialog::new(Protocol::Resp, 10, 5);
        assert_eq!(resp.read(GET, b"$5\r\nwrong\r\n"), whole(11, Verdict::Wrong));
    }

    #[test]
    fn misses_errors_and_nonsense_are_told_apart() {
        let dialog = Dialog::new(Protocol::Memcached, 10, 5);
        assert_eq!(dialog.read(GET, b"END\r\n"), whole(5, Verdict::Miss));
        assert_eq!(dialog.read(SET, b"SERVER_ERROR out of memory storing object\r\n"), whole(43, Verdict::Error));
        assert_eq!(dialog.read(GET, b"ERROR\r\n"), whole(7, Verdict::Error));
        assert_eq!(dialog.read(SET, b"NOT_STORED\r\n"), whole(12, Verdict::Wrong));
        assert_eq!(dialog.read(SET, b"END\r\n"), Answer::Garbled);
        assert_eq!(dialog.read(GET, b"VALUE key-00000007 0 5\r\n1234567890123456"), Answer::Garbled);
        assert_eq!(dialog.read(GET, &[b'x'; 5000]), Answer::Garbled);
        assert_eq!(dialog.read(GET, b"VALUE key-00000007 0 9999999999\r\nx"), Answer::Garbled);
        let resp = Dialog::new(Protocol::Resp, 10, 5);
        assert_eq!(resp.read(GET, b"$-1\r\n"), whole(5, Verdict::Miss));
        assert_eq!(resp.read(SET, b"-OOM command not allowed\r\n"), whole(26, Verdict::Error));
    }
}
