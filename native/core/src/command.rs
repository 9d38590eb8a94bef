//! What JS tells the shards: records in one buffer, so that a whole batch is one call. `transport/commands.js` writes
//! them. A record is an operation and its operands; see `native/protocol.js`.
//!
//! How streams begin is a record of its own (`opening`), said once for all that are held after it in the same buffer.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::framing::{Cursor, Format, Message};
use crate::id::Id;
use crate::labels::{Kind, Label};
use crate::protocol::op;
use crate::queue::{NO_TOKEN, Queue, Queued};
use crate::telemetry::Reason;
use crate::wire::{Malformed, Names, Reader};

/// How a stream begins.
#[derive(Clone, Debug)]
pub struct Opening {
    pub format: Format,
    /// The status line and header lines of the response, without Date and the empty line.
    pub head: Box<[u8]>,
    /// What is written after the head, framed. If there are several, streams get them in turn.
    pub welcomes: Box<[Box<[u8]>]>,
    pub channels: Vec<Box<[u8]>>,
    /// How long a poll waits. Its `head` has neither a status line nor what is said about the body.
    pub wait_ms: u32,
}

/// Parts of a message.
const HAS_ID: u8 = 1;
const HAS_KIND: u8 = 2;
const HAS_RETRY: u8 = 4;
const HAS_TOPIC: u8 = 8;
/// Parts of a publication.
const HAS_MESSAGE: u8 = 1;
const HAS_CURSOR: u8 = 2;

/// Everything that is said to connections and streams.
#[derive(Clone, Debug)]
pub enum Command {
    /// Answers a head: make it a stream.
    Hold {
        id: Id,
        opening: Arc<Opening>,
    },
    /// Make a stream of the next parcel that waits for this shard. Not a record: it goes with the parcel.
    Adopt,
    /// Answers a head with an error that the core writes.
    Refuse {
        id: Id,
        status: u16,
    },
    /// Answers a head with a whole response.
    Respond {
        id: Id,
        head: Box<[u8]>,
        body: Box<[u8]>,
    },
    /// Answers a head: hand the connection to node:http.
    Pass {
        id: Id,
    },
    /// One message to one stream.
    Send {
        id: Id,
        queued: Arc<Queued>,
    },
    /// Bytes to one stream, as they are. If they are exempt, they never make the stream slow, however many they are.
    Write {
        id: Id,
        queued: Arc<Queued>,
        is_exempt: bool,
    },
    /// Ends a stream gently.
    End {
        id: Id,
    },
    Label {
        id: Id,
        label: Label,
    },
    /// What the application calls a stream. An empty tag is none.
    Tag {
        id: Id,
        tag: Box<[u8]>,
    },
    Subscribe {
        id: Id,
        channel: Box<[u8]>,
    },
    Unsubscribe {
        id: Id,
        channel: Box<[u8]>,
    },
    /// One message to every stream on at least one of the channels, in every shard; and what streams of updates have got from
    /// then on.
    Publish {
        channels: Names,
        queued: Option<Arc<Queued>>,
        cursor: Option<Arc<Cursor>>,
    },
    /// Ends all streams on a channel gently.
    EndChannel {
        channel: Box<[u8]>,
        reason: Reason,
    },
    /// Ends all streams with a label gently.
    EndLabelled {
        kind: Kind,
        value: u32,
        reason: Reason,
    },
    /// Ends all streams of updates gently. What is said after it waits until they have ended.
    EndUpdates {
        reason: Reason,
    },
    /// Stop accepting, and close all streams over a period.
    Drain {
        period_ms: u32,
    },
    /// From now on, hold streams whose head consists of these lines without asking JS.
    Remember {
        lines: Box<[u8]>,
        opening: Arc<Opening>,
    },
}

