//! TLS in a shard: `greeting` (handshakes, and heads that come encrypted), `input` (what clients send on streams), `relay` (connections
//! that node:http serves). What is written goes through `on_wire` and `last_on_wire`.
//!
//! A connection with TLS has a greeting until its handshake is over, and then a session until it is closed. Both are here, so that
//! connections without TLS cost nothing.

mod greeting;
mod input;
mod relay;
mod unread;

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use super::Shard;
use crate::clock::MS;
use crate::id::Id;
use crate::rows::State;
use crate::telemetry::Reason;
use crate::tls::{Alert, Content, Renewal, Session, Sessions, TlsConfig};

pub(super) use greeting::{Greeting, MOST_GREETINGS};
pub(super) use relay::{RELAYED, Relay, relay_pair};
use unread::Unread;

/// After so many handshakes, the memory that they leave behind is worth giving back.
const MANY: usize = 500;
/// How long nobody has begun one then.
const CALM_NS: u64 = 1000 * MS;
/// Room that the buffer for records keeps, in bytes.
const MOST_KEPT: usize = 65_536;

#[derive(Default)]
pub(super) struct Tls {
    /// What handshakes begin with. None: nobody listens for TLS.
    pub config: Option<TlsConfig>,
    /// Connections whose handshake is not over, by row.
    pub greetings: HashMap<u32, Greeting>,
    /// The same, the oldest first, and some that are over.
    greeted: VecDeque<Id>,
    pub sessions: Sessions,
    /// What has been read but is not a whole record yet, by row.
    unread: HashMap<u32, Unread>,
    /// Records before the end of a head that said nothing, by row. Honest clients have none.
    idle: HashMap<u32, usize>,
    pub relays: HashMap<u32, Relay>,
    /// The end of the handshake of those that wait for an answer to their request, which it goes out with.
    held_back: HashMap<u32, Vec<u8>>,
    /// Where records are made.
    records: Vec<u8>,
    /// Handshakes since their memory was given back, and when the last one began.
    shaken: usize,
    greeted_ns: u64,
}

impl Tls {
    /// Whether a connection has TLS, or is about to.
    pub fn has(&self, index: u32) -> bool {
        self.session(index).is_some() || self.greetings.contains_key(&index)
    }

    /// Whether its handshake is not over.
    pub fn is_greeting(&self, index: u32) -> bool {
        self.greetings.contains_key(&index)
    }

    pub fn session(&self, index: u32) -> Option<&Session> {
        self.sessions.get(index)
    }

    pub fn session_mut(&mut self, index: u32) -> Option<&mut Session> {
        self.sessions.get_mut(index)
    }

    /// Whether bytes of a connection wait for the rest of their record, or to be looked at.
    pub fn has_unread(&self, index: u32) -> bool {
        self.unread.contains_key(&index)
    }

    pub fn unread(&self, index: u32) -> &[u8] {
        self.unread.get(&index).map_or(&[], Unread::rest)
    }

