//! How messages look on the wire. An *encoding* turns a message into a payload; a *framing* wraps the payload. Both are
//! numbered as in `native/protocol.js`. A message is encoded and framed once for each format in use, and the result is
//! sent as it is to every stream of that format.

use std::borrow::Cow;
use std::io::Write;
use std::num::NonZeroU32;
use std::sync::OnceLock;

use crate::json;
use crate::websocket;

/// The encodings, by number.
pub const ENCODING_NAMES: [&str; ENCODINGS] = ["text", "events", "updates", "json", "jsonUpdates"];
/// The framings, by number.
pub const FRAMING_NAMES: [&str; FRAMINGS] = ["raw", "chunked", "websocket", "poll"];
pub const ENCODINGS: usize = 5;
pub const FRAMINGS: usize = 4;
pub const FORMATS: usize = ENCODINGS * FRAMINGS;

const TEXT: u8 = 0;
/// Written like events. Only their pings are different: those contain the cursor.
const UPDATES: u8 = 2;
const JSON: u8 = 3;
/// Written like JSON, for streams of the hub.
const JSON_UPDATES: u8 = 4;
const RAW: u8 = 0;
const WEBSOCKET: u8 = 2;
/// Not a stream of messages, but one answer: when there is one, or several at once.
const POLL: u8 = 3;
const FRAMING_SHIFT: u32 = 4;

/// What a message looks like before it is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Payload {
    Text,
    Event,
    Json,
}

/// An encoding, in the lower four bits, and a framing, in the upper four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format(u8);

impl Format {
    /// None when there is no such encoding or framing, or they don't go together.
    pub fn from_byte(byte: u8) -> Option<Self> {
        let format = Format(byte);
        let is_known = format.encoding() < ENCODINGS && format.framing() < FRAMINGS;
        let fits = match byte >> FRAMING_SHIFT {
            WEBSOCKET => is_known && format.payload() != Payload::Event,
            POLL => is_known && format.payload() == Payload::Json,
            _ => is_known,
        };
        fits.then_some(format)
    }

    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).filter_map(Format::from_byte)
    }

    pub fn byte(self) -> u8 {
        self.0
    }

    pub fn encoding(self) -> usize {
        usize::from(self.0 & 0xf)
    }

    pub fn framing(self) -> usize {
        usize::from(self.0 >> FRAMING_SHIFT)
    }

    /// Its place among all formats.
    pub fn slot(self) -> usize {
        self.framing() * ENCODINGS + self.encoding()
    }

    /// Whether it is for streams of updates.
    pub fn is_of_updates(self) -> bool {
        matches!(self.0 & 0xf, UPDATES | JSON_UPDATES)
    }

    /// Whether its pings contain the cursor.
    pub fn has_cursor(self) -> bool {
        self.0 & 0xf == UPDATES
    }

    /// Whether older processes don't know it.
    pub fn is_newer(self) -> bool {
        self.0 & 0xf > UPDATES || self.framing() > 1
    }

    pub fn is_websocket(self) -> bool {
        self.0 >> FRAMING_SHIFT == WEBSOCKET
    }

    pub fn is_poll(self) -> bool {
        self.0 >> FRAMING_SHIFT == POLL
    }

    fn payload(self) -> Payload {
        match self.0 & 0xf {
            TEXT => Payload::Text,
            JSON | JSON_UPDATES => Payload::Json,
            _ => Payload::Event,
        }
    }

    fn is_raw(self) -> bool {
        self.0 >> FRAMING_SHIFT == RAW
    }

    /// The bytes that end a stream of HTTP.
    pub fn end(self) -> &'static [u8] {
        if self.is_raw() { b"" } else { b"0\r\n\r\n" }
    }

    /// What keeps a stream alive. A WebSocket gets a pong that nobody has asked for (RFC 6455, section 5.5.3), because its client does not
    /// answer that; a poll gets nothing.
    pub fn ping<'a>(self, payload: &'a [u8]) -> Cow<'a, [u8]> {
        match self.0 >> FRAMING_SHIFT {
            WEBSOCKET => Cow::Borrowed(&websocket::HEARTBEAT),
            POLL => Cow::Borrowed(b""),
            _ => self.frame(payload),
        }
    }

    /// Wraps a payload. An empty payload stays empty: an empty chunk would end the stream. Of JSON, each line is a message of a WebSocket.
    pub fn frame<'a>(self, payload: &'a [u8]) -> Cow<'a, [u8]> {
        if self.is_raw() || self.is_poll() || payload.is_empty() {
            return Cow::Borrowed(payload);
        }
        Cow::Owned(match (self.is_websocket(), self.payload()) {
            (false, _) => chunk(payload),
            (true, Payload::Json) => {
                payload.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).flat_map(websocket::text).collect()
            }
            (true, _) => websocket::text(payload),
        })
    }
}

