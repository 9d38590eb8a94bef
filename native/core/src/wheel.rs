//! The ping wheel. No stream has a timer or a place in a list: its row decides when it is due.
//!
//! An interval is cut into slots, and rows into blocks of neighbours: their sockets are neighbours in memory too, and
//! pinging them together costs a fifth less. Block `b` is due in slot `b * golden % slots`, each a golden section after
//! the one before, so that blocks, which fill up from 0, are spread over the interval however few there are. The wheel
//! works the other way round: in slot `t` it pings the blocks `t / golden` (the inverse, modulo slots). When shards have
//! one block more in some slot, they have it at different times, because each begins its turn a share of it later.

/// Waking up costs as much as ten pings: slots of 100 ms took 6% more CPU with a million streams.
const SLOT_MS: u64 = 200;
const FEWEST_SLOTS: u64 = 10;
/// Rows in a block.
const BLOCK: u64 = 64;

/// A slot whose time has come, and the rows in it that are still to be pinged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    pub due_ns: u64,
    next_row: u64,
}

#[derive(Debug)]
pub struct Wheel {
    slots: u64,
    golden: u64,
    /// The inverse of the golden section of the slots.
    step: u64,
    slot_ns: u64,
    offset_ns: u64,
    /// How many slots later than the first shard it begins its turn.
    turned: u64,
    /// Slots since the clock began.
    tick: u64,
    current: Option<Due>,
    /// When it is more than a turn behind: the tick at which each row has been seen once.
    seen_all: Option<u64>,
}

impl Wheel {
    /// Shard `number` of `of` turns its wheel a share of a slot later than the one before, so that they don't wake up
    /// together.
    pub fn new(interval_ms: u64, number: u64, of: u64, now_ns: u64) -> Self {
        let slots = (interval_ms / SLOT_MS).max(FEWEST_SLOTS);
        let slot_ns = interval_ms * 1_000_000 / slots;
        let section = (slots as f64 * 0.618_033_988_75) as u64;
        let golden = (section.max(1)..).find(|golden| gcd(*golden, slots) == 1).unwrap_or(1);
        let step = (1..slots).find(|step| step * golden % slots == 1).unwrap_or(1);
        let mut wheel = Wheel {
            slots,
            golden,
            step,
            slot_ns,
            offset_ns: slot_ns * number / of.max(1),
            turned: slots * number / of.max(1),
            tick: 0,
            current: None,
            seen_all: None,
        };
        wheel.skip_to(now_ns);
        wheel
    }

    /// How many slots it has, and how long one is.
    pub fn slots(&self) -> (u64, u64) {
        (self.slots, self.slot_ns)
    }

    /// When the next slot is due, on the clock of the caller.
    pub fn due_ns(&self) -> u64 {
        match self.current {
            Some(due) => due.due_ns,
            None => self.tick * self.slot_ns + self.offset_ns,
        }
    }

    /// Forgets what was due before now: there was no stream.
    pub fn skip_to(&mut self, now_ns: u64) {
        self.current = None;
        self.seen_all = None;
        self.tick = now_ns.saturating_sub(self.offset_ns) / self.slot_ns + 1;
    }

    /// The slot whose time has come. If the wheel is a turn behind or more, as after a suspend, each row is seen once, as
    /// late as the oldest time that was missed, and the other times are skipped: making up for them would mean a burst of
    /// pings for each stream, without end if a turn takes longer than the interval.
    fn begin_slot(&mut self, now_ns: u64) -> Option<Due> {
        if self.seen_all == Some(self.tick) {
            self.skip_to(now_ns);
        }
        let due_ns = self.due_ns();
        let behind_ns = now_ns.checked_sub(due_ns)?;
        if self.seen_all.is_none() && behind_ns >= self.slots * self.slot_ns {
            self.seen_all = Some(self.tick + self.slots);
        }
        let next_row = (self.tick + self.turned) % self.slots * self.step % self.slots * BLOCK;
        Some(Due { due_ns, next_row })
    }

    /// When a row is due next.
    pub fn due_of(&self, row: u32) -> u64 {
        let slot = u64::from(row) / BLOCK % self.slots * self.golden % self.slots;
        let wait = (slot + self.slots - (self.tick + self.turned) % self.slots) % self.slots;
        let is_over = wait == 0 && self.current.is_some_and(|due| due.next_row > u64::from(row));
        let tick = self.tick + if is_over { self.slots } else { wait };
        tick * self.slot_ns + self.offset_ns
    }

