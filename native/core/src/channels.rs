//! Channels and who listens to them. A subscription costs 12 bytes here and 4 in the list of its channel.

use std::collections::HashMap;

use crate::rows::NONE;

/// One stream's listening to one channel.
#[derive(Clone, Copy, Debug)]
struct Subscription {
    channel: u32, // 4
    /// Where it stands in the channel's list.
    place: u32, // 4
    /// The next of the same stream, or the next that is free.
    next: u32, // 4
}

const _: () = assert!(size_of::<Subscription>() == 12);

/// A named list of rows, in the order they came but for gaps that were filled from the end.
#[derive(Debug, Default)]
struct Channel {
    name: Box<[u8]>,
    rows: Vec<u32>,
    /// While a message goes through the list nothing may move: who leaves becomes a gap, to be closed after.
    is_walked: bool,
    gaps: u32,
}

#[derive(Debug)]
pub struct Channels {
    by_name: HashMap<Box<[u8]>, u32>,
    channels: Vec<Channel>,
    free_channels: Vec<u32>,
    subscriptions: Vec<Subscription>,
    free: u32,
}

impl Default for Channels {
    fn default() -> Self {
        Channels { by_name: HashMap::new(), channels: Vec::new(), free_channels: Vec::new(), subscriptions: Vec::new(), free: NONE }
    }
}

impl Channels {
    /// Puts a row on the list of a channel, which is made where there is none. `first` is where the row keeps
    /// its subscriptions. Does nothing where it listens already.
    pub fn subscribe(&mut self, row: u32, first: &mut u32, name: &[u8]) {
        let channel = self.find_or_make(name);
        if self.subscription_of(*first, channel) != NONE {
            return;
        }
        let list = &mut self.channels[channel as usize].rows;
        let made = Subscription { channel, place: list.len() as u32, next: *first };
        list.push(row);
        *first = self.store(made);
    }

    /// The exact opposite; does nothing where the row does not listen.
    pub fn unsubscribe(&mut self, first: &mut u32, name: &[u8], first_of: impl Fn(u32) -> u32) {
        let Some(&channel) = self.by_name.get(name) else { return };
        let found = self.subscription_of(*first, channel);
        if found == NONE {
            return;
        }
        let next = self.subscriptions[found as usize].next;
        if found == *first {
            *first = next;
        } else {
            let mut before = *first;
            while self.subscriptions[before as usize].next != found {
                before = self.subscriptions[before as usize].next;
            }
            self.subscriptions[before as usize].next = next;
        }
        self.release(found, &first_of);
    }

    /// Takes a row off all lists.
    pub fn unsubscribe_all(&mut self, first: &mut u32, first_of: impl Fn(u32) -> u32) {
        let mut subscription = std::mem::replace(first, NONE);
        while subscription != NONE {
            let next = self.subscriptions[subscription as usize].next;
            self.release(subscription, &first_of);
            subscription = next;
        }
    }

    /// Begins a walk over the channel's list: until `end_walk` nothing in it moves. None where nobody listens.
    pub fn begin_walk(&mut self, name: &[u8]) -> Option<(u32, usize)> {
        let channel = *self.by_name.get(name)?;
        let list = &mut self.channels[channel as usize];
        list.is_walked = true;
        Some((channel, list.rows.len()))
    }

    /// The row at a place of a list that is walked; None where it left meanwhile.
    pub fn row_at(&self, channel: u32, place: usize) -> Option<u32> {
        let row = self.channels[channel as usize].rows[place];
        (row != NONE).then_some(row)
    }

    pub fn end_walk(&mut self, channel: u32, first_of: impl Fn(u32) -> u32) {
        let list = &mut self.channels[channel as usize];
        list.is_walked = false;
        if list.gaps > 0 {
            list.gaps = 0;
            list.rows.retain(|row| *row != NONE);
            for place in 0..self.channels[channel as usize].rows.len() {
                let row = self.channels[channel as usize].rows[place];
                let subscription = self.subscription_of(first_of(row), channel);
                self.subscriptions[subscription as usize].place = place as u32;
            }
        }
        self.drop_if_empty(channel);
    }

    /// How many listen to a channel.
    #[cfg(test)]
    pub fn count(&self, name: &[u8]) -> usize {
        let list = self.by_name.get(name).map(|channel| &self.channels[*channel as usize]);
        list.map_or(0, |list| list.rows.len() - list.gaps as usize)
    }

