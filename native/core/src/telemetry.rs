//! What a shard counts. One thread writes, another reads once a second, so all of it is atomics; nobody waits.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// As `lib/histogram.js` has them: values below 256 have a bucket each, and every doubling above is cut into 128.
const STEPS_LOG2: u32 = 7;
pub const BUCKETS: usize = 26 << STEPS_LOG2;

fn bucket_of(value: u32) -> usize {
    let shift = (31 - (value | 1).leading_zeros()).saturating_sub(STEPS_LOG2);
    ((shift << STEPS_LOG2) + (value >> shift)) as usize
}

/// A log-linear histogram of 32-bit values.
pub struct Histogram {
    counts: Box<[AtomicU32]>,
    count: AtomicU64,
    sum: AtomicU64,
    min: AtomicU32,
    max: AtomicU32,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            counts: (0..BUCKETS).map(|_| AtomicU32::new(0)).collect(),
            count: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            min: AtomicU32::new(u32::MAX),
            max: AtomicU32::new(0),
        }
    }
}

impl Histogram {
    /// Records `value` as seen `times` times.
    pub fn record(&self, value: u64, times: u32) {
        let value = u32::try_from(value).unwrap_or(u32::MAX);
        self.counts[bucket_of(value)].fetch_add(times, Relaxed);
        self.count.fetch_add(times.into(), Relaxed);
        self.sum.fetch_add(u64::from(value) * u64::from(times), Relaxed);
        self.min.fetch_min(value, Relaxed);
        self.max.fetch_max(value, Relaxed);
    }
}

/// The merged histograms of several shards, as they travel to JS.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    counts: Vec<u32>,
    pub count: u64,
    pub sum: u64,
    pub min: u32,
    pub max: u32,
}

impl Default for Merged {
    fn default() -> Self {
        Merged { counts: vec![0; BUCKETS], count: 0, sum: 0, min: u32::MAX, max: 0 }
    }
}

impl Merged {
    /// Adds what was recorded since the last time, and empties it.
    pub fn take(&mut self, from: &Histogram) {
        if from.count.load(Relaxed) == 0 {
            return;
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&from.counts) {
            // Most buckets are empty, and to swap one locks its line of the cache.
            if theirs.load(Relaxed) > 0 {
                *mine += theirs.swap(0, Relaxed);
            }
        }
        self.count += from.count.swap(0, Relaxed);
        self.sum += from.sum.swap(0, Relaxed);
        self.min = self.min.min(from.min.swap(u32::MAX, Relaxed));
        self.max = self.max.max(from.max.swap(0, Relaxed));
    }

    /// The buckets that hold something: index, count, index, count…
    pub fn sparse(&self) -> Vec<u32> {
        let held = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        held.flat_map(|(index, count)| [index as u32, *count]).collect()
    }
}

/// Every way a stream ends, in the order of `CLOSE_REASONS` in `lib/reasons.js`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    ClientGone,
    Slow,
    Drain,
    DeadPeer,
    OverCapacity,
    BadRequest,
    Error,
}

pub const REASONS: usize = Reason::Error as usize + 1;

/// Counts are since the shard began; histograms since they were last taken.
#[derive(Default)]
pub struct Telemetry {
    /// Held now.
    pub streams: AtomicU64,
    /// Rows in use now: streams, and connections that carry none.
    pub connections: AtomicU64,
    pub opened: AtomicU64,
    pub closed: [AtomicU64; REASONS],
    pub pings: AtomicU64,
    pub deliveries: AtomicU64,
    pub bytes_written: AtomicU64,
    /// Waiting now.
    pub backlog_bytes: AtomicU64,
    /// Of pings, in µs.
    pub lateness: Histogram,
    /// CPU of the shard's thread by stream opened, by ping and by delivery, in ns.
    pub open_cpu: Histogram,
    pub ping_cpu: Histogram,
    pub delivery_cpu: Histogram,
}

/// Adds to a counter that one thread writes: what it stores replaces nothing that another did.
pub fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

/// Takes from a counter that one thread writes.
pub fn take_off(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_sub(n), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_the_histogram_in_js() {
        // From lib/histogram.js: (shift << 7) + (us >>> shift).
        for (value, bucket) in [(0, 0), (1, 1), (255, 255), (256, 256), (257, 256), (1000, 506), (u32::MAX, BUCKETS - 1)] {
            assert_eq!(bucket_of(value), bucket, "{value}");
        }
    }

    #[test]
    fn a_counter_goes_up_and_down_under_the_eyes_of_a_reader() {
        let counter = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..1000).for_each(|_| assert!([0, 2, 3].contains(&counter.load(Relaxed)))));
            for _ in 0..1000 {
                add(&counter, 3);
                take_off(&counter, 1);
                take_off(&counter, 2);
            }
        });
        assert_eq!(counter.load(Relaxed), 0);
    }

    #[test]
    fn what_was_taken_is_not_taken_again() {
        let histogram = Histogram::default();
        histogram.record(7, 3);
        histogram.record(1000, 1);
        histogram.record(u64::MAX, 1);
        let mut merged = Merged::default();
        merged.take(&histogram);
        merged.take(&histogram);
        assert_eq!((merged.count, merged.min, merged.max), (5, 7, u32::MAX));
        assert_eq!(merged.sum, 21 + 1000 + u64::from(u32::MAX));
        assert_eq!(merged.sparse(), [7, 3, 506, 1, BUCKETS as u32 - 1, 1]);
    }
}
