//! A door for tests and fuzzing: a shard that is turned by hand, and what must be true of it between two turns.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use crate::rows::{Input, NONE, State};
use crate::shard::{Shard, now_ns};

const EVENTS: usize = 64;

impl Shard {
    /// One turn without waiting, as it would be `ahead_ns` from now.
    #[doc(hidden)]
    pub fn turn_by_hand(&mut self, ahead_ns: u64) {
        let mut ready = Vec::with_capacity(EVENTS);
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut ready), Some(&at_once));
        self.turn(&ready, now_ns() + ahead_ns);
    }

    /// As if it had been accepted. False where there is no room.
    #[doc(hidden)]
    pub fn let_in_by_hand(&mut self, fd: OwnedFd) -> bool {
        let has_room = !self.rows.is_full();
        if has_room {
            self.let_in(fd);
        }
        has_room
    }

    /// Whether there are deliveries or hand-overs left to do.
    #[doc(hidden)]
    pub fn is_busy(&self) -> bool {
        self.has_jobs() || !self.passing.is_empty()
    }

    /// Connections that are to be handed over and found no room.
    #[doc(hidden)]
    pub fn passing(&self) -> usize {
        self.passing.len()
    }

    /// Panics where the books of the shard don't agree.
    #[doc(hidden)]
    pub fn check(&mut self) {
        let all = 0..self.rows.len() as u32;
        let states: Vec<State> = all.clone().map(|index| self.rows.state(index)).collect();
        let count = |state| states.iter().filter(|found| **found == state).count();
        assert_eq!(self.held, count(State::Held), "streams held");
        assert_eq!(self.rows.used(), states.len() - count(State::Free), "rows in use");
        assert_eq!(self.telemetry.streams.load(Relaxed), self.held as u64);
        assert_eq!(self.telemetry.connections.load(Relaxed), self.rows.used() as u64);
        let mut waiting = 0;
        for index in all.clone() {
            self.check_row(index);
            waiting += self.backlogs.get(&index).map_or(0, |backlog| backlog.waiting().len());
        }
        assert_eq!(self.telemetry.backlog_bytes.load(Relaxed), waiting as u64);
        let rows = &self.rows;
        self.channels.check(all.filter(|index| rows.state(*index) == State::Held).map(|index| (index, rows.link(index))));
    }

    fn check_row(&mut self, index: u32) {
        let row = self.rows.row(index);
        let state = row.state;
        assert_eq!(row.fd.is_some(), state != State::Free, "{row:?} has a descriptor where it is in use");
        assert!(row.link == NONE || matches!(state, State::Held | State::Free), "{row:?} has no link");
        assert!(row.input != Input::Unwatched || !matches!(state, State::Held | State::Ending | State::Lingering), "{row:?} is watched");
        assert!(row.is_backlogged || state != State::Ending, "{row:?} has something to end with");
        let backlog = self.backlogs.get(&index);
        assert_eq!(backlog.is_some(), row.is_backlogged, "{row:?} has a backlog where it says so");
        if let Some(backlog) = backlog {
            assert!(matches!(state, State::Held | State::Ending), "{row:?} may have a backlog");
            assert!(!backlog.waiting().is_empty(), "the backlog of {row:?} waits");
            assert!(backlog.kept() <= 2 * backlog.waiting().len(), "the backlog of {row:?} is not mostly of what was sent");
        }
    }
}
