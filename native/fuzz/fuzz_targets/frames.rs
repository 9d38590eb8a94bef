//! Frames of WebSockets: whatever a client sends, in whatever pieces, is heard in the same way, takes a bounded amount of memory, and is
//! what a simple reader of whole frames hears.
#![no_main]

use holdfast_core::websocket::{Code, Heard, Incoming, accept_of, text};
use libfuzzer_sys::fuzz_target;

const MOST: usize = 200;
/// The longest that the head of a frame is.
const HEAD: usize = 14;

/// Everything that was heard, and how it ended.
type Story = (Vec<Heard>, Option<Code>);

fuzz_target!(|bytes: &[u8]| {
    let Some((&size, frames)) = bytes.split_first() else { return };
    let whole = hear(frames, frames.len().max(1));
    assert_eq!(whole, hear(frames, usize::from(size % 17) + 1), "pieces make no difference");
    assert_eq!(whole, expected(frames));
    assert!(whole.0.iter().all(|heard| !matches!(heard, Heard::Text(text) if text.len() > MOST)));
    if let Ok(message) = str::from_utf8(frames)
        && frames.len() <= MOST
    {
        assert_eq!(hear(&masked(&text(frames), size), 3), (vec![Heard::Text(message.into())], None), "what is written can be read");
    }
    assert_eq!(accept_of(frames).len(), 28);
});

fn hear(bytes: &[u8], size: usize) -> Story {
    let mut incoming = Incoming::default();
    let mut heard = Vec::new();
    for piece in bytes.chunks(size) {
        incoming.add(piece);
        loop {
            match incoming.next(MOST) {
                Ok(Some(one)) => heard.push(one),
                Ok(None) => break,
                Err(code) => return (heard, Some(code)),
            }
        }
        let (unread, message) = incoming.parts();
        assert!(unread.len() < HEAD + MOST && message.is_none_or(|message| message.len() <= MOST), "memory");
        // As in a handover.
        incoming = Incoming::of(unread, message);
    }
    (heard, None)
}

/// A frame of the server as a client would send it.
fn masked(frame: &[u8], mask: u8) -> Vec<u8> {
    let begin = match frame[1] {
        126 => 4,
        127 => 10,
        _ => 2,
    };
    let (head, payload) = frame.split_at(begin);
    let mut bytes = head.to_vec();
    bytes[1] |= 0x80;
    bytes.extend_from_slice(&[mask; 4]);
    bytes.extend(payload.iter().map(|byte| byte ^ mask));
    bytes
}

/// RFC 6455, sections 5.2 to 5.6, read frame by frame.
fn expected(mut rest: &[u8]) -> Story {
    let mut heard = Vec::new();
    let mut message: Option<Vec<u8>> = None;
    loop {
        match frame(&mut rest, message.as_ref().map(Vec::len)) {
            Ok(None) => return (heard, None),
            Err(code) => return (heard, Some(code)),
            Ok(Some((is_last, opcode, payload))) => match opcode {
                8 => match close(&payload) {
                    Ok(code) => heard.push(Heard::Close(code)),
                    Err(code) => return (heard, Some(code)),
                },
                9 => heard.push(Heard::Ping(payload)),
                10 => heard.push(Heard::Pong),
                _ => {
                    let mut all = message.take().unwrap_or_default();
                    all.extend_from_slice(&payload);
                    if !is_last {
                        message = Some(all);
                    } else if str::from_utf8(&all).is_err() {
                        return (heard, Some(Code::NotUtf8));
                    } else {
                        heard.push(Heard::Text(all));
                    }
                }
            },
        }
    }
}

type Frame = (bool, u8, Vec<u8>);

fn frame(rest: &mut &[u8], before: Option<usize>) -> Result<Option<Frame>, Code> {
    let Some(&first) = rest.first() else { return Ok(None) };
    let opcode = first & 0xf;
    if first & 0x70 != 0 || !matches!(opcode, 0..=2 | 8..=10) {
        return Err(Code::ProtocolError);
    }
    let Some(&second) = rest.get(1) else { return Ok(None) };
    let short = usize::from(second & 0x7f);
    if second < 0x80 || opcode >= 8 && (first < 0x80 || short > 125) {
        return Err(Code::ProtocolError);
    }
    let length_bytes = [0, 2, 8][usize::from(short >= 126) + usize::from(short == 127)];
    let Some(length) = rest.get(2..2 + length_bytes) else { return Ok(None) };
    let size = if short < 126 { short as u64 } else { length.iter().fold(0, |size, byte| size << 8 | u64::from(*byte)) };
    let begin = 2 + length_bytes + 4;
    let Some(mask) = rest.get(begin - 4..begin) else { return Ok(None) };
    if opcode == 2 {
        return Err(Code::Unsupported);
    }
    if opcode < 8 && (opcode == 0) != before.is_some() {
        return Err(Code::ProtocolError);
    }
    if opcode < 8 && size > (MOST - before.unwrap_or(0)) as u64 {
        return Err(Code::TooLarge);
    }
    let Some(payload) = rest.get(begin..begin + size as usize) else { return Ok(None) };
    let payload = payload.iter().enumerate().map(|(place, byte)| byte ^ mask[place % 4]).collect();
    *rest = &rest[begin + size as usize..];
    Ok(Some((first >= 0x80, opcode, payload)))
}

fn close(payload: &[u8]) -> Result<Option<u16>, Code> {
    match payload {
        [] => Ok(None),
        [high, low, why @ ..] => match u16::from(*high) << 8 | u16::from(*low) {
            1004..=1006 | 1015..=2999 | ..1000 | 5000.. => Err(Code::ProtocolError),
            _ if str::from_utf8(why).is_err() => Err(Code::NotUtf8),
            code => Ok(Some(code)),
        },
        _ => Err(Code::ProtocolError),
    }
}
