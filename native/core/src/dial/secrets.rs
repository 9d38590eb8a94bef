//! What a thread keeps of the streams that speak TLS. Nothing if none does.

use std::collections::{HashMap, VecDeque};

use super::streams::Id;
use crate::tls::{Handshake, Session};

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
    sessions: Vec<Session>,
    /// By row, for streams in the middle of a record.
    pub cuts: HashMap<u32, Vec<u8>>,
    /// What a read contained, and what is to be sent because of it.
    pub plain: Vec<u8>,
    pub out: Vec<u8>,
}

impl Secrets {
    pub fn session(&mut self, row: u32) -> Option<&mut Session> {
        self.sessions.get_mut(row as usize).filter(|session| session.is_some())
    }

    /// `most` is the number of rows that there can be. The kernel provides memory for a row when it is first used.
    pub fn keep(&mut self, row: u32, session: Session, most: usize) {
        if self.sessions.capacity() == 0 {
            self.sessions.reserve_exact(most);
        }
        let rows = self.sessions.len().max(row as usize + 1);
        self.sessions.resize_with(rows, Session::default);
        self.sessions[row as usize] = session;
    }

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
        if let Some(session) = self.session(row) {
            *session = Session::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::SESSION_BYTES;

    #[test]
    fn a_row_takes_100_bytes_once_it_is_used() {
        assert_eq!(SESSION_BYTES, 100);
        let mut secrets = Secrets::default();
        assert!(secrets.session(0).is_none() && secrets.sessions.capacity() == 0);
        secrets.keep(3, Session::default(), 1000);
        assert_eq!((secrets.sessions.len(), secrets.sessions.capacity()), (4, 1000));
    }

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
