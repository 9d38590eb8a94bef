//! A histogram of durations in ns, as lib/histogram.js has it: values below 256 have a bucket each, and every doubling above
//! that is cut into 128 equal steps, so that a value is known to within 0.8 %.

const STEPS_LOG2: u32 = 7;
const BUCKETS: usize = 58 << STEPS_LOG2;

pub struct Histogram {
    counts: Vec<u64>,
    pub count: u64,
    pub sum: u64,
    pub min: u64,
    pub max: u64,
}

impl Histogram {
    pub fn new() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    pub fn record(&mut self, value: u64) {
        self.counts[bucket_of(value)] += 1;
        self.count += 1;
        self.sum += value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    pub fn mean(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }

    /// The value at or below which so many per cent of all values lie, as the middle of its bucket; 0 when empty.
    pub fn percentile(&self, percent: f64) -> u64 {
        if percent >= 100.0 || self.count == 0 {
            return self.max;
        }
        let rank = ((percent / 100.0 * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return middle_of(index).clamp(self.min, self.max);
            }
        }
        self.max
    }
}

fn bucket_of(value: u64) -> usize {
    let shift = (63 - (value | 1).leading_zeros()).saturating_sub(STEPS_LOG2);
    ((shift as usize) << STEPS_LOG2) + (value >> shift) as usize
}

fn middle_of(index: usize) -> u64 {
    if index < 2 << STEPS_LOG2 {
        return index as u64;
    }
    let shift = (index >> STEPS_LOG2) - 1;
    let low = ((index - (shift << STEPS_LOG2)) as u64) << shift;
    low + ((1 << shift) - 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_bucket_is_close_to_every_value_in_it() {
        for value in (0..64).flat_map(|bits| [1u64 << bits, (1 << bits) + (1 << bits) / 3]) {
            let middle = middle_of(bucket_of(value));
            assert!(middle.abs_diff(value) as f64 <= value as f64 * 0.008, "{value} is found as {middle}");
        }
        assert!(bucket_of(u64::MAX) < BUCKETS);
    }

    #[test]
    fn percentiles_are_those_of_the_values() {
        let mut histogram = Histogram::new();
        (1..=10_000).for_each(|value| histogram.record(value * 1000));
        for percent in [50.0, 99.0, 99.9] {
            let expected = percent * 100_000.0;
            assert!((histogram.percentile(percent) as f64 - expected).abs() < expected * 0.008);
        }
        assert_eq!((histogram.percentile(100.0), histogram.min, histogram.mean()), (10_000_000, 1000, 5_000_500));
    }
}
