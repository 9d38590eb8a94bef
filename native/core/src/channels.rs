//! Channels and who subscribes to them. A subscription takes 16 bytes: 12 here, and 4 in its channel's list. Each row up to
//! the last one that ever subscribed takes 4 more.

use std::collections::HashMap;

use crate::id::MOST_ROWS;
use crate::rows::NONE;

/// One stream's subscription to one channel.
#[derive(Clone, Copy, Debug)]
struct Subscription {
    channel: u32, // 4
    /// Its place in the channel's list.
    place: u32, // 4
    /// The next of the same row, or the next free one.
    next: u32, // 4
}

const _: () = assert!(size_of::<Subscription>() == 12);

/// A named list of rows, in the order they subscribed, except that gaps are filled from the end.
#[derive(Debug, Default)]
struct Channel {
    name: Box<[u8]>,
    rows: Vec<u32>,
    /// While a message goes through the list nothing may move: a row that leaves becomes a gap, which is closed later.
    is_walked: bool,
    gaps: u32,
}

#[derive(Debug)]
pub struct Channels {
    /// The first subscription of each row, as far as rows have subscribed.
    firsts: Vec<u32>,
    by_name: HashMap<Box<[u8]>, u32>,
    channels: Vec<Channel>,
    free_channels: Vec<u32>,
    subscriptions: Vec<Subscription>,
    /// The first free subscription.
    free: u32,
}

impl Channels {
    /// Room for the rows below `rows`. The kernel provides the memory when they first subscribe.
    pub fn new(rows: usize) -> Self {
        Channels {
            firsts: Vec::with_capacity(rows.min(MOST_ROWS)),
            by_name: HashMap::new(),
            channels: Vec::new(),
            free_channels: Vec::new(),
            subscriptions: Vec::new(),
            free: NONE,
        }
    }

    /// Puts a row on the list of a channel, which is made if necessary. Does nothing if it is on it.
    pub fn subscribe(&mut self, row: u32, name: &[u8]) {
        let channel = self.find_or_make(name);
        if self.subscription_of(row, channel) != NONE {
            return;
        }
        if self.firsts.len() <= row as usize {
            self.firsts.resize(row as usize + 1, NONE);
        }
        let list = &mut self.channels[channel as usize].rows;
        let made = Subscription { channel, place: list.len() as u32, next: self.firsts[row as usize] };
        list.push(row);
        self.firsts[row as usize] = self.store(made);
    }

    /// The opposite of `subscribe`. Does nothing if the row is not on the list.
    pub fn unsubscribe(&mut self, row: u32, name: &[u8]) {
        let Some(&channel) = self.by_name.get(name) else { return };
        let found = self.subscription_of(row, channel);
        if found == NONE {
            return;
        }
        let next = self.subscriptions[found as usize].next;
        if found == self.first_of(row) {
            self.firsts[row as usize] = next;
        } else {
            let mut before = self.first_of(row);
            while self.subscriptions[before as usize].next != found {
                before = self.subscriptions[before as usize].next;
            }
            self.subscriptions[before as usize].next = next;
        }
        self.release(found);
    }

    /// Takes a row off all lists.
    pub fn unsubscribe_all(&mut self, row: u32) {
        let mut subscription = self.first_of(row);
        if subscription == NONE {
            return;
        }
        self.firsts[row as usize] = NONE;
        while subscription != NONE {
            let next = self.subscriptions[subscription as usize].next;
            self.release(subscription);
            subscription = next;
        }
    }

    /// The first subscription of a row, or NONE.
    fn first_of(&self, row: u32) -> u32 {
        self.firsts.get(row as usize).copied().unwrap_or(NONE)
    }

    /// Begins a walk over a channel's list: nothing in it moves until `end_walk`. Returns the channel and the length of
    /// its list, or None if nobody subscribes to it.
    pub fn begin_walk(&mut self, name: &[u8]) -> Option<(u32, usize)> {
        let channel = *self.by_name.get(name)?;
        let list = &mut self.channels[channel as usize];
        list.is_walked = true;
        Some((channel, list.rows.len()))
    }

