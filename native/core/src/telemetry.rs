//! What a thread counts. It writes, another thread reads once a second, so everything is atomic and nobody waits.
//! The names and their order are those of `lib/counters.js` and `lib/reasons.js`.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::response::REFUSALS;

/// Values below 256 have a bucket each, and every doubling above that is cut into 128, as in `lib/histogram.js`.
const STEPS_LOG2: u32 = 7;
pub const BUCKETS: usize = 26 << STEPS_LOG2;

fn bucket_of(value: u32) -> usize {
    let shift = (31 - (value | 1).leading_zeros()).saturating_sub(STEPS_LOG2);
    ((shift << STEPS_LOG2) + (value >> shift)) as usize
}

/// A log-linear histogram of 32-bit values. Its unit stands in the table that it is a row of.
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
    /// Records a value that was seen `times` times.
    pub fn record(&self, value: u64, times: u32) {
        let value = u32::try_from(value).unwrap_or(u32::MAX);
        self.counts[bucket_of(value)].fetch_add(times, Relaxed);
        self.count.fetch_add(times.into(), Relaxed);
        self.sum.fetch_add(u64::from(value) * u64::from(times), Relaxed);
        self.min.fetch_min(value, Relaxed);
        self.max.fetch_max(value, Relaxed);
    }
}

/// The merged histograms of several threads, as they travel to JS.
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
    /// Adds what was recorded since the last time, and empties the histogram.
    pub fn take(&mut self, from: &Histogram) {
        if from.count.load(Relaxed) == 0 {
            return;
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&from.counts) {
            // Most buckets are empty, and swapping one locks its cache line.
            if theirs.load(Relaxed) > 0 {
                *mine += theirs.swap(0, Relaxed);
            }
        }
        self.count += from.count.swap(0, Relaxed);
        self.sum += from.sum.swap(0, Relaxed);
        self.min = self.min.min(from.min.swap(u32::MAX, Relaxed));
        self.max = self.max.max(from.max.swap(0, Relaxed));
    }

    /// The buckets that are not empty: index, count, index, count…
    pub fn sparse(&self) -> Vec<u32> {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.flat_map(|(index, count)| [index as u32, *count]).collect()
    }
}

/// Makes a struct of counters and histograms, each a row, with its tables of names.
macro_rules! telemetry {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            counts { $($(#[$count_doc:meta])* $count:ident,)* }
            arrays { $($(#[$array_doc:meta])* $array:ident: $size:expr,)* }
            histograms { $($(#[$histogram_doc:meta])* $histogram:ident: $unit:literal,)* }
            others { $($(#[$other_doc:meta])* $other:ident: $type:ty,)* }
        }
    ) => {
        $(#[$meta])*
        #[derive(Default)]
        pub struct $name {
            $($(#[$count_doc])* pub $count: AtomicU64,)*
            $($(#[$array_doc])* pub $array: [AtomicU64; $size],)*
            $($(#[$histogram_doc])* pub $histogram: $crate::telemetry::Histogram,)*
            $($(#[$other_doc])* pub $other: $type,)*
        }

        impl $name {
            pub const COUNTS: &'static [&'static str] = &[$(stringify!($count)),*];
            /// Each with its unit.
            pub const HISTOGRAMS: &'static [(&'static str, &'static str)] = &[$((stringify!($histogram), $unit)),*];

            /// The counters, in the order of their names.
            pub fn counts(&self) -> [&AtomicU64; Self::COUNTS.len()] {
                [$(&self.$count),*]
            }

            /// The histograms, in the order of their names.
            pub fn histograms(&self) -> [&$crate::telemetry::Histogram; Self::HISTOGRAMS.len()] {
                [$(&self.$histogram),*]
            }
        }
    };
}
pub(crate) use telemetry;

/// Makes an enum whose values are counted by name.
macro_rules! named {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $value:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$doc])* $value,)*
        }

        impl $name {
            /// By number.
            pub const NAMES: &'static [&'static str] = &[$($text),*];
            /// By number.
            pub const ALL: &'static [$name] = &[$($name::$value),*];

            pub fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }
        }
    };
}
pub(crate) use named;

named! {
    /// Every way a stream ends.
    pub enum Reason {
        ClientGone = "client-gone",
        Slow = "slow",
        Drain = "drain",
        DeadPeer = "dead-peer",
        OverCapacity = "over-capacity",
        BadRequest = "bad-request",
        Error = "error",
        /// Its shard panicked.
        Failed = "failed",
        /// The time of its label was over.
        Expired = "expired",
        /// What allowed it was taken back.
        Revoked = "revoked",
        /// What it followed has begun anew, so it can't be continued.
        Restarted = "restarted",
        /// The client has reported that TLS failed.
        TlsAlert = "tls-alert",
        /// The client has sent something that is not a valid TLS record.
        BadRecord = "bad-record",
        /// It was a poll, and has got its answer.
        Answered = "answered",
    }
}

pub const REASONS: usize = Reason::NAMES.len();

telemetry! {
    /// Counts are since the shard was first started; histograms since they were last taken.
    pub struct Telemetry {
        counts {
            /// Held now.
            streams,
            /// Rows in use now: streams, and connections that are not streams.
            connections,
            opened,
            pings,
            deliveries,
            bytes_written,
            /// Waiting now, because the kernel refused them.
            backlog_bytes,
            /// For the whole Hold: `Hold::queued_bytes`.
            queued_bytes,
            /// For the part of a Hold that is in JS.
            in_js,
            /// Connections closed without an answer, because there was no room.
            cut,
            shard_failures,
            /// Held now, with pings that contain the cursor.
            updates,
            /// TLS handshakes that succeeded.
            handshakes,
            /// Those of them in which the client has shown a ticket.
            resumed,
            /// TLS handshakes that failed, or that the client has not finished.
            handshake_failures,
        }
        arrays {
            closed: REASONS,
            refused: REFUSALS,
        }
        histograms {
            /// How late pings left.
            lateness: "µs",
            /// CPU of the shard's thread per stream opened, per ping and per delivery.
            open_cpu: "ns",
            ping_cpu: "ns",
            delivery_cpu: "ns",
        }
        others {}
    }
}

/// Adds to a counter that only this thread writes.
pub fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

/// Subtracts from a counter that only this thread writes.
pub fn subtract(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_sub(n), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_the_histogram_in_js() {
        // From lib/histogram.js: (shift << 7) + (value >>> shift).
        for (value, bucket) in [(0, 0), (1, 1), (255, 255), (256, 256), (257, 256), (1000, 506), (u32::MAX, BUCKETS - 1)] {
            assert_eq!(bucket_of(value), bucket, "{value}");
        }
    }

    #[test]
    fn a_reader_sees_every_state_of_a_counter_and_nothing_in_between() {
        let counter = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..1000).for_each(|_| assert!([0, 2, 3].contains(&counter.load(Relaxed)))));
            for _ in 0..1000 {
                add(&counter, 3);
                subtract(&counter, 1);
                subtract(&counter, 2);
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
