//! What a server says on a stream, taken apart and checked: the response head, chunks, the welcome, pings and messages.
//! Pure, and the same as `fleet/drone/answer.js`: where bytes were cut on their way makes no difference.

use super::Cause;
use super::pieces::{begins_as_status_line, data_of, find, has_header, number_of, sent_us};

const MOST_HEAD_BYTES: usize = 16_384;
const MOST_UNIT_BYTES: usize = 1_048_576;
/// Of what was not understood.
const SAMPLE_BYTES: usize = 80;
/// Digits of the size of a chunk.
const MOST_DIGITS: usize = 8;

const END_OF_HEAD: &[u8] = b"\r\n\r\n";
const END_OF_EVENT: &[u8] = b"\n\n";
const WELCOME: &[u8] = b"Welcome!";
const PING: &[u8] = b"ping";
/// Pings as they are on the wire, nearly always.
const TEXT_PING: &[u8] = b"4\r\nping\r\n";
const EVENT_PING: &[u8] = b"8\r\n: ping\n\n\r\n";

/// What came. Nothing follows an end, or what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    Open,
    Ping,
    /// With the time it was sent, in unix µs, where it says so.
    Message(Option<u64>),
    End,
    /// With the first of the bytes that were wrong.
    Wrong(Cause, &'a [u8]),
}

/// To whom it is said.
pub type Tell<'a> = &'a mut dyn FnMut(Said);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Stage {
    Head,
    Chunks,
    /// A body without chunks.
    Whole,
    /// Of a stream that may say anything.
    Any,
    Over,
}

const STRICT: u8 = 1;
const MESSAGES: u8 = 2;
const EVENTS: u8 = 4;
const OPEN: u8 = 8;

/// How far the reading of one stream has come. What it has of a unit that is not whole yet is in a `Rest`.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    stage: Stage,
    bits: u8,
}

/// Bytes that are no whole piece yet: of the head or of a chunk, and of an event.
#[derive(Debug, Default)]
pub struct Rest {
    bytes: Vec<u8>,
    event: Vec<u8>,
}

impl Rest {
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.event.is_empty()
    }

    /// Bytes that it keeps.
    pub fn kept(&self) -> usize {
        self.bytes.len() + self.event.len()
    }
}

impl Answer {
    pub fn new(is_strict: bool, allows_messages: bool) -> Self {
        let bits = if is_strict { STRICT } else { 0 } | if allows_messages { MESSAGES } else { 0 };
        Answer { stage: Stage::Head, bits }
    }

    fn has(self, bit: u8) -> bool {
        self.bits & bit != 0
    }

    /// How many pings the bytes are, where they are nothing else and no `Rest` came before them. `read` says the same.
    pub fn pings_in(self, bytes: &[u8]) -> Option<u32> {
        let ping = if self.has(EVENTS) { EVENT_PING } else { TEXT_PING };
        let is_due = self.stage == Stage::Chunks && self.has(OPEN) && bytes.len().is_multiple_of(ping.len());
        (is_due && bytes.chunks(ping.len()).all(|chunk| chunk == ping)).then_some((bytes.len() / ping.len()) as u32)
    }

    /// Reads what came, after what is in `rest`, and tells what it says.
    pub fn read(&mut self, bytes: &[u8], rest: &mut Rest, tell: Tell) {
        if self.stage == Stage::Any {
            return tell(Said::Ping);
        }
        let mut kept = std::mem::take(&mut rest.bytes);
        if kept.is_empty() {
            let used = self.take_apart(bytes, 0, &mut rest.event, tell);
            kept.extend_from_slice(&bytes[used..]);
        } else {
            let seen = kept.len();
            kept.extend_from_slice(bytes);
            let used = self.take_apart(&kept, seen, &mut rest.event, tell);
            kept.drain(..used);
        }
        rest.bytes = kept;
        if self.stage == Stage::Over {
            *rest = Rest::default();
        }
    }

    /// Reads whole pieces; of them `seen` bytes came before. Returns how many bytes they have.
    fn take_apart(&mut self, bytes: &[u8], seen: usize, event: &mut Vec<u8>, tell: Tell) -> usize {
        let mut used = 0;
        loop {
            let left = &bytes[used..];
            let piece = match self.stage {
                Stage::Head => self.read_head(left, seen, tell),
                Stage::Chunks => self.read_chunk(left, event, tell),
                Stage::Whole => {
                    self.read_payload(left, event, tell);
                    return bytes.len();
                }
                Stage::Any | Stage::Over => return bytes.len(),
            };
            match piece {
                Some(size) => used += size,
                None if self.stage == Stage::Over => return bytes.len(),
                None => return used,
            }
        }
    }

