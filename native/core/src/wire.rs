//! Reads the values that records are made of: little endian, texts with their length in front.

use crate::framing::Format;
use crate::id::Id;

/// Bytes that are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// What is left of a buffer of records.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Gives up: nothing can be read after a malformed record.
    pub fn clear(&mut self) {
        self.bytes = &[];
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.take().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.take().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_le_bytes)
    }

    pub fn id(&mut self) -> Result<Id, Malformed> {
        Id::from_number(f64::from_le_bytes(self.take()?)).ok_or(Malformed)
    }

    pub fn format(&mut self) -> Result<Format, Malformed> {
        Format::from_byte(self.u8()?).ok_or(Malformed)
    }

    pub fn text(&mut self) -> Result<Box<[u8]>, Malformed> {
        let size = self.u32()? as usize;
        let (text, rest) = self.bytes.split_at_checked(size).ok_or(Malformed)?;
        self.bytes = rest;
        Ok(text.into())
    }

    pub fn texts(&mut self) -> Result<Vec<Box<[u8]>>, Malformed> {
        let count = self.u16()?;
        (0..count).map(|_| self.text()).collect()
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.bytes.split_first_chunk().ok_or(Malformed)?;
        self.bytes = rest;
        Ok(*bytes)
    }
}
