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
