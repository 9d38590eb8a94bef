//! How messages look on the wire. An *encoding* turns a message into a payload; a *framing* wraps the payload. Both are
//! numbered as in `native/protocol.js`. A message is encoded and framed once for each format in use, and the result is
//! sent as it is to every stream of that format.

use std::borrow::Cow;
use std::io::Write;
use std::num::NonZeroU32;
use std::sync::OnceLock;

/// The encodings, by number.
pub const ENCODING_NAMES: [&str; ENCODINGS] = ["text", "events", "updates"];
/// The framings, by number.
pub const FRAMING_NAMES: [&str; FRAMINGS] = ["raw", "chunked"];
pub const ENCODINGS: usize = 3;
pub const FRAMINGS: usize = 2;
pub const FORMATS: usize = ENCODINGS * FRAMINGS;

const TEXT: u8 = 0;
/// Written like events. Only their pings are different: those contain the cursor.
const UPDATES: u8 = 2;
const RAW: u8 = 0;
const FRAMING_SHIFT: u32 = 4;

/// An encoding, in the lower four bits, and a framing, in the upper four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format(u8);

impl Format {
    /// None when there is no such encoding or framing.
    pub fn from_byte(byte: u8) -> Option<Self> {
        let format = Format(byte);
        (format.encoding() < ENCODINGS && format.framing() < FRAMINGS).then_some(format)
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

    /// With the same framing, but without an encoding.
    pub fn unencoded(self) -> Self {
        Format(self.0 & !0xf | TEXT)
    }

    /// Whether its pings contain the cursor.
    pub fn has_cursor(self) -> bool {
        self.encoding() == usize::from(UPDATES)
    }

    fn has_fields(self) -> bool {
        self.encoding() != usize::from(TEXT)
    }

    fn is_raw(self) -> bool {
        self.framing() == usize::from(RAW)
    }

    /// The bytes that end a stream.
    pub fn end(self) -> &'static [u8] {
        if self.is_raw() { b"" } else { b"0\r\n\r\n" }
    }

    /// Wraps a payload. An empty payload stays empty: an empty chunk would end the stream.
    pub fn frame<'a>(self, payload: &'a [u8]) -> Cow<'a, [u8]> {
        if self.is_raw() || payload.is_empty() {
            return Cow::Borrowed(payload);
        }
        // RFC 9112, section 7.1.
        let mut chunk = Vec::with_capacity(payload.len() + 20);
        // Writing to a vector can't fail.
        let _ = write!(chunk, "{:x}\r\n", payload.len());
        chunk.extend_from_slice(payload);
        chunk.extend_from_slice(b"\r\n");
        Cow::Owned(chunk)
    }
}

/// A message. `id` and `kind` contain no line end (JS checks that).
#[derive(Debug, Default)]
pub struct Message {
    id: Option<Box<[u8]>>,
    kind: Option<Box<[u8]>>,
    /// How long clients wait before they reconnect, in ms.
    retry: Option<NonZeroU32>,
    data: Box<[u8]>,
    /// Each is made when the first stream needs it.
    event: OnceLock<Box<[u8]>>,
    chunked_text: OnceLock<Box<[u8]>>,
    chunked_event: OnceLock<Box<[u8]>>,
}

impl Message {
    pub fn new(id: Option<Box<[u8]>>, kind: Option<Box<[u8]>>, data: Box<[u8]>) -> Self {
        Message { id, kind, data, ..Message::default() }
    }

    pub fn with_retry(self, retry: Option<NonZeroU32>) -> Self {
        Message { retry, ..self }
    }

    /// Bytes of text.
    pub fn size(&self) -> usize {
        [&self.id, &self.kind].into_iter().flatten().map(|text| text.len()).sum::<usize>() + self.data.len()
    }

    /// What is written to a stream of this format.
    pub fn frame(&self, format: Format) -> &[u8] {
        let (payload, chunked) = if format.has_fields() {
            (&**self.event.get_or_init(|| self.event().into()), &self.chunked_event)
        } else {
            (&*self.data, &self.chunked_text)
        };
        if format.is_raw() { payload } else { chunked.get_or_init(|| format.frame(payload).into()) }
    }

    /// As a Server-Sent Event (HTML, section 9.2), with its fields in the order of Mercure.
    fn event(&self) -> Vec<u8> {
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
    }
}

/// What streams of updates have got: the id that their clients send when they reconnect. An event that has only an id
/// changes the last event id of a client, and nothing else.
#[derive(Debug)]
pub struct Cursor {
    payload: Box<[u8]>,
    chunked: OnceLock<Box<[u8]>>,
}

impl Cursor {
    /// `id` is one line (JS checks that).
    pub fn new(id: &[u8]) -> Self {
        Cursor { payload: [b"id: ", id, b"\n\n"].concat().into(), chunked: OnceLock::new() }
    }

    /// A ping that contains it.
    pub fn frame(&self, format: Format) -> &[u8] {
        if format.is_raw() { &self.payload } else { self.chunked.get_or_init(|| format.frame(&self.payload).into()) }
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
        assert_eq!([3, 0x20, 0x13, 0xff].map(Format::from_byte), [None; 4]);
        let slots: Vec<usize> = Format::all().map(Format::slot).collect();
        assert_eq!(slots, (0..FORMATS).collect::<Vec<_>>());
    }
}