    /// The rows that are due at a time, or at most a slot before it: blocks of neighbours. For rows that come from
    /// another wheel, so that their pings keep their phase.
    pub fn rows_due(&self, due_ns: u64) -> impl Iterator<Item = u32> + use<> {
        let tick = due_ns.saturating_sub(self.offset_ns) / self.slot_ns;
        let first = (tick + self.turned) % self.slots * self.step % self.slots;
        (first..).step_by(self.slots as usize).flat_map(|block| block * BLOCK..(block + 1) * BLOCK).map(|row| row as u32)
    }

    /// The next row that is due, and since when. Call it until there is none; it is fine to stop in between and go on later.
    pub fn next(&mut self, now_ns: u64, rows: usize) -> Option<(usize, u64)> {
        loop {
            let due = match self.current {
                Some(due) => due,
                None => self.begin_slot(now_ns)?,
            };
            if due.next_row < rows as u64 {
                let row = due.next_row + 1;
                let next_row = if row % BLOCK == 0 { row + (self.slots - 1) * BLOCK } else { row };
                self.current = Some(Due { next_row, ..due });
                return Some((due.next_row as usize, due.due_ns));
            }
            self.current = None;
            self.tick += 1;
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn due_at(wheel: &mut Wheel, now_ns: u64, rows: usize) -> Vec<(usize, u64)> {
        std::iter::from_fn(|| wheel.next(now_ns, rows)).collect()
    }

    /// When each row is due within `ms`, in order, if somebody looks in every slot.
    fn turn(wheel: &mut Wheel, ms: u64, rows: usize) -> Vec<(usize, u64)> {
        let looks = 1..=ms * MS / wheel.slot_ns + 1;
        looks.flat_map(|look| due_at(wheel, (look * wheel.slot_ns).min(ms * MS), rows)).collect()
    }

    #[test]
    fn every_row_is_due_exactly_once_per_interval() {
        for (interval, rows) in [(20_000, 1000), (100, 33), (10, 1), (86_400_000, 5), (12_345, 777)] {
            let mut wheel = Wheel::new(interval, 0, 1, 0);
            let mut last = vec![None; rows];
            for (row, due) in turn(&mut wheel, interval * 3, rows) {
                if let Some(before) = last[row].replace(due) {
                    assert!((due - before).abs_diff(interval * MS) < wheel.slots, "{interval}: {}", due - before);
                }
            }
            assert!(last.iter().all(Option::is_some), "{interval}");
        }
    }

    #[test]
    fn blocks_are_spread_over_the_interval_however_few() {
        for blocks in [2, 10, 50, 200, 1000] {
            let rows = blocks * BLOCK as usize;
            let mut wheel = Wheel::new(20_000, 0, 1, 0);
            let due: Vec<u64> = turn(&mut wheel, 20_000, rows).iter().map(|(_, due)| *due).collect();
            assert_eq!(due.len(), rows);
            for quarter in 0..4 {
                let within = due.iter().filter(|due| (quarter * 5000 + 1..=(quarter + 1) * 5000).contains(&(*due / MS)));
                let share = within.count() as f64 / rows as f64;
                assert!((share - 0.25).abs() <= 3.0 / blocks as f64, "{rows} rows: {share} in quarter {quarter}");
            }
        }
    }

    #[test]
    fn it_can_stop_in_the_middle_of_a_slot_and_go_on() {
        let (mut whole, mut parts) = (Wheel::new(100, 0, 1, 0), Wheel::new(100, 0, 1, 0));
        let expected = turn(&mut whole, 100, 500);
        let mut seen = Vec::new();
        while let Some(next) = parts.next(100 * MS, 500) {
            seen.push(next);
            assert!(parts.due_ns() <= 100 * MS || seen.len() == expected.len());
        }
        assert_eq!(seen, expected);
    }

    #[test]
    fn shards_are_due_at_different_times() {
        let due: Vec<u64> = (0..4).map(|number| Wheel::new(20_000, number, 4, 0).due_ns() / MS).collect();
        assert_eq!(due, [200, 250, 300, 350]);
    }

    #[test]
    fn shards_together_ping_about_as_many_in_every_slot() {
        let mut slots = [0; 100];
        for number in 0..6 {
            let mut wheel = Wheel::new(20_000, number, 6, 0);
            for (_, due_ns) in turn(&mut wheel, 20_200, 16_700) {
                slots[(due_ns / (200 * MS) % 100) as usize] += 1;
            }
        }
        let (least, most) = (slots.iter().min().unwrap(), slots.iter().max().unwrap());
        assert!(*least > 850 && *most < 1200, "{least} to {most} of about 1000");
    }

    #[test]
    fn after_a_pause_of_many_turns_each_row_is_seen_once_and_then_at_its_time() {
        const ROWS: usize = 7000;
        let mut wheel = Wheel::new(20_000, 0, 1, 0);
        let before = turn(&mut wheel, 20_000, ROWS);
        let now_ns = 605_300 * MS;
        // What is due is seen in slices, between which the clock goes on.
        let made_up: Vec<_> = (0..2 * ROWS as u64).map_while(|look| wheel.next(now_ns + look * MS, ROWS)).collect();
        let mut rows: Vec<usize> = made_up.iter().map(|(row, _)| *row).collect();
        rows.sort_unstable();
        assert_eq!(rows, (0..ROWS).collect::<Vec<_>>());
        assert!(made_up.iter().all(|(_, due_ns)| *due_ns <= 40_000 * MS), "as late as the oldest time that was missed");
        let later_ns = now_ns + ROWS as u64 * MS;
        let slots = (later_ns / (200 * MS)..).take(100).map(|slot| (slot + 1) * 200 * MS);
        let after: Vec<_> = slots.flat_map(|ns| due_at(&mut wheel, ns, ROWS)).collect();
        assert_eq!(after.len(), ROWS, "once a turn from then on");
        let phase = |(row, due_ns): &(usize, u64)| (*row, due_ns % (20_000 * MS));
        let sorted = |seen: &[(usize, u64)]| {
            let mut phases: Vec<_> = seen.iter().map(phase).collect();
            phases.sort_unstable();
            phases
        };
        assert_eq!(sorted(&after), sorted(&before));
    }

    #[test]
    fn a_turn_that_takes_longer_than_the_interval_does_not_fall_behind_forever() {
        let (mut wheel, mut latest_ns) = (Wheel::new(1000, 0, 1, 0), 0);
        // A row takes 1 ms, so that a turn of all takes 3 s.
        for ms in 0..300_000 {
            if let Some((_, due_ns)) = wheel.next(ms * MS, 3000) {
                latest_ns = latest_ns.max(ms * MS - due_ns);
            }
        }
        assert!(latest_ns < 6000 * MS, "{} ms late", latest_ns / MS);
    }

    #[test]
    fn a_row_is_due_when_the_wheel_says_so_in_advance() {
        const ROWS: usize = 20_000;
        let mut wheel = Wheel::new(20_000, 1, 3, 0);
        due_at(&mut wheel, 7_000 * MS, ROWS);
        for _ in 0..100 {
            wheel.next(7_300 * MS, ROWS);
        }
        let said: Vec<u64> = (0..ROWS as u32).map(|row| wheel.due_of(row)).collect();
        let mut seen = vec![false; ROWS];
        let later = (7_300..28_000).step_by(100);
        for (row, due_ns) in later.flat_map(|ms| due_at(&mut wheel, ms * MS, ROWS)) {
            assert!(std::mem::replace(&mut seen[row], true) || due_ns == said[row], "row {row}");
        }
        assert!(seen.iter().all(|seen| *seen));
    }

    #[test]
    fn rows_from_another_wheel_keep_their_phase_within_a_slot() {
        let (from, to) = (Wheel::new(20_000, 0, 2, 0), Wheel::new(20_000, 5, 7, 31_000 * MS));
        for row in (0..20_000).step_by(97) {
            let due_ns = from.due_of(row);
            for place in to.rows_due(due_ns).take(200) {
                let early_ns = (due_ns + 40_000 * MS - to.due_of(place)) % (20_000 * MS);
                assert!(early_ns < to.slot_ns, "row {row} at {place}: {early_ns}");
            }
        }
    }

    #[test]
    fn what_was_missed_without_streams_is_forgotten() {
        let mut wheel = Wheel::new(1000, 0, 1, 0);
        wheel.skip_to(70_000 * MS);
        assert_eq!(wheel.next(70_000 * MS, 100), None);
        assert!(wheel.next(71_000 * MS, 100).is_some());
    }
}
