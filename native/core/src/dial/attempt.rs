//! Streams that are to be opened, and attempts that are under way.

use std::collections::VecDeque;

use crate::clock::MS;

/// The time over which a batch is spread: a little less than the time between two batches (`STEP_MS` in
/// `fleet/drone.js`), so that it ends before the next one begins.
const SPREAD_NS: u64 = 90 * MS;

/// What is known about a stream until it is open.
#[derive(Debug)]
pub struct Attempt {
    pub begun_ns: u64,
    /// 0 until it is.
    pub connected_ns: u64,
    pub deadline_ns: u64,
    pub has_first_byte: bool,
}

/// Streams to open, or to close and open again.
#[derive(Debug)]
pub struct Batch {
    pub target: u32,
    /// The number of the next stream: see `Target::pair`.
    number: u64,
    pub left: u64,
    /// When to open the next stream.
    pub due_ns: u64,
    /// The time from one stream to the next.
    every_ns: u64,
}

impl Batch {
    pub fn new(target: u32, number: u64, count: u64, now_ns: u64) -> Self {
        Batch { target, number, left: count, due_ns: now_ns, every_ns: SPREAD_NS / count.max(1) }
    }

    /// The target and the number of the next stream in a queue of batches, if it is due. It counts as opened.
    pub fn take_due(queue: &mut VecDeque<Batch>, now_ns: u64) -> Option<(u32, u64)> {
        let batch = queue.front_mut().filter(|batch| batch.due_ns <= now_ns)?;
        let due = (batch.target, batch.next());
        if batch.left == 0 {
            queue.pop_front();
        }
        Some(due)
    }

    fn next(&mut self) -> u64 {
        let number = self.number;
        self.number += 1;
        self.left -= 1;
        self.due_ns += self.every_ns;
        number
    }
}
