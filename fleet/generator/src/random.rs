//! A fast generator of random numbers (xorshift64*): which key comes next need not be unpredictable.

pub struct Random(u64);

impl Random {
    /// The seed must not be 0.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A number from 0 to `limit` - 1, for limits of at most 32 bits.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((high * limit as u64) >> 32) as usize
    }
}