    /// The size of the head with its end, where it is whole and is that of a stream.
    fn read_head(&mut self, bytes: &[u8], seen: usize, tell: Tell) -> Option<usize> {
        let end = find(bytes, END_OF_HEAD, seen);
        if !begins_as_status_line(bytes) {
            return self.fail(Cause::Unexpected, &bytes[..end.unwrap_or(bytes.len())], tell);
        }
        let Some(end) = end else {
            let is_long = bytes.len() >= MOST_HEAD_BYTES + END_OF_HEAD.len();
            return if is_long { self.fail(Cause::Unexpected, bytes, tell) } else { None };
        };
        let head = &bytes[..end];
        if end > MOST_HEAD_BYTES {
            return self.fail(Cause::Unexpected, head, tell);
        }
        if &head[9..12] != b"200" {
            return self.fail(Cause::Status, head, tell);
        }
        self.note_head(head, tell)?;
        Some(end + END_OF_HEAD.len())
    }

    fn note_head(&mut self, head: &[u8], tell: Tell) -> Option<()> {
        if has_header(head, b"content-type:", b"text/event-stream") {
            self.bits |= EVENTS;
        }
        let is_chunked = has_header(head, b"transfer-encoding:", b"chunked");
        if !self.has(STRICT) {
            self.stage = Stage::Any;
            self.open(tell);
        } else if is_chunked {
            self.stage = Stage::Chunks;
        } else if self.has(EVENTS) {
            self.stage = Stage::Whole;
        } else {
            // Without chunks nothing tells where a text ends.
            return self.fail(Cause::Unexpected, head, tell);
        }
        Some(())
    }

    /// The size of the chunk with its size line and its end, where it is whole.
    fn read_chunk(&mut self, bytes: &[u8], event: &mut Vec<u8>, tell: Tell) -> Option<usize> {
        let digits = bytes.iter().take(MOST_DIGITS + 1).take_while(|byte| byte.is_ascii_hexdigit()).count();
        let line_end = &bytes[digits..bytes.len().min(digits + 2)];
        let is_sound = digits <= MOST_DIGITS && b"\r\n".starts_with(line_end) && (digits > 0 || bytes.is_empty());
        if !is_sound {
            return self.fail(Cause::Unexpected, bytes, tell);
        }
        if line_end.len() < 2 {
            return None;
        }
        let size = number_of(&bytes[..digits], 16) as usize;
        if size > MOST_UNIT_BYTES {
            return self.fail(Cause::Unexpected, bytes, tell);
        }
        let begin = digits + 2;
        let end = begin + size;
        let after = bytes.get(end..end + 2)?;
        if after != b"\r\n" {
            return self.fail(Cause::Unexpected, bytes, tell);
        }
        if size == 0 {
            self.stage = Stage::Over;
            tell(Said::End);
        } else {
            self.read_payload(&bytes[begin..end], event, tell);
        }
        Some(end + 2)
    }

    fn read_payload(&mut self, payload: &[u8], event: &mut Vec<u8>, tell: Tell) {
        if !self.has(EVENTS) {
            return self.read_text(payload, tell);
        }
        let mut kept = std::mem::take(event);
        if kept.is_empty() {
            let used = self.read_events(payload, 0, tell);
            kept.extend_from_slice(&payload[used..]);
        } else {
            let seen = kept.len();
            kept.extend_from_slice(payload);
            let used = self.read_events(&kept, seen, tell);
            kept.drain(..used);
        }
        if self.stage != Stage::Over && kept.len() >= MOST_UNIT_BYTES + END_OF_EVENT.len() {
            self.fail::<()>(Cause::Unexpected, &kept, tell);
        }
        *event = kept;
    }

    fn read_text(&mut self, text: &[u8], tell: Tell) {
        if self.has(OPEN) && text == PING {
            tell(Said::Ping);
        } else if self.has(OPEN) {
            self.read_message(text, tell);
        } else if text == WELCOME {
            self.open(tell);
        } else {
            self.fail::<()>(Cause::Unexpected, text, tell);
        }
    }

    /// Reads whole events; `seen` bytes came before. Returns how many bytes they have.
    fn read_events(&mut self, bytes: &[u8], seen: usize, tell: Tell) -> usize {
        let mut used = 0;
        let mut seen = seen;
        while self.stage != Stage::Over
            && let Some(size) = find(&bytes[used..], END_OF_EVENT, seen)
        {
            self.read_event(&bytes[used..used + size], tell);
            used += size + END_OF_EVENT.len();
            seen = 0;
        }
        used
    }

    fn read_event(&mut self, event: &[u8], tell: Tell) {
        let are_comments = || event.split(|byte| *byte == b'\n').all(|line| line.starts_with(b":"));
        match data_of(event) {
            _ if event.len() > MOST_UNIT_BYTES => drop(self.fail::<()>(Cause::Unexpected, event, tell)),
            Some(data) if self.has(OPEN) => self.read_message(&data, tell),
            Some(data) if data == WELCOME => self.open(tell),
            None if self.has(OPEN) && are_comments() => tell(Said::Ping),
            _ => drop(self.fail::<()>(Cause::Unexpected, event, tell)),
        }
    }