    /// Panics where the lists and the subscriptions of `rows`, each with its first, don't agree.
    pub fn check(&self, rows: impl Iterator<Item = (u32, u32)>) {
        let mut subscribed = 0;
        for (row, first) in rows {
            let mut at = first;
            while at != NONE {
                let Subscription { channel, place, next } = self.subscriptions[at as usize];
                assert_eq!(self.channels[channel as usize].rows.get(place as usize), Some(&row), "place of row {row} in channel {channel}");
                assert_eq!(self.subscription_of(next, channel), NONE, "row {row} is in channel {channel} once");
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
            assert!(list.is_walked || gaps == 0 && !list.rows.is_empty(), "a list has gaps, or is empty, only while it is walked");
            listed += list.rows.len() - gaps;
        }
        assert_eq!(listed, subscribed, "who is on a list has a subscription");
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

    /// The subscription to a channel among those of a row, or NONE.
    fn subscription_of(&self, first: u32, channel: u32) -> u32 {
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
    fn release(&mut self, index: u32, first_of: &impl Fn(u32) -> u32) {
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
            let subscription = self.subscription_of(first_of(moved), channel);
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

    /// Channels, and the rows that a shard would have: each keeps where its subscriptions begin.
    struct Table {
        channels: Channels,
        firsts: Vec<u32>,
    }

    impl Table {
        fn of(rows: usize) -> Self {
            Table { channels: Channels::default(), firsts: vec![NONE; rows] }
        }

        fn subscribe(&mut self, row: u32, name: &str) {
            self.channels.subscribe(row, &mut self.firsts[row as usize], name.as_bytes());
            self.check();
        }

        fn unsubscribe(&mut self, row: u32, name: &str) {
            let mut first = self.firsts[row as usize];
            self.channels.unsubscribe(&mut first, name.as_bytes(), |row| self.firsts[row as usize]);
            self.firsts[row as usize] = first;
            self.check();
        }

        fn leave(&mut self, row: u32) {
            let mut first = self.firsts[row as usize];
            self.channels.unsubscribe_all(&mut first, |row| self.firsts[row as usize]);
            self.firsts[row as usize] = first;
            self.check();
        }

        fn end_walk(&mut self, channel: u32) {
            self.channels.end_walk(channel, |row| self.firsts[row as usize]);
            self.check();
        }

        fn check(&self) {
            self.channels.check(self.firsts.iter().enumerate().map(|(row, first)| (row as u32, *first)));
        }

        /// Who would hear a message now, in order.
        fn listeners(&mut self, name: &str) -> Vec<u32> {
            let Some((channel, end)) = self.channels.begin_walk(name.as_bytes()) else { return Vec::new() };
            let rows = (0..end).filter_map(|place| self.channels.row_at(channel, place)).collect();
            self.end_walk(channel);
            rows
        }
    }

    /// A table where rows 0 to `rows` listen to "news", in this order.
    fn listening(rows: usize) -> Table {
        let mut table = Table::of(rows);
        (0..rows as u32).for_each(|row| table.subscribe(row, "news"));
        table
    }

    #[test]
    fn who_listens_is_on_the_list_once_however_often_it_asks() {
        let mut table = listening(2);
        table.subscribe(0, "news");
        assert_eq!((table.listeners("news"), table.channels.count(b"news")), (vec![0, 1], 2));
    }

    #[test]
    fn a_channel_that_nobody_listens_to_is_none() {
        let mut table = listening(1);
        assert_eq!(table.channels.begin_walk(b"other"), None);
        table.unsubscribe(0, "other");
        assert_eq!((table.listeners("news"), table.channels.count(b"other")), (vec![0], 0));
    }

    #[test]
    fn places_are_right_after_the_last_of_a_list_filled_a_gap() {
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
    fn a_row_that_is_gone_is_on_no_list() {
        let mut table = Table::of(2);
        for name in ["a", "b", "c"] {
            table.subscribe(0, name);
        }
        table.subscribe(1, "b");
        table.leave(0);
        assert_eq!(table.firsts[0], NONE);
        assert_eq!((table.listeners("a"), table.listeners("b"), table.listeners("c")), (vec![], vec![1], vec![]));
    }

    #[test]
    fn a_channel_that_was_emptied_is_made_again_and_memory_is_used_again() {
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
    fn who_leaves_while_a_walk_is_on_is_not_met_and_nobody_else_is_missed() {
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
    fn who_comes_while_a_walk_is_on_hears_the_next_message() {
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
    fn a_channel_that_is_emptied_while_it_is_walked_goes_when_the_walk_is_over() {
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
    fn a_channel_that_is_emptied_and_joined_while_it_is_walked_stays() {
        let mut table = listening(1);
        let (channel, end) = table.channels.begin_walk(b"news").unwrap();
        table.leave(0);
        table.subscribe(0, "news");
        assert_eq!((end, table.channels.row_at(channel, 0)), (1, None));
        table.end_walk(channel);
        assert_eq!(table.listeners("news"), [0]);
    }

    #[test]
    fn lists_agree_with_subscriptions_after_a_thousand_moves_of_any_kind() {
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
