//! WebSocket frames (RFC 6455, section 5), as far as they are bytes: what we write, and what clients have sent.
//!
//! Frames of clients are masked, ours are not. There are no extensions: permessage-deflate would need a window of its own for each
//! stream, which is hundreds of times what a stream takes.

use aws_lc_rs::digest;

/// Nobody answers it.
pub const HEARTBEAT: [u8; 2] = [LAST | Opcode::Pong as u8, 0];
/// Clients answer it with a pong.
pub const PING: [u8; 2] = [LAST | Opcode::Ping as u8, 0];
/// The length of a Sec-WebSocket-Key: 16 bytes in base64.
pub const KEY_BYTES: usize = 24;

pub const LAST: u8 = 0x80;
const RESERVED: u8 = 0x70;
pub const MASKED: u8 = 0x80;
const LENGTH_16: u8 = 126;
const LENGTH_64: u8 = 127;
/// The most bytes of a control frame.
pub const MOST_CONTROL: usize = 125;
const MASK: usize = 4;
/// Section 1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

impl Opcode {
    /// `first` is the first byte of a frame. None if it has an opcode or a bit that means nothing without extensions.
    pub fn of(first: u8) -> Option<Self> {
        use Opcode::*;
        if first & RESERVED != 0 {
            return None;
        }
        [Continuation, Text, Binary, Close, Ping, Pong].into_iter().find(|opcode| *opcode as u8 == first & 0xf)
    }

    pub fn is_control(self) -> bool {
        self as u8 & 8 != 0
    }
}

/// Why a WebSocket is closed (section 7.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Code {
    Normal = 1000,
    GoingAway = 1001,
    ProtocolError = 1002,
    Unsupported = 1003,
    NotUtf8 = 1007,
    Policy = 1008,
    TooLarge = 1009,
    InternalError = 1011,
    Restart = 1012,
    TryAgainLater = 1013,
}

/// A text message.
pub fn text(payload: &[u8]) -> Vec<u8> {
    framed(Opcode::Text, payload)
}

/// The answer to a ping.
pub fn pong(payload: &[u8]) -> Vec<u8> {
    framed(Opcode::Pong, payload)
}

/// `why` is short.
pub fn close(code: Code, why: &str) -> Vec<u8> {
    close_with(code as u16, why.as_bytes())
}

/// The answer to a close: with the same code, if there is one.
pub fn close_answer(code: Option<u16>) -> Vec<u8> {
    code.map_or_else(|| framed(Opcode::Close, b""), |code| close_with(code, b""))
}

fn close_with(code: u16, why: &[u8]) -> Vec<u8> {
    framed(Opcode::Close, &[&code.to_be_bytes(), why].concat())
}

