//! Labels of streams: whose they are, and when they end. A label takes 12 bytes per row, up to the last row that has one,
//! and nothing as long as no row has one.

use std::ops::Range;

use crate::clock::{MS, now_ns, unix_us};
use crate::telemetry::named;

/// The unit of the times at which streams end.
const TICK_NS: u64 = 100 * MS;
/// The shortest time between the beginnings of two searches.
const SEARCH_EVERY_NS: u64 = 500 * MS;
/// Rows that a search looks at before everything else gets its turn: a third of a millisecond.
const ROWS_A_STEP: usize = 65_536;
/// The time at which a stream ends that doesn't.
const NEVER: u32 = 0;
/// An emptied table keeps room for this many rows.
const KEPT: usize = 64;

named! {
    /// What streams can be ended by.
    pub enum Kind {
        Subject = "subject",
        Token = "token",
    }
}

/// What is known about a stream. A subject or token of 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    pub subject: u32, // 4
    pub token: u32,   // 4
    /// When the stream ends, in ticks of the monotonic clock.
    expires: u32, // 4
}

const _: () = assert!(size_of::<Label>() == 12);

impl Label {
    /// The time is in ms since 1970. It is translated once: what happens to the clock later doesn't matter.
    pub fn new(subject: u32, token: u32, expires_at_ms: f64) -> Self {
        let left_ms = expires_at_ms - unix_us() as f64 / 1000.0;
        let due_ticks = (now_ns() as f64 + left_ms.max(0.0) * MS as f64) / TICK_NS as f64;
        // Rounded up, because a stream must not end too early. A time too far away, or none, is never.
        let expires = if due_ticks < f64::from(u32::MAX) { due_ticks.ceil() as u32 } else { NEVER };
        Label { subject, token, expires }
    }

    /// From a process of the same machine, which has the same clock.
    pub fn at_tick(subject: u32, token: u32, expires: u32) -> Self {
        Label { subject, token, expires }
    }

    /// For `at_tick`.
    pub fn expires(&self) -> u32 {
        self.expires
    }

    fn is_of(&self, kind: Kind, value: u32) -> bool {
        let own = match kind {
            Kind::Subject => self.subject,
            Kind::Token => self.token,
        };
        own == value && value != 0
    }

    fn is_none(&self) -> bool {
        *self == Label::default()
    }
}

#[derive(Debug, Default)]
pub struct Labels {
    rows: Vec<Label>,
    /// How many rows have a label, and how many of those a time at which they end.
    labelled: usize,
    expiring: usize,
    /// No stream ends before this tick.
    earliest: u32,
    /// The rest of the search that is under way.
    search: Range<usize>,
    searched_ns: u64,
}

impl Labels {
    /// Replaces the label of a row.
    pub fn set(&mut self, row: u32, label: Label) {
        self.clear(row);
        if label.is_none() {
            return;
        }
        let row = row as usize;
        if self.rows.len() <= row {
            self.rows.resize(row + 1, Label::default());
        }
        self.rows[row] = label;
        self.labelled += 1;
        if label.expires != NEVER {
            self.earliest = if self.expiring == 0 { label.expires } else { self.earliest.min(label.expires) };
            self.expiring += 1;
        }
    }

    /// The label of a row.
    pub fn of(&self, row: u32) -> Label {
        self.rows.get(row as usize).copied().unwrap_or_default()
    }

    /// To be called before a row is freed.
    pub fn clear(&mut self, row: u32) {
        let Some(label) = self.rows.get_mut(row as usize) else { return };
        let label = std::mem::take(label);
        if label.is_none() {
            return;
        }
        self.labelled -= 1;
        self.expiring -= usize::from(label.expires != NEVER);
        self.shrink();
    }

    /// Without labels, gives the memory back.
    fn shrink(&mut self) {
        if self.labelled == 0 {
            self.rows.clear();
            self.rows.shrink_to(KEPT);
        }
    }

