//! The records of connections that move, and of what is said about them. Both sides of each are here.

use crate::framing::Format;
use crate::id::Id;
use crate::labels::Label;
use crate::tls::Session;
use crate::wire::{Malformed, Reader};

/// The newest version of records that this code reads. A record has its version in front, so that one that is not understood can be left
/// out: it is never guessed. Records of connections without TLS are as they were in version 1.
pub const VERSION: u8 = 3;
/// The version since which records can be about TLS.
const VERSION_OF_TLS: u8 = 2;
/// The version since which there are JSON, polls, WebSockets, and connections that are kept after an answer.
const VERSION_OF_POLLS: u8 = 3;
/// The oldest version that this code reads, and that a taker must understand.
pub const OLDEST_VERSION: u8 = 1;

const STREAM: u8 = 1;
const HEAD: u8 = 2;
const LISTENER: u8 = 3;
const LISTENER_OF_TLS: u8 = 4;
const WEBSOCKET: u8 = 5;
const POLL: u8 = 6;
const IDLE: u8 = 7;
/// Marks of a poll.
const KEEPS_CONNECTION: u8 = 1;
const IS_HTTP_1_0: u8 = 2;

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
    pub more: More,
    pub tls: Option<Tls>,
}

/// What a stream has because of its framing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum More {
    #[default]
    Nothing,
    WebSocket {
        /// A frame that is not complete.
        unread: Box<[u8]>,
        /// The frames of a message that is not complete.
        message: Option<Box<[u8]>>,
    },
    Poll(Poll),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poll {
    /// Header lines of its answer.
    pub lines: Box<[u8]>,
    pub left_ms: u32,
    pub keeps_connection: bool,
    pub is_http_1_0: bool,
    /// What was read after the request.
    pub rest: Box<[u8]>,
}

/// What a connection with TLS has besides.
#[derive(Clone, Debug)]
pub struct Tls {
    pub session: Session,
    /// What was read but is not a whole record yet.
    pub unread: Box<[u8]>,
}

/// A connection whose head is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub age_ms: u32,
    /// What was read of it.
    pub read: Box<[u8]>,
    pub tls: Option<Tls>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    Stream(Stream),
    Head(Head),
    /// A connection that was answered, and waits for the next request.
    Idle {
        tls: Option<Tls>,
    },
    Listener {
        is_tls: bool,
    },
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
        bytes.push(match self.more {
            More::Nothing => STREAM,
            More::WebSocket { .. } => WEBSOCKET,
            More::Poll(_) => POLL,
        });
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
        self.more.write(bytes);
        write_tls(bytes, self.tls.as_ref());
    }

    fn read(kind: u8, reader: &mut Reader) -> Result<Self, Malformed> {
        let (format, due_ns) = (reader.format()?, reader.u64()?);
        let label = Label::at_tick(reader.u32()?, reader.u32()?, reader.u32()?);
        let (exempt, tag) = (reader.u32()?, reader.text()?);
        let channels = (0..reader.u32()?).map(|_| reader.text()).collect::<Result<_, _>>()?;
        let backlog = reader.text()?;
        if exempt as usize > backlog.len() {
            return Err(Malformed);
        }
        let more = More::read(kind, reader)?;
        let fits = match more {
            More::Nothing => !format.is_poll() && !format.is_websocket(),
            More::WebSocket { .. } => format.is_websocket(),
            More::Poll(_) => format.is_poll(),
        };
        if !fits {
            return Err(Malformed);
        }
        Ok(Stream { format, due_ns, label, tag, channels, backlog, exempt, more, tls: read_tls(reader)? })
    }
}

impl More {
    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            More::Nothing => {}
            More::WebSocket { unread, message } => {
                write_text(bytes, unread);
                bytes.push(u8::from(message.is_some()));
                write_text(bytes, message.as_deref().unwrap_or_default());
            }
            More::Poll(poll) => {
                write_text(bytes, &poll.lines);
                bytes.extend_from_slice(&poll.left_ms.to_le_bytes());
                let mark = |mark, is_set| if is_set { mark } else { 0 };
                bytes.push(mark(KEEPS_CONNECTION, poll.keeps_connection) | mark(IS_HTTP_1_0, poll.is_http_1_0));
                write_text(bytes, &poll.rest);
            }
        }
    }

    fn read(kind: u8, reader: &mut Reader) -> Result<Self, Malformed> {
        Ok(match kind {
            WEBSOCKET => {
                let (unread, has_message, message) = (reader.text()?, reader.u8()?, reader.text()?);
                More::WebSocket { unread, message: (has_message != 0).then_some(message) }
            }
            POLL => {
                let (lines, left_ms, marks, rest) = (reader.text()?, reader.u32()?, reader.u8()?, reader.text()?);
                let (keeps_connection, is_http_1_0) = (marks & KEEPS_CONNECTION != 0, marks & IS_HTTP_1_0 != 0);
                More::Poll(Poll { lines, left_ms, keeps_connection, is_http_1_0, rest })
            }
            _ => More::Nothing,
        })
    }
}

