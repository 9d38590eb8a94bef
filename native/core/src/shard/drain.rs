//! The end of a shard: it accepts no more, and closes its streams evenly over a period.

use super::{LINGER_MS, Shard};
use crate::clock::MS;
use crate::telemetry::{Reason, add};

/// How often streams are closed during a drain.
const STEP_NS: u64 = 20 * MS;
const LINGER_NS: u64 = LINGER_MS * MS;

#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    since_ns: u64,
    period_ns: u64,
    /// Rows below this one have been closed.
    next_row: usize,
    /// JS knows that no connection is left.
    is_reported: bool,
}

impl Shard {
    pub(super) fn begin_drain(&mut self, period_ns: u64) {
        self.unlisten();
        if self.drain.is_none() {
            self.drain = Some(Drain { since_ns: self.now_ns, period_ns, next_row: 0, is_reported: false });
            self.door.sweep_ns = self.door.sweep_ns.min(self.now_ns + LINGER_NS);
        }
    }

    /// Whether streams are being closed, so that no more may open.
    pub(super) fn is_closing(&self) -> bool {
        self.drain.is_some()
    }

    /// When the drain goes on.
    pub(super) fn next_drain_step_ns(&self) -> Option<u64> {
        let drain = self.drain.filter(|drain| !drain.is_reported)?;
        Some(drain.next_step_ns(self.now_ns, self.rows.len()))
    }

    /// Closes the share of streams whose time has come, and reports when no connection is left.
    pub(super) fn continue_drain(&mut self) {
        let Some(mut drain) = self.drain else { return };
        let until = drain.due_rows(self.now_ns, self.rows.len());
        let mut slice = self.slice();
        while drain.next_row < until {
            let deliveries = self.finish(drain.next_row as u32, Reason::Drain);
            add(&self.telemetry.deliveries, deliveries.into());
            drain.next_row += 1;
            if slice.is_over() {
                break;
            }
        }
        if self.rows.used() == 0 && !drain.is_reported {
            drain.is_reported = true;
            self.mail.events.drained.push(self.number);
        }
        self.drain = Some(drain);
    }

    /// After a restart nothing is left to close: the end is reported at once, but only once.
    pub(super) fn resume_drain(&mut self, drain: Drain) {
        if drain.is_reported {
            self.drain = Some(drain);
        } else {
            self.begin_drain(0);
        }
    }
}

impl Drain {
    /// A second has passed since it began.
    pub(super) fn has_waited_long_enough(&self, now_ns: u64) -> bool {
        now_ns >= self.since_ns + LINGER_NS
    }

    /// How many of the rows should be closed by now.
    fn due_rows(&self, now_ns: u64, rows: usize) -> usize {
        let passed_ns = now_ns - self.since_ns;
        let share = if self.period_ns == 0 { 1.0 } else { passed_ns as f64 / self.period_ns as f64 };
        ((rows as f64 * share).ceil() as usize).min(rows)
    }

    /// At once if a slice was too short for all that were due: everything else gets its turn in between.
    fn next_step_ns(&self, now_ns: u64, rows: usize) -> u64 {
        let is_behind = self.next_row < self.due_rows(now_ns, rows);
        if is_behind { now_ns } else { now_ns + STEP_NS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_goes_on_at_once_while_rows_are_overdue_and_waits_a_step_otherwise() {
        let begun_ns = 1000 * MS;
        let drain = Drain { since_ns: begun_ns, period_ns: 100 * MS, next_row: 500, is_reported: false };
        let wait_ns = |drain: &Drain, ms: u64| drain.next_step_ns(begun_ns + ms * MS, 1000) - begun_ns - ms * MS;
        assert_eq!(wait_ns(&drain, 50), STEP_NS, "as far as it should be");
        assert_eq!(wait_ns(&drain, 60), 0, "100 rows behind");
        assert_eq!(wait_ns(&Drain { period_ns: 0, ..drain }, 0), 0, "all are due at once");
        assert_eq!(wait_ns(&Drain { next_row: 1000, ..drain }, 200), STEP_NS, "all were closed");
    }
}