    /// The row at a place of a list that is being walked; None if it has left since.
    pub fn row_at(&self, channel: u32, place: usize) -> Option<u32> {
        let row = self.channels[channel as usize].rows[place];
        (row != NONE).then_some(row)
    }

    /// Closes the gaps of those that left during the walk.
    pub fn end_walk(&mut self, channel: u32) {
        let list = &mut self.channels[channel as usize];
        list.is_walked = false;
        if list.gaps > 0 {
            list.gaps = 0;
            list.rows.retain(|row| *row != NONE);
            for place in 0..self.channels[channel as usize].rows.len() {
                let row = self.channels[channel as usize].rows[place];
                let subscription = self.subscription_of(row, channel);
                self.subscriptions[subscription as usize].place = place as u32;
            }
        }
        self.drop_if_empty(channel);
    }

    /// How many subscribe to a channel.
    #[cfg(test)]
    pub fn count(&self, name: &[u8]) -> usize {
        let list = self.by_name.get(name).map(|channel| &self.channels[*channel as usize]);
        list.map_or(0, |list| list.rows.len() - list.gaps as usize)
    }

    /// Whether a row has subscriptions.
    pub fn has(&self, row: u32) -> bool {
        self.first_of(row) != NONE
    }

    /// Panics if the lists and the subscriptions don't agree.
    pub fn check(&self) {
        let mut subscribed = 0;
        for (row, first) in self.firsts.iter().enumerate() {
            let row = row as u32;
            let mut at = *first;
            while at != NONE {
                let Subscription { channel, place, next } = self.subscriptions[at as usize];
                assert_eq!(self.channels[channel as usize].rows.get(place as usize), Some(&row), "place of row {row} in channel {channel}");
                assert_eq!(self.find_in(next, channel), NONE, "row {row} is in channel {channel} once");
                subscribed += 1;
                at = next;
            }
        }
        let mut free = 0;
        let mut at = self.free;
        while at != NONE {
            free += 1;
            at = self.subscriptions[at as usize].next;
        }
        assert_eq!(subscribed + free, self.subscriptions.len(), "a subscription is in use or free");
        let mut listed = 0;
        for (name, channel) in &self.by_name {
            let list = &self.channels[*channel as usize];
            let gaps = list.rows.iter().filter(|row| **row == NONE).count();
            assert_eq!(list.name, *name);
            assert_eq!(list.gaps as usize, gaps, "gaps are counted");
            assert!(list.is_walked || gaps == 0 && !list.rows.is_empty(), "a list has gaps, or is empty, only during a walk");
            listed += list.rows.len() - gaps;
        }
        assert_eq!(listed, subscribed, "each row on a list has a subscription");
        assert_eq!(self.by_name.len() + self.free_channels.len(), self.channels.len(), "a channel has a name or is free");
    }

    fn find_or_make(&mut self, name: &[u8]) -> u32 {
        if let Some(channel) = self.by_name.get(name) {
            return *channel;
        }
        let made = Channel { name: name.into(), ..Channel::default() };
        let channel = match self.free_channels.pop() {
            Some(free) => {
                self.channels[free as usize] = made;
                free
            }
            None => {
                self.channels.push(made);
                self.channels.len() as u32 - 1
            }
        };
        self.by_name.insert(name.into(), channel);
        channel
    }

    /// The subscription of a row to a channel, or NONE.
    fn subscription_of(&self, row: u32, channel: u32) -> u32 {
        self.find_in(self.first_of(row), channel)
    }

    /// The subscription to a channel in the list that begins with `first`, or NONE.
    fn find_in(&self, first: u32, channel: u32) -> u32 {
        let mut at = first;
        while at != NONE && self.subscriptions[at as usize].channel != channel {
            at = self.subscriptions[at as usize].next;
        }
        at
    }

    fn store(&mut self, subscription: Subscription) -> u32 {
        if self.free == NONE {
            self.subscriptions.push(subscription);
            return self.subscriptions.len() as u32 - 1;
        }
        let index = self.free;
        self.free = self.subscriptions[index as usize].next;
        self.subscriptions[index as usize] = subscription;
        index
    }

