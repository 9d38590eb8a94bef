//! The targets that streams of a thread have, and how many each: a row names its target by a place here.

use std::sync::Arc;

use super::Target;

struct Place {
    target: Arc<Target>,
    users: u64,
}

#[derive(Default)]
pub struct Targets {
    places: Vec<Place>,
}

impl Targets {
    /// Has a place for a target, for so many more streams. The exact opposite of as many `release`.
    pub fn claim(&mut self, target: Arc<Target>, users: u64) -> u32 {
        let same = self.places.iter().position(|place| Arc::ptr_eq(&place.target, &target));
        let found = same.or_else(|| self.places.iter().position(|place| place.users == 0));
        let Some(index) = found else {
            self.places.push(Place { target, users });
            return self.places.len() as u32 - 1;
        };
        let place = &mut self.places[index];
        place.users += users;
        place.target = target;
        index as u32
    }

    pub fn release(&mut self, index: u32) {
        self.places[index as usize].users -= 1;
    }

    pub fn get(&self, index: u32) -> &Target {
        &self.places[index as usize].target
    }

    /// 0 where it is not known.
    pub fn interval_ns(&self, index: u32) -> u64 {
        u64::from(self.get(index).ping_interval_ms) * 1_000_000
    }
}
