//! The table of a shard's connections. A process may have a million rows.

use crate::framing::Format;
use crate::head::Whole;
use crate::id::{GENERATIONS, Id, MOST_ROWS};
use crate::socket::Socket;

/// Stands for no row, or no subscription.
pub const NONE: u32 = u32::MAX;

/// How a connection moves:
///
/// ```text
///     accepted -> Head --head whole--> Asked --hold--> Held --close------------> free
///                  |                    | |              \--end--> Ending
///                  |                    | \--pass on----------------|--------> free, or with TLS Relayed
///                  \------answer--------/----> Ending ----> Lingering -------> free
///                                       \----> Idle --request--> Head
/// ```
///
/// A poll is Held until it is answered, and then Idle.
///
/// In a handover (shard/handover), a stream is Moving where it was and Parked where it will be; a connection in Head is Parked in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    Free,
    /// Its head is still arriving.
    Head,
    /// Answered; the client may send another request. What the kernel refused of the answer waits in the backlog.
    Idle,
    /// JS was asked what to do with it, or its stream is about to be opened.
    Asked,
    Held,
    /// A stream that has ended, or an answer; the kernel has not taken its last bytes yet.
    Ending,
    /// Answered; the client has a moment to read and close.
    Lingering,
    /// A stream of which another process, or another worker, has a copy. Nothing is written to it or read from it until it is
    /// released, and then this row is freed, or taken back, and then it is Held again.
    Moving,
    /// The same for a connection that is no stream yet, or not yet one of this shard.
    Parked,
    /// With TLS: node:http serves it, and its bytes pass through here.
    Relayed,
}

/// What is known about input after the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Input {
    /// The row is not in the epoll yet, which will report it.
    Unwatched,
    None,
    Some,
}

/// A connection. 20 bytes, and nothing else is kept for a stream without channels and without a backlog.
#[derive(Debug)]
pub struct Row {
    pub socket: Option<Socket>, // 4
    generation: u32,            // 4
    /// When it entered the states Head, Asked, Idle, Ending or Lingering, in ms of the shard's clock. A poll: when it is over. Free: the
    /// free row before it.
    pub since_ms: u32, // 4
    /// Asked: the size and kind of its request (`set_request`). Held: `aside`. Free: the next free row.
    detail: u32, // 4
    pub state: State,           // 1
    pub format: Format,         // 1
    marks: u8,                  // 1
    pub input: Input,           // 1
}

const _: () = assert!(size_of::<Row>() == 20);

/// In `marks`.
const IS_BACKLOGGED: u8 = 1;
const WAS_TOLD: u8 = 2;

/// Marks in `detail` what kind of request it is. No head is that long.
const IS_HEAD_REQUEST: u32 = 1 << 31;
const KEEPS_CONNECTION: u32 = 1 << 30;
const IS_HTTP_1_0: u32 = 1 << 29;
const KINDS: u32 = IS_HEAD_REQUEST | KEEPS_CONNECTION | IS_HTTP_1_0;

impl Row {
    fn free(generation: u32) -> Self {
        Row {
            socket: None,
            generation,
            since_ms: NONE,
            detail: NONE,
            state: State::Free,
            format: Format::default(),
            marks: 0,
            input: Input::Unwatched,
        }
    }

    /// Whether it has bytes in the table of backlogs.
    pub fn is_backlogged(&self) -> bool {
        self.marks & IS_BACKLOGGED != 0
    }

    pub fn set_backlogged(&mut self, is_backlogged: bool) {
        self.marks = self.marks & !IS_BACKLOGGED | if is_backlogged { IS_BACKLOGGED } else { 0 };
    }

    /// Its stream has got a message.
    pub fn tell(&mut self) {
        self.marks |= WAS_TOLD;
    }

    /// Whether its stream has got a message since the last call.
    pub fn take_told(&mut self) -> bool {
        let was_told = self.marks & WAS_TOLD != 0;
        self.marks &= !WAS_TOLD;
        was_told
    }

    /// The request that is complete now, and whether its method is HEAD.
    pub fn set_request(&mut self, head: Whole, is_head_request: bool) {
        let mark = |mark, is_set| if is_set { mark } else { 0 };
        self.detail = head.size as u32
            | mark(IS_HEAD_REQUEST, is_head_request)
            | mark(KEEPS_CONNECTION, head.keeps_connection)
            | mark(IS_HTTP_1_0, head.is_http_1_0);
    }

    /// None is known.
    pub fn forget_request(&mut self) {
        self.detail = 0;
    }

    /// Whether another request may follow its request.
    pub fn keeps_connection(&self) -> bool {
        self.detail & KEEPS_CONNECTION != 0
    }

    /// None may follow.
    pub fn end_connection(&mut self) {
        self.detail &= !KEEPS_CONNECTION;
    }

    pub fn is_http_1_0(&self) -> bool {
        self.detail & IS_HTTP_1_0 != 0
    }

