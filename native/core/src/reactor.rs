//! The loop that shards and dialers run in: an epoll, a bell that other threads ring, and when to sleep.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::thread::nanosleep;

use crate::clock::{MS, now_ns};
use crate::sys::RUN_NS;

/// Events that one turn handles.
pub const EVENTS_A_TURN: usize = 256;
/// The longest wait.
const HOUR_NS: u64 = 3600 * 1000 * MS;
/// The token of the bell. Rows have smaller ones.
pub const BELL: u64 = u64::MAX;
/// What epoll always reports about a connection: input and its end, once for each change.
const EDGES: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

/// What runs in the loop.
pub trait Task {
    /// When turns follow each other faster than this, the thread may sleep for a moment after each.
    const OFTEN_NS: u64;
    /// How long it sleeps then, so that the next turn handles several events at once.
    const REST_NS: u64;

    fn reactor(&self) -> &Reactor;
    /// Whether events of an earlier turn are left: then the next turn comes at once, without new ones.
    fn has_events(&self) -> bool {
        false
    }
    /// One turn: handles the events, and does what is due.
    fn turn(&mut self, ready: &[Event], now_ns: u64);
    /// When the next turn has to come even if nothing happens. 0: at once.
    fn next_turn_ns(&self) -> u64;
    /// Whether everything may wait for a moment after this turn.
    fn may_rest(&self) -> bool;
    fn is_stopped(&self) -> bool;
}

/// Runs a task until it is stopped.
pub fn run<T: Task>(task: &mut T) {
    let mut ready = Vec::with_capacity(EVENTS_A_TURN);
    let mut last_turn_ns = now_ns();
    let mut running_since_ns = last_turn_ns;
    while !task.is_stopped() {
        ready.clear();
        let mut waiting_since_ns = now_ns();
        if waiting_since_ns > running_since_ns + RUN_NS {
            thread::yield_now();
            waiting_since_ns = now_ns();
            running_since_ns = waiting_since_ns;
        }
        if !task.has_events() {
            task.reactor().wait(&mut ready, task.next_turn_ns());
        }
        let turn_ns = now_ns();
        if turn_ns > waiting_since_ns + RUN_NS {
            running_since_ns = turn_ns;
        }
        task.turn(&ready, turn_ns);
        let is_often = turn_ns < last_turn_ns + T::OFTEN_NS;
        last_turn_ns = turn_ns;
        if is_often && ready.len() < EVENTS_A_TURN && task.may_rest() {
            let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: T::REST_NS as i64 });
        }
    }
}

/// Rings a bell, which is an eventfd.
pub fn ring(bell: &OwnedFd) {
    // It can only fail after 2^64 rings that nobody heard.
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

#[derive(Debug)]
pub struct Reactor {
    epoll: OwnedFd,
    bell: OwnedFd,
}

impl Reactor {
    /// `bell` is an eventfd. To be made on the thread that runs the loop: descriptors belong to its table.
    pub fn new(bell: OwnedFd) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), EventFlags::IN)?;
        Ok(Reactor { epoll, bell })
    }

    /// Waits for events until a time on the clock of `now_ns`.
    fn wait(&self, ready: &mut Vec<Event>, until_ns: u64) {
        let wait_ns = until_ns.saturating_sub(now_ns()).min(HOUR_NS);
        let wait = Timespec { tv_sec: (wait_ns / 1_000_000_000) as _, tv_nsec: (wait_ns % 1_000_000_000) as _ };
        // EINTR is no failure, and nothing can be done about others here: the turn goes on either way.
        let _ = epoll::wait(&self.epoll, spare_capacity(ready), Some(&wait));
    }

    /// The events that are there, without waiting.
    pub fn poll(&self, ready: &mut Vec<Event>) {
        self.wait(ready, 0);
    }

    /// The bell was heard.
    pub fn silence_bell(&self) {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
    }

    /// Reports input on something that is not a connection, for as long as there is any.
    pub fn watch_level(&self, fd: impl AsFd, token: u64) -> Result<(), Errno> {
        epoll::add(&self.epoll, fd, EventData::new_u64(token), EventFlags::IN)
    }

    /// Starts or stops reporting input on it.
    pub fn set_level(&self, fd: impl AsFd, token: u64, is_watched: bool) {
        let flags = if is_watched { EventFlags::IN } else { EventFlags::empty() };
        // It can only fail for a descriptor that was never added.
        let _ = epoll::modify(&self.epoll, fd, EventData::new_u64(token), flags);
    }

    /// Reports changes of a connection, starting with what is there already; `is_writable` too if that is asked for.
    pub fn watch(&self, fd: impl AsFd, token: u64, is_writable: bool) -> Result<(), Errno> {
        epoll::add(&self.epoll, fd, EventData::new_u64(token), edges(is_writable))
    }

    /// Reports once more what is there already.
    pub fn watch_again(&self, fd: impl AsFd, token: u64, is_writable: bool) {
        // It can only fail for a descriptor that was never added.
        let _ = epoll::modify(&self.epoll, fd, EventData::new_u64(token), edges(is_writable));
    }

    /// Needed before a descriptor goes to another process or thread: closing our copy does not end the reports.
    pub fn forget(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.epoll, fd);
    }
}

fn edges(is_writable: bool) -> EventFlags {
    if is_writable { EDGES | EventFlags::OUT } else { EDGES }
}

/// Whether the peer has closed, or the connection has failed.
pub fn has_ended(flags: EventFlags) -> bool {
    flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
}

/// Whether there is anything to read, an end included.
pub fn has_input(flags: EventFlags) -> bool {
    flags.intersects(!EventFlags::OUT)
}
