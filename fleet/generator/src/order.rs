//! Which request comes next.

use crate::options::Operations;
use crate::protocol::{Op, Request};
use crate::random::Random;

/// With `mixed`, one request of so many is a set.
const SETS_ONE_OF: usize = 10;

#[derive(Clone, Copy, PartialEq)]
pub enum Order {
    /// Sets every key once.
    Fill,
    Random(Operations),
}

impl Order {
    /// `sent` is how many requests there were before.
    pub fn next(self, sent: u64, keys: usize, random: &mut Random) -> Request {
        let Order::Random(operations) = self else { return Request { op: Op::Set, key: (sent % keys as u64) as u32 } };
        let is_set = match operations {
            Operations::Get => false,
            Operations::Set => true,
            Operations::Mixed => random.below(SETS_ONE_OF) == 0,
        };
        Request { op: if is_set { Op::Set } else { Op::Get }, key: random.below(keys) as u32 }
    }
}
