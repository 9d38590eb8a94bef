//! Heads that come in pieces: what was read of them, how old they are, and whose they are. Most heads come whole, so this
//! is not part of the row.
//!
//! What has come is read, not peeked at: with each look the kernel walks over every small segment again, so peeking at a
//! head that comes a byte at a time costs the square of its size.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use crate::address::Site;
use crate::head::Scan;

/// The head of one connection.
#[derive(Debug)]
struct Pieces {
    bytes: Vec<u8>,
    /// Memory that it takes elsewhere: of TLS, what is not decrypted yet.
    outside: usize,
    /// How far the end was looked for.
    scan: Scan,
    /// At this size it is parsed even without an end, because it may be bad.
    parse_at: usize,
    /// Its place among all that are incomplete. None once it is complete.
    turn: Option<u64>,
    address: Option<IpAddr>,
    /// None if it does not count.
    site: Option<Site>,
}

impl Pieces {
    fn memory(&self) -> usize {
        self.bytes.capacity() + self.outside
    }
}

/// The connections of a shard whose heads are incomplete, or were until JS was asked about them.
#[derive(Debug, Default)]
pub struct Arriving {
    by_row: HashMap<u32, Pieces>,
    /// Rows with an incomplete head, the oldest first.
    by_turn: BTreeMap<u64, u32>,
    by_site: HashMap<Site, BTreeSet<u64>>,
    /// The memory that each of them takes, and its turn.
    by_size: BTreeSet<(usize, Reverse<u64>)>,
    next_turn: u64,
    /// Memory that all of them take.
    bytes: usize,
}

impl Arriving {
    /// A connection whose head is incomplete. `site`: None if it does not count for a limit per site.
    pub fn insert(&mut self, row: u32, address: Option<IpAddr>, site: Option<Site>) {
        let turn = self.next_turn;
        self.next_turn += 1;
        self.by_turn.insert(turn, row);
        if let Some(site) = site {
            self.by_site.entry(site).or_default().insert(turn);
        }
        self.by_size.insert((0, Reverse(turn)));
        let pieces = Pieces { bytes: Vec::new(), outside: 0, scan: Scan::default(), parse_at: 0, turn: Some(turn), address, site };
        self.by_row.insert(row, pieces);
    }

    /// Adds what was read. Returns whether it is time to parse all of it: it has an end, or is twice as large as the last
    /// time, so that parsing costs no more than a few times its size.
    pub fn append(&mut self, row: u32, bytes: &[u8]) -> bool {
        let Some(pieces) = self.by_row.get_mut(&row) else { return false };
        let before = pieces.memory();
        pieces.bytes.extend_from_slice(bytes);
        pieces.scan = pieces.scan.over(bytes);
        let is_time = pieces.scan == Scan::End || pieces.bytes.len() >= pieces.parse_at;
        if is_time {
            pieces.parse_at = 2 * pieces.bytes.len();
        }
        self.resize(row, before);
        is_time
    }

    /// It takes so much memory elsewhere.
    pub fn note_outside(&mut self, row: u32, bytes: usize) {
        let Some(pieces) = self.by_row.get_mut(&row) else { return };
        let before = pieces.memory();
        pieces.outside = bytes;
        self.resize(row, before);
    }

    /// It has taken so much memory `before`.
    fn resize(&mut self, row: u32, before: usize) {
        let Some(pieces) = self.by_row.get(&row) else { return };
        let after = pieces.memory();
        if let Some(turn) = pieces.turn
            && after != before
        {
            self.by_size.remove(&(before, Reverse(turn)));
            self.by_size.insert((after, Reverse(turn)));
        }
        self.bytes = self.bytes - before + after;
    }

    /// What was read of a head, and perhaps after it.
    pub fn read_of(&self, row: u32) -> &[u8] {
        self.by_row.get(&row).map_or(&[], |pieces| &pieces.bytes)
    }

    pub fn address_of(&self, row: u32) -> Option<IpAddr> {
        self.by_row.get(&row)?.address
    }

    /// The head is complete; what was read stays until it is taken.
    pub fn complete(&mut self, row: u32) {
        if let Some(pieces) = self.by_row.get_mut(&row)
            && let Some(turn) = pieces.turn.take()
        {
            let (site, size) = (pieces.site, pieces.memory());
            self.by_size.remove(&(size, Reverse(turn)));
            self.forget_turn(turn, site);
        }
    }

    /// Removes what was read of a head; None if nothing was, because it came whole.
    pub fn take(&mut self, row: u32) -> Option<Vec<u8>> {
        if self.by_row.is_empty() {
            return None;
        }
        let pieces = self.by_row.remove(&row)?;
        self.bytes -= pieces.memory();
        if let Some(turn) = pieces.turn {
            self.by_size.remove(&(pieces.memory(), Reverse(turn)));
            self.forget_turn(turn, pieces.site);
        }
        Some(pieces.bytes)
    }

