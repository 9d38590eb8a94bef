//! The targets in use by the streams of a thread. A row refers to its target by its index here.

use std::sync::Arc;

use super::Target;
use crate::clock::MS;

struct Entry {
    target: Arc<Target>,
    users: u64,
}

#[derive(Default)]
pub struct Targets {
    entries: Vec<Entry>,
}

impl Targets {
    /// The index of a target, which so many more streams will use. Each of them calls `release` at its end.
    pub fn claim(&mut self, target: Arc<Target>, users: u64) -> u32 {
        let same = self.entries.iter().position(|entry| Arc::ptr_eq(&entry.target, &target));
        let found = same.or_else(|| self.entries.iter().position(|entry| entry.users == 0));
        let Some(index) = found else {
            self.entries.push(Entry { target, users });
            return self.entries.len() as u32 - 1;
        };
        let entry = &mut self.entries[index];
        entry.users += users;
        entry.target = target;
        index as u32
    }

    pub fn release(&mut self, index: u32) {
        self.entries[index as usize].users -= 1;
    }

    pub fn get(&self, index: u32) -> &Target {
        &self.entries[index as usize].target
    }

    /// 0 if unknown.
    pub fn interval_ns(&self, index: u32) -> u64 {
        u64::from(self.get(index).ping_interval_ms) * MS
    }
}