    /// Keeps what was read until it is a whole record.
    pub fn add_unread(&mut self, index: u32, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.unread.entry(index).or_default().add(bytes);
        }
    }

    fn take_held_back(&mut self, index: u32) -> Vec<u8> {
        if self.held_back.is_empty() { Vec::new() } else { self.held_back.remove(&index).unwrap_or_default() }
    }

    /// The handshake of a connection has failed.
    fn end_greeting(&mut self, index: u32) {
        self.greetings.remove(&index);
        self.unread.remove(&index);
    }

    /// Takes the next whole record out of what was read.
    fn next_record(&mut self, index: u32) -> Result<Option<Vec<u8>>, Alert> {
        let Some(unread) = self.unread.get_mut(&index) else { return Ok(None) };
        let record = unread.next_record();
        if record.is_err() || unread.rest().is_empty() {
            self.unread.remove(&index);
        }
        record
    }

    /// True once many handshakes are over, and none has come for a while: the allocator keeps everybody waiting while it gives back.
    pub fn has_memory_to_give_back(&mut self, now_ns: u64) -> bool {
        let is_over = self.gives_back_ns().is_some_and(|calm_ns| calm_ns <= now_ns);
        if is_over {
            self.shaken = 0;
            self.greetings.shrink_to_fit();
            self.greeted = VecDeque::new();
            self.unread.shrink_to_fit();
            self.held_back.shrink_to_fit();
        }
        is_over
    }

    /// When it will have memory to give back, if nobody begins a handshake before.
    pub fn gives_back_ns(&self) -> Option<u64> {
        (self.shaken >= MANY && self.greetings.is_empty()).then_some(self.greeted_ns + CALM_NS)
    }

    /// Its head is complete.
    fn forget_idle(&mut self, index: u32) {
        if !self.idle.is_empty() {
            self.idle.remove(&index);
        }
    }

    /// Forgets everything about a connection.
    pub fn remove(&mut self, index: u32) {
        self.sessions.remove(index);
        if !self.greetings.is_empty() {
            self.greetings.remove(&index);
        }
        if !self.unread.is_empty() {
            self.unread.remove(&index);
        }
        if !self.relays.is_empty() {
            self.relays.remove(&index);
        }
        self.take_held_back(index);
        self.forget_idle(index);
    }

    /// Panics if it does not agree with the states of the rows.
    pub fn check(&self, state: impl Fn(u32) -> State) {
        assert!(self.greetings.keys().all(|index| state(*index) == State::Head), "only heads are greeted");
        assert!(self.greetings.keys().all(|index| self.session(*index).is_none()), "a session begins after the greeting");
        assert!(self.relays.keys().all(|index| state(*index) == State::Relayed), "relays have their state");
        assert!(self.sessions.rows().all(|index| state(index) != State::Free), "free rows have no session");
        assert!(self.idle.keys().all(|index| state(*index) == State::Head), "only heads are counted");
        assert!(self.held_back.keys().all(|index| state(*index) == State::Asked), "what is held back waits for an answer");
        assert!(self.unread.keys().all(|index| self.has(*index)), "only connections with TLS have unread bytes");
    }
}

impl Shard {
    /// What goes over the wire to say this: with TLS, records. Use `reuse` afterwards.
    pub(super) fn on_wire<'a>(&mut self, index: u32, text: &'a [u8]) -> Cow<'a, [u8]> {
        let Tls { sessions, held_back, records, .. } = &mut self.tls;
        let Some(session) = sessions.get_mut(index) else { return Cow::Borrowed(text) };
        let mut records = std::mem::take(records);
        if !held_back.is_empty()
            && let Some(last) = held_back.remove(&index)
        {
            records.extend_from_slice(&last);
        }
        session.seal(Content::Data, text, &mut records);
        if session.renew(&mut records) == Renewal::Impossible {
            let id = self.rows.id_of(index);
            self.ending.push_back((id, Reason::Expired));
        }
        Cow::Owned(records)
    }

    /// The same for the last bytes of a connection.
    pub(super) fn last_on_wire<'a>(&mut self, index: u32, text: &'a [u8]) -> Cow<'a, [u8]> {
        let mut wire = self.on_wire(index, text);
        if let (Some(session), Cow::Owned(records)) = (self.tls.session_mut(index), &mut wire) {
            session.seal_alert(Alert::CloseNotify, records);
        }
        wire
    }

    /// Keeps the memory of records for the next ones.
    pub(super) fn reuse(&mut self, wire: Cow<[u8]>) {
        if let Cow::Owned(mut records) = wire {
            records.clear();
            records.shrink_to(MOST_KEPT);
            self.tls.records = records;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_goes_back_once_after_many_handshakes_and_when_none_has_come_for_a_while() {
        let mut tls = Tls { shaken: MANY - 1, greeted_ns: 5, ..Tls::default() };
        assert_eq!((tls.gives_back_ns(), tls.has_memory_to_give_back(u64::MAX)), (None, false), "too few");
        tls.shaken = MANY;
        tls.greetings.insert(7, Greeting::default());
        assert_eq!(tls.gives_back_ns(), None, "one is under way");
        tls.greetings.clear();
        let calm_ns = 5 + CALM_NS;
        assert_eq!(tls.gives_back_ns(), Some(calm_ns), "the shard wakes up then, even if nothing else happens");
        assert_eq!([calm_ns - 1, calm_ns, calm_ns + 1].map(|now_ns| tls.has_memory_to_give_back(now_ns)), [false, true, false]);
    }
}
