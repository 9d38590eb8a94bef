//! The clocks, and slices of work.

use std::thread::available_parallelism;

use rustix::time::{ClockId, clock_gettime};

pub const MS: u64 = 1_000_000;
/// How long pings, or deliveries, go on before everything else gets its turn.
pub const SLICE_NS: u64 = 2 * MS;
/// Shorter ones would cost too many turns.
const LEAST_SLICE_NS: u64 = MS / 2;
/// Threads on each core that can have whole slices.
const THREADS_A_CORE: u64 = 4;
/// Steps of a slice between two looks at the clock.
const STRIDE: u32 = 16;

/// Monotonic, in ns since the machine started.
pub fn now_ns() -> u64 {
    ns_of(ClockId::Monotonic)
}

/// CPU time of the calling thread, in ns.
pub fn cpu_ns() -> u64 {
    ns_of(ClockId::ThreadCPUTime)
}

/// Since the epoch, in µs.
pub fn unix_us() -> u64 {
    ns_of(ClockId::Realtime) / 1000
}

/// The slice of each of so many threads. If very many share a core and all have something to do, each waits for the slices of the
/// others, so they are shorter.
pub fn slice_ns(threads: u64) -> u64 {
    slice_among(threads, cores())
}

/// How many of so many threads share a core.
pub fn threads_a_core(threads: u64) -> u64 {
    threads.div_ceil(cores()).max(1)
}

fn cores() -> u64 {
    available_parallelism().map_or(1, |cores| cores.get() as u64)
}

fn slice_among(threads: u64, cores: u64) -> u64 {
    (SLICE_NS * THREADS_A_CORE * cores / threads.max(1)).clamp(LEAST_SLICE_NS, SLICE_NS)
}

fn ns_of(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Work that ends after a slice. It looks at the clock only now and then, because that costs as much as a step.
#[derive(Debug)]
pub struct Slice {
    until_ns: u64,
    steps: u32,
    /// The last look at the clock.
    pub now_ns: u64,
}

impl Slice {
    pub fn begin() -> Self {
        Slice::of(SLICE_NS)
    }

    /// A slice of `length_ns`. One of 0 has a single step.
    pub fn of(length_ns: u64) -> Self {
        let now_ns = now_ns();
        Slice { until_ns: now_ns + length_ns, steps: 0, now_ns }
    }

    /// Counts a step. True when the slice is used up.
    pub fn is_over(&mut self) -> bool {
        self.steps += 1;
        if self.steps.is_multiple_of(STRIDE) {
            self.now_ns = now_ns();
        }
        self.now_ns >= self.until_ns
    }

    /// The same after a long step: looks at the clock every time.
    pub fn is_over_now(&mut self) -> bool {
        self.now_ns = now_ns();
        self.now_ns >= self.until_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_shorter_when_very_many_threads_share_a_core() {
        assert_eq!([0, 1, 8].map(|threads| slice_among(threads, 2)), [SLICE_NS; 3]);
        assert_eq!(slice_among(16, 2), SLICE_NS / 2);
        assert_eq!(slice_among(56, 2), LEAST_SLICE_NS);
        assert_eq!(slice_among(56, 16), SLICE_NS);
    }

    #[test]
    fn a_slice_ends_after_its_time_and_not_before_a_stride() {
        let mut slice = Slice::begin();
        assert!((1..STRIDE).all(|_| !slice.is_over()));
        let begun_ns = slice.until_ns - SLICE_NS;
        while !slice.is_over() {}
        assert!(now_ns() >= begun_ns + SLICE_NS);
    }

    #[test]
    fn a_slice_of_no_length_is_over_after_one_step() {
        assert!(Slice::of(0).is_over());
    }
}
