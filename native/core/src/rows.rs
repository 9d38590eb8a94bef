//! The table of a shard's connections: one row each, and there may be a million rows in a process.

use std::os::fd::OwnedFd;

use crate::framing::Format;
use crate::id::{GENERATIONS, Id, MOST_ROWS};

/// What stands for no row, or no subscription.
pub const NONE: u32 = u32::MAX;

/// How a connection moves:
///
/// ```text
///     accepted -> Head --head whole--> Asked --hold--> Held --close--> Ending --> free
///                  |  \                  |  \--pass on--------------------------> free
///                  \---\----refuse-------/--> Lingering ------------------------> free
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    Free,
    /// Its head is still coming in; since when is in `since_ms`.
    Head,
    /// JS was asked what to do with it.
    Asked,
    Held,
    /// A stream that is over, whose last bytes the kernel has not taken yet.
    Ending,
    /// Answered; it may read and close.
    Lingering,
}

/// What is known of input after the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Input {
    /// The row is not in the epoll yet, which will tell.
    Unwatched,
    None,
    Some,
}

/// A connection. 24 bytes, and nothing else is kept of a stream that has no channel and no backlog.
#[derive(Debug)]
pub struct Row {
    pub fd: Option<OwnedFd>, // 4
    pub generation: u32,     // 4
    /// In Held the first of its subscriptions; in Free the next free row.
    pub link: u32, // 4
    /// When Head, Ending or Lingering began, in ms of the shard's clock.
    pub since_ms: u32, // 4
    /// In Asked the bytes of its head, which are peeked at and not read.
    pub head_bytes: u32, // 4
    pub state: State,        // 1
    pub format: Format,      // 1
    /// Whether it has bytes in the table of backlogs.
    pub is_backlogged: bool, // 1
    pub input: Input,        // 1
}

const _: () = assert!(size_of::<Row>() == 24);

#[derive(Debug)]
pub struct Rows {
    shard: u8,
    rows: Vec<Row>,
    free: u32,
    used: usize,
    most: usize,
}

impl Rows {
    /// Room for `most` rows, as far as ids can name them. Memory is taken from the kernel as they are first used.
    pub fn new(shard: u8, most: usize) -> Self {
        let most = most.min(MOST_ROWS);
        Rows { shard, rows: Vec::with_capacity(most), free: NONE, used: 0, most }
    }

    /// Rows that were ever used; each index below is valid.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn used(&self) -> usize {
        self.used
    }

    pub fn is_full(&self) -> bool {
        self.used >= self.most
    }

    pub fn id_of(&self, index: u32) -> Id {
        Id::new(self.shard, index, self.rows[index as usize].generation)
    }

    pub fn row(&mut self, index: u32) -> &mut Row {
        &mut self.rows[index as usize]
    }

    pub fn format(&self, index: u32) -> Format {
        self.rows[index as usize].format
    }

    pub fn link(&self, index: u32) -> u32 {
        self.rows[index as usize].link
    }

    pub fn state(&self, index: u32) -> State {
        self.rows[index as usize].state
    }

    /// The index of the row that an id names, if that is still the same connection.
    pub fn find(&self, id: Id) -> Option<u32> {
        let row = self.rows.get(id.index() as usize)?;
        (id.shard() == self.shard && row.generation == id.generation() && row.state != State::Free).then_some(id.index())
    }

    /// The caller has seen that there is room. The exact opposite of `remove`.
    pub fn insert(&mut self, fd: OwnedFd, since_ms: u32) -> u32 {
        debug_assert!(!self.is_full());
        self.used += 1;
        let index = self.free;
        if index == NONE {
            self.rows.push(Row { fd: Some(fd), since_ms, ..free_row() });
            return self.rows.len() as u32 - 1;
        }
        let row = &mut self.rows[index as usize];
        self.free = row.link;
        *row = Row { fd: Some(fd), since_ms, generation: row.generation, ..free_row() };
        index
    }

    /// Frees a row and gives its descriptor back.
    pub fn remove(&mut self, index: u32) -> Option<OwnedFd> {
        let row = &mut self.rows[index as usize];
        debug_assert!(row.state != State::Free);
        let fd = row.fd.take();
        *row = Row { state: State::Free, link: self.free, generation: (row.generation + 1) % GENERATIONS, ..free_row() };
        self.free = index;
        self.used -= 1;
        fd
    }
}

fn free_row() -> Row {
    Row {
        fd: None,
        generation: 0,
        link: NONE,
        since_ms: 0,
        head_bytes: 0,
        state: State::Head,
        format: Format::default(),
        is_backlogged: false,
        input: Input::Unwatched,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fd() -> OwnedFd {
        std::fs::File::open("/dev/null").unwrap().into()
    }

    #[test]
    fn a_row_is_24_bytes_and_none_are_taken_before_they_are_used() {
        assert_eq!(size_of::<Row>(), 24);
        assert_eq!(size_of::<Option<OwnedFd>>(), 4);
        assert_eq!(Rows::new(0, 1000).len(), 0);
    }

    #[test]
    fn there_are_no_more_rows_than_ids_can_name_whatever_is_asked_for() {
        for most in [MOST_ROWS + 1, 1 << 30, usize::MAX] {
            assert_eq!(Rows::new(0, most).most, MOST_ROWS);
        }
    }

    #[test]
    fn an_id_of_a_row_that_was_freed_finds_nothing_even_when_the_row_is_used_again() {
        let mut rows = Rows::new(3, 2);
        let index = rows.insert(fd(), 0);
        let id = rows.id_of(index);
        assert_eq!(rows.find(id), Some(index));
        rows.remove(index);
        assert_eq!(rows.find(id), None);
        assert_eq!(rows.insert(fd(), 0), index);
        assert_eq!(rows.find(id), None);
        assert_eq!(rows.find(Id::new(4, index, rows.id_of(index).generation())), None);
    }

    #[test]
    fn rows_are_used_again_before_new_ones_are_taken() {
        let mut rows = Rows::new(0, 3);
        let taken: Vec<u32> = (0..3).map(|_| rows.insert(fd(), 0)).collect();
        assert!(rows.is_full());
        rows.remove(taken[1]);
        rows.remove(taken[0]);
        assert_eq!((rows.insert(fd(), 0), rows.insert(fd(), 0)), (taken[0], taken[1]));
        assert_eq!((rows.len(), rows.used()), (3, 3));
    }
}
