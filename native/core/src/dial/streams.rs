//! The table of a thread's streams, with one row for each.

use super::answer::Answer;
use super::schedule;
use crate::id::MOST_ROWS;
use crate::socket::Socket;

/// No row.
const NONE: u32 = u32::MAX;

/// The life of a stream:
///
/// ```text
///     Free --> Connecting --connected, request sent--> Asked --welcomed--> Open
///                  \                                     \                  \--closed by us, or lost--> Free
///                   \-------------------------------------\--failed-----------------------------------> Free
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    Free,
    Connecting,
    Asked,
    Open,
}

/// A stream: 24 bytes. Nothing else is kept of an open stream, except in the middle of a unit.
#[derive(Debug)]
pub struct Stream {
    pub socket: Option<Socket>, // 4
    generation: u32,            // 4
    /// When the next ping is due: see `schedule`.
    pub due_ns: u64, // 8
    /// The index of its target; in Free the next free row.
    pub target: u32, // 4
    pub state: State,           // 1
    pub answer: Answer,         // 2
}

const _: () = assert!(size_of::<Stream>() == 24);

/// Row (lower half) and generation (upper half): the token that epoll reports.
pub type Id = u64;

#[derive(Debug)]
pub struct Streams {
    rows: Vec<Stream>,
    free: u32,
    used: usize,
    open: usize,
    most: usize,
    /// Where the next search for an open stream starts.
    cursor: usize,
}

impl Streams {
    /// Room for `most` rows, up to the limit of a shard. The kernel provides memory for a row when it is first used.
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

    /// The row that an id names, if it still has the same stream.
    pub fn find(&self, id: Id) -> Option<u32> {
        let row = self.rows.get(id as u32 as usize)?;
        (row.generation == (id >> 32) as u32 && row.state != State::Free).then_some(id as u32)
    }

    /// Any open stream.
    pub fn find_open(&mut self) -> Option<u32> {
        let count = self.rows.len();
        let mut indexes = (0..count).map(|step| (self.cursor + step) % count);
        let found = indexes.find(|index| self.rows[*index].state == State::Open)?;
        self.cursor = found;
        Some(found as u32)
    }

    /// Takes a free row. The caller has checked that there is room.
    pub fn insert(&mut self, socket: Socket, target: u32, answer: Answer) -> u32 {
        debug_assert!(!self.is_full());
        self.used += 1;
        let row = Stream { socket: Some(socket), generation: 0, due_ns: schedule::UNKNOWN, target, state: State::Connecting, answer };
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

    /// The stream is open now.
    pub fn welcome(&mut self, index: u32) {
        debug_assert!(self.row(index).state == State::Asked);
        self.row_mut(index).state = State::Open;
        self.open += 1;
    }

    /// Frees a row and returns its socket. Ids of the row are invalid from then on.
    pub fn remove(&mut self, index: u32) -> Option<Socket> {
        let next = self.free;
        let row = &mut self.rows[index as usize];
        debug_assert!(row.state != State::Free);
        self.open -= usize::from(row.state == State::Open);
        row.state = State::Free;
        row.generation = row.generation.wrapping_add(1);
        row.target = next;
        self.free = index;
        self.used -= 1;
        row.socket.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> Socket {
        std::os::fd::OwnedFd::from(std::fs::File::open("/dev/null").unwrap()).into()
    }

    fn insert(streams: &mut Streams) -> u32 {
        streams.insert(socket(), 0, Answer::new(true, false))
    }

    fn open(streams: &mut Streams) -> u32 {
        let index = insert(streams);
        streams.row_mut(index).state = State::Asked;
        streams.welcome(index);
        index
    }

    #[test]
    fn a_row_has_24_bytes_and_rows_are_made_when_they_are_needed() {
        assert_eq!(size_of::<Stream>(), 24);
        assert_eq!(Streams::new(1000).rows.len(), 0);
    }

    #[test]
    fn the_number_of_rows_is_limited() {
        assert_eq!(Streams::new(usize::MAX).most, MOST_ROWS);
    }

    #[test]
    fn the_id_of_a_freed_row_finds_nothing_even_if_the_row_is_used_again() {
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
    fn free_rows_are_used_before_new_ones_are_made() {
        let mut streams = Streams::new(3);
        let taken: Vec<u32> = (0..3).map(|_| insert(&mut streams)).collect();
        assert!(streams.is_full());
        streams.remove(taken[1]);
        streams.remove(taken[0]);
        assert_eq!((insert(&mut streams), insert(&mut streams)), (taken[0], taken[1]));
        assert!(streams.is_full());
    }

    #[test]
    fn exactly_the_open_streams_are_found() {
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