    /// The rows with this label.
    pub fn rows_with(&self, kind: Kind, value: u32) -> impl Iterator<Item = u32> {
        let rows = self.rows.iter().enumerate();
        rows.filter(move |(_, label)| label.is_of(kind, value)).map(|(row, _)| row as u32)
    }

    /// When to search for streams whose time is over; None if no stream ends by itself.
    pub fn next_search_ns(&self) -> Option<u64> {
        if self.is_searching() {
            return Some(0);
        }
        (self.expiring > 0).then(|| (u64::from(self.earliest) * TICK_NS).max(self.searched_ns + SEARCH_EVERY_NS))
    }

    /// Whether a search is under way.
    pub fn is_searching(&self) -> bool {
        !self.search.is_empty()
    }

    /// A step of the search. Returns the rows whose time is over; none of them is found again.
    pub fn search(&mut self, now_ns: u64) -> Vec<u32> {
        if self.search.is_empty() {
            self.search = 0..self.rows.len();
            self.searched_ns = now_ns;
            // Found again below, and noted by `set` if it changes in the meantime.
            self.earliest = u32::MAX;
        }
        let now = (now_ns / TICK_NS) as u32;
        let end = self.search.end.min(self.rows.len());
        let step = self.search.start.min(end)..(self.search.start + ROWS_A_STEP).min(end);
        let mut over = Vec::new();
        for (row, label) in step.clone().zip(&mut self.rows[step.clone()]) {
            if label.expires != NEVER && label.expires <= now {
                label.expires = NEVER;
                self.expiring -= 1;
                over.push(row as u32);
            } else if label.expires != NEVER {
                self.earliest = self.earliest.min(label.expires);
            }
        }
        self.search = step.end..end;
        for row in &over {
            self.forget_if_none(*row);
        }
        over
    }

    /// A label that consisted of a time that is over is none.
    fn forget_if_none(&mut self, row: u32) {
        if self.rows.get(row as usize).is_some_and(Label::is_none) {
            self.labelled -= 1;
            self.shrink();
        }
    }