    /// Takes a subscription off its channel's list and frees it.
    fn release(&mut self, index: u32) {
        let Subscription { channel, place, .. } = self.subscriptions[index as usize];
        self.subscriptions[index as usize].next = self.free;
        self.subscriptions[index as usize].channel = NONE;
        self.free = index;
        let list = &mut self.channels[channel as usize];
        if list.is_walked {
            list.rows[place as usize] = NONE;
            list.gaps += 1;
            return;
        }
        list.rows.swap_remove(place as usize);
        if let Some(&moved) = list.rows.get(place as usize) {
            let subscription = self.subscription_of(moved, channel);
            self.subscriptions[subscription as usize].place = place;
        }
        self.drop_if_empty(channel);
    }

    fn drop_if_empty(&mut self, channel: u32) {
        let list = &mut self.channels[channel as usize];
        if list.rows.is_empty() && !list.is_walked {
            let name = std::mem::take(list).name;
            self.by_name.remove(&name);
            self.free_channels.push(channel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Channels that are checked after each step.
    struct Table {
        channels: Channels,
    }

    impl Table {
        fn of(rows: usize) -> Self {
            Table { channels: Channels::new(rows) }
        }

        fn subscribe(&mut self, row: u32, name: &str) {
            self.channels.subscribe(row, name.as_bytes());
            self.channels.check();
        }

        fn unsubscribe(&mut self, row: u32, name: &str) {
            self.channels.unsubscribe(row, name.as_bytes());
            self.channels.check();
        }

        fn leave(&mut self, row: u32) {
            self.channels.unsubscribe_all(row);
            self.channels.check();
        }

        fn end_walk(&mut self, channel: u32) {
            self.channels.end_walk(channel);
            self.channels.check();
        }

        /// Which rows would get a message now, in order.
        fn listeners(&mut self, name: &str) -> Vec<u32> {
            let Some((channel, end)) = self.channels.begin_walk(name.as_bytes()) else { return Vec::new() };
            let rows = (0..end).filter_map(|place| self.channels.row_at(channel, place)).collect();
            self.end_walk(channel);
            rows
        }
    }

    /// A table where rows 0 to `rows` subscribe to "news", in this order.
    fn listening(rows: usize) -> Table {
        let mut table = Table::of(rows);
        (0..rows as u32).for_each(|row| table.subscribe(row, "news"));
        table
    }

    #[test]
    fn a_row_is_on_a_list_once_even_if_it_subscribes_twice() {
        let mut table = listening(2);
        table.subscribe(0, "news");
        assert_eq!((table.listeners("news"), table.channels.count(b"news")), (vec![0, 1], 2));
    }

    #[test]
    fn a_channel_without_subscribers_does_not_exist() {
        let mut table = listening(1);
        assert_eq!(table.channels.begin_walk(b"other"), None);
        table.unsubscribe(0, "other");
        assert_eq!((table.listeners("news"), table.channels.count(b"other")), (vec![0], 0));
    }

    #[test]
    fn places_are_right_after_the_last_row_of_a_list_filled_a_gap() {
        let mut table = listening(5);
        table.unsubscribe(1, "news");
        assert_eq!(table.listeners("news"), [0, 4, 2, 3]);
        // Row 4 moved to place 1. Were its place still 4, it would take another off, or nobody.
        table.unsubscribe(4, "news");
        assert_eq!(table.listeners("news"), [0, 3, 2]);
        table.leave(3);
        table.leave(0);
        assert_eq!(table.listeners("news"), [2]);
    }

    #[test]
    fn a_row_leaves_one_of_many_channels_and_stays_on_the_others() {
        let names = ["a", "b", "c", "d"];
        for left in names {
            let mut table = Table::of(2);
            for name in names {
                table.subscribe(0, name);
                table.subscribe(1, name);
            }
            table.unsubscribe(0, left);
            for name in names {
                let expected: &[u32] = if name == left { &[1] } else { &[0, 1] };
                assert_eq!(table.listeners(name), expected, "{name} when {left} was left");
            }
        }
    }

    #[test]
    fn a_row_that_left_is_on_no_list() {
        let mut table = Table::of(2);
        for name in ["a", "b", "c"] {
            table.subscribe(0, name);
        }
        table.subscribe(1, "b");
        table.leave(0);
        assert!(!table.channels.has(0));
        assert_eq!((table.listeners("a"), table.listeners("b"), table.listeners("c")), (vec![], vec![1], vec![]));
    }

    #[test]
    fn a_channel_that_was_emptied_can_be_made_again_and_reuses_memory() {
        let mut table = Table::of(3);
        for round in 0..10 {
            let name = format!("round {round}");
            table.subscribe(0, &name);
            table.subscribe(1, &name);
            table.leave(1);
            table.unsubscribe(0, &name);
            assert_eq!(table.listeners(&name), [0u32; 0]);
            table.subscribe(2, &name);
            assert_eq!(table.listeners(&name), [2]);
            table.leave(2);
        }
        assert_eq!((table.channels.channels.len(), table.channels.subscriptions.len()), (1, 2));
    }

    #[test]
    fn a_row_that_leaves_during_a_walk_is_skipped_and_no_other_is() {
        let mut table = listening(6);
        let (channel, end) = table.channels.begin_walk(b"news").unwrap();
        let mut met = Vec::new();
        for place in 0..end {
            met.extend(table.channels.row_at(channel, place));
            match place {
                1 => table.leave(1),               // the one just met
                2 => table.unsubscribe(0, "news"), // one met before
                3 => table.leave(4),               // the one to come
                4 => table.unsubscribe(5, "news"), // the last
                _ => {}
            }
        }
        assert_eq!((met, table.channels.count(b"news")), (vec![0, 1, 2, 3], 2));
        table.end_walk(channel);
        assert_eq!(table.listeners("news"), [2, 3]);
        table.leave(2);
        assert_eq!(table.listeners("news"), [3]);
    }

    #[test]
    fn a_row_that_subscribes_during_a_walk_gets_the_next_message() {
        let mut table = Table::of(4);
        table.subscribe(0, "news");
        table.subscribe(1, "news");
        let (channel, end) = table.channels.begin_walk(b"news").unwrap();
        table.leave(0);
        table.subscribe(2, "news");
        table.subscribe(0, "news");
        assert_eq!(end, 2);
        table.end_walk(channel);
        assert_eq!(table.listeners("news"), [1, 2, 0]);
    }

    #[test]
    fn a_channel_emptied_during_a_walk_is_removed_when_the_walk_ends() {
        let mut table = listening(2);
        let (channel, end) = table.channels.begin_walk(b"news").unwrap();
        table.leave(0);
        table.leave(1);
        // Another channel must not get the number that the walk still has.
        table.subscribe(0, "other");
        assert!((0..end).all(|place| table.channels.row_at(channel, place).is_none()));
        table.end_walk(channel);
        assert_eq!((table.listeners("news"), table.listeners("other")), (vec![], vec![0]));
    }

    #[test]
    fn a_channel_emptied_and_joined_during_a_walk_stays() {
        let mut table = listening(1);
        let (channel, end) = table.channels.begin_walk(b"news").unwrap();
        table.leave(0);
        table.subscribe(0, "news");
        assert_eq!((end, table.channels.row_at(channel, 0)), (1, None));
        table.end_walk(channel);
        assert_eq!(table.listeners("news"), [0]);
    }

    #[test]
    fn lists_and_subscriptions_agree_after_a_thousand_random_steps() {
        let mut table = Table::of(20);
        let mut walk = None;
        let mut seed = 1u32;
        let mut draw = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % below
        };
        for _ in 0..1000 {
            let (row, name) = (draw(20), ["a", "b", "c"][draw(3) as usize]);
            match draw(8) {
                0..4 => table.subscribe(row, name),
                4 | 5 => table.unsubscribe(row, name),
                6 => table.leave(row),
                _ => match walk.take() {
                    Some((channel, _)) => table.end_walk(channel),
                    None => walk = table.channels.begin_walk(name.as_bytes()),
                },
            }
        }
    }
}
