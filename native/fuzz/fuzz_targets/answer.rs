//! What a server says, any bytes, cut anywhere: it is understood as it is in one piece, and no more is kept of it than a
//! unit may have.
#![no_main]

use holdfast_core::dial::Cause;
use holdfast_core::dial::answer::{Answer, Rest, Said};
use libfuzzer_sys::fuzz_target;

const HEADS: [&[u8]; 4] = [
    b"",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nWelcome!\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n10\r\ndata: Welcome!\n\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: Welcome!\n\n",
];
/// A unit, the size line and the line end of a chunk, and what was read last.
const MOST_KEPT: usize = 2 * 1_048_576 + 64;

#[derive(Debug, PartialEq)]
enum Word {
    Open,
    Ping,
    Message(Option<u64>),
    End,
    Wrong(Cause),
}

struct Heard {
    words: Vec<Word>,
    sample: Vec<u8>,
}

fn listen<'a>(how: u8, pieces: impl Iterator<Item = &'a [u8]>) -> Heard {
    let mut answer = Answer::new(how & 1 == 0, how & 2 != 0);
    let mut rest = Rest::default();
    let mut heard = Heard { words: Vec::new(), sample: Vec::new() };
    for piece in pieces {
        let sure = rest.is_empty().then(|| answer.pings_in(piece)).flatten();
        let before = heard.words.len();
        answer.read(piece, &mut rest, &mut |said| {
            assert!(!matches!(heard.words.last(), Some(Word::End | Word::Wrong(_))), "nothing follows an end");
            heard.words.push(match said {
                Said::Open => Word::Open,
                Said::Ping => Word::Ping,
                Said::Message(sent_us) => Word::Message(sent_us),
                Said::End => Word::End,
                Said::Wrong(cause, sample) => {
                    heard.sample = sample.to_vec();
                    Word::Wrong(cause)
                }
            });
        });
        assert!(rest.kept() <= MOST_KEPT);
        if let Some(pings) = sure {
            let words = &heard.words[before..];
            assert!(words.len() == pings as usize && words.iter().all(|word| *word == Word::Ping), "the short way is the long way");
        }
    }
    heard
}

/// Pieces of the sizes that the cuts say, over and over.
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

// A byte that says how to listen and to what head, one for how many cuts there are, the cuts, and what is said.
fuzz_target!(|input: &[u8]| {
    let [how, count, rest @ ..] = input else { return };
    let Some((cuts, said)) = rest.split_at_checked(usize::from(*count % 8) + 1) else { return };
    let bytes = [HEADS[usize::from(how >> 2 & 3)], said].concat();
    let whole = listen(*how, [&bytes[..]].into_iter());
    let cut = listen(*how, pieces(&bytes, cuts));
    if how & 1 == 0 {
        assert_eq!(cut.words, whole.words);
    } else {
        // Where anything may be said each read is a ping.
        assert_eq!(cut.words.first(), whole.words.first());
        assert!(cut.words.iter().skip(1).all(|word| *word == Word::Ping));
    }
    // What is wrong may be seen before all of it is there; of what is no head at all the empty line is left out.
    assert!(whole.sample.starts_with(cut.sample.trim_ascii_end()), "the sample is of the same place");
});