    /// Panics if the counts are wrong, or if a row has a label that may not.
    pub fn check(&self, may_have: impl Fn(u32) -> bool) {
        let labelled = self.rows.iter().filter(|label| !label.is_none()).count();
        let expiring = self.rows.iter().filter(|label| label.expires != NEVER);
        assert_eq!((labelled, expiring.count()), (self.labelled, self.expiring));
        for (row, label) in self.rows.iter().enumerate() {
            assert!(label.is_none() || may_have(row as u32), "row {row} has {label:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1000 * MS;

    fn expiring(tick: u32) -> Label {
        Label { subject: 0, token: 0, expires: tick }
    }

    fn of(subject: u32, token: u32) -> Label {
        Label { subject, token, expires: NEVER }
    }

    /// Everything that is found at a tick.
    fn found(labels: &mut Labels, tick: u32) -> Vec<u32> {
        let now_ns = u64::from(tick) * TICK_NS;
        let mut found = Vec::new();
        while labels.next_search_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            found.extend(labels.search(now_ns));
            labels.check(|_| true);
        }
        found
    }

    #[test]
    fn a_label_takes_12_bytes_up_to_the_last_row_that_has_one_and_nothing_without_labels() {
        let mut labels = Labels::default();
        labels.set(1_000_000, of(0, 0));
        assert_eq!((labels.rows.capacity(), labels.next_search_ns()), (0, None));
        labels.set(999, of(1, 0));
        assert!(labels.rows.len() == 1000 && labels.next_search_ns().is_none());
        labels.clear(2000);
        labels.clear(999);
        labels.check(|_| false);
        assert!(labels.rows.capacity() <= KEPT);
    }

    #[test]
    fn rows_are_found_by_their_subject_or_token() {
        let mut labels = Labels::default();
        for (row, label) in [(2, of(7, 8)), (3, of(8, 7)), (5, of(7, 0)), (6, expiring(9))] {
            labels.set(row, label);
        }
        labels.set(5, of(9, 7));
        let with = |kind, value| labels.rows_with(kind, value).collect::<Vec<_>>();
        assert_eq!([with(Kind::Subject, 7), with(Kind::Token, 7), with(Kind::Subject, 0)], [vec![2], vec![3, 5], vec![]]);
    }

    #[test]
    fn a_row_is_found_once_when_its_time_is_over_and_nobody_searches_before() {
        let mut labels = Labels::default();
        for (row, tick) in [(0, 100), (1, 90), (2, 100), (3, 4000)] {
            labels.set(row, expiring(tick));
        }
        labels.set(1, of(1, 0));
        assert_eq!(labels.next_search_ns(), Some(9 * SECOND_NS), "it may be too early, but not too late");
        assert_eq!(found(&mut labels, 99), []);
        assert_eq!(labels.next_search_ns(), Some(9_900 * MS + SEARCH_EVERY_NS), "not at once again");
        assert_eq!(found(&mut labels, 104), [0, 2]);
        assert_eq!(labels.next_search_ns(), Some(400 * SECOND_NS));
        assert_eq!(found(&mut labels, 5000), [3]);
        assert_eq!((labels.next_search_ns(), labels.rows_with(Kind::Subject, 1).collect::<Vec<_>>()), (None, vec![1]));
    }

    #[test]
    fn a_long_search_has_several_steps_and_misses_nothing_that_changes_in_between() {
        const ROWS: u32 = 3 * ROWS_A_STEP as u32;
        let mut labels = Labels::default();
        (0..ROWS).for_each(|row| labels.set(row, expiring(if row % 1000 == 1 { 100 } else { 9000 })));
        let first = labels.search(10 * SECOND_NS);
        assert!(first.len() == ROWS_A_STEP.div_ceil(1000) && labels.is_searching());
        labels.set(0, expiring(120)); // it was there already
        labels.clear(ROWS - 1);
        labels.set(ROWS + 5, expiring(130)); // it will not come there
        let rest = found(&mut labels, 100);
        assert_eq!(first.len() + rest.len(), ROWS.div_ceil(1000) as usize);
        assert_eq!((labels.next_search_ns(), labels.is_searching()), (Some(12 * SECOND_NS), false));
        assert_eq!(found(&mut labels, 140), [0, ROWS + 5]);
        (0..ROWS).for_each(|row| labels.clear(row));
        assert_eq!((labels.rows.capacity() <= KEPT, labels.next_search_ns()), (true, None));
    }

    #[test]
    fn a_search_ends_when_all_labels_are_cleared() {
        let mut labels = Labels::default();
        (0..2 * ROWS_A_STEP as u32).for_each(|row| labels.set(row, expiring(1)));
        let over = labels.search(SECOND_NS);
        (0..2 * ROWS_A_STEP as u32).for_each(|row| labels.clear(row));
        assert_eq!((over.len(), found(&mut labels, 100).len(), labels.is_searching()), (ROWS_A_STEP, 0, false));
    }

    #[test]
    fn times_are_translated_to_the_monotonic_clock_and_rounded_up() {
        let now_ms = unix_us() as f64 / 1000.0;
        let before_ns = now_ns();
        let label = Label::new(1, 2, now_ms + 60_000.0);
        let early_ns = u64::from(label.expires) * TICK_NS - before_ns;
        assert!((59_900 * MS..60_300 * MS).contains(&early_ns), "{early_ns}");
        assert!(u64::from(Label::new(0, 0, 0.0).expires) * TICK_NS <= now_ns() + TICK_NS, "a time that is over is now");
        for never in [f64::INFINITY, 1e300] {
            assert!(Label::new(0, 0, never).is_none());
        }
    }
}
