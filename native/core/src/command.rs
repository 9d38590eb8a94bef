//! What JS tells the shards: records in one buffer, so that a whole batch is one call. `transport/commands.js` writes
//! them. A record is an operation and its operands; see `native/protocol.js`.
//!
//! How streams begin is a record of its own (`opening`), said once for all that are held after it in the same buffer.

use std::sync::Arc;

use crate::framing::{Format, Message};
use crate::id::Id;
use crate::protocol::op;
use crate::queue::{NO_TOKEN, Queue, Queued};
use crate::wire::{Malformed, Reader};

/// How a stream begins.
#[derive(Clone, Debug)]
pub struct Opening {
    pub format: Format,
    /// The status line and header lines of the response, without Date and the empty line.
    pub head: Box<[u8]>,
    /// What is written after the head, framed. If there are several, streams get them in turn.
    pub welcomes: Box<[Box<[u8]>]>,
    pub channels: Vec<Box<[u8]>>,
}

const HAS_ID: u8 = 1;
const HAS_KIND: u8 = 2;

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
    /// Ends a stream gently.
    End {
        id: Id,
    },
    Subscribe {
        id: Id,
        channel: Box<[u8]>,
    },
    Unsubscribe {
        id: Id,
        channel: Box<[u8]>,
    },
    /// One message to every stream on a channel, in every shard.
    Publish {
        channel: Box<[u8]>,
        queued: Arc<Queued>,
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
            | Command::End { id }
            | Command::Subscribe { id, .. }
            | Command::Unsubscribe { id, .. } => Some(id.shard()),
            Command::Adopt | Command::Publish { .. } | Command::Drain { .. } | Command::Remember { .. } => None,
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
            op::end => Command::End { id: reader.id()? },
            op::subscribe => Command::Subscribe { id: reader.id()?, channel: reader.text()? },
            op::unsubscribe => Command::Unsubscribe { id: reader.id()?, channel: reader.text()? },
            op::publish => {
                let (token, channel) = (reader.u32()?, reader.text()?);
                Command::Publish { channel, queued: Queued::new(queue, token, message(reader)?) }
            }
            op::drain => Command::Drain { period_ms: reader.u32()? },
            op::remember => Command::Remember { lines: reader.text()?, opening: self.opening.clone().ok_or(Malformed)? },
            _ => return Err(Malformed),
        })
    }

    fn opening(&mut self) -> Result<Opening, Malformed> {
        let reader = &mut self.reader;
        let (format, head, payloads) = (reader.format()?, reader.text()?, reader.texts()?);
        let welcomes = payloads.iter().map(|payload| format.frame(payload).into()).collect();
        Ok(Opening { format, head, welcomes, channels: reader.texts()? })
    }
}

fn message(reader: &mut Reader) -> Result<Message, Malformed> {
    let bits = reader.u8()?;
    if bits & !(HAS_ID | HAS_KIND) != 0 {
        return Err(Malformed);
    }
    let id = if bits & HAS_ID != 0 { Some(reader.text()?) } else { None };
    let kind = if bits & HAS_KIND != 0 { Some(reader.text()?) } else { None };
    Ok(Message::new(id, kind, reader.text()?))
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

    fn hold(id: Id) -> Vec<u8> {
        [&[op::hold][..], &id.number().to_le_bytes()].concat()
    }

    #[test]
    fn records_are_read_one_after_the_other() {
        let id = Id::new(2, 7, 9);
        let begin = opening(0x11, b"HTTP", &[b"hi", b""], &[b"news"]);
        let publish = [&[op::publish, 7, 0, 0, 0][..], &text(b"news"), &[HAS_ID], &text(b"1"), &text(b"hi")].concat();
        let pass = [&[op::pass][..], &id.number().to_le_bytes()].concat();
        let bytes = [begin, hold(id), publish, pass].concat();
        let commands: Vec<Command> = records(&bytes).map(Result::unwrap).collect();
        let shards: Vec<Option<u8>> = commands.iter().map(Command::shard).collect();
        assert_eq!(shards, [Some(2), None, Some(2)]);
        let Command::Hold { id: found, opening } = &commands[0] else { panic!() };
        assert_eq!((*found, opening.format.byte(), &opening.head[..], opening.channels.len()), (id, 0x11, &b"HTTP"[..], 1));
        assert_eq!((&opening.welcomes[0][..], &opening.welcomes[1][..]), (&b"2\r\nhi\r\n"[..], &b""[..]), "framed");
        let Command::Publish { queued, .. } = &commands[1] else { panic!() };
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
    fn a_buffer_that_is_cut_off_is_malformed_once() {
        let bytes = [&[op::publish, 7, 0, 0, 0][..], &text(b"news"), &[HAS_ID | HAS_KIND], &text(b"1"), &text(b"t"), &text(b"hi")].concat();
        for end in 1..bytes.len() {
            let mut records = records(&bytes[..end]);
            assert_eq!(records.next().unwrap().unwrap_err(), Malformed, "{end}");
            assert!(records.next().is_none());
        }
    }
}
