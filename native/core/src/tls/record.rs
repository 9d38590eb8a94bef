//! Records as they are on the wire (RFC 8446, section 5): what each begins with, and how much may follow.

pub const HEADER_BYTES: usize = 5;
/// The longest plaintext of a record.
pub const MOST_PLAINTEXT: usize = 1 << 14;
/// What encryption may add: the real type, padding, a nonce, a tag.
const MOST_EXPANSION: usize = 256;
pub const LONGEST_RECORD: usize = HEADER_BYTES + MOST_PLAINTEXT + MOST_EXPANSION;
/// The version that every record but the first one says it has.
pub const VERSION: [u8; 2] = [3, 3];

/// What a record contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Content {
    ChangeCipherSpec = 20,
    Alert = 21,
    Handshake = 22,
    Data = 23,
}

impl Content {
    pub fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            20 => Content::ChangeCipherSpec,
            21 => Content::Alert,
            22 => Content::Handshake,
            23 => Content::Data,
            _ => return None,
        })
    }
}

/// Why a connection ends (RFC 8446, section 6), as far as we say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Alert {
    CloseNotify = 0,
    UnexpectedMessage = 10,
    BadRecordMac = 20,
    RecordOverflow = 22,
    IllegalParameter = 47,
    DecodeError = 50,
}

impl Alert {
    /// As a message: its level, and what it is.
    pub fn bytes(self) -> [u8; 2] {
        const WARNING: u8 = 1;
        const FATAL: u8 = 2;
        [if self == Alert::CloseNotify { WARNING } else { FATAL }, self as u8]
    }
}

/// The size of the record that `bytes` begin with, its header included; None while the header is not complete. No record may be
/// longer than `most`, and none can be longer than `LONGEST_RECORD`.
pub fn record_size(bytes: &[u8], most: usize) -> Result<Option<usize>, Alert> {
    let is_content = bytes.first().is_none_or(|content| Content::of(*content).is_some());
    let is_version = bytes.get(1).is_none_or(|major| *major == VERSION[0]);
    if !is_content || !is_version {
        return Err(Alert::UnexpectedMessage);
    }
    let Some(&[_, _, _, high, low]) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let size = HEADER_BYTES + usize::from(u16::from_be_bytes([high, low]));
    if size > most.min(LONGEST_RECORD) { Err(Alert::RecordOverflow) } else { Ok(Some(size)) }
}

/// The header of a record with so many bytes after it.
pub fn header(content: Content, size: usize) -> [u8; HEADER_BYTES] {
    let [high, low] = (size as u16).to_be_bytes();
    [content as u8, VERSION[0], VERSION[1], high, low]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_record_is_known_once_its_header_is_complete() {
        assert_eq!([&b""[..], &[22, 3, 1, 0]].map(|bytes| record_size(bytes, LONGEST_RECORD)), [Ok(None); 2]);
        assert_eq!(record_size(&[22, 3, 1, 1, 2], LONGEST_RECORD), Ok(Some(263)));
        assert_eq!(record_size(&header(Content::Data, 300), 305), Ok(Some(305)));
    }

    #[test]
    fn a_record_that_is_too_long_or_is_none_is_refused_at_once() {
        assert_eq!(record_size(&header(Content::Data, 300), 304), Err(Alert::RecordOverflow));
        let longest = LONGEST_RECORD - HEADER_BYTES;
        assert_eq!(record_size(&header(Content::Data, longest), usize::MAX), Ok(Some(LONGEST_RECORD)));
        assert_eq!(record_size(&header(Content::Data, longest + 1), usize::MAX), Err(Alert::RecordOverflow));
        for bytes in [b"GET / HTTP/1.1", &[24, 3, 3, 0, 1][..], &[23, 2, 0, 0, 1]] {
            assert_eq!(record_size(bytes, LONGEST_RECORD), Err(Alert::UnexpectedMessage));
        }
    }
}
