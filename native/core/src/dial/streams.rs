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
///                |  \                                   ^  \                  \--closed by us, or lost--> Free
///                |   \----------------------------------|---\--failed-----------------------------------> Free
///                \--connected, with TLS--> Greeting ----/
///                                              \--failed-----------------------------------------------> Free
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    Free,
    Connecting,
    /// TLS: its handshake is under way.
    Greeting,
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
    pub answer: Answer,         // 3
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
    /// No row from this one on is open.
    last: usize,
}

impl Streams {
    /// Room for `most` rows, up to the limit of a shard. The kernel provides memory for a row when it is first used.
    pub fn new(most: usize) -> Self {
        let most = most.min(MOST_ROWS);
        Streams { rows: Vec::with_capacity(most), free: NONE, used: 0, open: 0, most, last: 0 }
    }

    pub fn is_full(&self) -> bool {
        self.used >= self.most
    }

    pub fn open(&self) -> usize {
        self.open
    }

    /// The number of rows that there can be.
    pub fn most(&self) -> usize {
        self.most
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

    /// The open stream in the last row, so that the numbers of those that stay open have no gaps.
    pub fn last_open(&mut self) -> Option<u32> {
        let mut indexes = (0..self.last).rev();
        let found = indexes.find(|index| self.rows[*index].state == State::Open);
        self.last = found.map_or(0, |index| index + 1);
        found.map(|index| index as u32)
    }

    /// An open stream that a random number chooses.
    pub fn random_open(&self, random: u64) -> Option<u32> {
        let count = self.rows.len();
        let begin = (random % count.max(1) as u64) as usize;
        let mut indexes = (begin..count).chain(0..begin);
        indexes.find(|index| self.rows[*index].state == State::Open).map(|index| index as u32)
    }

    /// The row that `insert` will take.
    pub fn next_row(&self) -> u32 {
        if self.free == NONE { self.rows.len() as u32 } else { self.free }
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
        self.last = self.last.max(index as usize + 1);
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
    fn exactly_the_open_streams_are_found_from_the_last_to_the_first() {
        let mut streams = Streams::new(6);
        let opened: Vec<u32> = (0..3).flat_map(|_| [insert(&mut streams), open(&mut streams)]).filter(|index| index % 2 == 1).collect();
        assert_eq!((streams.open(), opened), (3, vec![1, 3, 5]));
        assert_eq!(streams.last_open(), Some(5));
        streams.remove(5);
        assert_eq!((streams.last_open(), open(&mut streams), streams.last_open()), (Some(3), 5, Some(5)));
        for index in [5, 3, 1] {
            assert_eq!(streams.last_open(), Some(index));
            streams.remove(index);
        }
        assert_eq!((streams.last_open(), streams.open()), (None, 0));
    }

    #[test]
    fn a_random_number_finds_an_open_stream_if_there_is_one() {
        let mut streams = Streams::new(6);
        assert_eq!(streams.random_open(7), None);
        for _ in 0..3 {
            insert(&mut streams);
            open(&mut streams);
        }
        let found: Vec<u32> = (0..7).filter_map(|random| streams.random_open(random)).collect();
        assert_eq!(found, [1, 1, 3, 3, 5, 5, 1]);
    }
}
