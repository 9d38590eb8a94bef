//! Request heads of any bytes, whole or in pieces, with any limit.
#![no_main]

use holdfast_core::head::{END, Head, Scan, Whole, add_address, read, websocket_key};
use libfuzzer_sys::fuzz_target;

const BEFORE: &[u8] = b"what was there before";

// Two bytes for the limit, one that says which headers are asked for, and the head.
fuzz_target!(|input: &[u8]| {
    let [low, high, wanted, bytes @ ..] = input else { return };
    let max = usize::from(u16::from_le_bytes([*low, *high])) % 20_000;
    let names = ["host", "accept", "cookie", "content-length", "connection", "last-event-id", "x", "transfer-encoding"];
    let asked: Vec<String> = names.iter().enumerate().filter(|(bit, _)| wanted >> bit & 1 == 1).map(|(_, name)| name.to_string()).collect();
    let mut out = BEFORE.to_vec();
    let head = read(bytes, max, &asked, &mut out);
    let lines = out.strip_prefix(BEFORE).expect("what was there before is still there");
    match head {
        Head::Whole(whole) => check_whole(bytes, max, whole.size, lines, &asked),
        Head::Partial => assert!(lines.is_empty() && bytes.len() < max, "there may be more within the limit"),
        Head::Bad(refusal) => assert!(lines.is_empty() && [400, 431, 505].contains(&refusal.status())),
    }
    check_pieces(bytes, max, &asked, head, lines);
    check_end(bytes, head, usize::from(*wanted));
    let _ = websocket_key(bytes); // whatever it is
});

fn check_whole(bytes: &[u8], max: usize, size: usize, lines: &[u8], asked: &[String]) {
    assert!(0 < size && size <= max && size <= bytes.len());
    assert!(bytes[..size].ends_with(b"\n\r\n") || bytes[..size].ends_with(b"\n\n"), "a head ends with an empty line");
    let (end, lines) = lines.split_last().unwrap();
    assert_eq!(*end, END);
    assert!(!lines.contains(&END), "no head contains what ends it");
    let lines: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), 3 + asked.len(), "method, target, version, and a line for each header asked for");
    assert!(!lines[0].is_empty() && !lines[1].is_empty());
    assert!([&b"1.0"[..], b"1.1"].contains(&lines[2]));
    let value_of = |name: &str| asked.iter().position(|asked| asked == name).map(|place| lines[3 + place]).filter(|value| *value != b"\r");
    assert!(value_of("content-length").is_none_or(|value| !value.is_empty() && value.iter().all(u8::is_ascii_digit)));
    assert!(value_of("host").is_none_or(|value| !value.iter().any(|byte| b" \t/@?#".contains(byte))));
    for value in &lines[3..] {
        assert!(*value == b"\r" || !value.contains(&b'\r'), "only a header that is absent is a CR");
    }
}

/// Pieces are read like the whole: no part of a complete head is complete or bad, and what follows a head changes
/// nothing.
fn check_pieces(bytes: &[u8], max: usize, asked: &[String], head: Head, lines: &[u8]) {
    let mut out = Vec::new();
    if let Head::Whole(Whole { size, .. }) = head {
        // Trying every size would be too slow for a long head.
        for end in (0..size).rev().take(64).chain((0..size).step_by(97)) {
            assert_eq!(read(&bytes[..end], max, asked, &mut out), Head::Partial, "{end} of {size}");
        }
        assert!(out.is_empty());
        assert_eq!(read(&bytes[..size], size, asked, &mut out), head);
        assert_eq!(out, lines);
        add_address(&mut out, Some([10, 0, 0, 1].into()));
        assert_eq!(out, [lines.strip_suffix(&[END]).unwrap(), b"\n10.0.0.1", &[END]].concat());
    }
    // A bad head does not become good because of what follows.
    if let Head::Bad(_) = head {
        let more = [bytes, b"\r\n\r\nGET / HTTP/1.1\r\n\r\n"].concat();
        assert_eq!(read(&more, max, asked, &mut out), head);
        assert!(out.is_empty());
    }
}

/// In whatever pieces a head comes, its end is found where it is, and no earlier.
fn check_end(bytes: &[u8], head: Head, cut: usize) {
    let scan = |bytes: &[u8]| {
        let (first, second) = bytes.split_at(cut.min(bytes.len()));
        Scan::default().over(first).over(second)
    };
    match head {
        Head::Whole(Whole { size, .. }) => assert!(scan(&bytes[..size]) == Scan::End && scan(&bytes[..size - 1]) != Scan::End),
        Head::Partial => assert_ne!(scan(bytes), Scan::End, "what has an end is complete or bad"),
        Head::Bad(_) => {}
    }
}