    /// Held: a number of 29 bits, which its format uses as it likes.
    pub fn aside(&self) -> u32 {
        self.detail & !KINDS
    }

    pub fn set_aside(&mut self, number: u32) {
        self.detail = self.detail & KINDS | number & !KINDS;
    }

    /// 0 for a head that could not be read.
    pub fn head_size(&self) -> usize {
        (self.detail & !KINDS) as usize
    }

    pub fn is_head_request(&self) -> bool {
        self.detail & IS_HEAD_REQUEST != 0
    }
}

#[derive(Debug)]
pub struct Rows {
    shard: u8,
    rows: Vec<Row>,
    first_generation: u32,
    free: u32,
    used: usize,
    most: usize,
}

impl Rows {
    /// Room for `most` rows, as far as ids can name them. The kernel provides the memory when they are first used.
    /// Generations begin at `first_generation`, so that ids from before a restart find nothing, but never below 1, so that
    /// no id is 0.
    pub fn new(shard: u8, most: usize, first_generation: u32) -> Self {
        let most = most.min(MOST_ROWS);
        let first_generation = (first_generation % GENERATIONS).max(1);
        Rows { shard, rows: Vec::with_capacity(most), first_generation, free: NONE, used: 0, most }
    }

    /// Rows that were ever used; each index below is valid.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn used(&self) -> usize {
        self.used
    }

    /// There are never more than so many.
    pub fn most(&self) -> usize {
        self.most
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

    pub fn state(&self, index: u32) -> State {
        self.rows[index as usize].state
    }

    pub fn is_backlogged(&self, index: u32) -> bool {
        self.rows[index as usize].is_backlogged()
    }

    pub fn socket(&self, index: u32) -> Option<&Socket> {
        self.rows[index as usize].socket.as_ref()
    }

    /// A generation that no id of this table has had, as long as they don't wrap.
    pub fn next_generation(&self) -> u32 {
        let last = self.rows.iter().map(|row| row.generation).max().unwrap_or(self.first_generation);
        generation_after(last)
    }

    /// Gives a row another id.
    pub fn renew(&mut self, index: u32) {
        let row = &mut self.rows[index as usize];
        row.generation = generation_after(row.generation);
    }

    /// The index of the row that an id names, if it is still the same connection.
    pub fn find(&self, id: Id) -> Option<u32> {
        let row = self.rows.get(id.index() as usize)?;
        (id.shard() == self.shard && row.generation == id.generation() && row.state != State::Free).then_some(id.index())
    }

    /// Makes a row in the state Head. The caller has checked that there is room. The opposite of `remove`.
    pub fn insert(&mut self, socket: Socket, since_ms: u32) -> u32 {
        debug_assert!(!self.is_full());
        let mut index = self.free;
        if index == NONE {
            index = self.add_row();
        }
        self.fill(index, socket, since_ms);
        index
    }

    /// Makes a row at an index below `most` that is free, or was never used. The rows that are passed over are free.
    pub fn insert_at(&mut self, index: u32, socket: Socket, since_ms: u32) {
        debug_assert!(!self.is_full() && self.may_insert_at(index));
        while self.rows.len() <= index as usize {
            self.add_row();
        }
        self.fill(index, socket, since_ms);
    }

    /// Whether there may be a row at this index, and is none.
    pub fn may_insert_at(&self, index: u32) -> bool {
        (index as usize) < self.most && self.rows.get(index as usize).is_none_or(|row| row.state == State::Free)
    }

    /// One that is free.
    fn add_row(&mut self) -> u32 {
        let index = self.rows.len() as u32;
        self.rows.push(Row::free(self.first_generation));
        self.link(index);
        index
    }

    fn fill(&mut self, index: u32, socket: Socket, since_ms: u32) {
        self.unlink(index);
        self.used += 1;
        let row = &mut self.rows[index as usize];
        *row = Row { socket: Some(socket), since_ms, detail: 0, state: State::Head, ..Row::free(row.generation) };
    }

    /// Puts a row first on the list of free ones.
    fn link(&mut self, index: u32) {
        let row = &mut self.rows[index as usize];
        (row.detail, row.since_ms) = (self.free, NONE);
        if self.free != NONE {
            self.rows[self.free as usize].since_ms = index;
        }
        self.free = index;
    }

    /// Takes a row off the list of free ones.
    fn unlink(&mut self, index: u32) {
        let Row { detail: next, since_ms: before, .. } = self.rows[index as usize];
        if before == NONE {
            self.free = next;
        } else {
            self.rows[before as usize].detail = next;
        }
        if next != NONE {
            self.rows[next as usize].since_ms = before;
        }
    }

    /// Frees a row and returns its socket.
    pub fn remove(&mut self, index: u32) -> Option<Socket> {
        let row = &mut self.rows[index as usize];
        debug_assert!(row.state != State::Free);
        let socket = row.socket.take();
        *row = Row::free(generation_after(row.generation));
        self.link(index);
        self.used -= 1;
        socket
    }
}