fn framed(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(payload.len() + 10);
    frame.push(LAST | opcode as u8);
    match payload.len() {
        size if size <= MOST_CONTROL => frame.push(size as u8),
        size if size <= usize::from(u16::MAX) => {
            frame.push(LENGTH_16);
            frame.extend_from_slice(&(size as u16).to_be_bytes());
        }
        size => {
            frame.push(LENGTH_64);
            frame.extend_from_slice(&(size as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

/// The value of Sec-WebSocket-Accept.
pub fn accept_of(key: &[u8]) -> String {
    let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, &[key, GUID].concat());
    base64(hash.as_ref())
}

pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let number = (0..3).fold(0, |number, i| number << 8 | u32::from(*group.get(i).unwrap_or(&0)));
        for i in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// The size of a payload, and how many bytes of `rest` say so. `short` is the second byte of the frame, without the mask bit; `rest` is what
/// follows it. None while it is not complete.
pub fn length_of(short: u8, rest: &[u8]) -> Option<(u64, usize)> {
    match short {
        LENGTH_16 => rest.first_chunk().map(|&size| (u64::from(u16::from_be_bytes(size)), 2)),
        LENGTH_64 => rest.first_chunk().map(|&size| (u64::from_be_bytes(size), 8)),
        size => Some((u64::from(size), 0)),
    }
}

/// What a frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    is_last: bool,
    opcode: Opcode,
    mask: [u8; MASK],
    /// Where its payload begins.
    begin: usize,
    size: usize,
}

impl Head {
    /// None while it is not complete. Whatever is wrong with a frame is noticed as early as possible.
    fn read(bytes: &[u8]) -> Result<Option<Self>, Code> {
        let Some(&first) = bytes.first() else { return Ok(None) };
        let opcode = Opcode::of(first).ok_or(Code::ProtocolError)?;
        let is_last = first & LAST != 0;
        let Some(&second) = bytes.get(1) else { return Ok(None) };
        let short = second & !MASKED;
        let is_too_long = usize::from(short) > MOST_CONTROL;
        if second & MASKED == 0 || opcode.is_control() && (!is_last || is_too_long) {
            return Err(Code::ProtocolError);
        }
        let rest = &bytes[2..];
        let Some((size, length_bytes)) = length_of(short, rest) else { return Ok(None) };
        let Some(&mask) = rest[length_bytes..].first_chunk() else { return Ok(None) };
        let size = usize::try_from(size).map_err(|_| Code::TooLarge)?;
        Ok(Some(Head { is_last, opcode, mask, begin: 2 + length_bytes + MASK, size }))
    }
}

/// What a client has said.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// A whole message.
    Text(Vec<u8>),
    Ping(Vec<u8>),
    Pong,
    /// It closes, and says why.
    Close(Option<u16>),
}

/// What has come of a message, or of a frame, that is not complete.
#[derive(Debug, Default)]
pub struct Incoming {
    unread: Vec<u8>,
    /// Before it, frames were taken.
    taken: usize,
    /// The frames of a message so far. None: no message has begun.
    message: Option<Vec<u8>>,
}

impl Incoming {
    /// Goes on where another one was: with what `parts` has returned.
    pub fn of(unread: &[u8], message: Option<&[u8]>) -> Self {
        Incoming { unread: unread.to_vec(), taken: 0, message: message.map(<[u8]>::to_vec) }
    }

    /// What is left of the bytes, and of the frames, of a message that is not complete.
    pub fn parts(&self) -> (&[u8], Option<&[u8]>) {
        (&self.unread[self.taken..], self.message.as_deref())
    }

    pub fn add(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
    }

    /// Whether nothing has to be kept.
    pub fn is_empty(&self) -> bool {
        self.unread.len() == self.taken && self.message.is_none()
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> usize {
        self.unread.capacity() + self.message.as_ref().map_or(0, Vec::capacity)
    }

    /// The next message or control frame, if it is complete. A message has at most `most` bytes.
    pub fn next(&mut self, most: usize) -> Result<Option<Heard>, Code> {
        while let Some((head, payload)) = self.next_frame(most)? {
            match head.opcode {
                Opcode::Text | Opcode::Continuation => {
                    let message = self.message.get_or_insert_default();
                    message.extend_from_slice(&payload);
                    if head.is_last {
                        let message = self.message.take().unwrap_or_default();
                        return if str::from_utf8(&message).is_ok() { Ok(Some(Heard::Text(message))) } else { Err(Code::NotUtf8) };
                    }
                }
                Opcode::Binary => return Err(Code::Unsupported),
                Opcode::Ping => return Ok(Some(Heard::Ping(payload))),
                Opcode::Pong => return Ok(Some(Heard::Pong)),
                Opcode::Close => return close_code(&payload).map(|code| Some(Heard::Close(code))),
            }
        }
        Ok(None)
    }

    /// The next frame, unmasked, if it is complete.
    fn next_frame(&mut self, most: usize) -> Result<Option<(Head, Vec<u8>)>, Code> {
        let rest = &self.unread[self.taken..];
        let Some(head) = Head::read(rest)? else {
            self.forget_taken();
            return Ok(None);
        };
        self.check(head, most)?;
        let Some(payload) = rest.get(head.begin..head.begin + head.size) else {
            self.forget_taken();
            return Ok(None);
        };
        let mut payload = payload.to_vec();
        for (byte, mask) in payload.iter_mut().zip(head.mask.iter().cycle()) {
            *byte ^= mask;
        }
        self.taken += head.begin + head.size;
        Ok(Some((head, payload)))
    }

    /// Whether the frame may come now.
    fn check(&self, head: Head, most: usize) -> Result<(), Code> {
        if head.opcode.is_control() {
            return Ok(());
        }
        if head.opcode == Opcode::Binary {
            return Err(Code::Unsupported);
        }
        if (head.opcode == Opcode::Continuation) != self.message.is_some() {
            return Err(Code::ProtocolError);
        }
        let before = self.message.as_ref().map_or(0, Vec::len);
        if head.size > most.saturating_sub(before) { Err(Code::TooLarge) } else { Ok(()) }
    }

    /// Moving what follows after each frame would cost the square of their number.
    fn forget_taken(&mut self) {
        if self.taken > 0 {
            self.unread = self.unread[self.taken..].to_vec();
            self.taken = 0;
        }
    }
}

/// Section 5.5.1, and 7.4 for the codes that may be sent.
fn close_code(payload: &[u8]) -> Result<Option<u16>, Code> {
    let Some((code, why)) = payload.split_first_chunk() else {
        return if payload.is_empty() { Ok(None) } else { Err(Code::ProtocolError) };
    };
    let code = u16::from_be_bytes(*code);
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(Code::ProtocolError);
    }
    if str::from_utf8(why).is_ok() { Ok(Some(code)) } else { Err(Code::NotUtf8) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 1000;

    /// A frame of a client.
    fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = framed(Opcode::Text, payload);
        let begin = frame.len() - payload.len();
        frame[0] = first;
        frame[1] |= MASKED;
        let mask = [1, 2, 3, 250];
        for (byte, mask) in frame[begin..].iter_mut().zip(mask.iter().cycle()) {
            *byte ^= mask;
        }
        frame.splice(begin..begin, mask);
        frame
    }

    /// Everything that is heard, and how it ends.
    fn heard(pieces: &[&[u8]]) -> (Vec<Heard>, Option<Code>) {
        let mut incoming = Incoming::default();
        let mut all = Vec::new();
        for piece in pieces {
            incoming.add(piece);
            loop {
                match incoming.next(MOST) {
                    Ok(Some(one)) => all.push(one),
                    Ok(None) => break,
                    Err(code) => return (all, Some(code)),
                }
            }
        }
        assert_eq!(incoming.is_empty(), incoming.bytes() == 0 || incoming.unread.is_empty() && incoming.message.is_none());
        (all, None)
    }

    #[test]
    fn the_examples_of_the_rfc() {
        assert_eq!(accept_of(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(text(b"Hello"), b"\x81\x05Hello");
        assert_eq!(
            (text(&[0; 256])[..4].to_vec(), text(&[0; 65536])[..10].to_vec()),
            (vec![0x81, 126, 1, 0], vec![0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0])
        );
        let hello = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
        assert_eq!(heard(&[hello]), (vec![Heard::Text(b"Hello".into())], None));
    }

    #[test]
    fn bytes_may_come_in_any_pieces() {
        let all =
            [masked(0x01, b"Hel"), masked(0x89, b"ping"), masked(0x00, &[b'l'; 200]), masked(0x80, b"o"), masked(0x88, b"\x03\xe8why")]
                .concat();
        let expected = || {
            let message = [&b"Hel"[..], &[b'l'; 200], b"o"].concat();
            vec![Heard::Ping(b"ping".into()), Heard::Text(message), Heard::Close(Some(1000))]
        };
        for middle in 0..=all.len() {
            let (first, second) = all.split_at(middle);
            assert_eq!(heard(&[first, second]), (expected(), None), "{middle}");
        }
        let bytes: Vec<&[u8]> = all.chunks(1).collect();
        assert_eq!(heard(&bytes), (expected(), None));
    }

    #[test]
    fn what_is_not_allowed_is_noticed_as_early_as_possible() {
        let whole = |frames: &[Vec<u8>]| frames.concat();
        for (bytes, code, name) in [
            (vec![0x81, 0x05], Code::ProtocolError, "not masked"),
            (vec![0xc1], Code::ProtocolError, "a reserved bit"),
            (vec![0x83], Code::ProtocolError, "an unknown opcode"),
            (vec![0x8b], Code::ProtocolError, "an unknown control frame"),
            (vec![0x09, 0x80], Code::ProtocolError, "a fragmented ping"),
            (vec![0x89, 0xfe], Code::ProtocolError, "a long ping"),
            (whole(&[masked(0x80, b"x")]), Code::ProtocolError, "a continuation of nothing"),
            (whole(&[masked(0x01, b"x"), masked(0x81, b"y")]), Code::ProtocolError, "a message within a message"),
            (whole(&[masked(0x82, b"x")]), Code::Unsupported, "binary"),
            (masked(0x81, &[0; MOST + 1])[..8].to_vec(), Code::TooLarge, "a long frame, before it has come"),
            (whole(&[masked(0x01, &[0; MOST]), masked(0x80, b"x")]), Code::TooLarge, "many fragments"),
            (vec![0x81, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4], Code::TooLarge, "a length with the highest bit"),
            (masked(0x81, b"\xff"), Code::NotUtf8, "text that is none"),
            (whole(&[masked(0x01, b"\xc3"), masked(0x80, b"x")]), Code::NotUtf8, "text that is none, in fragments"),
            (masked(0x88, b"\x03"), Code::ProtocolError, "half a code"),
            (masked(0x88, b"\x03\xed"), Code::ProtocolError, "1005 may not be sent"),
            (masked(0x88, b"\x03\xe8\xff"), Code::NotUtf8, "a reason that is no text"),
        ] {
            assert_eq!(heard(&[&bytes]).1, Some(code), "{name}");
        }
    }

    #[test]
    fn characters_may_be_divided_between_fragments() {
        let frames = [masked(0x01, b"\xc3"), masked(0x80, b"\xa4")].concat();
        assert_eq!(heard(&[&frames]), (vec![Heard::Text("ä".into())], None));
    }

    #[test]
    fn nothing_is_kept_of_what_is_complete() {
        let mut incoming = Incoming::default();
        incoming.add(&masked(0x81, &[b'x'; 500]).repeat(3));
        incoming.add(&[0x81]);
        while incoming.next(MOST).unwrap().is_some() {}
        assert_eq!((incoming.is_empty(), incoming.unread.capacity()), (false, 1));
    }

    #[test]
    fn a_close_is_answered_with_its_code() {
        assert_eq!((close_answer(Some(1001)), close_answer(None)), (b"\x88\x02\x03\xe9".into(), b"\x88\x00".into()));
        assert_eq!(close(Code::Restart, "restarted"), b"\x88\x0b\x03\xf4restarted");
    }
}