impl Command {
    /// The shard that its id names; None if it has no id.
    pub fn shard(&self) -> Option<u8> {
        match self {
            Command::Hold { id, .. }
            | Command::Refuse { id, .. }
            | Command::Respond { id, .. }
            | Command::Pass { id }
            | Command::Send { id, .. }
            | Command::Write { id, .. }
            | Command::End { id }
            | Command::Label { id, .. }
            | Command::Tag { id, .. }
            | Command::Subscribe { id, .. }
            | Command::Unsubscribe { id, .. } => Some(id.shard()),
            Command::Adopt
            | Command::Publish { .. }
            | Command::EndChannel { .. }
            | Command::EndLabelled { .. }
            | Command::EndUpdates { .. }
            | Command::Drain { .. }
            | Command::Remember { .. } => None,
        }
    }
}

/// The records in a buffer, one after the other. Nothing follows a malformed one.
#[derive(Debug)]
pub struct Records<'a> {
    reader: Reader<'a>,
    /// What messages wait in.
    queue: &'a Arc<Queue>,
    opening: Option<Arc<Opening>>,
}

impl<'a> Records<'a> {
    pub fn new(bytes: &'a [u8], queue: &'a Arc<Queue>) -> Self {
        Records { reader: Reader::new(bytes), queue, opening: None }
    }

    fn record(&mut self) -> Result<Command, Malformed> {
        let mut code = self.reader.u8()?;
        while code == op::opening {
            self.opening = Some(Arc::new(self.opening()?));
            code = self.reader.u8()?;
        }
        let (reader, queue) = (&mut self.reader, self.queue);
        Ok(match code {
            op::hold => Command::Hold { id: reader.id()?, opening: self.opening.clone().ok_or(Malformed)? },
            op::refuse => Command::Refuse { id: reader.id()?, status: reader.u16()? },
            op::respond => Command::Respond { id: reader.id()?, head: reader.text()?, body: reader.text()? },
            op::pass => Command::Pass { id: reader.id()? },
            op::send => Command::Send { id: reader.id()?, queued: Queued::new(queue, NO_TOKEN, message(reader)?) },
            op::write | op::reply => {
                let id = reader.id()?;
                Command::Write { id, queued: Queued::raw(queue, reader.text()?), is_exempt: code == op::write }
            }
            op::end => Command::End { id: reader.id()? },
            op::label => {
                let (id, subject, token) = (reader.id()?, reader.u32()?, reader.u32()?);
                Command::Label { id, label: Label::new(subject, token, reader.f64()?) }
            }
            op::tag => Command::Tag { id: reader.id()?, tag: reader.text()? },
            op::subscribe => Command::Subscribe { id: reader.id()?, channel: reader.text()? },
            op::unsubscribe => Command::Unsubscribe { id: reader.id()?, channel: reader.text()? },
            op::publish => publication(reader, queue)?,
            op::end_channel => Command::EndChannel { reason: reason(reader)?, channel: reader.text()? },
            op::end_labelled => Command::EndLabelled { reason: reason(reader)?, kind: kind(reader)?, value: reader.u32()? },
            op::end_updates => Command::EndUpdates { reason: reason(reader)? },
            op::drain => Command::Drain { period_ms: reader.u32()? },
            op::remember => Command::Remember { lines: reader.text()?, opening: self.opening.clone().ok_or(Malformed)? },
            _ => return Err(Malformed),
        })
    }

    fn opening(&mut self) -> Result<Opening, Malformed> {
        let reader = &mut self.reader;
        let (format, head, payloads) = (reader.format()?, reader.text()?, reader.texts()?);
        let welcomes = payloads.iter().map(|payload| format.frame(payload).into()).collect();
        let channels = reader.texts()?;
        let wait_ms = if format.is_poll() { reader.u32()? } else { 0 };
        Ok(Opening { format, head, welcomes, channels, wait_ms })
    }
}

fn publication(reader: &mut Reader, queue: &Arc<Queue>) -> Result<Command, Malformed> {
    let (token, bits, channels) = (reader.u32()?, bits(reader, HAS_MESSAGE | HAS_CURSOR)?, reader.names()?);
    let cursor = if bits & HAS_CURSOR != 0 { Some(Arc::new(Cursor::new(&reader.text()?))) } else { None };
    let message = if bits & HAS_MESSAGE != 0 { Some(message(reader)?) } else { None };
    let queued = message.map(|message| Queued::for_channels(queue, token, message, &channels));
    Ok(Command::Publish { channels, queued, cursor })
}

