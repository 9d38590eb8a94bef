//! Bytes that the kernel refused, by row. Few streams have any, so they are not part of the row.

use std::collections::HashMap;

/// The bytes that wait for one stream.
#[derive(Debug, Default)]
pub struct Backlog {
    bytes: Vec<u8>,
    sent: usize,
    /// So many more may wait than the limit says: those of a replay, for example, until they can only be others.
    exempt: usize,
}

impl Backlog {
    pub fn waiting(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// How many of them don't count against the limit.
    pub fn exempt(&self) -> usize {
        self.exempt
    }

    /// How many of them count against the limit.
    pub fn counted(&self) -> usize {
        self.waiting().len() - self.exempt
    }

    pub fn append(&mut self, bytes: &[u8], is_exempt: bool) {
        self.bytes.extend_from_slice(bytes);
        if is_exempt {
            self.exempt += bytes.len();
        }
    }

    /// The kernel took so many. Sent bytes are removed once they are the larger part, so that a stream that never quite
    /// catches up doesn't keep everything it was ever sent.
    pub fn take_off(&mut self, count: usize) {
        self.sent += count;
        if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        self.exempt = self.exempt.min(self.waiting().len());
    }

    /// Bytes that it keeps in memory, sent or not.
    pub fn kept(&self) -> usize {
        self.bytes.len()
    }
}

/// The backlogs of a shard.
pub type Backlogs = HashMap<u32, Backlog>;
