//! Reads the values that records are made of: little endian, texts with their length in front.

use std::sync::Arc;

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

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_le_bytes)
    }

    pub fn f64(&mut self) -> Result<f64, Malformed> {
        self.take().map(f64::from_le_bytes)
    }

    pub fn id(&mut self) -> Result<Id, Malformed> {
        Id::from_number(self.f64()?).ok_or(Malformed)
    }

    pub fn format(&mut self) -> Result<Format, Malformed> {
        Format::from_byte(self.u8()?).ok_or(Malformed)
    }

    pub fn text(&mut self) -> Result<Box<[u8]>, Malformed> {
        self.slice().map(Box::from)
    }

    /// A text that stays where it is.
    pub fn slice(&mut self) -> Result<&'a [u8], Malformed> {
        let size = self.u32()? as usize;
        let (text, rest) = self.bytes.split_at_checked(size).ok_or(Malformed)?;
        self.bytes = rest;
        Ok(text)
    }

    /// Texts, with the bytes that all of them take in front.
    pub fn names(&mut self) -> Result<Names, Malformed> {
        let bytes = self.slice()?;
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            reader.slice()?;
        }
        Ok(Names(bytes.into()))
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

/// Names of channels, which all shards share: there may be thousands, so they are left as they are in the record.
#[derive(Clone, Debug)]
pub struct Names(Arc<[u8]>);

impl Names {
    pub fn of(names: &[&[u8]]) -> Self {
        let records = names.iter().flat_map(|name| [&(name.len() as u32).to_le_bytes()[..], name].concat());
        Names(records.collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut reader = Reader::new(&self.0);
        std::iter::from_fn(move || reader.slice().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_were_written() {
        let names = Names::of(&[b"a", b"", b"news"]);
        assert_eq!(names.iter().collect::<Vec<_>>(), [&b"a"[..], b"", b"news"]);
        assert_eq!(Names::of(&[]).iter().count(), 0);
    }

    #[test]
    fn names_that_end_in_the_middle_of_one_are_malformed() {
        let record = [&9u32.to_le_bytes()[..], &1u32.to_le_bytes(), b"a", &4u32.to_le_bytes()].concat();
        assert_eq!(Reader::new(&record).names().unwrap_err(), Malformed);
    }
}