fn message(reader: &mut Reader) -> Result<Message, Malformed> {
    let bits = bits(reader, HAS_ID | HAS_KIND | HAS_RETRY | HAS_TOPIC)?;
    let id = if bits & HAS_ID != 0 { Some(reader.text()?) } else { None };
    let kind = if bits & HAS_KIND != 0 { Some(reader.text()?) } else { None };
    let retry = if bits & HAS_RETRY != 0 { NonZeroU32::new(reader.u32()?) } else { None };
    let topic = if bits & HAS_TOPIC != 0 { Some(reader.text()?) } else { None };
    Ok(Message::new(id, kind, reader.text()?).with_retry(retry).with_topic(topic))
}

/// Flags, none of which is unknown.
fn bits(reader: &mut Reader, known: u8) -> Result<u8, Malformed> {
    let bits = reader.u8()?;
    if bits & !known == 0 { Ok(bits) } else { Err(Malformed) }
}

fn reason(reader: &mut Reader) -> Result<Reason, Malformed> {
    Reason::ALL.get(usize::from(reader.u8()?)).copied().ok_or(Malformed)
}

fn kind(reader: &mut Reader) -> Result<Kind, Malformed> {
    Kind::ALL.get(usize::from(reader.u8()?)).copied().ok_or(Malformed)
}