    fn read_message(&mut self, text: &[u8], tell: Tell) {
        if self.has(MESSAGES) {
            tell(Said::Message(sent_us(text)));
        } else {
            self.fail::<()>(Cause::Unexpected, text, tell);
        }
    }

    fn open(&mut self, tell: Tell) {
        self.bits |= OPEN;
        tell(Said::Open);
    }

    fn fail<T>(&mut self, cause: Cause, bytes: &[u8], tell: Tell) -> Option<T> {
        self.stage = Stage::Over;
        tell(Said::Wrong(cause, &bytes[..bytes.len().min(SAMPLE_BYTES)]));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &str = "HTTP/1.1 200 OK\r\ncontent-type:\ttext/plain\r\nTransfer-Encoding: Chunked\r\n\r\n";
    const EVENT_STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    const WELCOMED: &str = "8\r\nWelcome!\r\n";

    /// What is said, in words, and what is kept of it.
    fn heard(how: (bool, bool), pieces: &[&[u8]]) -> (Vec<String>, usize) {
        let (is_strict, allows_messages) = how;
        let mut answer = Answer::new(is_strict, allows_messages);
        let mut rest = Rest::default();
        let mut said = Vec::new();
        for piece in pieces {
            answer.read(piece, &mut rest, &mut |one| {
                said.push(match one {
                    Said::Wrong(cause, sample) => format!("{cause:?} {}", String::from_utf8_lossy(sample).escape_debug()),
                    other => format!("{other:?}"),
                })
            });
        }
        (said, rest.kept())
    }

    fn strict(bytes: &str) -> Vec<String> {
        heard((true, false), &[bytes.as_bytes()]).0
    }

    fn with_messages(bytes: &str) -> Vec<String> {
        heard((true, true), &[bytes.as_bytes()]).0
    }

    #[test]
    fn a_stream_of_text_is_open_once_it_is_welcomed_and_then_pings() {
        assert_eq!(strict(CHUNKED), [""; 0]);
        assert_eq!(strict(&format!("{CHUNKED}{WELCOMED}4\r\nping\r\n04\r\nping\r\n")), ["Open", "Ping", "Ping"]);
    }

    #[test]
    fn a_stream_of_events_is_open_once_it_is_welcomed_and_then_pings() {
        let events = "retry: 2000\nevent: welcome\ndata: Welcome!\n\n: ping\n\n:\n: two lines\n\n";
        assert_eq!(strict(&format!("{EVENT_STREAM}{events}")), ["Open", "Ping", "Ping"]);
    }

    #[test]
    fn messages_are_heard_where_they_may_come_with_the_time_they_were_sent() {
        let text = "3\r\nnew\r\n11\r\n@1763733211123456\r\n13\r\n@1763733211123456 x\r\n12\r\n@1763733211123456x\r\n";
        let some = "Message(Some(1763733211123456))";
        assert_eq!(with_messages(&format!("{CHUNKED}{WELCOMED}{text}")), ["Open", "Message(None)", some, some, "Message(None)"]);
        let events = "data:Welcome!\n\nid: 1\ndata: @1763733211123456\ndata: two\n\ndata: @1763733211123456 two\n\n";
        assert_eq!(with_messages(&format!("{EVENT_STREAM}{events}")), ["Open", "Message(None)", some]);
        assert_eq!(strict(&format!("{CHUNKED}{WELCOMED}3\r\nnew\r\n")), ["Open", "Unexpected new"]);
        assert_eq!(strict(&format!("{EVENT_STREAM}data: Welcome!\n\ndata: new\n\n")), ["Open", "Unexpected new"]);
    }

    #[test]
    fn the_last_chunk_is_the_end_and_nothing_follows_it() {
        assert_eq!(strict(&format!("{CHUNKED}{WELCOMED}0\r\n\r\n4\r\nping\r\n")), ["Open", "End"]);
        assert_eq!(strict(&format!("{CHUNKED}0\r\n\r\n")), ["End"]);
    }

    #[test]
    fn what_no_stream_says_is_named_with_its_bytes() {
        let status = "HTTP/1.1 404 Not Found\\r\\nA: b";
        assert_eq!(strict("HTTP/1.1 404 Not Found\r\nA: b\r\n\r\nbody"), [format!("Status {status}")]);
        let after_welcome = |wrong: &str| strict(&format!("{CHUNKED}{WELCOMED}{wrong}"));
        assert_eq!(after_welcome("5\r\npings\r\n"), ["Open", "Unexpected pings"]);
        assert_eq!(after_welcome("4\r\npingpong"), ["Open", "Unexpected 4\\r\\npingpong"]);
        assert_eq!(after_welcome("x"), ["Open", "Unexpected x"]);
        assert_eq!(after_welcome("\r\n"), ["Open", "Unexpected \\r\\n"]);
        assert_eq!(after_welcome("4;a=b\r\n"), ["Open", "Unexpected 4;a=b\\r\\n"]);
        assert_eq!(after_welcome("100001\r\n"), ["Open", "Unexpected 100001\\r\\n"]);
        assert_eq!(strict(&format!("{CHUNKED}4\r\nping\r\n")), ["Unexpected ping"]);
        assert_eq!(strict(&format!("{EVENT_STREAM}: ping\n\n")), ["Unexpected : ping"]);
        assert_eq!(strict(&format!("{EVENT_STREAM}data: Welcome!\n\nid: 1\n\n")), ["Open", "Unexpected id: 1"]);
    }

    #[test]
    fn what_can_be_no_head_is_told_at_once() {
        assert_eq!(strict("SSH-2.0-x\r\n\r\nmore"), ["Unexpected SSH-2.0-x"]);
        for head in ["SSH-2.0-x", "HTTP/2.0", "HTTP/1.1\t", "HTTP/1.1 2x", "\r\n"] {
            assert_eq!(strict(head), [format!("Unexpected {}", head.escape_debug())]);
        }
        let plain = "HTTP/1.1 200 OK\r\nContent-Length: 8";
        assert_eq!(strict(&format!("{plain}\r\n\r\nWelcome!")), [format!("Unexpected {}", plain.escape_debug())]);
    }

    #[test]
    fn a_head_or_a_unit_that_never_ends_is_not_kept_for_ever() {
        let long = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(MOST_HEAD_BYTES));
        let event = format!("{EVENT_STREAM}data: Welcome!\n\n: {}", "x".repeat(MOST_UNIT_BYTES));
        for (bytes, words) in [(&long, 1), (&event, 2), (&format!("{long}\r\n\r\n"), 1), (&format!("{event}\n\n"), 2)] {
            for size in [1 << 30, 4096] {
                let pieces: Vec<&[u8]> = bytes.as_bytes().chunks(size).collect();
                let (said, kept) = heard((true, true), &pieces);
                assert!(said.len() == words && said[words - 1].starts_with("Unexpected "), "{said:?}");
                assert_eq!(kept, 0);
            }
        }
    }

