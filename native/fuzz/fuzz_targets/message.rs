//! Messages of any text, in each format: an event is parsed with the rules of the HTML standard, and must have the id, type and
//! data that it was made of, and so must an object in JSON; a chunk or a frame must contain the payload; a text is the data.
#![no_main]

use std::num::NonZeroU32;

use holdfast_core::framing::{ENCODING_NAMES, Format, Message};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

/// Framings.
const CHUNKED: usize = 1;
const WEBSOCKET: usize = 2;

/// An event, as a browser dispatches it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Event {
    id: Vec<u8>,
    kind: Vec<u8>,
    retry: Option<NonZeroU32>,
    data: Vec<u8>,
}

// A byte that says which parts there are, and the parts: id, type, topic, data.
fuzz_target!(|input: &[u8]| {
    let Some((bits, rest)) = input.split_first() else { return };
    let mut parts = rest.splitn(4, |byte| *byte == 0xff);
    let mut next = || parts.next().unwrap_or_default();
    let (id, kind, topic, data) = (one_line(next()), one_line(next()), one_line(next()), next());
    let part = |bit: u8, text: &[u8]| (bits >> bit & 1 == 1).then(|| text.into());
    let retry = NonZeroU32::new(u32::from(*bits) >> 4);
    let message = Message::new(part(0, &id), part(1, &kind), data.into()).with_retry(retry).with_topic(part(3, &topic));
    let fields = [("id", part(0, &id)), ("type", part(1, &kind)), ("topic", part(3, &topic)), ("data", Some(data.into()))];
    let object = object_of(fields);
    let expected = Event {
        id: part(0, &id).map(Vec::from).unwrap_or_default(),
        kind: part(1, &kind).map(Vec::from).unwrap_or_default(),
        retry,
        data: with_line_feeds(data),
    };
    // In any order: frames are made when they are first needed.
    let mut formats: Vec<Format> = Format::all().collect();
    if bits >> 2 & 1 == 1 {
        formats.reverse();
    }
    for format in formats {
        let frame = message.frame(format);
        let payload = match format.framing() {
            CHUNKED => unchunked(frame),
            WEBSOCKET => unframed(frame),
            _ => frame,
        };
        match ENCODING_NAMES[format.encoding()] {
            "text" => assert_eq!(payload, data),
            "events" | "updates" => assert_eq!(parse(payload), [expected.clone()]),
            "json" | "jsonUpdates" => {
                let is_line = !format.is_poll() && !format.is_websocket();
                assert_eq!(payload.iter().filter(|byte| **byte == b'\n').count(), usize::from(is_line));
                assert!(!is_line || payload.ends_with(b"\n"));
                // JS only passes UTF-8.
                if let Some(object) = &object {
                    assert_eq!(&serde_json::from_slice::<Value>(payload).unwrap(), object);
                }
            }
            other => panic!("an encoding that this target does not know: {other}"),
        }
    }
});

/// None if one of them is not UTF-8.
fn object_of(fields: [(&str, Option<Box<[u8]>>); 4]) -> Option<Value> {
    let mut object = Map::new();
    for (name, text) in fields {
        if let Some(text) = text {
            object.insert(name.into(), Value::String(String::from_utf8(text.into()).ok()?));
        }
    }
    Some(Value::Object(object))
}

/// JS lets no other id or type through.
fn one_line(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)).collect()
}

/// Line ends become line feeds on their way through an event stream.
fn with_line_feeds(data: &[u8]) -> Vec<u8> {
    lines(data).join(&b'\n')
}

/// Split at each CRLF, LF or CR.
fn lines(text: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = vec![Vec::new()];
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' => {
                bytes.next_if_eq(&b'\n');
                lines.push(Vec::new());
            }
            b'\n' => lines.push(Vec::new()),
            byte => lines.last_mut().unwrap().push(byte),
        }
    }
    lines
}

/// HTML, section 9.2.6, "Interpreting an event stream". What follows the last empty line is not an event.
fn parse(stream: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    let (mut event, mut has_data) = (Event::default(), false);
    let lines = lines(stream);
    let (rest, lines) = lines.split_last().unwrap();
    assert!(rest.is_empty(), "an event ends with a line end");
    for line in lines {
        if line.is_empty() {
            if has_data {
                event.data.pop(); // the last line feed
                events.push(std::mem::take(&mut event));
            }
            has_data = false;
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default());
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"id" => event.id = value.to_vec(),
            b"event" => event.kind = value.to_vec(),
            b"retry" => event.retry = std::str::from_utf8(value).unwrap().parse().ok(),
            b"data" => {
                has_data = true;
                event.data.extend_from_slice(value);
                event.data.push(b'\n');
            }
            other => panic!("a field that no browser knows: {other:?}"),
        }
    }
    events
}

/// The payload of a frame: one chunk (RFC 9112, section 7.1), or nothing.
fn unchunked(frame: &[u8]) -> &[u8] {
    if frame.is_empty() {
        return frame;
    }
    let line = frame.windows(2).position(|pair| pair == b"\r\n").expect("a size line");
    let size = usize::from_str_radix(std::str::from_utf8(&frame[..line]).unwrap(), 16).unwrap();
    assert!(size > 0, "an empty chunk would end the stream");
    let (payload, end) = frame[line + 2..].split_at(size);
    assert_eq!(end, b"\r\n");
    payload
}

/// The payload of a frame of a WebSocket: a whole text, not masked (RFC 6455, section 5.2).
fn unframed(frame: &[u8]) -> &[u8] {
    let ([0x81, length], rest) = frame.split_first_chunk().unwrap() else { panic!("not a whole text") };
    let (length, payload) = match length {
        0..126 => (usize::from(*length), rest),
        126 => (usize::from(u16::from_be_bytes(rest[..2].try_into().unwrap())), &rest[2..]),
        127 => (u64::from_be_bytes(rest[..8].try_into().unwrap()) as usize, &rest[8..]),
        _ => panic!("it is masked"),
    };
    assert_eq!(payload.len(), length);
    payload
}
