//! Looks for connections that take too long: one pass over the table now and then, instead of a timer for each.

use super::{LINGER_MS, Shard};
use crate::clock::MS;
use crate::listener::Accepting;
use crate::response::Refusal;
use crate::rows::State;

const LONGEST_SWEEP_MS: u32 = 250;
const SHORTEST_SWEEP_MS: u32 = 10;
/// At the end, a connection that node:http serves is closed when nothing has come through it for so long.
const RELAY_IDLE_MS: u64 = 5000;

impl Shard {
    /// Whether there are connections that are not streams.
    pub(super) fn has_outsiders(&self) -> bool {
        self.rows.used() > self.held || !self.polls.is_empty()
    }

    pub(super) fn sweep_every_ns(&self) -> u64 {
        let options = &self.options;
        let shortest_ms = options.head_timeout_ms.min(options.answer_timeout_ms).min(options.keep_alive_timeout_ms);
        u64::from((shortest_ms / 4).clamp(SHORTEST_SWEEP_MS, LONGEST_SWEEP_MS)) * MS
    }

    /// Looks for connections that took too long: one pass over the table instead of a timer for each.
    pub(super) fn sweep(&mut self) {
        if self.resume_accepting_ns().is_some_and(|until_ns| until_ns <= self.now_ns) {
            self.set_accepting(Accepting::Yes);
        }
        if !self.has_outsiders() || self.now_ns < self.door.sweep_ns {
            return;
        }
        self.door.sweep_ns = self.now_ns + self.sweep_every_ns();
        let is_over = self.drain.is_some_and(|drain| drain.has_waited_long_enough(self.now_ns));
        for index in 0..self.rows.len() as u32 {
            self.sweep_row(index, is_over);
        }
    }

    /// `is_over`: the drain waits for nobody any more.
    fn sweep_row(&mut self, index: u32, is_over: bool) {
        let age_ms = self.now_ms().wrapping_sub(self.rows.row(index).since_ms);
        let has_lingered = u64::from(age_ms) >= LINGER_MS;
        match self.rows.state(index) {
            State::Head if is_over => self.free(index),
            State::Head if age_ms >= self.options.head_timeout_ms && self.tls.is_greeting(index) => self.lose_head(index),
            State::Head if age_ms >= self.options.head_timeout_ms => self.refuse_row(index, Refusal::RequestTimeout),
            State::Idle if self.is_idle_too_long(index, age_ms) => self.close_idle(index),
            State::Held if self.is_poll_over(index) => self.end_poll_in_time(index),
            State::Asked if is_over && has_lingered => self.free(index),
            State::Asked if age_ms >= self.options.answer_timeout_ms => self.refuse_row(index, Refusal::ServiceUnavailable),
            State::Ending | State::Lingering if has_lingered => self.end_row(index),
            State::Relayed if self.is_relay_left(index, age_ms) => self.free(index),
            State::Relayed if is_over && u64::from(age_ms) >= RELAY_IDLE_MS => self.free(index),
            _ => {}
        }
    }
}