    #[test]
    fn where_bytes_are_cut_makes_no_difference() {
        let text = format!("{CHUNKED}{WELCOMED}4\r\nping\r\n13\r\n@1763733211123456 x\r\n4\r\nping\r\n0\r\n\r\n");
        let chunks = "a\r\ndata: Welc\r\n9\r\nome!\n\n: p\r\n5\r\ning\n\n\r\n8\r\n: ping\n\n\r\n";
        let events = format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{chunks}");
        for bytes in [text.as_bytes(), events.as_bytes()] {
            let (whole, kept) = heard((true, true), &[bytes]);
            assert!(whole.len() >= 3 && whole[0] == "Open" && kept == 0, "{whole:?}");
            for cut in 1..bytes.len() {
                assert_eq!(heard((true, true), &[&bytes[..cut], &bytes[cut..]]).0, whole, "cut at {cut}");
            }
            let each: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(heard((true, true), &each).0, whole);
        }
    }

    #[test]
    fn where_anything_may_be_said_a_read_is_a_ping_and_nothing_is_kept() {
        let head = b"HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\nsome";
        assert_eq!(heard((false, false), &[head, b"more", b"0\r\n\r\n"]), (vec!["Open".into(), "Ping".into(), "Ping".into()], 0));
        assert_eq!(heard((false, false), &[b"HTTP/1.0 503 No\r\n\r\n"]).0, ["Status HTTP/1.0 503 No"]);
    }

    #[test]
    fn pings_that_come_whole_are_counted_without_reading_them() {
        let mut text = Answer::new(true, false);
        assert_eq!(text.pings_in(TEXT_PING), None, "it is not open yet");
        text.read(format!("{CHUNKED}{WELCOMED}").as_bytes(), &mut Rest::default(), &mut |_| {});
        let mut events = Answer::new(true, false);
        let head = CHUNKED.replace("text/plain", "text/event-stream");
        events.read(format!("{head}10\r\ndata: Welcome!\n\n\r\n").as_bytes(), &mut Rest::default(), &mut |_| {});
        for (answer, ping, other) in [(text, TEXT_PING, EVENT_PING), (events, EVENT_PING, TEXT_PING)] {
            assert_eq!((answer.pings_in(ping), answer.pings_in(&ping.repeat(3))), (Some(1), Some(3)));
            assert_eq!((answer.pings_in(other), answer.pings_in(&ping[1..])), (None, None));
        }
    }
}
