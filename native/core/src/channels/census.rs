//! The channels that most rows subscribe to. They are looked at a part at a time, so a shard with a million of them goes on
//! with its work in between. Nothing is kept about it otherwise.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Channels;
use crate::clock::Slice;

/// One that is being taken.
#[derive(Debug)]
pub struct Census {
    pub token: u32,
    most: usize,
    /// The next channel to look at.
    next: usize,
    /// The largest so far. The smallest of them is on top, because it is the first to go.
    found: BinaryHeap<Reverse<(u32, Box<[u8]>)>>,
    /// Rows of the largest that was left out.
    left_out: u32,
}

/// What came out.
#[derive(Debug, PartialEq)]
pub struct Counted {
    pub token: u32,
    /// Rows of the largest that is not listed; 0 if all are.
    pub left_out: u32,
    /// Rows and name, the largest first.
    pub channels: Vec<(u32, Box<[u8]>)>,
}

impl Census {
    pub fn new(token: u32, most: usize) -> Self {
        Census { token, most, next: 0, found: BinaryHeap::new(), left_out: 0 }
    }

    pub fn into_counted(self) -> Counted {
        let channels = self.found.into_sorted_vec().into_iter().map(|Reverse(one)| one).collect();
        Counted { token: self.token, left_out: self.left_out, channels }
    }

    fn look_at(&mut self, rows: u32, name: &[u8]) {
        if self.found.len() < self.most {
            self.found.push(Reverse((rows, name.into())));
            return;
        }
        let mut out = rows;
        if self.found.peek().is_some_and(|Reverse((least, _))| rows > *least) {
            out = self.found.pop().map_or(0, |Reverse((least, _))| least);
            self.found.push(Reverse((rows, name.into())));
        }
        self.left_out = self.left_out.max(out);
    }
}

impl Channels {
    /// Looks at some channels; true once all were looked at. Those that come or go meanwhile may be missing, or there.
    pub fn count_some(&self, census: &mut Census, slice: &mut Slice) -> bool {
        while let Some(channel) = self.channels.get(census.next) {
            census.next += 1;
            if !channel.rows.is_empty() {
                census.look_at(channel.rows.len() as u32, &channel.name);
            }
            if slice.is_over() {
                break;
            }
        }
        census.next >= self.channels.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Channel `n` has `sizes[n]` rows.
    fn channels(sizes: &[u32]) -> Channels {
        let mut channels = Channels::new(1000, 1 << 20);
        for (number, size) in sizes.iter().enumerate() {
            (0..*size).for_each(|row| channels.subscribe(row, format!("c{number}").as_bytes()));
        }
        channels
    }

    fn counted(channels: &Channels, most: usize, slice_ns: u64) -> (Vec<(u32, String)>, u32, usize) {
        let mut census = Census::new(7, most);
        let mut turns = 1;
        while !channels.count_some(&mut census, &mut Slice::of(slice_ns)) {
            turns += 1;
        }
        let Counted { token: 7, left_out, channels } = census.into_counted() else { panic!() };
        (channels.into_iter().map(|(rows, name)| (rows, String::from_utf8_lossy(&name).into())).collect(), left_out, turns)
    }

    #[test]
    fn the_largest_come_first_and_the_rest_is_left_out() {
        let (found, left_out, _) = counted(&channels(&[1, 5, 3, 9, 2]), 3, 1 << 30);
        assert_eq!((found, left_out), (vec![(9, "c3".into()), (5, "c1".into()), (3, "c2".into())], 2));
    }

    #[test]
    fn a_few_channels_are_all_there() {
        let (found, left_out, _) = counted(&channels(&[1, 2]), 2, 1 << 30);
        assert_eq!((found, left_out), (vec![(2, "c1".into()), (1, "c0".into())], 0));
        assert_eq!(counted(&channels(&[]), 2, 1 << 30), (vec![], 0, 1));
    }

    #[test]
    fn it_takes_turns_and_skips_channels_that_are_gone() {
        let mut channels = channels(&[4, 1, 2]);
        (0..4).for_each(|row| channels.unsubscribe(row, b"c0"));
        assert_eq!(counted(&channels, 9, 0), (vec![(2, "c2".into()), (1, "c1".into())], 0, 3));
    }
}
