//! What a thread keeps of the streams that speak TLS. Nothing if none does.

use std::collections::{HashMap, VecDeque};

use super::streams::Id;
use crate::tls::{Handshake, Sessions};

/// A handshake under way, or one that is over while its stream waits for the first bytes of the response: about 10 KB.
#[derive(Debug)]
pub struct Greeting {
    pub handshake: Handshake,
    /// When the connection was there.
    pub since_ns: u64,
}

#[derive(Debug, Default)]
pub struct Secrets {
    /// By row. Boxed, because the table has room for twice as many.
    pub greetings: HashMap<u32, Box<Greeting>>,
    /// Streams whose handshake can go on.
    pub ready: VecDeque<Id>,
    /// By row, from the first bytes of the response on.
    pub sessions: Sessions,
    /// By row, for streams in the middle of a record.
    pub cuts: HashMap<u32, Vec<u8>>,
    /// What a read contained, and what is to be sent because of it.
    pub plain: Vec<u8>,
    pub out: Vec<u8>,
}

impl Secrets {
    /// Copies the part of a record that a row has to the front of `buffer`. Returns its size.
    pub fn copy_cut(&self, row: u32, buffer: &mut [u8]) -> usize {
        let cut = if self.cuts.is_empty() { &[][..] } else { self.cuts.get(&row).map_or(&[][..], Vec::as_slice) };
        buffer[..cut.len()].copy_from_slice(cut);
        cut.len()
    }

    /// Keeps what is left of a read, if anything is.
    pub fn set_cut(&mut self, row: u32, rest: &[u8]) {
        if !rest.is_empty() {
            let cut = self.cuts.entry(row).or_default();
            cut.clear();
            cut.extend_from_slice(rest);
        } else if !self.cuts.is_empty() {
            self.cuts.remove(&row);
        }
    }

    /// The stream has ended.
    pub fn forget(&mut self, row: u32) {
        self.greetings.remove(&row);
        self.set_cut(row, &[]);
        self.sessions.remove(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_record_is_there_until_the_rest_has_come() {
        let mut secrets = Secrets::default();
        let mut buffer = [0; 8];
        assert_eq!(secrets.copy_cut(1, &mut buffer), 0);
        secrets.set_cut(1, b"ab");
        assert_eq!((secrets.copy_cut(1, &mut buffer), &buffer[..2]), (2, &b"ab"[..]));
        assert_eq!(secrets.copy_cut(2, &mut buffer), 0);
        secrets.set_cut(1, b"");
        assert_eq!((secrets.copy_cut(1, &mut buffer), secrets.cuts.len()), (0, 0));
    }
}