impl Iterator for Records<'_> {
    type Item = Result<Command, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let record = self.record();
        if record.is_err() {
            self.reader.clear();
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(bytes: &[u8]) -> impl Iterator<Item = Result<Command, Malformed>> {
        let commands: Vec<_> = Records::new(bytes, &Arc::default()).collect();
        commands.into_iter()
    }

    fn text(bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u32).to_le_bytes(), bytes].concat()
    }

    fn texts(all: &[&[u8]]) -> Vec<u8> {
        let items: Vec<u8> = all.iter().flat_map(|one| text(one)).collect();
        [&(all.len() as u16).to_le_bytes()[..], &items].concat()
    }

    fn opening(format: u8, head: &[u8], welcomes: &[&[u8]], channels: &[&[u8]]) -> Vec<u8> {
        [vec![op::opening, format], text(head), texts(welcomes), texts(channels)].concat()
    }

    /// The beginning of one, with the token 7.
    fn publication(channels: &[&[u8]], bits: u8) -> Vec<u8> {
        let names: Vec<u8> = channels.iter().flat_map(|name| text(name)).collect();
        [&[op::publish, 7, 0, 0, 0, bits][..], &text(&names)].concat()
    }

    fn hold(id: Id) -> Vec<u8> {
        [&[op::hold][..], &id.number().to_le_bytes()].concat()
    }

    #[test]
    fn records_are_read_one_after_the_other() {
        let id = Id::new(2, 7, 9);
        let begin = opening(0x11, b"HTTP", &[b"hi", b""], &[b"news"]);
        let publish = [publication(&[b"news"], HAS_MESSAGE), vec![HAS_ID], text(b"1"), text(b"hi")].concat();
        let pass = [&[op::pass][..], &id.number().to_le_bytes()].concat();
        let bytes = [begin, hold(id), publish, pass].concat();
        let commands: Vec<Command> = records(&bytes).map(Result::unwrap).collect();
        let shards: Vec<Option<u8>> = commands.iter().map(Command::shard).collect();
        assert_eq!(shards, [Some(2), None, Some(2)]);
        let Command::Hold { id: found, opening } = &commands[0] else { panic!() };
        assert_eq!((*found, opening.format.byte(), &opening.head[..], opening.channels.len()), (id, 0x11, &b"HTTP"[..], 1));
        assert_eq!((&opening.welcomes[0][..], &opening.welcomes[1][..]), (&b"2\r\nhi\r\n"[..], &b""[..]), "framed");
        let Command::Publish { queued: Some(queued), cursor: None, .. } = &commands[1] else { panic!() };
        assert_eq!(queued.message.frame(Format::from_byte(1).unwrap()), b"id: 1\ndata: hi\n\n");
    }

    #[test]
    fn an_opening_is_that_of_everything_held_after_it() {
        let ids = [1, 2, 3].map(|index| Id::new(0, index, 0));
        let begin = |head: &[u8]| opening(1, head, &[], &[]);
        let bytes = [begin(b"unused"), begin(b"one"), hold(ids[0]), hold(ids[1]), begin(b"two"), hold(ids[2])].concat();
        let heads: Vec<String> = records(&bytes)
            .map(|command| match command.unwrap() {
                Command::Hold { opening, .. } => String::from_utf8_lossy(&opening.head).into_owned(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(heads, ["one", "one", "two"]);
        assert_eq!(records(&hold(ids[0])).next().unwrap().unwrap_err(), Malformed, "held without an opening");
    }

    #[test]
    fn a_head_that_is_remembered_has_the_opening_before_it() {
        let remember = [&[op::remember][..], &text(b"GET\n/")].concat();
        let bytes = [opening(0, b"HTTP", &[], &[b"news"]), remember.clone()].concat();
        let Command::Remember { lines, opening } = records(&bytes).next().unwrap().unwrap() else { panic!() };
        assert_eq!((&lines[..], &opening.channels[0][..]), (&b"GET\n/"[..], &b"news"[..]));
        assert_eq!(records(&remember).next().unwrap().unwrap_err(), Malformed);
    }

    #[test]
    fn a_publication_has_channels_and_may_have_a_message_and_a_cursor() {
        let bytes = [publication(&[b"a", b"b"], HAS_CURSOR), text(b"c"), publication(&[], 0)].concat();
        let commands: Vec<Command> = records(&bytes).map(Result::unwrap).collect();
        let Command::Publish { channels, queued: None, cursor: Some(cursor) } = &commands[0] else { panic!() };
        assert_eq!(channels.iter().collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(cursor.frame(Format::from_byte(2).unwrap()), b"id: c\n\n");
        assert!(matches!(&commands[1], Command::Publish { queued: None, cursor: None, .. }));
        assert_eq!(records(&publication(&[], 4)).next().unwrap().unwrap_err(), Malformed, "an unknown flag");
    }

    #[test]
    fn only_known_reasons_and_labels_are_read() {
        let channel = |reason: u8| [vec![op::end_channel, reason], text(b"news")].concat();
        let updates = |reason: u8| vec![op::end_updates, reason];
        let labelled = |reason: u8, kind: u8| vec![op::end_labelled, reason, kind, 7, 0, 0, 0];
        let bytes = [channel(Reason::Revoked as u8), labelled(Reason::Expired as u8, 1), updates(Reason::Restarted as u8)];
        let commands: Vec<_> = bytes.iter().flat_map(|one| records(one)).collect();
        assert!(matches!(&commands[0], Ok(Command::EndChannel { reason: Reason::Revoked, .. })));
        assert!(matches!(&commands[1], Ok(Command::EndLabelled { kind: Kind::Token, value: 7, reason: Reason::Expired })));
        assert!(matches!(&commands[2], Ok(Command::EndUpdates { reason: Reason::Restarted })));
        for bytes in [channel(99), labelled(99, 0), labelled(0, 2), updates(99)] {
            assert_eq!(records(&bytes).next().unwrap().unwrap_err(), Malformed);
        }
    }

    #[test]
    fn a_buffer_that_is_cut_off_is_malformed_once() {
        let message = [&[HAS_ID | HAS_KIND | HAS_RETRY][..], &text(b"1"), &text(b"t"), &[9, 0, 0, 0], &text(b"hi")].concat();
        let bytes = [publication(&[b"news", b"all"], HAS_MESSAGE | HAS_CURSOR), text(b"c"), message].concat();
        for end in 1..bytes.len() {
            let mut records = records(&bytes[..end]);
            assert_eq!(records.next().unwrap().unwrap_err(), Malformed, "{end}");
            assert!(records.next().is_none());
        }
    }
}
