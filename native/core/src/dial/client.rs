//! One thread that dials: its epoll and its streams. A turn of its loop waits for what happens first, then reads, opens
//! and closes in slices of a few ms at most.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::thread::nanosleep;

use super::Target;
use super::answer::Rest;
use super::flight::{Flight, Order};
use super::schedule;
use super::streams::{Id, State, Streams};
use super::tally::{Tally, count};
use super::targets::Targets;
use crate::clock::{MS, now_ns};
use crate::shard::SCRATCH_BYTES;

/// Events that one turn sees to.
const EVENTS_A_TURN: usize = 256;
/// How often the streams are counted that are overdue.
const COUNT_NS: u64 = 1000 * MS;
/// Who is woken oftener than this sleeps for a breath after each turn, and sees to all at once that came meanwhile: to
/// be woken for each costs the sender as much as the reader. What it measures then may be a breath too late.
const OFTEN_NS: u64 = 4 * MS;
const BREATH: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// The longest wait.
const HOUR_NS: u64 = 3600 * 1000 * MS;
/// What epoll says of the bell: an id of no row.
const BELL: u64 = u64::MAX;

/// What a thread is told.
#[derive(Debug)]
pub enum Word {
    /// So many, of which the first has this turn.
    Open(Arc<Target>, u64, u64),
    Close(u64),
    Stop,
}

pub struct Client {
    words: Receiver<Word>,
    bell: OwnedFd,
    pub(super) epoll: OwnedFd,
    pub(super) tally: Arc<Tally>,
    pub(super) streams: Streams,
    pub(super) targets: Targets,
    /// Of rows that are not open yet.
    pub(super) flights: HashMap<u32, Flight>,
    /// Of rows that have a piece which is not whole.
    pub(super) rests: HashMap<u32, Rest>,
    pub(super) orders: VecDeque<Order>,
    pub(super) to_close: u64,
    /// Streams that have more to read.
    pub(super) unread: VecDeque<Id>,
    pub(super) sweep_ns: u64,
    count_ns: u64,
    pub(super) scratch: Vec<u8>,
    pub(super) now_ns: u64,
    is_stopped: bool,
}

impl Client {
    /// On the thread that will run it: its descriptors are of that thread's table.
    pub fn new(words: Receiver<Word>, bell: OwnedFd, tally: Arc<Tally>, connections: usize) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &bell, epoll::EventData::new_u64(BELL), epoll::EventFlags::IN)?;
        Ok(Client {
            words,
            bell,
            epoll,
            tally,
            streams: Streams::new(connections),
            targets: Targets::default(),
            flights: HashMap::new(),
            rests: HashMap::new(),
            orders: VecDeque::new(),
            to_close: 0,
            unread: VecDeque::new(),
            sweep_ns: 0,
            count_ns: 0,
            scratch: vec![0; SCRATCH_BYTES],
            now_ns: now_ns(),
            is_stopped: false,
        })
    }

    /// Turns until it is told to stop, and closes all.
    pub fn run(mut self) {
        let mut ready = Vec::with_capacity(EVENTS_A_TURN);
        while !self.is_stopped {
            ready.clear();
            // EINTR is no failure, and another can't be mended here: the turn goes on either way.
            let _ = epoll::wait(&self.epoll, spare_capacity(&mut ready), Some(&self.timeout()));
            let woken_ns = self.now_ns;
            self.turn(&ready);
            if self.now_ns < woken_ns + OFTEN_NS && ready.len() < EVENTS_A_TURN && !self.has_more_to_do() {
                let _ = nanosleep(&BREATH);
            }
        }
        self.close_all();
    }

    fn turn(&mut self, ready: &[epoll::Event]) {
        self.now_ns = now_ns();
        for event in ready {
            self.see(event);
        }
        self.read_on();
        self.close_some();
        self.dial_some();
        self.sweep();
        self.count_overdue();
    }

    fn see(&mut self, event: &epoll::Event) {
        let epoll::Event { data, flags } = *event;
        if data.u64() == BELL {
            return self.read_words();
        }
        // A row that was freed in this batch has another generation.
        let Some(index) = self.streams.find(data.u64()) else { return };
        if self.streams.row(index).state == State::Connecting && !self.see_connected(index) {
            return;
        }
        if flags.intersects(!epoll::EventFlags::OUT) {
            let has_ended = flags.intersects(epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR);
            self.read(index, has_ended);
        }
    }

    fn read_words(&mut self) {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        while let Ok(word) = self.words.try_recv() {
            match word {
                Word::Open(target, turn, left) => {
                    let target = self.targets.claim(target, left);
                    self.orders.push_back(Order::new(target, turn, left, self.now_ns));
                }
                Word::Close(count) => self.to_close += count,
                Word::Stop => self.is_stopped = true,
            }
        }
    }

    fn count_overdue(&mut self) {
        if self.now_ns < self.count_ns {
            return;
        }
        self.count_ns = self.now_ns + COUNT_NS;
        let is_overdue = |interval_ns, due_ns| schedule::overdue_ns(due_ns, self.now_ns, interval_ns).is_some();
        let open = self.streams.iter().filter(|row| row.state == State::Open);
        let overdue = open.filter(|row| is_overdue(self.targets.interval_ns(row.target), row.due_ns)).count();
        self.tally.overdue.store(overdue as u64, Relaxed);
    }

    /// Its last deed: sockets are closed with what holds them.
    fn close_all(self) {
        let begun = self.streams.iter().filter(|row| !matches!(row.state, State::Free | State::Open)).count() as u64;
        let ordered: u64 = self.orders.iter().map(|order| order.left).sum();
        self.tally.overdue.store(0, Relaxed);
        count(&self.tally.withdrawn, begun + ordered);
        count(&self.tally.settled, self.to_close);
        count(&self.tally.closed, self.streams.open() as u64);
    }

    fn has_more_to_do(&self) -> bool {
        !self.unread.is_empty() || self.to_close > 0
    }

    /// Until what comes first.
    fn timeout(&self) -> Timespec {
        let mut until_ns = self.now_ns + HOUR_NS;
        if self.has_more_to_do() {
            until_ns = 0;
        }
        if let Some(dial_ns) = self.next_dial_ns() {
            until_ns = until_ns.min(dial_ns);
        }
        if !self.flights.is_empty() {
            until_ns = until_ns.min(self.sweep_ns);
        }
        if self.streams.open() > 0 || self.tally.overdue.load(Relaxed) > 0 {
            until_ns = until_ns.min(self.count_ns);
        }
        let wait_ns = until_ns.saturating_sub(now_ns());
        Timespec { tv_sec: (wait_ns / 1_000_000_000) as _, tv_nsec: (wait_ns % 1_000_000_000) as _ }
    }
}
