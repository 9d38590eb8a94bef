//! WebSockets from the side of the client (RFC 6455): the key, frames that are sent, and the heads of those that arrive. Pure.

use crate::websocket::{LAST, MASKED, MOST_CONTROL, Opcode, base64, length_of};

const KEY_LINE: &[u8] = b"Sec-WebSocket-Key: ";

/// What a frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    pub opcode: Opcode,
    pub is_last: bool,
    /// Where its payload begins.
    pub begin: usize,
    pub size: usize,
}

impl FrameHead {
    /// None while it is not complete. Err if no server of ours sends it.
    pub fn read(bytes: &[u8]) -> Result<Option<Self>, ()> {
        let Some(&[first, short]) = bytes.first_chunk() else { return Ok(None) };
        let opcode = Opcode::of(first).filter(|opcode| *opcode != Opcode::Binary).ok_or(())?;
        let is_last = first & LAST != 0;
        let is_good_control = is_last && usize::from(short) <= MOST_CONTROL;
        if short & MASKED != 0 || (opcode.is_control() && !is_good_control) {
            return Err(());
        }
        let Some((size, length_bytes)) = length_of(short, &bytes[2..]) else { return Ok(None) };
        let size = usize::try_from(size).map_err(|_| ())?;
        Ok(Some(FrameHead { opcode, is_last, begin: 2 + length_bytes, size }))
    }
}

/// The answer to a ping. Clients mask what they send.
pub fn pong(payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
    let mut frame = vec![LAST | Opcode::Pong as u8, MASKED | payload.len() as u8];
    frame.extend_from_slice(&mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// The Sec-WebSocket-Key for a random number. The number is 64 bits: there is nobody to hide it from.
pub fn key_of(random: u64) -> String {
    let bytes = [random, random.rotate_left(32).wrapping_mul(0x9e37_79b9_7f4a_7c15)].map(u64::to_be_bytes).concat();
    base64(&bytes)
}

/// Adds the line with the key to a complete request head.
pub fn add_key(request: &mut Vec<u8>, key: &str) {
    request.truncate(request.len().saturating_sub(b"\r\n".len()));
    request.extend_from_slice(&[KEY_LINE, key.as_bytes(), b"\r\n\r\n"].concat());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(bytes: &[u8]) -> Result<Option<(Opcode, bool, usize, usize)>, ()> {
        FrameHead::read(bytes).map(|head| head.map(|FrameHead { opcode, is_last, begin, size }| (opcode, is_last, begin, size)))
    }

    #[test]
    fn a_frame_says_what_it_is_and_how_long() {
        assert_eq!(head(&[0x81, 5]), Ok(Some((Opcode::Text, true, 2, 5))));
        assert_eq!(head(&[0x01, 126, 1, 0]), Ok(Some((Opcode::Text, false, 4, 256))));
        assert_eq!(head(&[0x80, 127, 0, 0, 0, 0, 0, 1, 0, 0]), Ok(Some((Opcode::Continuation, true, 10, 65_536))));
        assert_eq!(head(&[0x8a, 0]), Ok(Some((Opcode::Pong, true, 2, 0))));
        for part in [&[][..], &[0x81], &[0x81, 126, 1], &[0x81, 127, 0, 0]] {
            assert_eq!(head(part), Ok(None), "{part:?}");
        }
    }

    #[test]
    fn frames_that_are_masked_binary_compressed_or_divided_control_frames_are_wrong() {
        for wrong in [[0x81, 0x85], [0x82, 1], [0xc1, 1], [0x09, 0], [0x89, 126]] {
            assert_eq!(head(&wrong), Err(()), "{wrong:?}");
        }
    }

    #[test]
    fn a_pong_is_masked() {
        assert_eq!(pong(b"", [1, 2, 3, 4]), [0x8a, 0x80, 1, 2, 3, 4]);
        assert_eq!(pong(b"abcde", [1, 2, 3, 4]), [0x8a, 0x85, 1, 2, 3, 4, b'a' ^ 1, b'b' ^ 2, b'c' ^ 3, b'd' ^ 4, b'e' ^ 1]);
    }

    #[test]
    fn a_key_is_16_bytes_and_the_last_line_of_the_request() {
        assert_eq!(key_of(7).len(), crate::websocket::KEY_BYTES);
        assert_ne!(key_of(7), key_of(8));
        let mut request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
        add_key(&mut request, "abc=");
        assert_eq!(request, b"GET / HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Key: abc=\r\n\r\n");
    }
}
