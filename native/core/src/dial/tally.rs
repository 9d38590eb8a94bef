//! What a dialing thread counts. One thread writes and another one reads, as in `telemetry`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use super::{CAUSES, Cause};
use crate::telemetry::telemetry;

/// The number of samples kept until they are taken.
pub const MOST_SAMPLES: usize = 8;

/// Some of the bytes that were wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub cause: Cause,
    pub bytes: Box<[u8]>,
}

telemetry! {
    /// Counts are since the thread was first started; histograms and samples since they were last taken.
    pub struct Tally {
        counts {
            /// Streams asked for that are not open yet. The reader computes and stores it: see `Gauges`.
            in_flight,
            /// Streams open now. Likewise.
            open,
            /// Open streams whose ping is more than an interval late.
            overdue,
            opened,
            /// Closed by us.
            closed,
            /// Closed by us, to be opened again.
            churned,
            /// Opened at another server than before.
            moved,
            /// Opened again with their cursor.
            resumed,
            /// Opened again, but without one.
            restarted,
            /// Answers that say that publications may be missing.
            gaps,
            pings,
            messages,
            bytes,
            /// Publications of the fleet, each once per stream.
            delivered,
            /// Skipped: a later one to the same topic has arrived.
            missed,
            /// Skipped after the server had reported a gap.
            discarded,
            duplicated,
            /// Arrived after a later one.
            out_of_order,
            /// Those delivered that were sent while the stream was not open.
            recovered,
            /// To topics that the stream doesn't subscribe to.
            strayed,
            /// Of TLS, completed.
            handshakes,
            /// Those of them that used a ticket.
            resumptions,
        }
        arrays {
            failed: CAUSES,
            lost: CAUSES,
        }
        histograms {
            connect: "µs",
            handshake: "µs",
            first_byte: "µs",
            lateness: "µs",
            delivery: "µs",
        }
        others {
            /// Streams that were not open yet when everything was stopped.
            withdrawn: AtomicU64,
            /// Requested closes that are done, or that found no stream to close.
            settled: AtomicU64,
            samples: Mutex<Vec<Sample>>,
        }
    }
}

/// What a thread was asked to do since it was first started. Only the thread of JS knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub to_open: u64,
    pub to_close: u64,
}

/// How many of the streams asked for there are now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauges {
    pub in_flight: u64,
    pub open: u64,
}

impl Tally {
    /// Reads ends before openings. If something is counted in between, the result is a stream too many, never one too
    /// few, so that the caller never opens more than it wants. (For the same reason, the writer counts a close in
    /// `settled` before `closed`.)
    pub fn gauges(&self, asked: Asked) -> Gauges {
        let failed = sum(&self.failed) + self.withdrawn.load(SeqCst);
        let ended = sum(&self.lost) + self.closed.load(SeqCst);
        let pending = asked.to_close.saturating_sub(self.settled.load(SeqCst));
        let opened = self.opened.load(SeqCst);
        Gauges { in_flight: asked.to_open.saturating_sub(failed + opened), open: opened.saturating_sub(ended + pending) }
    }

    /// After the thread has panicked: everything it had is lost, and everything it had yet to open has failed.
    pub fn write_off(&self, asked: Asked) {
        self.settled.store(asked.to_close, SeqCst);
        let Gauges { in_flight, open } = self.gauges(asked);
        count(&self.failed[Cause::Other as usize], in_flight);
        count(&self.lost[Cause::Other as usize], open);
        self.overdue.store(0, Relaxed);
    }

    pub fn keep_sample(&self, cause: Cause, bytes: &[u8]) {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        if !bytes.is_empty() && samples.len() < MOST_SAMPLES {
            samples.push(Sample { cause, bytes: bytes.into() });
        }
    }

    pub fn take_samples(&self) -> Vec<Sample> {
        std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Adds to a counter of streams. Unlike `telemetry::add`, whoever sees this count also sees those before it.
pub fn count(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, SeqCst);
}

fn sum(counters: &[AtomicU64; CAUSES]) -> u64 {
    counters.iter().map(|counter| counter.load(SeqCst)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(to_open: u64, to_close: u64) -> Asked {
        Asked { to_open, to_close }
    }

    #[test]
    fn a_stream_asked_for_is_in_flight_or_open_or_gone() {
        let tally = Tally::default();
        assert_eq!(tally.gauges(asked(10, 0)), Gauges { in_flight: 10, open: 0 });
        count(&tally.opened, 6);
        count(&tally.failed[Cause::Refused as usize], 1);
        count(&tally.lost[Cause::Closed as usize], 1);
        assert_eq!(tally.gauges(asked(10, 0)), Gauges { in_flight: 3, open: 5 });
        assert_eq!(tally.gauges(asked(10, 2)), Gauges { in_flight: 3, open: 3 }, "a requested close counts at once");
        count(&tally.closed, 2);
        count(&tally.settled, 2);
        assert_eq!(tally.gauges(asked(10, 2)), Gauges { in_flight: 3, open: 3 });
    }

    #[test]
    fn nothing_is_left_after_a_write_off_and_a_second_one_changes_nothing() {
        let tally = Tally::default();
        count(&tally.opened, 6);
        count(&tally.closed, 1);
        count(&tally.settled, 1);
        for _ in 0..2 {
            tally.write_off(asked(10, 3));
            assert_eq!(tally.gauges(asked(10, 3)), Gauges { in_flight: 0, open: 0 });
            assert_eq!((sum(&tally.failed), sum(&tally.lost)), (4, 5));
        }
    }

    #[test]
    fn only_the_first_samples_are_kept() {
        let tally = Tally::default();
        for byte in 0..20 {
            tally.keep_sample(Cause::Unexpected, &[byte]);
        }
        let samples = tally.take_samples();
        assert_eq!((samples.len(), &*samples[7].bytes), (MOST_SAMPLES, &[7][..]));
        assert!(tally.take_samples().is_empty());
    }
}