/// Generations wrap, and leave out 0.
fn generation_after(generation: u32) -> u32 {
    generation % (GENERATIONS - 1) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;

    fn socket() -> Socket {
        OwnedFd::from(std::fs::File::open("/dev/null").unwrap()).into()
    }

    #[test]
    fn a_row_is_20_bytes_and_no_memory_is_taken_before_rows_are_used() {
        assert_eq!((size_of::<Row>(), size_of::<Option<Socket>>()), (20, 4));
        assert_eq!(Rows::new(0, 1000, 0).len(), 0);
    }

    #[test]
    fn there_are_no_more_rows_than_ids_can_name_whatever_is_asked_for() {
        for most in [MOST_ROWS + 1, 1 << 30, usize::MAX] {
            assert_eq!(Rows::new(0, most, 0).most, MOST_ROWS);
        }
    }

    #[test]
    fn an_id_of_a_row_that_was_freed_finds_nothing_even_when_the_row_is_used_again() {
        let mut rows = Rows::new(3, 2, 0);
        let index = rows.insert(socket(), 0);
        let id = rows.id_of(index);
        assert_eq!(rows.find(id), Some(index));
        rows.remove(index);
        assert_eq!(rows.find(id), None);
        assert_eq!(rows.insert(socket(), 0), index);
        assert_eq!(rows.find(id), None);
        assert_eq!(rows.find(Id::new(4, index, rows.id_of(index).generation())), None);
    }

    #[test]
    fn ids_begin_at_1_and_none_is_ever_0() {
        let mut rows = Rows::new(0, 1, 0);
        let index = rows.insert(socket(), 0);
        assert_eq!(rows.id_of(index).number(), 1.0);
        let mut last = Rows::new(0, 1, GENERATIONS - 1);
        let index = last.insert(socket(), 0);
        assert_eq!((last.id_of(index).generation(), last.next_generation()), (GENERATIONS - 1, 1));
        last.remove(index);
        assert_eq!(last.insert(socket(), 0), index);
        assert_eq!(last.id_of(index).number(), 1.0);
    }

    #[test]
    fn rows_are_used_again_before_new_ones_are_taken() {
        let mut rows = Rows::new(0, 3, 0);
        let taken: Vec<u32> = (0..3).map(|_| rows.insert(socket(), 0)).collect();
        assert!(rows.is_full());
        rows.remove(taken[1]);
        rows.remove(taken[0]);
        assert_eq!((rows.insert(socket(), 0), rows.insert(socket(), 0)), (taken[0], taken[1]));
        assert_eq!((rows.len(), rows.used()), (3, 3));
    }

    #[test]
    fn a_row_can_be_made_at_any_index_that_is_free_and_the_others_are_used_as_before() {
        let mut rows = Rows::new(0, 8, 0);
        rows.insert_at(4, socket(), 0);
        assert_eq!((rows.len(), rows.used(), rows.may_insert_at(4), rows.may_insert_at(8)), (5, 1, false, false));
        rows.insert_at(2, socket(), 0);
        assert_eq!([rows.insert(socket(), 0), rows.insert(socket(), 0), rows.insert(socket(), 0)], [3, 1, 0]);
        rows.remove(4);
        rows.remove(2);
        rows.insert_at(4, socket(), 0);
        assert_eq!([rows.insert(socket(), 0), rows.insert(socket(), 0)], [2, 5]);
        assert_eq!((rows.len(), rows.used()), (6, 6));
    }

    #[test]
    fn ids_from_before_a_restart_find_nothing() {
        let mut before = Rows::new(0, 1, 0);
        let index = before.insert(socket(), 0);
        let mut after = Rows::new(0, 1, before.next_generation());
        assert_eq!(after.insert(socket(), 0), index);
        assert_eq!(after.find(before.id_of(index)), None);
    }

    #[test]
    fn a_row_knows_the_size_and_the_kind_of_its_request() {
        let mut rows = Rows::new(0, 1, 0);
        let index = rows.insert(socket(), 0);
        let row = rows.row(index);
        assert_eq!((row.head_size(), row.is_head_request(), row.keeps_connection(), row.is_http_1_0()), (0, false, false, false));
        row.set_request(Whole { size: 1 << 20, keeps_connection: false, is_http_1_0: true }, true);
        assert_eq!((row.head_size(), row.is_head_request(), row.keeps_connection(), row.is_http_1_0()), (1 << 20, true, false, true));
        row.set_request(Whole { size: 1, keeps_connection: true, is_http_1_0: false }, false);
        row.set_aside(1 << 28);
        assert_eq!((row.aside(), row.keeps_connection(), row.is_head_request()), (1 << 28, true, false));
    }
}
