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
    /// Whether some were left out.
    is_cut: bool,
}

/// What came out.
#[derive(Debug, PartialEq)]
pub struct Counted {
    pub token: u32,
    /// Whether these are all channels.
    pub is_whole: bool,
    /// Rows and name, the largest first.
    pub channels: Vec<(u32, Box<[u8]>)>,
}

impl Census {
    pub fn new(token: u32, most: usize) -> Self {
        Census { token, most, next: 0, found: BinaryHeap::new(), is_cut: false }
    }

    pub fn into_counted(self) -> Counted {
        let channels = self.found.into_sorted_vec().into_iter().map(|Reverse(one)| one).collect();
        Counted { token: self.token, is_whole: !self.is_cut, channels }
    }

    fn look_at(&mut self, rows: u32, name: &[u8]) {
        if self.found.len() < self.most {
            self.found.push(Reverse((rows, name.into())));
            return;
        }
        self.is_cut = true;
        if self.found.peek().is_some_and(|Reverse((least, _))| rows > *least) {
            self.found.pop();
            self.found.push(Reverse((rows, name.into())));
        }
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

    fn counted(channels: &Channels, most: usize, slice_ns: u64) -> (Vec<(u32, String)>, bool, usize) {
        let mut census = Census::new(7, most);
        let mut turns = 1;
        while !channels.count_some(&mut census, &mut Slice::of(slice_ns)) {
            turns += 1;
        }
        let Counted { token: 7, is_whole, channels } = census.into_counted() else { panic!() };
        (channels.into_iter().map(|(rows, name)| (rows, String::from_utf8_lossy(&name).into())).collect(), is_whole, turns)
    }

    #[test]
    fn the_largest_come_first_and_the_rest_is_left_out() {
        let (found, is_whole, _) = counted(&channels(&[1, 5, 3, 9, 2]), 3, 1 << 30);
        assert_eq!((found, is_whole), (vec![(9, "c3".into()), (5, "c1".into()), (3, "c2".into())], false));
    }

    #[test]
    fn a_few_channels_are_all_there() {
        let (found, is_whole, _) = counted(&channels(&[1, 2]), 2, 1 << 30);
        assert_eq!((found, is_whole), (vec![(2, "c1".into()), (1, "c0".into())], true));
        assert_eq!(counted(&channels(&[]), 2, 1 << 30), (vec![], true, 1));
    }

    #[test]
    fn it_takes_turns_and_skips_channels_that_are_gone() {
        let mut channels = channels(&[4, 1, 2]);
        (0..4).for_each(|row| channels.unsubscribe(row, b"c0"));
        assert_eq!(counted(&channels, 9, 0), (vec![(2, "c2".into()), (1, "c1".into())], true, 3));
    }
}
