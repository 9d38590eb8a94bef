//! Parses and checks what a server sends on a stream: the response head, chunks, the welcome, pings and messages; of a hub,
//! the blocks of Server-Sent Events; lines of JSON, answers of polls, and frames of WebSockets. It makes no difference how the bytes
//! are divided into reads. Pure, and the same as `fleet/drone/answer.js` and `fleet/drone/formats/`.

use super::Cause;
use super::block::{Block, block_of, unit_size};
use super::format::Format;
use super::frames::FrameHead;
use super::json::{self, Value};
use super::pieces::{begins_as_status_line, data_of, find, has_header, header_of, is_header, number_of, sent_us};
use crate::websocket::Opcode;

const MOST_HEAD_BYTES: usize = 16_384;
const MOST_UNIT_BYTES: usize = 1_048_576;
/// Of the answer of a poll, which may have many messages.
const MOST_POLL_BYTES: usize = 16 * MOST_UNIT_BYTES;
/// The size of a sample of wrong bytes.
const SAMPLE_BYTES: usize = 80;
/// The number of digits in the size of a chunk.
const MOST_DIGITS: usize = 8;

const END_OF_HEAD: &[u8] = b"\r\n\r\n";
const END_OF_EVENT: &[u8] = b"\n\n";
const WELCOME: &[u8] = b"Welcome!";
const PING: &[u8] = b"ping";
/// The position of a hub that may have forgotten something.
const EARLIEST: &[u8] = b"earliest";
/// What nearly all pings look like on the wire.
const TEXT_PING: &[u8] = b"4\r\nping\r\n";
const EVENT_PING: &[u8] = b"8\r\n: ping\n\n\r\n";
const LINE_PING: &[u8] = b"1\r\n\n\r\n";
const FRAME_PING: &[u8] = &[0x8a, 0];

