//! How payloads look on the wire. A message is framed once for each format, and then sent as it is to every
//! stream of that format.

use std::fmt::Write;
use std::sync::OnceLock;

/// The bits of a format: what the payload looks like, and how it is carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format(u8);

pub const FORMATS: usize = 4;
const EVENTS: u8 = 1;
const CHUNKED: u8 = 2;

impl Format {
    /// None where other bits are set.
    pub fn from_bits(bits: u8) -> Option<Self> {
        (usize::from(bits) < FORMATS).then_some(Format(bits))
    }

    pub fn bits(self) -> u8 {
        self.0
    }

    pub fn is_events(self) -> bool {
        self.0 & EVENTS != 0
    }

    pub fn is_chunked(self) -> bool {
        self.0 & CHUNKED != 0
    }

    /// What ends a stream.
    pub fn end(self) -> &'static [u8] {
        if self.is_chunked() { b"0\r\n\r\n" } else { b"" }
    }
}

/// A payload as plain text and as Server-Sent Events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    pub text: Box<[u8]>,
    pub events: Box<[u8]>,
}

/// One message, framed for each format when it is first asked for.
#[derive(Debug)]
pub struct Message {
    payload: Payload,
    frames: [OnceLock<Box<[u8]>>; FORMATS],
}

impl Message {
    pub fn new(payload: Payload) -> Self {
        Message { payload, frames: Default::default() }
    }

    /// An empty payload is an empty frame: as a chunk it would end the stream.
    pub fn frame(&self, format: Format) -> &[u8] {
        let payload = if format.is_events() { &self.payload.events } else { &self.payload.text };
        if !format.is_chunked() || payload.is_empty() {
            return payload;
        }
        self.frames[usize::from(format.bits())].get_or_init(|| chunk(payload))
    }
}

/// RFC 9112, 7.1.
fn chunk(payload: &[u8]) -> Box<[u8]> {
    let mut size = String::with_capacity(18);
    // Writing to a string fails only where memory ends, and then not here.
    let _ = write!(size, "{:x}\r\n", payload.len());
    [size.as_bytes(), payload, b"\r\n"].concat().into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_framed_as_each_format_has_it() {
        let message = Message::new(Payload { text: (*b"hello, world, hello").into(), events: (*b"data: hello\n\n").into() });
        let frame = |bits| message.frame(Format::from_bits(bits).unwrap());
        assert_eq!(frame(0), b"hello, world, hello");
        assert_eq!(frame(EVENTS), b"data: hello\n\n");
        assert_eq!(frame(CHUNKED), b"13\r\nhello, world, hello\r\n");
        assert_eq!(frame(EVENTS | CHUNKED), b"d\r\ndata: hello\n\n\r\n");
    }

    #[test]
    fn an_empty_payload_does_not_end_the_stream() {
        let message = Message::new(Payload { text: [].into(), events: [].into() });
        assert_eq!(message.frame(Format(CHUNKED)), b"");
    }

    #[test]
    fn bits_of_no_format_are_none() {
        assert_eq!(Format::from_bits(4), None);
    }
}
