//! When pings are due, and how late they are. Pure.

/// The largest number of missed pings that one late ping is recorded for.
const MOST_MISSED: u32 = 1000;

/// The due time of a stream that is not open yet, or whose ping interval is unknown.
pub const UNKNOWN: u64 = 0;
/// The lowest bit of a due time marks the first ping, which may arrive at any time before it.
const FIRST: u64 = 1;

/// The latest time for the first ping.
pub fn first_due_ns(welcomed_ns: u64, interval_ns: u64) -> u64 {
    (welcomed_ns + interval_ns) | FIRST
}

/// When the next ping is due, after one arrived now. Calls `record` with the lateness of this ping, and of each ping that
/// was missed before it. A late ping doesn't change the schedule; an early one moves it forward.
pub fn next_due_ns(due_ns: u64, now_ns: u64, interval_ns: u64, mut record: impl FnMut(u64)) -> u64 {
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

/// When the next ping is due if a message takes its place: for servers that leave out the ping of a stream that has got one since
/// the last. If that ping is overdue, calls `record` with its lateness. If the message comes close to a ping, nobody here knows which was
/// first for the server: then the next one may come an interval early, which moves the schedule forward.
pub fn after_message_ns(due_ns: u64, now_ns: u64, interval_ns: u64, record: impl FnMut(u64)) -> u64 {
    if due_ns == UNKNOWN || due_ns.saturating_sub(now_ns) > interval_ns + interval_ns / 20 {
        due_ns
    } else if due_ns < now_ns {
        next_due_ns(due_ns, now_ns, interval_ns, record)
    } else {
        due_ns + interval_ns
    }
}

/// How late the next ping is, if that is more than an interval.
pub fn overdue_ns(due_ns: u64, now_ns: u64, interval_ns: u64) -> Option<u64> {
    let late_ns = now_ns.saturating_sub(due_ns);
    (due_ns != UNKNOWN && late_ns > interval_ns).then_some(late_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(due_ns: u64, now_ns: u64) -> (Vec<u64>, u64) {
        let mut recorded = Vec::new();
        let next = next_due_ns(due_ns, now_ns, 100, |late| recorded.push(late));
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
    fn a_late_ping_does_not_change_the_schedule() {
        assert_eq!(late(1000, 1000), (vec![0], 1100));
        assert_eq!(late(1000, 1030), (vec![30], 1100));
    }

    #[test]
    fn an_early_ping_moves_the_schedule_forward() {
        assert_eq!(late(1000, 980), (vec![0], 1080));
    }

    #[test]
    fn missed_pings_are_recorded_with_the_one_that_arrives() {
        assert_eq!(late(1000, 1250), (vec![250, 150, 50], 1300));
        assert_eq!(late(1000, 1200), (vec![200, 100], 1300));
    }

    #[test]
    fn the_number_of_missed_pings_recorded_is_limited() {
        let (recorded, next) = late(1000, 1 << 60);
        assert_eq!(recorded.len(), MOST_MISSED as usize + 1);
        assert!(next > 1 << 60);
    }

    fn told(due_ns: u64, now_ns: u64) -> (Vec<u64>, u64) {
        let mut recorded = Vec::new();
        let next = after_message_ns(due_ns, now_ns, 100, |late| recorded.push(late));
        (recorded, next)
    }

    #[test]
    fn a_message_takes_the_place_of_the_next_ping_only() {
        assert_eq!(told(1000, 950), (vec![], 1100));
        assert_eq!(told(1100, 960), (vec![], 1100), "it has done so already");
        assert_eq!(told(1100, 1000), (vec![], 1200));
        assert_eq!(told(1100, 996), (vec![], 1200), "just before a ping, or just after it");
        assert_eq!(late(1200, 1100), (vec![0], 1200), "it came after it, and here is the ping");
        assert_eq!(told(UNKNOWN, 1000), (vec![], UNKNOWN));
        let (none, first) = told(first_due_ns(1000, 100), 1050);
        assert_eq!((none, late(first, 1150)), (vec![], (vec![], 1250)), "the first one may still come at any time");
    }

    #[test]
    fn a_message_in_place_of_an_overdue_ping_is_late() {
        assert_eq!(told(1000, 1030), (vec![30], 1100));
        assert_eq!(told(1000, 1230), (vec![230, 130, 30], 1300));
    }

    #[test]
    fn a_ping_is_overdue_when_it_is_more_than_an_interval_late() {
        assert_eq!(overdue_ns(1000, 1100, 100), None);
        assert_eq!(overdue_ns(1000, 1101, 100), Some(101));
        assert_eq!(overdue_ns(UNKNOWN, 1 << 60, 100), None);
    }
}
