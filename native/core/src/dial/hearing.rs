//! What comes on a stream, and how a stream ends.

use std::sync::atomic::AtomicU64;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::time::{ClockId, clock_gettime};

use super::answer::{Rest, Said};
use super::client::Client;
use super::streams::State;
use super::tally::count;
use super::{CAUSES, Cause, schedule};
use crate::clock::{SLICE_NS, now_ns};
use crate::telemetry::add;

const STRIDE: u32 = 16;

/// Reads of one stream before the others have their turn.
const READS_A_TURN: usize = 8;

/// What was heard in one read.
#[derive(Debug, Default)]
struct Heard {
    is_welcomed: bool,
    pings: u32,
    messages: u64,
    end: Option<Cause>,
}

impl Client {
    /// Reads what there is of a stream. Where the event said that it ended, up to that end.
    pub(super) fn read(&mut self, index: u32, has_ended: bool) {
        let mut scratch = std::mem::take(&mut self.scratch);
        self.read_into(&mut scratch, index, has_ended);
        self.scratch = scratch;
    }

    fn read_into(&mut self, scratch: &mut [u8], index: u32, has_ended: bool) {
        for _ in 0..READS_A_TURN {
            let Some(fd) = &self.streams.row(index).fd else { return };
            match recv(fd, &mut *scratch, RecvFlags::empty()) {
                Ok((_, 0)) => return self.end(index, Cause::Closed),
                Ok((_, size)) => {
                    self.hear(index, &scratch[..size]);
                    let is_drained = size < scratch.len() && !has_ended;
                    if is_drained || self.streams.row(index).state == State::Free {
                        return;
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(error) => return self.end(index, error.into()),
            }
        }
        // epoll tells no second time.
        self.unread.push_back(self.streams.id_of(index));
    }

    /// Goes on with the streams that had more to read than one turn takes, for a slice.
    pub(super) fn read_on(&mut self) {
        let until_ns = now_ns() + SLICE_NS;
        while now_ns() < until_ns
            && let Some(id) = self.unread.pop_front()
        {
            if let Some(index) = self.streams.find(id) {
                self.read(index, true);
            }
        }
    }

    fn hear(&mut self, index: u32, bytes: &[u8]) {
        let now_ns = now_ns();
        add(&self.tally.bytes, bytes.len() as u64);
        let row = self.streams.row(index);
        if row.state == State::Open {
            let is_at_boundary = self.rests.is_empty() || !self.rests.contains_key(&index);
            if is_at_boundary && let Some(pings) = row.answer.pings_in(bytes) {
                return self.note_pings(index, pings, now_ns);
            }
        } else {
            self.note_first_byte(index, now_ns);
        }
        let heard = self.understand(index, bytes);
        self.note(index, heard, now_ns);
    }

    fn note_first_byte(&mut self, index: u32, now_ns: u64) {
        if let Some(flight) = self.flights.get_mut(&index)
            && !flight.has_first_byte
        {
            flight.has_first_byte = true;
            self.tally.first_byte.record((now_ns - flight.begun_ns) / 1000, 1);
        }
    }

    fn understand(&mut self, index: u32, bytes: &[u8]) -> Heard {
        let tally = &self.tally;
        let mut heard = Heard::default();
        let mut rest: Rest = self.rests.remove(&index).unwrap_or_default();
        let answer = &mut self.streams.row_mut(index).answer;
        answer.read(bytes, &mut rest, &mut |said| match said {
            Said::Open => heard.is_welcomed = true,
            Said::Ping => heard.pings += 1,
            Said::Message(sent_us) => {
                heard.messages += 1;
                if let Some(sent_us) = sent_us {
                    tally.delivery.record(unix_us().saturating_sub(sent_us), 1);
                }
            }
            Said::End => heard.end = Some(Cause::Closed),
            Said::Wrong(cause, sample) => {
                tally.keep_sample(cause, sample);
                heard.end = Some(cause);
            }
        });
        if !rest.is_empty() {
            self.rests.insert(index, rest);
        }
        heard
    }

    fn note(&mut self, index: u32, heard: Heard, now_ns: u64) {
        if heard.is_welcomed {
            self.flights.remove(&index);
            self.streams.welcome(index);
            let row = self.streams.row_mut(index);
            let interval_ns = self.targets.interval_ns(row.target);
            if interval_ns > 0 {
                row.due_ns = schedule::first_due_ns(now_ns, interval_ns);
            }
            count(&self.tally.opened, 1);
        }
        self.note_pings(index, heard.pings, now_ns);
        add(&self.tally.messages, heard.messages);
        if let Some(cause) = heard.end {
            self.end(index, cause);
        }
    }

    fn note_pings(&mut self, index: u32, pings: u32, now_ns: u64) {
        add(&self.tally.pings, pings.into());
        let row = self.streams.row_mut(index);
        let interval_ns = self.targets.interval_ns(row.target);
        if interval_ns == 0 {
            return;
        }
        for _ in 0..pings {
            let record = |late_ns| self.tally.lateness.record(late_ns / 1000, 1);
            row.due_ns = schedule::note_ping(row.due_ns, now_ns, interval_ns, record);
        }
    }

    /// It is over, and not by us.
    pub(super) fn end(&mut self, index: u32, cause: Cause) {
        let tally = self.tally.clone();
        let counters: &[AtomicU64; CAUSES] = if self.streams.row(index).state == State::Open { &tally.lost } else { &tally.failed };
        self.free(index);
        count(&counters[cause as usize], 1);
    }

    /// Closes streams that are open, as many as are to be closed, for a slice.
    pub(super) fn close_some(&mut self) {
        let until_ns = now_ns() + SLICE_NS;
        while self.to_close > 0 && now_ns() < until_ns {
            for _ in 0..self.to_close.min(STRIDE.into()) {
                let Some(index) = self.streams.find_open() else {
                    count(&self.tally.settled, self.to_close);
                    self.to_close = 0;
                    return;
                };
                self.to_close -= 1;
                self.free(index);
                count(&self.tally.settled, 1);
                count(&self.tally.closed, 1);
            }
        }
    }

    /// Frees all that belongs to a stream; its socket is closed. One that was waited for in vain says so.
    fn free(&mut self, index: u32) {
        let row = self.streams.row(index);
        let interval_ns = self.targets.interval_ns(row.target);
        if let Some(late_ns) = schedule::overdue_ns(row.due_ns, now_ns(), interval_ns) {
            self.tally.lateness.record(late_ns / 1000, 1);
        }
        self.targets.release(row.target);
        self.flights.remove(&index);
        self.rests.remove(&index);
        drop(self.streams.remove(index));
    }
}

fn unix_us() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}
