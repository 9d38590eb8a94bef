//! What a thread that dials counts. One thread writes, another reads, as in `telemetry`.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use super::{CAUSES, Cause};
use crate::telemetry::Histogram;

/// Samples that are kept until they are taken.
pub const MOST_SAMPLES: usize = 8;

/// Some of the bytes that were not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub cause: Cause,
    pub bytes: Box<[u8]>,
}

/// Counts are since the thread began; histograms, in µs, and samples since they were last taken.
#[derive(Default)]
pub struct Tally {
    pub opened: AtomicU64,
    /// By us.
    pub closed: AtomicU64,
    /// On their way, or not begun, when all was stopped.
    pub withdrawn: AtomicU64,
    /// Of the closes that were asked for, those that are done, or that found no stream to close.
    pub settled: AtomicU64,
    pub pings: AtomicU64,
    pub messages: AtomicU64,
    pub bytes: AtomicU64,
    /// Now.
    pub overdue: AtomicU64,
    pub failed: [AtomicU64; CAUSES],
    pub lost: [AtomicU64; CAUSES],
    pub connect: Histogram,
    pub first_byte: Histogram,
    pub lateness: Histogram,
    pub delivery: Histogram,
    samples: Mutex<Vec<Sample>>,
}

/// How many streams there are, of those that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauges {
    pub in_flight: u64,
    pub open: u64,
}

impl Tally {
    /// `asked` were to be opened, and `to_close` to be closed. What is counted in between makes for a stream too many
    /// here, never for one too few, so that no more are opened than are wanted: ends are read first. (Of a close the
    /// thread counts `settled` before `closed`.)
    pub fn gauges(&self, asked: u64, to_close: u64) -> Gauges {
        let failed = sum(&self.failed) + self.withdrawn.load(SeqCst);
        let ended = sum(&self.lost) + self.closed.load(SeqCst);
        let pending = to_close.saturating_sub(self.settled.load(SeqCst));
        let opened = self.opened.load(SeqCst);
        Gauges { in_flight: asked.saturating_sub(failed + opened), open: opened.saturating_sub(ended + pending) }
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

/// Adds to a counter of streams: what was counted before is seen before.
pub fn count(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, SeqCst);
}

fn sum(counters: &[AtomicU64; CAUSES]) -> u64 {
    counters.iter().map(|counter| counter.load(SeqCst)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_on_its_way_open_or_gone() {
        let tally = Tally::default();
        assert_eq!(tally.gauges(10, 0), Gauges { in_flight: 10, open: 0 });
        count(&tally.opened, 6);
        count(&tally.failed[Cause::Refused as usize], 1);
        count(&tally.lost[Cause::Closed as usize], 1);
        assert_eq!(tally.gauges(10, 0), Gauges { in_flight: 3, open: 5 });
        // What is to be closed counts as gone before it is.
        assert_eq!(tally.gauges(10, 2), Gauges { in_flight: 3, open: 3 });
        count(&tally.closed, 2);
        count(&tally.settled, 2);
        assert_eq!(tally.gauges(10, 2), Gauges { in_flight: 3, open: 3 });
    }

    #[test]
    fn no_more_samples_are_kept_than_are_looked_at() {
        let tally = Tally::default();
        for byte in 0..20 {
            tally.keep_sample(Cause::Unexpected, &[byte]);
        }
        let samples = tally.take_samples();
        assert_eq!((samples.len(), &*samples[7].bytes), (MOST_SAMPLES, &[7][..]));
        assert!(tally.take_samples().is_empty());
    }
}
