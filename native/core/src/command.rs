//! What JS tells the shards: records in one buffer, so that a whole batch is one call.
//!
//! A record is an operation (1 byte) and its operands: an id as a double, a text as its length (32 bits, little
//! endian) and its bytes, a list of texts as its length (16 bits) and the texts. `transport/commands.js` writes them.
//! What streams begin with is a record of its own, said once for all that are held after it in the same buffer.

use std::sync::Arc;

use crate::framing::{Format, Message, Payload};
use crate::id::Id;

/// How streams begin.
#[derive(Debug)]
pub struct Opening {
    pub format: Format,
    /// The response head, and what they are welcomed with.
    pub bytes: Box<[u8]>,
    /// What they listen to.
    pub channels: Vec<Box<[u8]>>,
}

#[derive(Clone, Debug)]
pub enum Command {
    /// Answers a head: hold the stream.
    Hold {
        id: Id,
        opening: Arc<Opening>,
    },
    /// Answers heads that are still to come: those that are written down so are held without asking, for a moment.
    Standing {
        lines: Box<[u8]>,
        /// They take turns.
        openings: Arc<[Opening]>,
    },
    /// Answers a head: send this whole response, and close.
    Refuse {
        id: Id,
        response: Box<[u8]>,
    },
    /// Answers a head: hand the connection to node:http.
    Pass {
        id: Id,
    },
    /// One message to one stream.
    Send {
        id: Id,
        message: Arc<Message>,
    },
    /// Ends a stream gently.
    Close {
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
    /// One message to all that listen to a channel, in every shard.
    Publish {
        channel: Box<[u8]>,
        message: Arc<Message>,
    },
    /// Lets go of all streams over a period, and accepts no more.
    Drain {
        period_ms: u32,
    },
}

impl Command {
    /// The shard it is for; None for all.
    pub fn shard(&self) -> Option<u8> {
        match self {
            Command::Hold { id, .. }
            | Command::Refuse { id, .. }
            | Command::Pass { id }
            | Command::Send { id, .. }
            | Command::Close { id }
            | Command::Subscribe { id, .. }
            | Command::Unsubscribe { id, .. } => Some(id.shard()),
            Command::Standing { .. } | Command::Publish { .. } | Command::Drain { .. } => None,
        }
    }
}

/// Bytes that are no record. What came before them was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The records in a buffer, one after the other. Nothing follows a malformed one.
#[derive(Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    opening: Option<Arc<Opening>>,
}

