//! The record layer of TLS: what one side writes, the other one reads, in order and once; anything else is an error, and nothing panics.
#![no_main]

use holdfast_core::tls::{Content, LONGEST_RECORD, Message, Secrets, Session, record_size};
use libfuzzer_sys::fuzz_target;

const CONTENTS: [Content; 4] = [Content::ChangeCipherSpec, Content::Alert, Content::Handshake, Content::Data];
const KEY_UPDATE: u8 = 24;

fuzz_target!(|bytes: &[u8]| {
    let Some((setting, rest)) = bytes.split_first() else { return };
    let _ = record_size(rest, usize::MAX);
    let (one, mut other) = pair(*setting);
    let _ = other.open(&mut rest.to_vec());
    talk(one, pair(*setting).1, rest);
    if let Ok(session) = Session::from_bytes(rest) {
        assert_eq!(session.bytes(), rest);
    }
});

/// Both ends of a connection, in each version and with each cipher.
fn pair(setting: u8) -> (Session, Session) {
    let (to, from, iv) = ([setting; 32], [!setting; 32], [setting; 12]);
    let is_aes = setting & 1 == 0;
    let size = if is_aes { 16 } else { 32 };
    let ends = if setting & 2 == 0 {
        [(&to, &from), (&from, &to)].map(|(to, from)| Secrets::Tls13 { is_aes, to, from })
    } else {
        let (to, from) = ((&to[..size], &iv), (&from[..size], &iv));
        [(to, from), (from, to)].map(|(to, from)| Secrets::Tls12 { is_aes, to, from })
    };
    // Every record has a number of its own, also when it is not the first one.
    let [one, other] = ends.map(|secrets| Session::new(&secrets, u32::from(setting >> 2), u32::from(setting >> 2)));
    (one, other)
}

/// Each step is a byte that says what, a size, and the text.
fn talk(mut one: Session, mut other: Session, mut steps: &[u8]) {
    let mut last = Vec::new();
    while let [what, size, rest @ ..] = steps {
        let (text, left) = rest.split_at(usize::from(*size).min(rest.len()));
        steps = left;
        let mut records = Vec::new();
        let content = CONTENTS[usize::from(what & 3)];
        if what >> 2 & 7 == 7 && one.can_update() {
            one.seal_key_update_with(what >> 5 & 1, &mut records);
            assert_eq!(other.open(&mut records), Ok(Message::KeyUpdate(what >> 5 & 1 == 1)));
            continue;
        }
        one.seal(content, text, &mut records);
        if records.is_empty() {
            continue;
        }
        assert_eq!(record_size(&records, LONGEST_RECORD), Ok(Some(records.len())), "one text, one record");
        match what >> 2 & 7 {
            // It was changed on its way.
            1 => {
                let place = usize::from(*size) % records.len();
                records[place] ^= what >> 5 | 1;
                return assert!(other.open(&mut records).is_err());
            }
            // The one before comes again instead.
            2 if !last.is_empty() => return assert!(other.open(&mut last).is_err()),
            // It is lost.
            3 => {
                let mut next = Vec::new();
                one.seal(Content::Data, b"next", &mut next);
                return assert!(other.open(&mut next).is_err());
            }
            _ => last = records.clone(),
        }
        // As it would be after a handover.
        other = Session::from_bytes(&other.bytes()).unwrap();
        match (content, other.open(&mut records)) {
            (Content::Data, read) => assert_eq!(read, Ok(Message::Data(text))),
            (Content::ChangeCipherSpec, read) => return assert!(read.is_err()),
            (Content::Handshake, Ok(Message::KeyUpdate(_))) => return assert_eq!(text[0], KEY_UPDATE),
            (Content::Handshake, Ok(Message::Handshake(read))) => assert_eq!(read, text),
            (Content::Alert, Ok(Message::CloseNotify)) => assert_eq!(text[1..], [0]),
            (Content::Alert, Ok(Message::Failure(alert))) => assert_eq!(text[1..], [alert]),
            (Content::Alert, Ok(Message::Data(read))) => assert!(read.is_empty() && text.len() == 2),
            (_, Ok(_)) => panic!("one kind of record was read as another"),
            (_, Err(_)) => return,
        }
    }
}