/// RFC 9112, section 7.1.
fn chunk(payload: &[u8]) -> Vec<u8> {
    let mut chunk = Vec::with_capacity(payload.len() + 20);
    // Writing to a vector can't fail.
    let _ = write!(chunk, "{:x}\r\n", payload.len());
    chunk.extend_from_slice(payload);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

/// Made when the first stream needs it.
type Frame = OnceLock<Box<[u8]>>;

/// A message. `id` and `kind` contain no line end, and all of it is UTF-8 (JS checks that).
#[derive(Debug, Default)]
pub struct Message {
    id: Option<Box<[u8]>>,
    kind: Option<Box<[u8]>>,
    /// What it is about, for encodings that say so.
    topic: Option<Box<[u8]>>,
    /// How long clients wait before they reconnect, in ms.
    retry: Option<NonZeroU32>,
    data: Box<[u8]>,
    event: Frame,
    chunked_text: Frame,
    chunked_event: Frame,
    /// In one place, because most messages need none of them.
    others: OnceLock<Box<OtherFrames>>,
}

#[derive(Debug, Default)]
struct OtherFrames {
    json: Frame,
    line: Frame,
    chunked_line: Frame,
    websocket_text: Frame,
    websocket_json: Frame,
}

impl Message {
    pub fn new(id: Option<Box<[u8]>>, kind: Option<Box<[u8]>>, data: Box<[u8]>) -> Self {
        Message { id, kind, data, ..Message::default() }
    }

    pub fn with_retry(self, retry: Option<NonZeroU32>) -> Self {
        Message { retry, ..self }
    }

    pub fn with_topic(self, topic: Option<Box<[u8]>>) -> Self {
        Message { topic, ..self }
    }

    pub fn data(&self) -> &[u8] {
        &self.data
    }

    pub fn id(&self) -> Option<&[u8]> {
        self.id.as_deref()
    }

    /// Bytes of text.
    pub fn size(&self) -> usize {
        [&self.id, &self.kind, &self.topic].into_iter().flatten().map(|text| text.len()).sum::<usize>() + self.data.len()
    }

    /// What is written to a stream of this format; for a poll, what its answer contains.
    pub fn frame(&self, format: Format) -> &[u8] {
        match (format.payload(), format.0 >> FRAMING_SHIFT) {
            (Payload::Text, RAW) => &self.data,
            (Payload::Text, WEBSOCKET) => made(&self.others().websocket_text, || websocket::text(&self.data)),
            (Payload::Text, _) => made(&self.chunked_text, || format.frame(&self.data).into()),
            (Payload::Event, RAW) => self.event(),
            (Payload::Event, _) => made(&self.chunked_event, || chunk(self.event())),
            (Payload::Json, RAW) => self.line(),
            (Payload::Json, WEBSOCKET) => made(&self.others().websocket_json, || websocket::text(self.json())),
            (Payload::Json, POLL) => self.json(),
            (Payload::Json, _) => made(&self.others().chunked_line, || chunk(self.line())),
        }
    }

    fn others(&self) -> &OtherFrames {
        self.others.get_or_init(Box::default)
    }

    /// As a Server-Sent Event (HTML, section 9.2), with its fields in the order of Mercure.
    fn event(&self) -> &[u8] {
        made(&self.event, || {
            let mut event = Vec::with_capacity(self.data.len() + 32);
            if let Some(kind) = &self.kind {
                push_field(&mut event, b"event: ", kind);
            }
            if let Some(retry) = self.retry {
                push_field(&mut event, b"retry: ", retry.to_string().as_bytes());
            }
            if let Some(id) = &self.id {
                push_field(&mut event, b"id: ", id);
            }
            for line in lines_of(&self.data) {
                push_field(&mut event, b"data: ", line);
            }
            event.push(b'\n');
            event
        })
    }

    /// As a JSON object, byte for byte what `JSON.stringify` writes in transport/encodings.js.
    fn json(&self) -> &[u8] {
        made(&self.others().json, || {
            let mut json = Vec::with_capacity(self.data.len() + 64);
            let fields = [("{\"id\":", &self.id), ("{\"type\":", &self.kind), ("{\"topic\":", &self.topic)];
            for (name, value) in fields {
                if let Some(value) = value {
                    json::push_member(&mut json, name, value);
                }
            }
            json::push_member(&mut json, "{\"data\":", &self.data);
            json.push(b'}');
            json
        })
    }

    /// As a line of JSON.
    fn line(&self) -> &[u8] {
        made(&self.others().line, || [self.json(), b"\n"].concat())
    }
}

fn made(frame: &Frame, make: impl FnOnce() -> Vec<u8>) -> &[u8] {
    frame.get_or_init(|| make().into())
}

/// What streams of updates have got: the id that their clients send when they reconnect. An event that has only an id
/// changes the last event id of a client, and nothing else.
#[derive(Debug)]
pub struct Cursor {
    payload: Box<[u8]>,
    chunked: Frame,
}

const ID_FIELD: &[u8] = b"id: ";
const EVENT_END: &[u8] = b"\n\n";

impl Cursor {
    /// `id` is one line (JS checks that).
    pub fn new(id: &[u8]) -> Self {
        Cursor { payload: [ID_FIELD, id, EVENT_END].concat().into(), chunked: OnceLock::new() }
    }

    pub fn id(&self) -> &[u8] {
        &self.payload[ID_FIELD.len()..self.payload.len() - EVENT_END.len()]
    }

    /// A ping that contains it.
    pub fn frame(&self, format: Format) -> &[u8] {
        if format.is_raw() { &self.payload } else { made(&self.chunked, || chunk(&self.payload)) }
    }
}

fn push_field(event: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    event.extend_from_slice(name);
    event.extend_from_slice(value);
    event.push(b'\n');
}

/// Lines end in CRLF, CR or LF. There is always at least one.
fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
            rest = None;
            return Some(text);
        };
        let size = if text[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = Some(&text[end + size..]);
        Some(&text[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: u8 = 1;
    const TEXT_CHUNKED: u8 = 0x10;
    const CHUNKED: u8 = 0x10;

    fn message(id: &str, kind: &str, data: &str) -> Message {
        let optional = |text: &str| (!text.is_empty()).then(|| text.as_bytes().into());
        Message::new(optional(id), optional(kind), data.as_bytes().into())
    }

    fn framed(message: &Message, byte: u8) -> String {
        String::from_utf8_lossy(message.frame(Format::from_byte(byte).unwrap())).into_owned()
    }

    #[test]
    fn a_message_is_written_in_each_format() {
        let message = message("7", "score", "hello, world, hello");
        assert_eq!(framed(&message, 0), "hello, world, hello");
        assert_eq!(framed(&message, TEXT_CHUNKED), "13\r\nhello, world, hello\r\n");
        let event = "event: score\nid: 7\ndata: hello, world, hello\n\n";
        for raw in [EVENTS, UPDATES] {
            assert_eq!(framed(&message, raw), event);
            assert_eq!(framed(&message, raw | CHUNKED), format!("{:x}\r\n{event}\r\n", event.len()));
        }
    }

    #[test]
    fn a_message_is_written_as_json_in_each_framing() {
        let message = message("7", "score", "a\n\"b\"").with_topic(Some(b"room/1"[..].into()));
        let json = r#"{"id":"7","type":"score","topic":"room/1","data":"a\n\"b\""}"#;
        for encoding in [JSON, JSON_UPDATES] {
            assert_eq!(framed(&message, encoding), format!("{json}\n"));
            assert_eq!(framed(&message, encoding | CHUNKED), format!("{:x}\r\n{json}\n\r\n", json.len() + 1));
            assert_eq!(framed(&message, encoding | POLL << 4), json);
            assert_eq!(message.frame(Format::from_byte(encoding | WEBSOCKET << 4).unwrap()), websocket::text(json.as_bytes()));
        }
        let text = message.frame(Format::from_byte(TEXT | WEBSOCKET << 4).unwrap());
        assert_eq!(text, websocket::text(b"a\n\"b\""));
    }

    #[test]
    fn each_line_of_json_is_a_message_of_a_websocket() {
        let frames = Format::from_byte(JSON_UPDATES | WEBSOCKET << 4).unwrap().frame(b"{}\n[1]\n").into_owned();
        assert_eq!(frames, [websocket::text(b"{}"), websocket::text(b"[1]")].concat());
        assert_eq!(Format::from_byte(WEBSOCKET << 4).unwrap().frame(b"{}\n").into_owned(), websocket::text(b"{}\n"));
    }

    #[test]
    fn an_empty_text_is_a_message_of_a_websocket() {
        assert_eq!(message("", "", "").frame(Format::from_byte(WEBSOCKET << 4).unwrap()), b"\x81\x00");
    }

    #[test]
    fn a_websocket_is_kept_alive_by_frames_and_a_poll_by_nothing() {
        let pings: Vec<_> = Format::all().map(|format| format.ping(b"x").into_owned()).collect();
        assert!(pings[..5].iter().all(|ping| ping == b"x"));
        assert!(pings[5..10].iter().all(|ping| ping == b"1\r\nx\r\n"));
        assert!(pings[10..13].iter().all(|ping| *ping == websocket::HEARTBEAT));
        assert!(pings[13..].iter().all(Vec::is_empty));
    }

    #[test]
    fn the_fields_of_an_event_are_in_the_order_of_mercure() {
        let message = message("7", "score", "1").with_retry(NonZeroU32::new(2000));
        assert_eq!(framed(&message, EVENTS), "event: score\nretry: 2000\nid: 7\ndata: 1\n\n");
        assert_eq!(framed(&message, TEXT), "1");
    }

    #[test]
    fn a_cursor_is_an_event_that_has_only_an_id() {
        let cursor = Cursor::new(b"#17");
        let framed = |byte| String::from_utf8_lossy(cursor.frame(Format::from_byte(byte).unwrap()));
        assert_eq!((framed(UPDATES), framed(UPDATES | CHUNKED)), ("id: #17\n\n".into(), "9\r\nid: #17\n\n\r\n".into()));
    }

    #[test]
    fn each_line_of_the_data_is_a_field_of_the_event() {
        for (data, event) in [
            ("", "data: \n\n"),
            ("a\nb", "data: a\ndata: b\n\n"),
            ("a\r\nb\rc\n", "data: a\ndata: b\ndata: c\ndata: \n\n"),
            ("\r\r\n\n", "data: \ndata: \ndata: \ndata: \n\n"),
        ] {
            assert_eq!(framed(&message("", "", data), EVENTS), event, "{data:?}");
        }
    }

    #[test]
    fn an_empty_text_does_not_end_a_chunked_stream() {
        assert_eq!(framed(&message("", "", ""), TEXT_CHUNKED), "");
    }

    #[test]
    fn bytes_that_are_no_format_are_rejected_and_each_format_has_a_slot() {
        assert_eq!([5, 0x15, 0x21, 0x22, 0x30, 0x31, 0x40, 0xff].map(Format::from_byte), [None; 8]);
        let mut slots: Vec<usize> = Format::all().map(Format::slot).collect();
        assert!(slots.iter().all(|slot| *slot < FORMATS));
        slots.dedup();
        assert_eq!(slots.len(), 15);
    }
}
