//! What a server, or a hub, sends: any bytes, divided into any reads. The result is the same as in one read, and no more is kept than
//! a unit may have.
#![no_main]

use holdfast_core::dial::answer::{Answer, Item, Partial};
use holdfast_core::dial::block::Block;
use holdfast_core::dial::{Cause, Format};
use libfuzzer_sys::fuzz_target;

const HEADS: [&[u8]; 4] = [
    b"",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nWelcome!\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n10\r\ndata: Welcome!\n\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: Welcome!\n\n",
];
const HEADS_OF_LINES: [&[u8]; 4] = [
    b"",
    b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nLast-Event-ID: #1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n{\"data\":\"Welcome!\"}\n",
];
const HEADS_OF_POLLS: [&[u8]; 4] = [
    b"",
    b"HTTP/1.1 204 No Content\r\nLast-Event-ID: #1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n{\"messages\":[{\"data\":\"abc\"}]}",
    b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n",
];
const HEADS_OF_WEBSOCKETS: [&[u8]; 4] = [
    b"",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: a\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: a\r\n\r\n\x8a\x00",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: a\r\n\r\n\x01\x01{",
];
/// The answer of a poll, which is larger than a unit, its head, and the last read.
const MOST_KEPT: usize = 17 * 1_048_576 + 64;

/// The stream is not strict.
const LAX: u8 = 1;
/// It may have messages.
const MESSAGES: u8 = 2;
/// It is of a hub.
const HUB: u8 = 16;

/// The two bits above are the format.
fn format_of(mode: u8) -> Format {
    [Format::Http, Format::Ndjson, Format::Poll, Format::WebSocket][usize::from(mode >> 5 & 3)]
}

/// An `Item` without the bytes of a sample.
#[derive(Debug, PartialEq)]
enum Found {
    Open,
    Ping,
    Message(Option<u64>),
    Gap,
    Accept(Vec<u8>),
    Asked(Vec<u8>),
    Answered(bool),
    Block(Option<Vec<u8>>, Option<Vec<u8>>),
    End,
    Wrong(Cause),
}

struct Reading {
    found: Vec<Found>,
    sample: Vec<u8>,
}

fn read<'a>(mode: u8, pieces: impl Iterator<Item = &'a [u8]>) -> Reading {
    let is_strict = mode & LAX == 0;
    let mut answer =
        if mode & HUB == 0 { Answer::new(is_strict, mode & MESSAGES != 0) } else { Answer::of_hub(is_strict) }.in_format(format_of(mode));
    let mut partial = Partial::default();
    let mut reading = Reading { found: Vec::new(), sample: Vec::new() };
    for piece in pieces {
        let pings = partial.is_empty().then(|| answer.pings_in(piece)).flatten();
        let before = reading.found.len();
        answer.read(piece, &mut partial, &mut |item| {
            assert!(!matches!(reading.found.last(), Some(Found::End | Found::Wrong(_))), "nothing follows an end");
            reading.found.push(match item {
                Item::Open => Found::Open,
                Item::Ping => Found::Ping,
                Item::Message(sent_us) => Found::Message(sent_us),
                Item::Gap => Found::Gap,
                Item::Block(Block { id, data, .. }) => Found::Block(id.map(<[u8]>::to_vec), data.map(<[u8]>::to_vec)),
                Item::Accept(accept) => Found::Accept(accept.to_vec()),
                Item::Asked(payload) => Found::Asked(payload.to_vec()),
                Item::Answered(goes_on) => Found::Answered(goes_on),
                Item::End => Found::End,
                Item::Wrong(cause, sample) => {
                    reading.sample = sample.to_vec();
                    Found::Wrong(cause)
                }
            });
        });
        assert!(partial.kept() <= MOST_KEPT);
        if let Some(pings) = pings {
            let found = &reading.found[before..];
            assert!(found.len() == pings as usize && found.iter().all(|item| *item == Found::Ping), "the fast path finds the same");
        }
    }
    reading
}

/// Pieces of the sizes given by the cuts, in turn.
fn pieces<'a>(bytes: &'a [u8], cuts: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut sizes = cuts.iter().map(|cut| usize::from(*cut) + 1).cycle();
    let mut left = bytes;
    std::iter::from_fn(move || {
        let size = sizes.next()?.min(left.len());
        let (piece, rest) = left.split_at(size);
        left = rest;
        (size > 0).then_some(piece)
    })
}

// A byte for the mode and the head, one for the number of cuts, the cuts, and what is sent.
fuzz_target!(|input: &[u8]| {
    let [mode, count, rest @ ..] = input else { return };
    let Some((cuts, sent)) = rest.split_at_checked(usize::from(*count % 8) + 1) else { return };
    let heads = match format_of(*mode) {
        Format::Http => HEADS,
        Format::Ndjson => HEADS_OF_LINES,
        Format::Poll => HEADS_OF_POLLS,
        Format::WebSocket => HEADS_OF_WEBSOCKETS,
    };
    let bytes = [heads[usize::from(mode >> 2 & 3)], sent].concat();
    let whole = read(*mode, [&bytes[..]].into_iter());
    let cut = read(*mode, pieces(&bytes, cuts));
    let is_parsed = mode & (LAX | HUB) != LAX || matches!(format_of(*mode), Format::Poll | Format::WebSocket);
    if is_parsed {
        assert_eq!(cut.found, whole.found);
    } else {
        // When anything may be sent each read is a ping.
        assert_eq!(cut.found.first(), whole.found.first());
        assert!(cut.found.iter().skip(1).all(|item| *item == Found::Ping));
    }
    // An error may be found before all of it is there. The sample of a bad head ends before its empty line.
    assert!(whole.sample.starts_with(cut.sample.trim_ascii_end()), "the sample is of the same place");
});