    fn forget_turn(&mut self, turn: u64, site: Option<Site>) {
        self.by_turn.remove(&turn);
        if let Some(site) = site
            && let Some(turns) = self.by_site.get_mut(&site)
        {
            turns.remove(&turn);
            if turns.is_empty() {
                self.by_site.remove(&site);
            }
        }
    }

    /// Of those with an incomplete head, the one that came first.
    pub fn oldest(&self) -> Option<u32> {
        self.by_turn.values().next().copied()
    }

    /// Of those with an incomplete head, the one that takes the most memory; of several, the oldest.
    pub fn largest(&self) -> Option<u32> {
        let (_, Reverse(turn)) = self.by_size.last()?;
        self.by_turn.get(turn).copied()
    }

    /// The oldest of the same site, if that has more than `most`.
    pub fn oldest_of_crowd(&self, row: u32, most: usize) -> Option<u32> {
        let turns = self.by_site.get(&self.by_row.get(&row)?.site?)?;
        if turns.len() <= most {
            return None;
        }
        self.by_turn.get(turns.first()?).copied()
    }

    /// Bytes of memory that all heads take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Panics if it does not agree with the states of the rows.
    pub fn check(&self, is_incomplete: impl Fn(u32) -> bool, is_asked: impl Fn(u32) -> bool, incomplete: usize) {
        assert_eq!(self.by_turn.len(), incomplete, "every incomplete head has its turn");
        assert_eq!(self.by_size.len(), incomplete, "every incomplete head has its size");
        assert_eq!(self.bytes, self.by_row.values().map(Pieces::memory).sum::<usize>());
        let counted = self.by_row.values().filter(|pieces| pieces.turn.is_some() && pieces.site.is_some()).count();
        assert_eq!(counted, self.by_site.values().map(BTreeSet::len).sum::<usize>());
        for (row, pieces) in &self.by_row {
            match pieces.turn {
                Some(turn) => {
                    assert!(is_incomplete(*row) && self.by_turn.get(&turn) == Some(row), "row {row} has its turn");
                    assert!(self.by_size.contains(&(pieces.memory(), Reverse(turn))), "row {row} has its size");
                }
                None => assert!(is_asked(*row), "what was read of row {row} is still needed"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(number: u8) -> Option<Site> {
        Some(Site::V4([10, 0, 0, number].into()))
    }

    /// Rows with these sites.
    fn arriving(sites: &[Option<Site>]) -> Arriving {
        let mut arriving = Arriving::default();
        for (row, site) in (0..).zip(sites) {
            arriving.insert(row, None, *site);
        }
        arriving
    }

    #[test]
    fn a_head_is_parsed_at_its_end_and_each_time_it_has_doubled() {
        let mut arriving = arriving(&[None]);
        let parsed: Vec<usize> = (1..=100).filter(|_| arriving.append(0, b"x")).collect();
        assert_eq!(parsed, [1, 2, 4, 8, 16, 32, 64]);
        assert!(!arriving.append(0, b"\r\n\r") && arriving.append(0, b"\n"));
        assert_eq!(arriving.read_of(0).len(), 104);
    }

    #[test]
    fn empty_lines_before_a_head_are_no_end_of_it() {
        let mut arriving = arriving(&[None]);
        assert_eq!((0..1000).filter(|_| arriving.append(0, b"\r\n")).count(), 10);
    }

    #[test]
    fn the_oldest_is_the_one_that_came_first_of_those_that_are_left() {
        let mut arriving = arriving(&[None, None, None]);
        assert_eq!(arriving.oldest(), Some(0));
        arriving.complete(0);
        assert_eq!(arriving.oldest(), Some(1));
        arriving.take(1);
        arriving.insert(1, None, None);
        assert_eq!(arriving.oldest(), Some(2));
        arriving.check(|row| row != 0, |row| row == 0, 2);
    }

    #[test]
    fn the_oldest_of_a_site_goes_first_when_it_has_too_many() {
        let mut arriving = arriving(&[site(1), site(2), None, site(2), site(2), None]);
        assert_eq!([1, 3, 4].map(|row| arriving.oldest_of_crowd(row, 2)), [Some(1); 3]);
        assert_eq!([0, 2, 5].map(|row| arriving.oldest_of_crowd(row, 1)), [None; 3]);
        arriving.complete(1);
        assert_eq!(arriving.oldest_of_crowd(4, 2), None);
        arriving.check(|row| row != 1, |row| row == 1, 5);
    }

    #[test]
    fn what_was_read_counts_until_it_is_taken() {
        let mut arriving = arriving(&[None, site(1)]);
        arriving.append(0, &[b'x'; 1000]);
        arriving.append(1, b"GET");
        arriving.complete(0);
        assert!(arriving.bytes() >= 1003);
        assert_eq!(
            (arriving.take(0).map(|bytes| bytes.len()), arriving.take(1), arriving.take(1)),
            (Some(1000), Some(b"GET".into()), None)
        );
        assert_eq!((arriving.bytes(), arriving.oldest()), (0, None));
        arriving.check(|_| false, |_| false, 0);
    }
}
