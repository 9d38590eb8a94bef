//! The table of a thread's streams: one row each.

use std::os::fd::OwnedFd;

use super::answer::Answer;
use super::schedule;
use crate::id::MOST_ROWS;

/// What stands for no row.
const NONE: u32 = u32::MAX;

/// How a stream moves:
///
/// ```text
///     dialled -> Connecting --connected, request sent--> Asked --welcomed--> Open
///                    \                                     \                  \--closed by us, or lost--> Free
///                     \-------------------------------------\--failed-----------------------------------> Free
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    Free,
    Connecting,
    Asked,
    Open,
}

/// A stream. 24 bytes, and nothing else is kept of one that is open and has no unit that is not whole.
#[derive(Debug)]
pub struct Stream {
    pub fd: Option<OwnedFd>, // 4
    generation: u32,         // 4
    /// In ns of the monotonic clock.
    pub due_ns: u64, // 8
    /// The place of its target; in Free the next free row.
    pub target: u32, // 4
    pub state: State,        // 1
    pub answer: Answer,      // 2
}

const _: () = assert!(size_of::<Stream>() == 24);

/// Which row, in the lower half, of which generation: what epoll says of it.
pub type Id = u64;

#[derive(Debug)]
pub struct Streams {
    rows: Vec<Stream>,
    free: u32,
    used: usize,
    open: usize,
    most: usize,
    /// Where the search for an open stream goes on.
    cursor: usize,
}

impl Streams {
    /// Room for `most` rows, of which a shard has no more either. Memory is taken from the kernel as they are first used.
    pub fn new(most: usize) -> Self {
        let most = most.min(MOST_ROWS);
        Streams { rows: Vec::with_capacity(most), free: NONE, used: 0, open: 0, most, cursor: 0 }
    }

    pub fn is_full(&self) -> bool {
        self.used >= self.most
    }

    pub fn open(&self) -> usize {
        self.open
    }

    pub fn id_of(&self, index: u32) -> Id {
        Id::from(self.rows[index as usize].generation) << 32 | Id::from(index)
    }

    pub fn row(&self, index: u32) -> &Stream {
        &self.rows[index as usize]
    }

    pub fn row_mut(&mut self, index: u32) -> &mut Stream {
        &mut self.rows[index as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.rows.iter()
    }

    /// The index of the row that an id names, if that is still the same stream.
    pub fn find(&self, id: Id) -> Option<u32> {
        let row = self.rows.get(id as u32 as usize)?;
        (row.generation == (id >> 32) as u32 && row.state != State::Free).then_some(id as u32)
    }

    /// Some stream that is open.
    pub fn find_open(&mut self) -> Option<u32> {
        let count = self.rows.len();
        let mut places = (0..count).map(|step| (self.cursor + step) % count);
        let found = places.find(|place| self.rows[*place].state == State::Open)?;
        self.cursor = found;
        Some(found as u32)
    }

    /// The caller has seen that there is room. The exact opposite of `remove`.
    pub fn insert(&mut self, fd: OwnedFd, target: u32, answer: Answer) -> u32 {
        debug_assert!(!self.is_full());
        self.used += 1;
        let row = Stream { fd: Some(fd), generation: 0, due_ns: schedule::UNKNOWN, target, state: State::Connecting, answer };
        let index = self.free;
        if index == NONE {
            self.rows.push(row);
            return self.rows.len() as u32 - 1;
        }
        let free = &mut self.rows[index as usize];
        self.free = free.target;
        *free = Stream { generation: free.generation, ..row };
        index
    }

    /// It was welcomed.
    pub fn welcome(&mut self, index: u32) {
        debug_assert!(self.row(index).state == State::Asked);
        self.row_mut(index).state = State::Open;
        self.open += 1;
    }

    /// Frees a row and gives its descriptor back. Ids of it are void from then on.
    pub fn remove(&mut self, index: u32) -> Option<OwnedFd> {
        let next = self.free;
        let row = &mut self.rows[index as usize];
        debug_assert!(row.state != State::Free);
        self.open -= usize::from(row.state == State::Open);
        row.state = State::Free;
        row.generation = row.generation.wrapping_add(1);
        row.target = next;
        self.free = index;
        self.used -= 1;
        row.fd.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fd() -> OwnedFd {
        std::fs::File::open("/dev/null").unwrap().into()
    }

    fn insert(streams: &mut Streams) -> u32 {
        streams.insert(fd(), 0, Answer::new(true, false))
    }

    fn open(streams: &mut Streams) -> u32 {
        let index = insert(streams);
        streams.row_mut(index).state = State::Asked;
        streams.welcome(index);
        index
    }

    #[test]
    fn a_row_is_24_bytes_and_none_are_taken_before_they_are_used() {
        assert_eq!(size_of::<Stream>(), 24);
        assert_eq!(Streams::new(1000).rows.len(), 0);
    }

    #[test]
    fn there_is_an_end_to_the_rows_whatever_is_asked_for() {
        assert_eq!(Streams::new(usize::MAX).most, MOST_ROWS);
    }

    #[test]
    fn an_id_of_a_row_that_was_freed_finds_nothing_even_when_the_row_is_used_again() {
        let mut streams = Streams::new(2);
        let index = insert(&mut streams);
        let id = streams.id_of(index);
        assert_eq!(streams.find(id), Some(index));
        streams.remove(index);
        assert_eq!(streams.find(id), None);
        assert_eq!(insert(&mut streams), index);
        assert_eq!(streams.find(id), None);
        assert_eq!(streams.find(Id::MAX), None);
    }

    #[test]
    fn rows_are_used_again_before_new_ones_are_taken() {
        let mut streams = Streams::new(3);
        let taken: Vec<u32> = (0..3).map(|_| insert(&mut streams)).collect();
        assert!(streams.is_full());
        streams.remove(taken[1]);
        streams.remove(taken[0]);
        assert_eq!((insert(&mut streams), insert(&mut streams)), (taken[0], taken[1]));
        assert!(streams.is_full());
    }

    #[test]
    fn every_open_stream_is_found_and_no_other() {
        let mut streams = Streams::new(6);
        let mut opened: Vec<u32> = (0..3).flat_map(|_| [insert(&mut streams), open(&mut streams)]).filter(|index| index % 2 == 1).collect();
        assert_eq!(streams.open(), 3);
        while let Some(index) = streams.find_open() {
            streams.remove(index);
            opened.retain(|one| *one != index);
        }
        assert_eq!((opened, streams.open()), (vec![], 0));
    }
}
