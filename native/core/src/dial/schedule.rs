//! When pings are due, and how late they are. Pure.

/// A ping stands for no more than so many that were missed.
const MOST_MISSED: u32 = 1000;

/// What stands for a stream that is not pinged yet.
pub const UNKNOWN: u64 = 0;
/// The bit of a time, the smallest, that marks the first ping: it may come anywhere before.
const FIRST: u64 = 1;

/// When the first ping is due at the latest.
pub fn first_due_ns(welcomed_ns: u64, interval_ns: u64) -> u64 {
    (welcomed_ns + interval_ns) | FIRST
}

/// Notes a ping, says by how much it and those that it stands for were late, and returns when the next is due. The
/// schedule is kept by pings that are late, and pulled forward by one that is early.
pub fn note_ping(due_ns: u64, now_ns: u64, interval_ns: u64, mut record: impl FnMut(u64)) -> u64 {
    let late_ns = now_ns.saturating_sub(due_ns);
    if due_ns == UNKNOWN || (due_ns & FIRST != 0 && late_ns == 0) {
        return (now_ns + interval_ns) & !FIRST;
    }
    record(late_ns);
    let mut missed_ns = late_ns;
    for _ in 0..MOST_MISSED {
        missed_ns = missed_ns.saturating_sub(interval_ns);
        if missed_ns == 0 {
            break;
        }
        record(missed_ns);
    }
    (now_ns - late_ns % interval_ns + interval_ns) & !FIRST
}

/// By how much the next ping is late, where that is more than an interval.
pub fn overdue_ns(due_ns: u64, now_ns: u64, interval_ns: u64) -> Option<u64> {
    let late_ns = now_ns.saturating_sub(due_ns);
    (due_ns != UNKNOWN && late_ns > interval_ns).then_some(late_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(due_ns: u64, now_ns: u64) -> (Vec<u64>, u64) {
        let mut recorded = Vec::new();
        let next = note_ping(due_ns, now_ns, 100, |late| recorded.push(late));
        (recorded, next)
    }

    #[test]
    fn the_first_ping_sets_the_schedule() {
        assert_eq!(late(UNKNOWN, 1000), (vec![], 1100));
        assert_eq!(late(first_due_ns(1000, 100), 1060), (vec![], 1160));
    }

    #[test]
    fn a_first_ping_that_takes_longer_than_an_interval_is_late() {
        let due_ns = first_due_ns(1000, 100);
        assert_eq!(late(due_ns, 1131), (vec![30], 1200));
        assert_eq!(overdue_ns(due_ns, 1300, 100), Some(199));
    }

    #[test]
    fn a_ping_that_is_late_leaves_the_schedule_as_it_is() {
        assert_eq!(late(1000, 1000), (vec![0], 1100));
        assert_eq!(late(1000, 1030), (vec![30], 1100));
    }

    #[test]
    fn a_ping_that_is_early_pulls_the_schedule_forward_to_itself() {
        assert_eq!(late(1000, 980), (vec![0], 1080));
    }

    #[test]
    fn a_ping_stands_for_those_that_were_missed() {
        assert_eq!(late(1000, 1250), (vec![250, 150, 50], 1300));
        assert_eq!(late(1000, 1200), (vec![200, 100], 1300));
    }

    #[test]
    fn a_clock_that_slept_for_ever_costs_no_more_than_that() {
        let (recorded, next) = late(1000, 1 << 60);
        assert_eq!(recorded.len(), MOST_MISSED as usize + 1);
        assert!(next > 1 << 60);
    }

    #[test]
    fn overdue_is_what_is_late_by_more_than_an_interval() {
        assert_eq!(overdue_ns(1000, 1100, 100), None);
        assert_eq!(overdue_ns(1000, 1101, 100), Some(101));
        assert_eq!(overdue_ns(UNKNOWN, 1 << 60, 100), None);
    }
}