/// What has arrived. Nothing follows `End` or `Wrong`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// The welcome; if the stream is not strict, or of a hub, the head of a successful response.
    Open,
    Ping,
    /// With the time it was sent, in unix µs, if it contains one.
    Message(Option<u64>),
    /// The hub says that publications may be missing before the next one.
    Gap,
    /// A block of events of a hub, or a message in JSON. If it has no data it only moves the cursor.
    Block(Block<'a>),
    /// What the server of a WebSocket makes of the key: Sec-WebSocket-Accept.
    Accept(&'a [u8]),
    /// A ping of a WebSocket, which has to be answered.
    Asked(&'a [u8]),
    /// A poll has its answer. Whether the connection goes on.
    Answered(bool),
    End,
    /// With the first of the wrong bytes.
    Wrong(Cause, &'a [u8]),
}

/// Gets the items.
pub type Sink<'a> = &'a mut dyn FnMut(Item);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Stage {
    Head,
    Chunks,
    /// A body without chunks.
    Raw,
    /// The body of a stream that is not strict and not of a hub.
    Anything,
    /// Those of a WebSocket.
    Frames,
    Over,
}

const STRICT: u8 = 1;
const MESSAGES: u8 = 2;
const EVENTS: u8 = 4;
const OPEN: u8 = 8;
/// The stream subscribes to topics of a hub.
const UPDATES: u8 = 16;
/// The first unit of such a stream has been read, or the first message of a WebSocket or in a line.
const GREETED: u8 = 32;

/// How far one response has been parsed. The bytes of an incomplete unit are in a `Partial`.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    stage: Stage,
    bits: u8,
    format: Format,
}

/// The bytes of incomplete units.
#[derive(Debug, Default)]
pub struct Partial {
    /// Of the head or of a chunk.
    bytes: Vec<u8>,
    /// Of an event.
    event: Vec<u8>,
}

impl Partial {
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.event.is_empty()
    }

    /// The number of bytes.
    pub fn kept(&self) -> usize {
        self.bytes.len() + self.event.len()
    }
}

impl Answer {
    pub fn new(is_strict: bool, allows_messages: bool) -> Self {
        let bits = if is_strict { STRICT } else { 0 } | if allows_messages { MESSAGES } else { 0 };
        Answer { stage: Stage::Head, bits, format: Format::Http }
    }

    /// Of a stream that subscribes to topics. If it is strict, all lines must be fields of events.
    pub fn of_hub(is_strict: bool) -> Self {
        let answer = Answer::new(is_strict, true);
        Answer { bits: answer.bits | UPDATES, ..answer }
    }

    pub fn in_format(self, format: Format) -> Self {
        Answer { format, ..self }
    }

    /// The stream is open before anything has arrived.
    pub fn set_open(&mut self) {
        self.bits |= OPEN;
    }

    fn has(self, bit: u8) -> bool {
        self.bits & bit != 0
    }

    /// The number of pings, if the bytes contain nothing else. Only for bytes that don't continue a `Partial`. A fast path:
    /// `read` finds the same.
    pub fn pings_in(self, bytes: &[u8]) -> Option<u32> {
        let ping = match self.format {
            Format::Ndjson => LINE_PING,
            Format::WebSocket => FRAME_PING,
            _ if self.has(EVENTS) => EVENT_PING,
            _ => TEXT_PING,
        };
        // Pings of events of a hub say more.
        let is_simple = self.has(OPEN) && (self.format != Format::Http || !self.has(UPDATES));
        let is_possible = is_simple && matches!(self.stage, Stage::Chunks | Stage::Frames) && bytes.len().is_multiple_of(ping.len());
        (is_possible && bytes.chunks(ping.len()).all(|chunk| chunk == ping)).then_some((bytes.len() / ping.len()) as u32)
    }

    /// Parses what has arrived, as a continuation of `partial`.
    pub fn read(&mut self, bytes: &[u8], partial: &mut Partial, sink: Sink) {
        if self.stage == Stage::Anything {
            return sink(Item::Ping);
        }
        let mut kept = std::mem::take(&mut partial.bytes);
        if kept.is_empty() {
            let used = self.read_pieces(bytes, 0, &mut partial.event, sink);
            kept.extend_from_slice(&bytes[used..]);
        } else {
            let seen = kept.len();
            kept.extend_from_slice(bytes);
            let used = self.read_pieces(&kept, seen, &mut partial.event, sink);
            kept.drain(..used);
        }
        partial.bytes = kept;
        if self.stage == Stage::Over {
            *partial = Partial::default();
        }
    }

    /// Parses complete pieces: the head, chunks. The first `seen` bytes came with earlier reads. Returns the size of the
    /// pieces.
    fn read_pieces(&mut self, bytes: &[u8], seen: usize, event: &mut Vec<u8>, sink: Sink) -> usize {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let piece = match self.stage {
                Stage::Head if self.format == Format::Poll => self.read_poll(rest, sink),
                Stage::Head => self.read_head(rest, seen, sink),
                Stage::Chunks => self.read_chunk(rest, event, sink),
                Stage::Frames => self.read_frame(rest, event, sink),
                Stage::Raw => {
                    self.read_payload(rest, event, sink);
                    return bytes.len();
                }
                Stage::Anything | Stage::Over => return bytes.len(),
            };
            match piece {
                Some(size) => used += size,
                None if self.stage == Stage::Over => return bytes.len(),
                None => return used,
            }
        }
    }

    /// Returns the size of the head and its end. None if it is incomplete or wrong.
    fn read_head(&mut self, bytes: &[u8], seen: usize, sink: Sink) -> Option<usize> {
        let end = find(bytes, END_OF_HEAD, seen);
        if !begins_as_status_line(bytes) {
            return self.fail(Cause::Unexpected, &bytes[..end.unwrap_or(bytes.len())], sink);
        }
        let Some(end) = end else {
            let is_long = bytes.len() >= MOST_HEAD_BYTES + END_OF_HEAD.len();
            return if is_long { self.fail(Cause::Unexpected, bytes, sink) } else { None };
        };
        let head = &bytes[..end];
        if end > MOST_HEAD_BYTES {
            return self.fail(Cause::Unexpected, head, sink);
        }
        let status = if self.format == Format::WebSocket { b"101" } else { b"200" };
        if &head[9..12] != status {
            return self.fail(Cause::of_status(&head[9..12]), head, sink);
        }
        match self.format {
            Format::WebSocket => self.apply_head_of_websocket(head, sink)?,
            Format::Ndjson => self.apply_head_of_lines(head, sink)?,
            _ => self.apply_head(head, sink)?,
        }
        Some(end + END_OF_HEAD.len())
    }

    fn apply_head(&mut self, head: &[u8], sink: Sink) -> Option<()> {
        if has_header(head, b"content-type:", b"text/event-stream") {
            self.bits |= EVENTS;
        }
        let is_chunked = has_header(head, b"transfer-encoding:", b"chunked");
        if self.has(UPDATES) {
            return self.apply_head_of_hub(head, is_chunked, sink);
        }
        if !self.has(STRICT) {
            self.stage = Stage::Anything;
            self.open(sink);
        } else if is_chunked {
            self.stage = Stage::Chunks;
        } else if self.has(EVENTS) {
            self.stage = Stage::Raw;
        } else {
            // A text without chunks has no boundaries.
            return self.fail(Cause::Unexpected, head, sink);
        }
        Some(())
    }

    fn apply_head_of_hub(&mut self, head: &[u8], is_chunked: bool, sink: Sink) -> Option<()> {
        if !self.has(EVENTS) {
            return self.fail(Cause::Unexpected, head, sink);
        }
        self.stage = if is_chunked { Stage::Chunks } else { Stage::Raw };
        self.open(sink);
        if reports_gap(head) {
            sink(Item::Gap);
        }
        Some(())
    }

    /// Lines are open as soon as their head is there.
    fn apply_head_of_lines(&mut self, head: &[u8], sink: Sink) -> Option<()> {
        if !self.has(STRICT) && !self.has(UPDATES) {
            self.stage = Stage::Anything;
        } else if !has_header(head, b"content-type:", b"application/x-ndjson") {
            return self.fail(Cause::Unexpected, head, sink);
        } else {
            self.stage = if has_header(head, b"transfer-encoding:", b"chunked") { Stage::Chunks } else { Stage::Raw };
        }
        self.open(sink);
        if self.has(UPDATES) {
            note_position(head, sink);
        }
        Some(())
    }

    fn apply_head_of_websocket(&mut self, head: &[u8], sink: Sink) -> Option<()> {
        let Some(accept) = header_of(head, b"sec-websocket-accept:") else { return self.fail(Cause::Unexpected, head, sink) };
        if !has_header(head, b"upgrade:", b"websocket") {
            return self.fail(Cause::Unexpected, head, sink);
        }
        self.stage = Stage::Frames;
        sink(Item::Accept(accept));
        self.open(sink);
        Some(())
    }

    /// The answer of a poll. Returns its size. None if it is incomplete or wrong.
    fn read_poll(&mut self, bytes: &[u8], sink: Sink) -> Option<usize> {
        let end = find(bytes, END_OF_HEAD, 0);
        let is_long = end.unwrap_or(bytes.len().saturating_sub(END_OF_HEAD.len() - 1)) > MOST_HEAD_BYTES;
        if is_long || !begins_as_status_line(bytes) {
            return self.fail(Cause::Unexpected, &bytes[..end.unwrap_or(bytes.len())], sink);
        }
        let head = &bytes[..end?];
        let status = &head[9..12];
        let length = header_of(head, b"content-length:").filter(|digits| digits.iter().all(u8::is_ascii_digit));
        let size = match (status, length) {
            (b"204", _) => 0,
            (b"200", Some(digits)) if (1..=MOST_DIGITS).contains(&digits.len()) => number_of(digits, 10) as usize,
            (b"200", _) => return self.fail(Cause::Unexpected, head, sink),
            _ => return self.fail(Cause::of_status(status), head, sink),
        };
        if size > MOST_POLL_BYTES {
            return self.fail(Cause::Unexpected, head, sink);
        }
        let begin = head.len() + END_OF_HEAD.len();
        let body = bytes.get(begin..begin + size)?;
        if !self.has(OPEN) {
            self.open(sink);
        }
        note_position(head, sink);
        if !body.is_empty() {
            self.read_answer(body, sink);
        }
        if self.stage == Stage::Over {
            return None;
        }
        let is_last = has_header(head, b"connection:", b"close") || head.starts_with(b"HTTP/1.0");
        sink(Item::Answered(!is_last));
        Some(begin + size)
    }

    /// `{"messages":[…],"cursor":"…"}`, and `"missing":true` if the hub may have forgotten something.
    fn read_answer(&mut self, body: &[u8], sink: Sink) {
        let (mut cursor, mut messages, mut is_missing) = (None, None, false);
        let read = json::members(body, |name, value| match (name, value) {
            (b"cursor", Value::Text(text)) => cursor = Some(text),
            (b"messages", Value::Other(list)) => messages = Some(list),
            (b"missing", value) => is_missing = value == Value::Other(b"true"),
            _ => {}
        });
        let all = read.and(messages).and_then(|list| {
            let mut all = Vec::new();
            json::elements(list, |message| all.push(message)).map(|()| all)
        });
        let Some(all) = all else {
            if self.has(STRICT) {
                self.fail::<()>(Cause::Unexpected, body, sink);
            } else {
                sink(Item::Message(None));
            }
            return;
        };
        if is_missing {
            sink(Item::Gap);
        }
        for message in all {
            if self.stage != Stage::Over {
                self.read_json(message, sink);
            }
        }
        if let Some(cursor) = cursor.filter(|_| self.stage != Stage::Over) {
            sink(Item::Block(Block { id: Some(&cursor), ..Block::default() }));
        }
    }

    /// A message in JSON, or anything else that a hub says about itself.
    fn read_json(&mut self, text: &[u8], sink: Sink) {
        let (mut id, mut data, mut cursor, mut is_missing) = (None, None, None, false);
        let read = json::members(text, |name, value| match (name, value) {
            (b"id", Value::Text(text)) => id = Some(text),
            (b"data", Value::Text(text)) => data = Some(text),
            (b"cursor", Value::Text(text)) => cursor = Some(text),
            (b"missing", value) => is_missing = value == Value::Other(b"true"),
            _ => {}
        });
        if read.is_none() || (data.is_none() && !self.has(UPDATES)) {
            if self.has(STRICT) {
                self.fail::<()>(Cause::Unexpected, text, sink);
            }
            return;
        }
        if is_missing {
            sink(Item::Gap);
        }
        let (id, data) = (id.or(cursor), data.as_deref());
        match data {
            Some(data) if !self.has(UPDATES) => self.read_first_or_message(data, sink),
            _ if id.is_some() || data.is_some() => sink(Item::Block(Block { id: id.as_deref(), data, is_odd: false })),
            _ => {}
        }
    }

    /// The first message may be the welcome.
    fn read_first_or_message(&mut self, text: &[u8], sink: Sink) {
        let is_welcome = !self.has(GREETED) && text == WELCOME;
        self.bits |= GREETED;
        if !is_welcome {
            self.read_message(text, sink);
        }
    }

    /// Lines of JSON; empty ones are pings. Returns their size.
    fn read_lines(&mut self, bytes: &[u8], seen: usize, sink: Sink) -> usize {
        let mut used = 0;
        let mut seen = seen;
        while self.stage != Stage::Over
            && let Some(size) = find(&bytes[used..], b"\n", seen)
        {
            match &bytes[used..used + size] {
                b"" => sink(Item::Ping),
                line => self.read_json(line, sink),
            }
            used += size + 1;
            seen = 0;
        }
        used
    }

    /// Returns the size of the frame. None if it is incomplete or wrong. `message` has the frames before it of the same message.
    fn read_frame(&mut self, bytes: &[u8], message: &mut Vec<u8>, sink: Sink) -> Option<usize> {
        let Ok(head) = FrameHead::read(bytes) else { return self.fail(Cause::Unexpected, bytes, sink) };
        let FrameHead { opcode, is_last, begin, size } = head?;
        if size > MOST_UNIT_BYTES.saturating_sub(message.len()) {
            return self.fail(Cause::Unexpected, bytes, sink);
        }
        let payload = bytes.get(begin..begin + size)?;
        match opcode {
            Opcode::Pong => sink(Item::Ping),
            Opcode::Ping => {
                sink(Item::Ping);
                sink(Item::Asked(payload));
            }
            Opcode::Close => {
                let (cause, why) = Cause::of_close(payload);
                return self.fail(cause, why, sink);
            }
            Opcode::Text | Opcode::Continuation if !is_last => message.extend_from_slice(payload),
            _ if message.is_empty() => self.read_frame_text(payload, sink),
            _ => {
                message.extend_from_slice(payload);
                let whole = std::mem::take(message);
                self.read_frame_text(&whole, sink);
            }
        }
        if self.stage == Stage::Over { None } else { Some(begin + size) }
    }

    /// What a WebSocket says is JSON if it is of a hub.
    fn read_frame_text(&mut self, text: &[u8], sink: Sink) {
        if self.has(UPDATES) { self.read_json(text, sink) } else { self.read_first_or_message(text, sink) }
    }

    /// Returns the size of the chunk with its size line and its end. None if it is incomplete or wrong.
    fn read_chunk(&mut self, bytes: &[u8], event: &mut Vec<u8>, sink: Sink) -> Option<usize> {
        let digits = bytes.iter().take(MOST_DIGITS + 1).take_while(|byte| byte.is_ascii_hexdigit()).count();
        let line_end = &bytes[digits..bytes.len().min(digits + 2)];
        let is_valid = digits <= MOST_DIGITS && b"\r\n".starts_with(line_end) && (digits > 0 || bytes.is_empty());
        if !is_valid {
            return self.fail(Cause::Unexpected, bytes, sink);
        }
        if line_end.len() < 2 {
            return None;
        }
        let size = number_of(&bytes[..digits], 16) as usize;
        if size > MOST_UNIT_BYTES {
            return self.fail(Cause::Unexpected, bytes, sink);
        }
        let begin = digits + 2;
        let end = begin + size;
        let after = bytes.get(end..end + 2)?;
        if after != b"\r\n" {
            return self.fail(Cause::Unexpected, bytes, sink);
        }
        if size == 0 {
            self.stage = Stage::Over;
            sink(Item::End);
        } else {
            self.read_payload(&bytes[begin..end], event, sink);
        }
        Some(end + 2)
    }

    fn read_payload(&mut self, payload: &[u8], event: &mut Vec<u8>, sink: Sink) {
        if !self.has(EVENTS) && self.format == Format::Http {
            return self.read_text(payload, sink);
        }
        let mut kept = std::mem::take(event);
        if kept.is_empty() {
            let used = self.read_units(payload, 0, sink);
            kept.extend_from_slice(&payload[used..]);
        } else {
            let seen = kept.len();
            kept.extend_from_slice(payload);
            let used = self.read_units(&kept, seen, sink);
            kept.drain(..used);
        }
        if self.stage != Stage::Over && kept.len() >= MOST_UNIT_BYTES + END_OF_EVENT.len() {
            self.fail::<()>(Cause::Unexpected, &kept, sink);
        }
        *event = kept;
    }

    fn read_text(&mut self, text: &[u8], sink: Sink) {
        if self.has(OPEN) && text == PING {
            sink(Item::Ping);
        } else if self.has(OPEN) {
            self.read_message(text, sink);
        } else if text == WELCOME {
            self.open(sink);
        } else {
            self.fail::<()>(Cause::Unexpected, text, sink);
        }
    }

    fn read_units(&mut self, bytes: &[u8], seen: usize, sink: Sink) -> usize {
        match self.format {
            Format::Ndjson => self.read_lines(bytes, seen, sink),
            _ if self.has(UPDATES) => self.read_blocks(bytes, seen, sink),
            _ => self.read_events(bytes, seen, sink),
        }
    }

    /// As `read_events`, for a hub.
    fn read_blocks(&mut self, bytes: &[u8], seen: usize, sink: Sink) -> usize {
        let mut used = 0;
        let mut seen = seen;
        while self.stage != Stage::Over
            && let Some(size) = unit_size(&bytes[used..], seen)
        {
            self.read_block(&bytes[used..used + size], sink);
            used += size;
            seen = 0;
        }
        used
    }

    /// A block without data, or a comment, is a ping, unless it is the first thing that the hub sends.
    fn read_block(&mut self, unit: &[u8], sink: Sink) {
        if unit == b"\n" {
            return;
        }
        let block = block_of(unit);
        if unit.len() > MOST_UNIT_BYTES + END_OF_EVENT.len() || (block.is_odd && self.has(STRICT)) {
            self.fail::<()>(Cause::Unexpected, unit, sink);
            return;
        }
        let is_ping = block.data.is_none() && self.has(GREETED);
        self.bits |= GREETED;
        if block.id.is_some() || block.data.is_some() {
            sink(Item::Block(block));
        }
        if is_ping {
            sink(Item::Ping);
        }
    }

    /// Parses complete events. The first `seen` bytes came with earlier reads. Returns the size of the events.
    fn read_events(&mut self, bytes: &[u8], seen: usize, sink: Sink) -> usize {
        let mut used = 0;
        let mut seen = seen;
        while self.stage != Stage::Over
            && let Some(size) = find(&bytes[used..], END_OF_EVENT, seen)
        {
            self.read_event(&bytes[used..used + size], sink);
            used += size + END_OF_EVENT.len();
            seen = 0;
        }
        used
    }

    fn read_event(&mut self, event: &[u8], sink: Sink) {
        let are_comments = || event.split(|byte| *byte == b'\n').all(|line| line.starts_with(b":"));
        match data_of(event) {
            _ if event.len() > MOST_UNIT_BYTES => drop(self.fail::<()>(Cause::Unexpected, event, sink)),
            Some(data) if self.has(OPEN) => self.read_message(&data, sink),
            Some(data) if data == WELCOME => self.open(sink),
            None if self.has(OPEN) && are_comments() => sink(Item::Ping),
            _ => drop(self.fail::<()>(Cause::Unexpected, event, sink)),
        }
    }

    fn read_message(&mut self, text: &[u8], sink: Sink) {
        if self.has(MESSAGES) {
            sink(Item::Message(sent_us(text)));
        } else {
            self.fail::<()>(Cause::Unexpected, text, sink);
        }
    }

    fn open(&mut self, sink: Sink) {
        self.bits |= OPEN;
        sink(Item::Open);
    }

    fn fail<T>(&mut self, cause: Cause, bytes: &[u8], sink: Sink) -> Option<T> {
        self.stage = Stage::Over;
        sink(Item::Wrong(cause, &bytes[..bytes.len().min(SAMPLE_BYTES)]));
        None
    }
}

