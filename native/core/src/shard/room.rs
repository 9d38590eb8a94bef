//! Room for new connections: when every row is taken, a connection that only waits for its client is cut.

use super::Shard;
use super::tls::MOST_GREETINGS;
use crate::clock::MS;
use crate::listener::Accepting;
use crate::rows::State;
use crate::telemetry::add;

/// How long a client has to send its head, or to read an answer and close, before it may be cut in favour of another.
const GRACE_MS: u32 = 250;

impl Shard {
    /// Whether one more can be admitted. If not, nobody is accepted until a row is free, or somebody may be cut.
    pub(super) fn has_room(&mut self) -> bool {
        if !self.is_full() {
            return true;
        }
        let resume_ns = match self.next_to_cut() {
            Some((_, 0)) => return true,
            Some((_, wait_ms)) => self.now_ns + u64::from(wait_ms) * MS,
            None => u64::MAX,
        };
        self.set_accepting(Accepting::Full(resume_ns));
        false
    }

    /// Cuts somebody if every row is taken.
    pub(super) fn make_room(&mut self) {
        if self.is_full()
            && let Some((index, _)) = self.next_to_cut()
        {
            self.cut(index);
        }
    }

    /// Whether every row is taken, or as many handshakes are under way as memory is meant for.
    fn is_full(&self) -> bool {
        self.rows.is_full() || self.tls.greetings.len() >= MOST_GREETINGS
    }

    /// There may be room again.
    pub(super) fn note_room(&mut self) {
        if matches!(self.door.accepting, Accepting::Full(_)) {
            self.set_accepting(Accepting::Yes);
        }
    }

    /// Closes a connection without an answer, or without waiting until its client has read one.
    pub(super) fn cut(&mut self, index: u32) {
        add(&self.telemetry.cut, 1);
        self.lose_head(index);
    }

    /// The connection that may be cut first, and in how many ms. If several may, one that has no request goes before one that was answered,
    /// and that before one that has not sent its head.
    fn next_to_cut(&mut self) -> Option<(u32, u32)> {
        let has_all_greetings = self.tls.greetings.len() >= MOST_GREETINGS;
        // If there are too many handshakes, nobody else is cut.
        let oldest = if has_all_greetings {
            [self.oldest_greeting(), None, None]
        } else {
            [self.oldest_idle(), self.oldest_lingering(), self.door.arriving.oldest()]
        };
        let now_ms = self.now_ms();
        let waits = oldest.into_iter().flatten().map(|index| {
            let row = self.rows.row(index);
            let is_waiting = row.state == State::Idle && !row.is_backlogged();
            let age_ms = now_ms.wrapping_sub(row.since_ms);
            (index, if is_waiting { 0 } else { GRACE_MS.saturating_sub(age_ms) })
        });
        waits.min_by_key(|(_, wait_ms)| *wait_ms)
    }

    /// A row has begun to linger.
    pub(super) fn note_lingering(&mut self, index: u32) {
        self.oldest_lingering(); // so that the list does not grow with those that are gone
        let id = self.rows.id_of(index);
        self.door.lingering.push_back(id);
    }

    fn oldest_lingering(&mut self) -> Option<u32> {
        while let Some(id) = self.door.lingering.front() {
            let found = self.rows.find(*id).filter(|index| self.rows.state(*index) == State::Lingering);
            if found.is_some() {
                return found;
            }
            self.door.lingering.pop_front();
        }
        None
    }
}
