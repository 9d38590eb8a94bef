//! Ids of connections. An id carries the generation of its row, so that a late command for a connection that is gone
//! never reaches the one that has the row now.

const GENERATION_BITS: u32 = 24;
const INDEX_BITS: u32 = 21;
const SHARD_BITS: u32 = 8;

/// One number is left for streams that are held in JS.
pub const MOST_SHARDS: usize = (1 << SHARD_BITS) - 1;
pub const MOST_ROWS: usize = 1 << INDEX_BITS;
pub const GENERATIONS: u32 = 1 << GENERATION_BITS;

/// Shard, row and generation in 53 bits: a plain number in JS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id(u64);

impl Id {
    pub fn new(shard: u8, index: u32, generation: u32) -> Self {
        let row = u64::from(shard) << INDEX_BITS | u64::from(index);
        Id(row << GENERATION_BITS | u64::from(generation % GENERATIONS))
    }

    /// None if the number can't be an id.
    pub fn from_number(number: f64) -> Option<Self> {
        let bits = number as u64;
        (bits as f64 == number && bits >> (SHARD_BITS + INDEX_BITS + GENERATION_BITS) == 0).then_some(Id(bits))
    }

    pub fn number(self) -> f64 {
        self.0 as f64
    }

    pub fn from_bits(bits: u64) -> Self {
        Id(bits)
    }

    pub fn bits(self) -> u64 {
        self.0
    }

    pub fn shard(self) -> u8 {
        (self.0 >> (INDEX_BITS + GENERATION_BITS)) as u8
    }

    pub fn index(self) -> u32 {
        (self.0 >> GENERATION_BITS) as u32 & (MOST_ROWS as u32 - 1)
    }

    pub fn generation(self) -> u32 {
        self.0 as u32 & (GENERATIONS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_the_trip_through_js() {
        for (shard, index, generation) in [(0, 0, 0), (255, MOST_ROWS as u32 - 1, GENERATIONS - 1), (3, 17, 5)] {
            let id = Id::from_number(Id::new(shard, index, generation).number()).unwrap();
            assert_eq!((id.shard(), id.index(), id.generation()), (shard, index, generation));
        }
    }

    #[test]
    fn other_numbers_are_not_ids() {
        for number in [-1.0, 0.5, f64::NAN, f64::INFINITY, 2f64.powi(53)] {
            assert_eq!(Id::from_number(number), None, "{number}");
        }
    }
}