/// Whether a hub says that publications may be missing: the name in the draft, and the one in version 0.x.
fn reports_gap(head: &[u8]) -> bool {
    [&b"mercure-last-event-id:"[..], b"last-event-id:"].iter().any(|name| is_header(head, name, EARLIEST))
}

/// What a head says about where the client is. Of events, the first block says it.
fn note_position(head: &[u8], sink: Sink) {
    if reports_gap(head) {
        sink(Item::Gap);
    }
    if let Some(id) = header_of(head, b"last-event-id:").filter(|id| *id != EARLIEST) {
        sink(Item::Block(Block { id: Some(id), ..Block::default() }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &str = "HTTP/1.1 200 OK\r\ncontent-type:\ttext/plain\r\nTransfer-Encoding: Chunked\r\n\r\n";
    const EVENT_STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    const WELCOMED: &str = "8\r\nWelcome!\r\n";

    /// The items as text, and the number of bytes kept. `how`: is it strict, and does it allow messages?
    fn items(how: (bool, bool), pieces: &[&[u8]]) -> (Vec<String>, usize) {
        let (is_strict, allows_messages) = how;
        let mut answer = Answer::new(is_strict, allows_messages);
        let mut partial = Partial::default();
        let mut items = Vec::new();
        for piece in pieces {
            answer.read(piece, &mut partial, &mut |item| {
                items.push(match item {
                    Item::Wrong(cause, sample) => format!("{cause:?} {}", String::from_utf8_lossy(sample).escape_debug()),
                    other => format!("{other:?}"),
                })
            });
        }
        (items, partial.kept())
    }

    fn strict(bytes: &str) -> Vec<String> {
        items((true, false), &[bytes.as_bytes()]).0
    }

    fn with_messages(bytes: &str) -> Vec<String> {
        items((true, true), &[bytes.as_bytes()]).0
    }

    #[test]
    fn a_text_stream_is_open_after_the_welcome_and_then_gets_pings() {
        assert_eq!(strict(CHUNKED), [""; 0]);
        assert_eq!(strict(&format!("{CHUNKED}{WELCOMED}4\r\nping\r\n04\r\nping\r\n")), ["Open", "Ping", "Ping"]);
    }

    #[test]
    fn an_event_stream_is_open_after_the_welcome_and_then_gets_pings() {
        let events = "retry: 2000\nevent: welcome\ndata: Welcome!\n\n: ping\n\n:\n: two lines\n\n";
        assert_eq!(strict(&format!("{EVENT_STREAM}{events}")), ["Open", "Ping", "Ping"]);
    }

    #[test]
    fn messages_are_reported_with_the_time_they_were_sent_if_they_are_allowed() {
        let text = "3\r\nnew\r\n11\r\n@1763733211123456\r\n13\r\n@1763733211123456 x\r\n12\r\n@1763733211123456x\r\n";
        let some = "Message(Some(1763733211123456))";
        assert_eq!(with_messages(&format!("{CHUNKED}{WELCOMED}{text}")), ["Open", "Message(None)", some, some, "Message(None)"]);
        let events = "data:Welcome!\n\nid: 1\ndata: @1763733211123456\ndata: two\n\ndata: @1763733211123456 two\n\n";
        assert_eq!(with_messages(&format!("{EVENT_STREAM}{events}")), ["Open", "Message(None)", some]);
        assert_eq!(strict(&format!("{CHUNKED}{WELCOMED}3\r\nnew\r\n")), ["Open", "Unexpected new"]);
        assert_eq!(strict(&format!("{EVENT_STREAM}data: Welcome!\n\ndata: new\n\n")), ["Open", "Unexpected new"]);
    }

    #[test]
    fn nothing_is_read_after_the_last_chunk() {
        assert_eq!(strict(&format!("{CHUNKED}{WELCOMED}0\r\n\r\n4\r\nping\r\n")), ["Open", "End"]);
        assert_eq!(strict(&format!("{CHUNKED}0\r\n\r\n")), ["End"]);
    }

    #[test]
    fn wrong_bytes_are_reported_with_a_sample() {
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
    fn a_wrong_head_is_reported_before_it_is_complete() {
        assert_eq!(strict("SSH-2.0-x\r\n\r\nmore"), ["Unexpected SSH-2.0-x"]);
        for head in ["SSH-2.0-x", "HTTP/2.0", "HTTP/1.1\t", "HTTP/1.1 2x", "\r\n"] {
            assert_eq!(strict(head), [format!("Unexpected {}", head.escape_debug())]);
        }
        let plain = "HTTP/1.1 200 OK\r\nContent-Length: 8";
        assert_eq!(strict(&format!("{plain}\r\n\r\nWelcome!")), [format!("Unexpected {}", plain.escape_debug())]);
    }

    #[test]
    fn the_size_of_a_head_and_of_a_unit_is_limited() {
        let long = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(MOST_HEAD_BYTES));
        let event = format!("{EVENT_STREAM}data: Welcome!\n\n: {}", "x".repeat(MOST_UNIT_BYTES));
        for (bytes, count) in [(&long, 1), (&event, 2), (&format!("{long}\r\n\r\n"), 1), (&format!("{event}\n\n"), 2)] {
            for size in [1 << 30, 4096] {
                let pieces: Vec<&[u8]> = bytes.as_bytes().chunks(size).collect();
                let (found, kept) = items((true, true), &pieces);
                assert!(found.len() == count && found[count - 1].starts_with("Unexpected "), "{found:?}");
                assert_eq!(kept, 0);
            }
        }
    }

    #[test]
    fn it_makes_no_difference_how_bytes_are_divided() {
        let text = format!("{CHUNKED}{WELCOMED}4\r\nping\r\n13\r\n@1763733211123456 x\r\n4\r\nping\r\n0\r\n\r\n");
        let chunks = "a\r\ndata: Welc\r\n9\r\nome!\n\n: p\r\n5\r\ning\n\n\r\n8\r\n: ping\n\n\r\n";
        let events = format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{chunks}");
        for bytes in [text.as_bytes(), events.as_bytes()] {
            let (whole, kept) = items((true, true), &[bytes]);
            assert!(whole.len() >= 3 && whole[0] == "Open" && kept == 0, "{whole:?}");
            for cut in 1..bytes.len() {
                assert_eq!(items((true, true), &[&bytes[..cut], &bytes[cut..]]).0, whole, "cut at {cut}");
            }
            let each: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(items((true, true), &each).0, whole);
        }
    }

    #[test]
    fn every_read_of_a_stream_that_is_not_strict_counts_as_a_ping_and_nothing_is_kept() {
        let head = b"HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\nsome";
        assert_eq!(items((false, false), &[head, b"more", b"0\r\n\r\n"]), (vec!["Open".into(), "Ping".into(), "Ping".into()], 0));
        assert_eq!(items((false, false), &[b"HTTP/1.0 500 No\r\n\r\n"]).0, ["Status HTTP/1.0 500 No"]);
    }

    const HUB: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nMercure-Last-Event-ID: #abc\r\n\r\n";

    /// The items of a hub, as text.
    fn of_hub(is_strict: bool, pieces: &[&[u8]]) -> Vec<String> {
        let mut answer = Answer::of_hub(is_strict);
        let mut partial = Partial::default();
        let mut items = Vec::new();
        for piece in pieces {
            answer.read(piece, &mut partial, &mut |item| {
                items.push(match item {
                    Item::Block(Block { id, data, .. }) => {
                        let text = |bytes: Option<&[u8]>| bytes.map_or("-".into(), |bytes| String::from_utf8_lossy(bytes).into_owned());
                        format!("{} {}", text(id), text(data))
                    }
                    Item::Wrong(cause, sample) => format!("{cause:?} {}", String::from_utf8_lossy(sample).escape_debug()),
                    other => format!("{other:?}"),
                })
            });
        }
        items
    }

    fn strict_hub(bytes: &str) -> Vec<String> {
        of_hub(true, &[bytes.as_bytes()])
    }

    #[test]
    fn a_stream_of_a_hub_is_open_after_the_head_and_its_first_block_is_no_ping() {
        let blocks = "id: #1\n\nid: #2\n\n:\n\n: ping\nid: #3\ndata: x\n\n\nevent: mercure\ndata: y\ndata: z\n\n";
        assert_eq!(strict_hub(HUB), ["Open"]);
        assert_eq!(strict_hub(&format!("{HUB}{blocks}")), ["Open", "#1 -", "#2 -", "Ping", "Ping", "Ping", "#3 x", "- y"]);
        assert_eq!(strict_hub(&format!("{HUB}:\n:\nretry: 5\n\n")), ["Open", "Ping", "Ping"]);
    }

    #[test]
    fn a_hub_reports_a_gap_in_its_head_in_both_dialects() {
        for name in ["Mercure-Last-Event-ID", "Last-Event-ID"] {
            let head = |value: &str| format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{name}:{value}\r\n\r\n");
            assert_eq!(strict_hub(&head(" earliest ")), ["Open", "Gap"]);
            assert_eq!(strict_hub(&head("earliest-of-all")), ["Open"]);
        }
    }

    #[test]
    fn what_is_not_an_event_stream_is_unexpected_on_a_stream_of_a_hub() {
        assert_eq!(strict_hub(&format!("{HUB}hello\n\n")), ["Open", "Unexpected hello\\n\\n"]);
        assert_eq!(of_hub(false, &[format!("{HUB}hello\n\nid: 1\n\n").as_bytes()]), ["Open", "1 -", "Ping"]);
        assert!(strict_hub("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")[0].starts_with("Unexpected HTTP/1.1 200"));
    }

    #[test]
    fn refusals_of_a_hub_have_causes_of_their_own() {
        for (status, cause) in [(401, "Unauthorized"), (403, "Forbidden"), (429, "TooMany"), (503, "Unavailable"), (400, "Status")] {
            assert_eq!(strict_hub(&format!("HTTP/1.1 {status} No\r\n\r\n")), [format!("{cause} HTTP/1.1 {status} No")]);
        }
    }

    #[test]
    fn blocks_of_a_hub_may_be_divided_anywhere() {
        let chunks = "a\r\nid: #1\n\nid\r\n15\r\n: #2\ndata: {\"n\":1}\n\n:\r\n3\r\n\n\n\n\r\n7\r\ndata:x\n\r\n1\r\n\n\r\n0\r\n\r\n";
        let bytes = format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        let whole = strict_hub(&bytes);
        assert_eq!(whole, ["Open", "#1 -", "#2 {\"n\":1}", "Ping", "- x", "End"]);
        for cut in 1..bytes.len() {
            let (one, other) = bytes.as_bytes().split_at(cut);
            assert_eq!(of_hub(true, &[one, other]), whole, "cut at {cut}");
        }
        assert_eq!(of_hub(true, &bytes.as_bytes().chunks(1).collect::<Vec<_>>()), whole);
    }

    #[test]
    fn the_size_of_a_block_is_limited() {
        let block = format!("{HUB}data: {}", "x".repeat(MOST_UNIT_BYTES));
        for bytes in [&block, &format!("{block}\n\n")] {
            for size in [1 << 30, 4096] {
                let pieces: Vec<&[u8]> = bytes.as_bytes().chunks(size).collect();
                let found = of_hub(true, &pieces);
                assert!(found.len() == 2 && found[1].starts_with("Unexpected data: xxx"), "{}", found.len());
            }
        }
    }

    /// The items of a stream of a hub in a format, however its bytes are divided.
    fn in_format(format: Format, bytes: &[u8]) -> Vec<String> {
        let read = |size: usize| {
            let mut answer = Answer::of_hub(true).in_format(format);
            let (mut partial, mut items) = (Partial::default(), Vec::new());
            for piece in bytes.chunks(size) {
                answer.read(piece, &mut partial, &mut |item| {
                    items.push(match item {
                        Item::Block(Block { id, data, .. }) => format!("{:?} {:?}", id.map(str::from_utf8), data.map(str::from_utf8)),
                        Item::Wrong(cause, sample) => format!("{cause:?} {}", String::from_utf8_lossy(sample).escape_debug()),
                        other => format!("{other:?}"),
                    })
                });
            }
            items
        };
        let whole = read(bytes.len());
        assert!([1, 2, 3, 7].into_iter().all(|size| read(size) == whole), "{whole:?}");
        whole.into_iter().map(|item| item.replace("Some(Ok(", "(").replace("))", ")")).collect()
    }

    #[test]
    fn lines_of_json_may_be_divided_anywhere() {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nLast-Event-ID: #0\r\n\r\n";
        let lines = "\n{\"id\":\"#1\",\"data\":\"a\\n\"}\n\n{\"n\":1}\nhello\n{}\n";
        let expected = ["Open", "(\"#0\") None", "Ping", "(\"#1\") (\"a\\n\")", "Ping", "Unexpected hello"];
        assert_eq!(in_format(Format::Ndjson, format!("{head}{lines}").as_bytes()), expected);
    }

    #[test]
    fn answers_of_polls_may_be_divided_anywhere() {
        let body = "{\"messages\":[{\"id\":\"#1\",\"data\":\"a\"}],\"cursor\":\"#2\",\"missing\":true}";
        let answers = format!(
            "HTTP/1.1 204 No Content\r\nLast-Event-ID: #0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}HTTP/1.1 403 No\r\n\r\n",
            body.len()
        );
        let first = ["Open", "(\"#0\") None", "Answered(true)"];
        let others = ["Gap", "(\"#1\") (\"a\")", "(\"#2\") None", "Answered(true)", "Forbidden HTTP/1.1 403 No"];
        assert_eq!(in_format(Format::Poll, answers.as_bytes()), [&first[..], &others].concat());
        assert_eq!(in_format(Format::Poll, b"HTTP/1.1 204 No\r\nConnection: close\r\n\r\n"), ["Open", "Answered(false)"]);
    }

    #[test]
    fn frames_of_websockets_may_be_divided_anywhere() {
        let head = b"HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: a\r\n\r\n";
        let frames = b"\x81\x0f{\"cursor\":\"#0\"}\x8a\x00\x01\x0a{\"data\":\"a\x89\x00\x80\x02\"}\x88\x02\x03\xe9";
        let expected = ["Accept([97])", "Open", "(\"#0\") None", "Ping", "Ping", "Asked([])", "None (\"a\")", "Close1001 "];
        assert_eq!(in_format(Format::WebSocket, &[&head[..], frames].concat()), expected);
    }

    #[test]
    fn complete_pings_are_counted_without_parsing_them() {
        let mut text = Answer::new(true, false);
        assert_eq!(text.pings_in(TEXT_PING), None, "it is not open yet");
        text.read(format!("{CHUNKED}{WELCOMED}").as_bytes(), &mut Partial::default(), &mut |_| {});
        let mut events = Answer::new(true, false);
        let head = CHUNKED.replace("text/plain", "text/event-stream");
        events.read(format!("{head}10\r\ndata: Welcome!\n\n\r\n").as_bytes(), &mut Partial::default(), &mut |_| {});
        for (answer, ping, other) in [(text, TEXT_PING, EVENT_PING), (events, EVENT_PING, TEXT_PING)] {
            assert_eq!((answer.pings_in(ping), answer.pings_in(&ping.repeat(3))), (Some(1), Some(3)));
            assert_eq!((answer.pings_in(other), answer.pings_in(&ping[1..])), (None, None));
        }
    }
}
