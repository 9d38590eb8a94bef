//! Where one stream is in the publications to one topic: whether each arrives exactly once and in order. Pure, and the same
//! as `fleet/drone/position.js`.

/// What a publication turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// In order, after this many that are missing.
    Next { skipped: u32 },
    /// The same, but the server had said that some may be missing.
    AfterGap { skipped: u32 },
    /// It was missing, and arrives after a later one.
    Late,
    /// It was sent before the first one that this stream got, and arrives after it.
    BeforeFirst,
    /// It is of an earlier publisher than the last one.
    Outdated,
    /// It has arrived before, or is so old that nothing is known about it.
    Repeated,
}

/// 32 bytes per topic of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Identifies the topic: see `key_of`.
    pub key: u32, // 4
    first: u32,    // 4
    last: u32,     // 4
    has_gap: bool, // 1
    /// 0 if nothing has arrived yet.
    publisher: u64, // 8
    /// Numbers below the last one that are missing: bit k is for `last - 1 - k`.
    missing: u64, // 8
}

const _: () = assert!(size_of::<Position>() == 32);

impl Position {
    pub fn new(key: u32) -> Self {
        Position { key, ..Position::default() }
    }

    /// From now on any number may come first.
    pub fn forget(&mut self) {
        *self = Position::new(self.key);
    }

    /// The server has said that publications may be missing before the next one.
    pub fn expect_gap(&mut self) {
        self.has_gap = true;
    }

    pub fn check(&mut self, publisher: u64, number: u32) -> Verdict {
        if publisher < self.publisher {
            return Verdict::Outdated;
        }
        if publisher > self.publisher {
            *self = Position { first: number, last: number, publisher, ..Position::new(self.key) };
            return Verdict::Next { skipped: 0 };
        }
        if number > self.last { self.advance(number) } else { self.look_back(number) }
    }

    fn advance(&mut self, number: u32) -> Verdict {
        let step = number - self.last;
        let skipped = step - 1;
        let had_gap = std::mem::take(&mut self.has_gap);
        self.last = number;
        self.missing = self.missing.checked_shl(step).unwrap_or(0);
        if had_gap {
            return Verdict::AfterGap { skipped };
        }
        self.missing |= 1u64.checked_shl(skipped).map_or(u64::MAX, |bit| bit - 1);
        Verdict::Next { skipped }
    }

    fn look_back(&mut self, number: u32) -> Verdict {
        if number < self.first {
            // So that it is noticed if this one is repeated.
            self.first = if number + 1 == self.first { number } else { self.first };
            return Verdict::BeforeFirst;
        }
        let bit = (self.last - number).checked_sub(1).and_then(|back| 1u64.checked_shl(back)).unwrap_or(0);
        if self.missing & bit == 0 {
            return Verdict::Repeated;
        }
        self.missing &= !bit;
        Verdict::Late
    }
}

/// A number for a topic: FNV-1a.
pub fn key_of(topic: &[u8]) -> u32 {
    topic.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::Verdict::*;
    use super::*;

    const IN_ORDER: Verdict = Next { skipped: 0 };

    fn checked(numbers: &[u32]) -> Vec<Verdict> {
        let mut position = Position::new(7);
        numbers.iter().map(|number| position.check(1, *number)).collect()
    }

    #[test]
    fn any_number_may_be_the_first_and_then_each_follows_the_one_before() {
        assert_eq!(checked(&[17, 18, 19]), [IN_ORDER; 3]);
    }

    #[test]
    fn numbers_that_are_skipped_are_missing_until_they_arrive_late() {
        assert_eq!(checked(&[1, 4, 3, 3, 2, 5]), [IN_ORDER, Next { skipped: 2 }, Late, Repeated, Late, IN_ORDER]);
        assert_eq!(checked(&[1, 100, 99, 36, 35, 101]), [IN_ORDER, Next { skipped: 98 }, Late, Late, Repeated, IN_ORDER]);
        assert_eq!(checked(&[1, 3, 66, 2, 67, 3]), [IN_ORDER, Next { skipped: 1 }, Next { skipped: 62 }, Late, IN_ORDER, Repeated]);
        assert_eq!(checked(&[1, 65, 2, 1]), [IN_ORDER, Next { skipped: 63 }, Late, Repeated]);
    }

    #[test]
    fn a_number_that_comes_again_is_repeated() {
        assert_eq!(checked(&[5, 5, 6, 5, 6]), [IN_ORDER, Repeated, IN_ORDER, Repeated, Repeated]);
    }

    #[test]
    fn a_number_before_the_first_is_out_of_order_once() {
        assert_eq!(checked(&[5, 4, 4, 2, 6]), [IN_ORDER, BeforeFirst, Repeated, BeforeFirst, IN_ORDER]);
    }

    #[test]
    fn after_a_gap_that_the_server_reported_numbers_may_be_skipped_once() {
        let mut position = Position::new(7);
        position.check(1, 1);
        position.expect_gap();
        assert_eq!([5, 7, 3].map(|number| position.check(1, number)), [AfterGap { skipped: 3 }, Next { skipped: 1 }, Repeated]);
    }

    #[test]
    fn a_later_publisher_counts_anew_and_an_earlier_one_is_outdated() {
        let mut position = Position::new(7);
        position.check(5, 100);
        assert_eq!([(6, 1), (5, 101), (6, 2)].map(|(publisher, n)| position.check(publisher, n)), [IN_ORDER, Outdated, IN_ORDER]);
        position.forget();
        assert_eq!((position, position.clone().check(1, 9)), (Position::new(7), IN_ORDER));
    }

    #[test]
    fn topics_have_keys() {
        assert_eq!((key_of(b""), key_of(b"a"), key_of(b"foobar")), (0x811c_9dc5, 0xe40c_292c, 0xbf9c_f968));
    }
}