impl Record {
    /// The oldest version in which there is such a record.
    fn version(&self) -> u8 {
        match self {
            Record::Stream(stream) => version_of(Some(stream.format), stream.tls.is_some()),
            Record::Head(head) => version_of(Some(Format::default()), head.tls.is_some()),
            Record::Idle { .. } => version_of(None, false),
            Record::Listener { is_tls } => version_of(Some(Format::default()), *is_tls),
            Record::Unknown => OLDEST_VERSION,
        }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Record::Stream(stream) => stream.write(bytes),
            Record::Head(Head { age_ms, read, tls }) => {
                bytes.push(HEAD);
                bytes.extend_from_slice(&age_ms.to_le_bytes());
                write_text(bytes, read);
                write_tls(bytes, tls.as_ref());
            }
            Record::Idle { tls } => {
                bytes.push(IDLE);
                write_tls(bytes, tls.as_ref());
            }
            Record::Listener { is_tls } => bytes.push(if *is_tls { LISTENER_OF_TLS } else { LISTENER }),
            Record::Unknown => {}
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        match reader.u8() {
            Ok(kind @ (STREAM | WEBSOCKET | POLL)) => Stream::read(kind, &mut reader).map(Record::Stream),
            Ok(IDLE) => Ok(Record::Idle { tls: read_tls(&mut reader)? }),
            Ok(HEAD) => Ok(Record::Head(Head { age_ms: reader.u32()?, read: reader.text()?, tls: read_tls(&mut reader)? })),
            Ok(LISTENER) => Ok(Record::Listener { is_tls: false }),
            Ok(LISTENER_OF_TLS) => Ok(Record::Listener { is_tls: true }),
            _ => Ok(Record::Unknown),
        }
    }
}

impl Parcel {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.number.to_le_bytes().to_vec();
        for record in &self.records {
            bytes.push(record.version());
            write_sized(&mut bytes, |bytes| record.write(bytes));
        }
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let number = reader.u32()?;
        let mut records = Vec::new();
        while !reader.is_empty() {
            let (version, record) = (reader.u8()?, reader.slice()?);
            records.push(if (OLDEST_VERSION..=VERSION).contains(&version) { Record::decode(record)? } else { Record::Unknown });
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

/// The oldest version in which there are records of such connections: streams, heads and listeners (with any format), or idle ones (None).
pub fn version_of(format: Option<Format>, is_tls: bool) -> u8 {
    if format.is_none_or(Format::is_newer) {
        VERSION_OF_POLLS
    } else if is_tls {
        VERSION_OF_TLS
    } else {
        OLDEST_VERSION
    }
}

/// Nothing for a connection without TLS.
fn write_tls(bytes: &mut Vec<u8>, tls: Option<&Tls>) {
    if let Some(Tls { session, unread }) = tls {
        write_text(bytes, &session.bytes());
        write_text(bytes, unread);
    }
}

fn read_tls(reader: &mut Reader) -> Result<Option<Tls>, Malformed> {
    if reader.is_empty() {
        return Ok(None);
    }
    Ok(Some(Tls { session: Session::from_bytes(&reader.text()?)?, unread: reader.text()? }))
}

impl PartialEq for Tls {
    fn eq(&self, other: &Self) -> bool {
        self.session.bytes() == other.session.bytes() && self.unread == other.unread
    }
}

impl Eq for Tls {}

fn write_text(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text);
}

/// A text whose size is known only once it is written.
fn write_sized(bytes: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = bytes.len();
    write_text(bytes, &[]);
    let text = bytes.len();
    write(bytes);
    let size = (bytes.len() - text) as u32;
    bytes[begin..text].copy_from_slice(&size.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::Secrets;

    fn parcel() -> Parcel {
        let stream = Stream {
            format: Format::from_byte(0x12).unwrap(),
            due_ns: 1 << 50,
            label: Label::at_tick(7, 8, 9),
            tag: b"room 5"[..].into(),
            channels: vec![b"news"[..].into(), Box::default()],
            backlog: b"unsent"[..].into(),
            exempt: 3,
            more: More::Nothing,
            tls: None,
        };
        let websocket = More::WebSocket { unread: [0x81][..].into(), message: Some(b"begun"[..].into()) };
        let lines = b"Cache-Control: no-store\r\n"[..].into();
        let poll = Poll { lines, left_ms: 17, keeps_connection: true, is_http_1_0: false, rest: b"GET"[..].into() };
        let newer = [
            Record::Stream(Stream { format: Format::from_byte(0x20).unwrap(), more: websocket, ..stream.clone() }),
            Record::Stream(Stream { format: Format::from_byte(0x34).unwrap(), more: More::Poll(poll), ..stream.clone() }),
            Record::Stream(Stream { format: Format::from_byte(0x13).unwrap(), ..stream.clone() }),
            Record::Idle { tls: None },
        ];
        let head = Head { age_ms: 12, read: b"GET / HT"[..].into(), tls: None };
        let secrets = Secrets::Tls13 { is_aes: true, to: &[1; 32], from: &[2; 32] };
        let tls = Some(Tls { session: Session::new(&secrets, 3, 4), unread: [23, 3][..].into() });
        let secret = [
            Record::Stream(Stream { tls: tls.clone(), ..stream.clone() }),
            Record::Listener { is_tls: true },
            Record::Head(Head { tls: tls.clone(), ..head.clone() }),
            Record::Idle { tls },
        ];
        let plain = [Record::Stream(stream), Record::Listener { is_tls: false }, Record::Head(head)];
        Parcel { number: 5, records: plain.into_iter().chain(secret).chain(newer).collect() }
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
