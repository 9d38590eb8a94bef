//! How a stream ends: lost, closed because there are too many, cut off to be opened again later, or closed to be opened again at once
//! (churn).

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

use super::attempt::Batch;
use super::client::Client;
use super::streams::State;
use super::tally::count;
use super::{CAUSES, Cause, schedule};
use crate::clock::{Slice, now_ns};
use crate::tls::Alert;

impl Client {
    /// Frees a stream that failed to open or is lost, and counts it.
    pub(super) fn end(&mut self, index: u32, cause: Cause) {
        let tally = self.tally.clone();
        let was_open = self.streams.row(index).state == State::Open;
        if let Some(tally) = self.server_tally(index) {
            count(if was_open { &tally.lost } else { &tally.failed }, 1);
        }
        let counters: &[AtomicU64; CAUSES] = if was_open { &tally.lost } else { &tally.failed };
        self.free(index);
        count(&counters[cause as usize], 1);
    }

    /// Closes and cuts off as many open streams as was requested, for a slice.
    pub(super) fn close_requested(&mut self) {
        if self.to_close + self.to_cut == 0 {
            return;
        }
        let mut slice = Slice::begin();
        while self.to_close + self.to_cut > 0 {
            let Some(index) = self.streams.last_open() else {
                count(&self.tally.settled, self.to_close + self.to_cut);
                (self.to_close, self.to_cut) = (0, 0);
                return;
            };
            if self.to_close > 0 {
                self.to_close -= 1;
                self.close(index);
                // It is closed for good, so another stream may get its number.
                self.subscribers.forget(index);
                self.visits.forget(index);
            } else {
                self.to_cut -= 1;
                self.cut(index);
            }
            if slice.is_over() {
                return;
            }
        }
    }

    /// Ends a stream with a reset, as when its client dies. It keeps its place: whoever takes its row next goes on with its cursor.
    fn cut(&mut self, index: u32) {
        if let Some(socket) = &self.streams.row(index).socket {
            // Without it, the server is told in the usual way.
            let _ = set_socket_linger(socket, Some(Duration::ZERO));
        }
        self.leave(index);
    }

    fn close(&mut self, index: u32) {
        self.say(index, Alert::CloseNotify);
        self.leave(index);
    }

    /// Frees a stream that we end, and counts it.
    fn leave(&mut self, index: u32) {
        if let Some(tally) = self.server_tally(index) {
            count(&tally.closed, 1);
        }
        self.free(index);
        count(&self.tally.settled, 1);
        count(&self.tally.closed, 1);
    }

    /// Closes and opens again the streams for which it is time, for a slice.
    pub(super) fn churn_due(&mut self) {
        if self.churns.is_empty() {
            return;
        }
        let mut slice = Slice::begin();
        while self.churns.front().is_some_and(|batch| !self.must_wait(batch.target))
            && let Some((target, number)) = Batch::take_due(&mut self.churns, slice.now_ns)
        {
            self.churn(target, number);
            if slice.is_over() {
                break;
            }
        }
    }

    fn churn(&mut self, target: u32, number: u64) {
        let random = self.random();
        let Some(index) = self.streams.random_open(random) else {
            self.targets.release(target);
            count(&self.tally.withdrawn, 1);
            return count(&self.tally.settled, 1);
        };
        self.close(index);
        count(&self.tally.churned, 1);
        // The row that was freed last is the next one to be used, so it is the same stream that comes back.
        self.open(target, number);
    }

    /// The next of a sequence of numbers (xorshift64).
    pub(super) fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// Frees everything that belongs to a connection, and closes its socket. If its ping is overdue, that is recorded.
    fn free(&mut self, index: u32) {
        let row = self.streams.row(index);
        let interval_ns = self.targets.interval_ns(row.target);
        if let Some(late_ns) = schedule::overdue_ns(row.due_ns, now_ns(), interval_ns) {
            self.tally.lateness.record(late_ns / 1000, 1);
        }
        self.targets.release(row.target);
        self.attempts.remove(&index);
        self.partials.remove(&index);
        self.secrets.forget(index);
        drop(self.streams.remove(index));
    }
}
