//! For tests and fuzzing: a shard that is turned by hand, and what must be true between two turns.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;

use super::Shard;
use super::door::MOST_ARRIVING_BYTES;
use crate::clock::now_ns;
use crate::id::Id;
use crate::reactor::Task;
use crate::rows::{Input, State};
use crate::tls::{Session, TlsConfig};

const EVENTS: usize = 64;

impl Shard {
    /// One turn without waiting, as it would be `ahead_ns` from now.
    #[doc(hidden)]
    pub fn turn_by_hand(&mut self, ahead_ns: u64) {
        let mut ready = Vec::with_capacity(EVENTS);
        if !self.has_events() {
            self.reactor.poll(&mut ready);
        }
        self.turn(&ready, now_ns() + ahead_ns);
    }

    /// Has events, commands, pings and fan-outs go on for so long in one turn. With 0 they take a step at a time, so that every
    /// fan-out spans turns.
    #[doc(hidden)]
    pub fn set_slice(&mut self, ns: u64) {
        self.slice_ns = ns;
    }

    /// As if it had been accepted from this address. False if there is no room.
    #[doc(hidden)]
    pub fn admit_by_hand(&mut self, fd: OwnedFd, address: Option<IpAddr>) -> bool {
        let has_room = self.has_room();
        if has_room {
            self.admit(fd.into(), address, false);
        }
        has_room
    }

    /// The same for TLS.
    #[doc(hidden)]
    pub fn greet_by_hand(&mut self, fd: OwnedFd, config: &TlsConfig) -> bool {
        self.tls.config = Some(config.clone());
        let has_room = self.has_room();
        if has_room {
            self.admit(fd.into(), None, true);
        }
        has_room
    }

    /// The session of a stream.
    #[doc(hidden)]
    pub fn session_by_hand(&mut self, id: Id) -> Option<&mut Session> {
        self.rows.find(id).and_then(|index| self.tls.session_mut(index))
    }

    /// Whether there are events, commands, publications or connections to pass on.
    #[doc(hidden)]
    pub fn is_busy(&self) -> bool {
        self.is_behind() || !self.door.passing.is_empty()
    }

    /// The length of the list of idle connections.
    #[doc(hidden)]
    pub fn idle_listed(&self) -> usize {
        self.door.idle.len()
    }

    /// Connections to pass on that found no room.
    #[doc(hidden)]
    pub fn passing(&self) -> usize {
        self.door.passing.len()
    }

    /// Panics if the books of the shard don't agree.
    #[doc(hidden)]
    pub fn check(&mut self) {
        let all = 0..self.rows.len() as u32;
        let states: Vec<State> = all.clone().map(|index| self.rows.state(index)).collect();
        let count = |state| states.iter().filter(|found| **found == state).count();
        assert_eq!(self.held, count(State::Held) + count(State::Moving), "streams held");
        assert_eq!(self.rows.used(), states.len() - count(State::Free), "rows in use");
        assert_eq!(self.telemetry.streams.load(Relaxed), self.held as u64);
        let is_held = |index: u32| matches!(self.rows.state(index), State::Held | State::Moving);
        let updates = all.clone().filter(|index| is_held(*index) && self.rows.format(*index).is_of_updates());
        let is_poll = |index: u32| may_be_stream(self.rows.state(index)) && self.rows.format(index).is_poll();
        let polls = all.clone().filter(|index| is_poll(*index));
        self.polls.check(polls.count());
        assert_eq!(self.telemetry.updates.load(Relaxed), updates.count() as u64);
        assert_eq!(self.telemetry.connections.load(Relaxed), self.rows.used() as u64);
        let mut waiting = 0;
        for index in all {
            self.check_row(index);
            waiting += self.backlogs.get(&index).map_or(0, |backlog| backlog.waiting().len());
        }
        assert_eq!(self.telemetry.backlog_bytes.load(Relaxed), waiting as u64);
        self.channels.check();
        self.labels.check(|index| may_be_stream(self.rows.state(index)));
        assert!(self.tags.keys().all(|index| may_be_stream(self.rows.state(*index))), "only streams have tags");
        assert!(self.giving.is_in_round() || count(State::Moving) == 0, "nothing moves between rounds");
        assert!(self.giving.is_in_round() || self.parked() == count(State::Parked), "what is parked is listed");
        let state = |index| self.rows.state(index);
        let is_kept = |index| match state(index) {
            State::Asked => true,
            State::Idle => self.rows.is_backlogged(index),
            state => may_be_stream(state) && self.rows.format(index).is_poll(),
        };
        self.door.arriving.check(|index| state(index) == State::Head, is_kept, count(State::Head));
        self.tls.check(state);
        self.websockets.check(|index| self.rows.format(index).is_websocket() && may_be_stream(state(index)));
        let lingering = self.door.lingering.iter().filter(|id| self.rows.find(**id).is_some_and(|index| state(index) == State::Lingering));
        assert_eq!(lingering.count(), count(State::Lingering), "every lingering row is listed");
        assert!(self.door.arriving.bytes() <= MOST_ARRIVING_BYTES, "bytes of incomplete heads");
    }

    fn check_row(&mut self, index: u32) {
        let has_channels = self.channels.has(index);
        let has_tls = self.tls.has(index);
        let row = self.rows.row(index);
        let state = row.state;
        assert_eq!(row.socket.is_some(), state != State::Free, "{row:?} has a socket if it is in use");
        assert!(!has_channels || may_be_stream(state), "{row:?} has no channels");
        assert!(
            row.input != Input::Unwatched || !matches!(state, State::Held | State::Idle | State::Ending | State::Lingering),
            "{row:?} is watched"
        );
        assert!(row.is_backlogged() || state != State::Ending, "{row:?} has something to end with");
        let backlog = self.backlogs.get(&index);
        assert_eq!(backlog.is_some(), row.is_backlogged(), "{row:?} has a backlog if it says so");
        if let Some(backlog) = backlog {
            let is_greeted = matches!(state, State::Head | State::Asked) && has_tls;
            assert!(may_be_stream(state) || matches!(state, State::Ending | State::Idle) || is_greeted, "{row:?} may have a backlog");
            assert!(!backlog.waiting().is_empty(), "the backlog of {row:?} waits");
            assert!(backlog.counted() <= self.options.max_backlog_bytes, "the backlog of {row:?} is within the limit");
            assert!(backlog.kept() <= 2 * backlog.waiting().len(), "the backlog of {row:?} is mostly unsent");
        }
    }
}

/// A parked row is a stream or a head.
fn may_be_stream(state: State) -> bool {
    matches!(state, State::Held | State::Moving | State::Parked)
}