impl<'a> Records<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Records { bytes, opening: None }
    }

    fn record(&mut self) -> Result<Command, Malformed> {
        let mut operation = self.u8()?;
        while operation == 10 {
            self.opening = Some(Arc::new(Opening { format: self.format()?, bytes: self.text()?, channels: self.texts()? }));
            operation = self.u8()?;
        }
        Ok(match operation {
            1 => Command::Hold { id: self.id()?, opening: self.opening.clone().ok_or(Malformed)? },
            2 => Command::Refuse { id: self.id()?, response: self.text()? },
            3 => Command::Pass { id: self.id()? },
            4 => Command::Send { id: self.id()?, message: self.message()? },
            5 => Command::Close { id: self.id()? },
            6 => Command::Subscribe { id: self.id()?, channel: self.text()? },
            7 => Command::Unsubscribe { id: self.id()?, channel: self.text()? },
            8 => Command::Publish { channel: self.text()?, message: self.message()? },
            9 => Command::Drain { period_ms: self.u32()? },
            11 => Command::Standing { lines: self.text()?, openings: self.openings()? },
            _ => return Err(Malformed),
        })
    }

    /// Alike but for their bytes. There is at least one.
    fn openings(&mut self) -> Result<Arc<[Opening]>, Malformed> {
        let (format, channels) = (self.format()?, self.texts()?);
        let openings = self.texts()?.into_iter().map(|bytes| Opening { format, bytes, channels: channels.clone() });
        let openings: Arc<[Opening]> = openings.collect();
        if openings.is_empty() { Err(Malformed) } else { Ok(openings) }
    }

    pub fn format(&mut self) -> Result<Format, Malformed> {
        Format::from_bits(self.u8()?).ok_or(Malformed)
    }

    pub fn texts(&mut self) -> Result<Vec<Box<[u8]>>, Malformed> {
        let count = u16::from_le_bytes(self.take()?);
        (0..count).map(|_| self.text()).collect()
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_le_bytes)
    }

    fn u8(&mut self) -> Result<u8, Malformed> {
        self.take().map(|[byte]| byte)
    }

    fn id(&mut self) -> Result<Id, Malformed> {
        Id::from_number(f64::from_le_bytes(self.take()?)).ok_or(Malformed)
    }

    fn text(&mut self) -> Result<Box<[u8]>, Malformed> {
        let size = self.u32()? as usize;
        let (text, rest) = self.bytes.split_at_checked(size).ok_or(Malformed)?;
        self.bytes = rest;
        Ok(text.into())
    }

    fn message(&mut self) -> Result<Arc<Message>, Malformed> {
        Ok(Arc::new(Message::new(Payload { text: self.text()?, events: self.text()? })))
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.bytes.split_first_chunk().ok_or(Malformed)?;
        self.bytes = rest;
        Ok(*bytes)
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Command, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let record = self.record();
        if record.is_err() {
            self.bytes = &[];
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u32).to_le_bytes(), bytes].concat()
    }

    #[test]
    fn records_are_read_one_after_the_other() {
        let id = Id::new(2, 7, 9);
        let number = id.number().to_le_bytes();
        let hold = [&[10][..], &[3], &text(b"HTTP"), &[1, 0], &text(b"news"), &[1], &number].concat();
        let publish = [&[8][..], &text(b"news"), &text(b"hi"), &text(b"data: hi\n\n")].concat();
        let bytes = [&hold[..], &publish, &[3], &number].concat();
        let commands: Vec<Command> = Records::new(&bytes).map(Result::unwrap).collect();
        let shards: Vec<Option<u8>> = commands.iter().map(Command::shard).collect();
        assert_eq!(shards, [Some(2), None, Some(2)]);
        let Command::Hold { id: found, opening } = &commands[0] else { panic!() };
        assert_eq!((*found, opening.format.bits(), &opening.bytes[..], opening.channels.len()), (id, 3, &b"HTTP"[..], 1));
    }

    #[test]
    fn an_opening_is_that_of_all_that_are_held_after_it() {
        let holds: Vec<Vec<u8>> = [1, 2, 3].map(|index| [&[1][..], &Id::new(0, index, 0).number().to_le_bytes()].concat()).into();
        let opening = |word| [&[10][..], &[1], &text(word), &[0, 0]].concat();
        let bytes = [&opening(b"never said")[..], &opening(b"one"), &holds[0], &holds[1], &opening(b"two"), &holds[2]].concat();
        let said: Vec<String> = Records::new(&bytes)
            .map(|command| match command.unwrap() {
                Command::Hold { opening, .. } => String::from_utf8_lossy(&opening.bytes).into_owned(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(said, ["one", "one", "two"]);
        assert_eq!(Records::new(&holds[0]).next().unwrap().unwrap_err(), Malformed, "held without an opening");
    }

    #[test]
    fn heads_that_are_held_without_asking_have_openings_that_take_turns() {
        let head = [&[11][..], &text(b"GET\n/"), &[2], &[1, 0], &text(b"news")].concat();
        let bytes = [&head[..], &[2, 0], &text(b"one"), &text(b"two")].concat();
        let Command::Standing { lines, openings } = Records::new(&bytes).next().unwrap().unwrap() else { panic!() };
        assert_eq!((&lines[..], openings.len()), (&b"GET\n/"[..], 2));
        assert_eq!((&openings[1].bytes[..], &openings[1].channels[0][..]), (&b"two"[..], &b"news"[..]));
        let none = [&head[..], &[0, 0]].concat();
        assert_eq!(Records::new(&none).next().unwrap().unwrap_err(), Malformed, "nothing to begin with");
    }

    #[test]
    fn a_buffer_cut_off_anywhere_is_malformed_once_and_no_more() {
        let bytes = [&[8][..], &text(b"news"), &text(b"hi"), &text(b"hi")].concat();
        for end in 1..bytes.len() {
            let mut records = Records::new(&bytes[..end]);
            assert_eq!(records.next().unwrap().unwrap_err(), Malformed, "{end}");
            assert!(records.next().is_none());
        }
    }
}
