//! The records of connections that move, and of what is said about them. Both sides of each are here.

use crate::framing::Format;
use crate::id::Id;
use crate::labels::Label;
use crate::wire::{Malformed, Reader};

/// The version of the records that this code writes, and the newest that it reads. A record has its version in front, so that one that
/// is not understood can be left out: it is never guessed.
pub const VERSION: u8 = 1;

const STREAM: u8 = 1;
const HEAD: u8 = 2;
const LISTENER: u8 = 3;

/// What a taker says first: the newest version that it understands, and its share of what the giver has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hello {
    pub version: u8,
    pub weight: f64,
}

/// An open stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    pub format: Format,
    /// When its next ping is due, on the monotonic clock of the machine.
    pub due_ns: u64,
    pub label: Label,
    /// Empty for none.
    pub tag: Box<[u8]>,
    pub channels: Vec<Box<[u8]>>,
    /// Bytes that the kernel has refused, and how many of them don't make the stream slow.
    pub backlog: Box<[u8]>,
    pub exempt: u32,
}

/// A connection whose head is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub age_ms: u32,
    /// What was read of it.
    pub read: Box<[u8]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    Stream(Stream),
    Head(Head),
    Listener,
    /// Of a version, or a kind, that this code does not know.
    Unknown,
}

/// A record for each descriptor that comes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    pub number: u32,
    pub records: Vec<Record>,
}

/// What became of the connections of a parcel: their new ids, or 0 for those that can't be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub number: u32,
    pub ids: Vec<u64>,
}

impl Hello {
    pub fn encode(self) -> Vec<u8> {
        let mut bytes = vec![self.version];
        bytes.extend_from_slice(&self.weight.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let (version, weight) = (reader.u8()?, reader.f64()?);
        if weight > 0.0 { Ok(Hello { version, weight }) } else { Err(Malformed) }
    }
}

impl Stream {
    fn write(&self, bytes: &mut Vec<u8>) {
        let Label { subject, token, .. } = self.label;
        bytes.push(STREAM);
        bytes.push(self.format.byte());
        bytes.extend_from_slice(&self.due_ns.to_le_bytes());
        for number in [subject, token, self.label.expires(), self.exempt] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        write_text(bytes, &self.tag);
        bytes.extend_from_slice(&(self.channels.len() as u32).to_le_bytes());
        for channel in &self.channels {
            write_text(bytes, channel);
        }
        write_text(bytes, &self.backlog);
    }

    fn read(reader: &mut Reader) -> Result<Self, Malformed> {
        let (format, due_ns) = (reader.format()?, reader.u64()?);
        let label = Label::at_tick(reader.u32()?, reader.u32()?, reader.u32()?);
        let (exempt, tag) = (reader.u32()?, reader.text()?);
        let channels = (0..reader.u32()?).map(|_| reader.text()).collect::<Result<_, _>>()?;
        let backlog = reader.text()?;
        if exempt as usize > backlog.len() {
            return Err(Malformed);
        }
        Ok(Stream { format, due_ns, label, tag, channels, backlog, exempt })
    }
}

impl Record {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Record::Stream(stream) => stream.write(&mut bytes),
            Record::Head(Head { age_ms, read }) => {
                bytes.push(HEAD);
                bytes.extend_from_slice(&age_ms.to_le_bytes());
                write_text(&mut bytes, read);
            }
            Record::Listener => bytes.push(LISTENER),
            Record::Unknown => {}
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        match reader.u8() {
            Ok(STREAM) => Stream::read(&mut reader).map(Record::Stream),
            Ok(HEAD) => Ok(Record::Head(Head { age_ms: reader.u32()?, read: reader.text()? })),
            Ok(LISTENER) => Ok(Record::Listener),
            _ => Ok(Record::Unknown),
        }
    }
}

impl Parcel {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.number.to_le_bytes().to_vec();
        for record in &self.records {
            bytes.push(VERSION);
            write_text(&mut bytes, &record.encode());
        }
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let number = reader.u32()?;
        let mut records = Vec::new();
        while !reader.is_empty() {
            let (version, record) = (reader.u8()?, reader.text()?);
            records.push(if version == VERSION { Record::decode(&record)? } else { Record::Unknown });
        }
        Ok(Parcel { number, records })
    }
}

impl Receipt {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.number.to_le_bytes().to_vec();
        for id in &self.ids {
            bytes.extend_from_slice(&id.to_le_bytes());
        }
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let number = reader.u32()?;
        let mut ids = Vec::new();
        while !reader.is_empty() {
            ids.push(reader.u64()?);
        }
        Ok(Receipt { number, ids })
    }

    /// The id of a connection; None if it could not be taken.
    pub fn id(&self, place: usize) -> Option<Id> {
        self.ids.get(place).filter(|bits| **bits != 0).map(|bits| Id::from_bits(*bits))
    }
}

fn write_text(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parcel() -> Parcel {
        let stream = Stream {
            format: Format::from_byte(0x12).unwrap(),
            due_ns: 1 << 50,
            label: Label::at_tick(7, 8, 9),
            tag: b"room 5"[..].into(),
            channels: vec![b"news"[..].into(), Box::default()],
            backlog: b"unsent"[..].into(),
            exempt: 3,
        };
        let head = Head { age_ms: 12, read: b"GET / HT"[..].into() };
        Parcel { number: 5, records: vec![Record::Stream(stream), Record::Listener, Record::Head(head)] }
    }

    #[test]
    fn a_parcel_is_read_as_it_was_written_and_not_at_all_if_it_is_cut_off() {
        let parcel = parcel();
        let bytes = parcel.encode();
        assert_eq!(Parcel::decode(&bytes), Ok(parcel.clone()));
        let whole = (0..bytes.len()).filter_map(|end| Parcel::decode(&bytes[..end]).ok());
        assert!(whole.into_iter().all(|part| part.records[..] == parcel.records[..part.records.len()]), "only whole records");
    }

    #[test]
    fn a_record_of_another_version_or_kind_is_unknown_and_those_after_it_are_read() {
        let mut bytes = parcel().encode();
        bytes[4] = VERSION + 1;
        let read = Parcel::decode(&bytes).unwrap().records;
        assert_eq!((&read[0], &read[1..]), (&Record::Unknown, &parcel().records[1..]));
        let kind = [&1u32.to_le_bytes()[..], &[VERSION, 1, 0, 0, 0, 99]].concat();
        assert_eq!(Parcel::decode(&kind).unwrap().records, [Record::Unknown]);
    }

    #[test]
    fn a_hello_and_a_receipt_are_read_as_they_were_written() {
        let hello = Hello { version: 1, weight: 0.25 };
        assert_eq!((Hello::decode(&hello.encode()), Hello::decode(&[1])), (Ok(hello), Err(Malformed)));
        assert_eq!(Hello::decode(&Hello { weight: 0.0, ..hello }.encode()), Err(Malformed));
        let receipt = Receipt { number: 9, ids: vec![0, Id::new(1, 2, 3).bits()] };
        assert_eq!(Receipt::decode(&receipt.encode()), Ok(receipt.clone()));
        assert_eq!([receipt.id(0), receipt.id(1), receipt.id(2)], [None, Some(Id::new(1, 2, 3)), None]);
    }
}
