//! Channels: who subscribes to what, and what was published to whom. A subscription takes 16 bytes: 12 here, and 4 in its
//! channel's list. Each row up to the last one that ever subscribed takes 4 more.
//!
//! A channel with a short name and few rows keeps both in itself: finding one costs little but waiting for memory.

mod census;
mod fan_out;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::iter::successors;
use std::sync::Arc;

use hashbrown::HashTable;
use smallvec::SmallVec;

use crate::id::MOST_ROWS;
use crate::queue::Queued;
use crate::rows::NONE;
pub use census::{Census, Counted};
use fan_out::FanOut;
pub use fan_out::{Due, joined};

/// Bytes of a name, and rows, for which a channel needs no other memory.
const SHORT_NAME: usize = 16;
const FEW_ROWS: usize = 4;
/// What a channel takes besides its name: itself, and its entry in the table of names.
const CHANNEL_BYTES: usize = size_of::<Channel>() + 16;
const SUBSCRIPTION_BYTES: usize = size_of::<Subscription>() + size_of::<u32>();
/// Tables that were emptied keep room for this many entries.
const KEPT: usize = 64;
/// Memory that is no longer used is worth giving back if it is at least this much.
const WORTH_GIVING_BACK: usize = 1 << 20;

/// One stream's subscription to one channel.
#[derive(Clone, Copy, Debug)]
struct Subscription {
    channel: u32, // 4
    /// Its place in the channel's list.
    place: u32, // 4
    /// The next of the same row.
    next: u32, // 4
}

const _: () = assert!(size_of::<Subscription>() == 12);

/// A named list of rows. Gaps are filled from the end.
#[derive(Debug, Default)]
struct Channel {
    name: SmallVec<[u8; SHORT_NAME]>,
    rows: SmallVec<[u32; FEW_ROWS]>,
    /// What it has to send.
    fan_out: Option<Box<FanOut>>,
}

const _: () = assert!(size_of::<Channel>() == 56);

#[derive(Debug)]
pub struct Channels {
    /// The first subscription of each row, as far as rows have subscribed.
    firsts: Vec<u32>,
    /// Channels, found by their names. The names are stored in the channels.
    by_name: HashTable<u32>,
    hasher: RandomState,
    channels: Vec<Channel>,
    free_channels: Vec<u32>,
    subscriptions: Vec<Subscription>,
    /// What channels and subscriptions take, and the most since memory was last given back.
    bytes: usize,
    peak_bytes: usize,
    most_bytes: usize,
    /// The sequence of the last publication.
    sequence: u64,
    /// Channels that have something to send, in the order of their turns.
    turns: VecDeque<u32>,
    fan_outs: usize,
    /// Rows that have got everything up to a sequence, so that fan-outs pass over them.
    ahead: HashMap<u32, u64>,
    finished: Vec<(Arc<Queued>, u32)>,
}

impl Channels {
    /// Room for the rows below `rows`, and for as many channels as fit into `most_bytes`. The kernel provides the memory
    /// when they are first used.
    pub fn new(rows: usize, most_bytes: usize) -> Self {
        Channels {
            firsts: Vec::with_capacity(rows.min(MOST_ROWS)),
            by_name: HashTable::new(),
            hasher: RandomState::new(),
            channels: Vec::new(),
            free_channels: Vec::new(),
            subscriptions: Vec::new(),
            bytes: 0,
            peak_bytes: 0,
            most_bytes,
            sequence: 0,
            turns: VecDeque::new(),
            fan_outs: 0,
            ahead: HashMap::new(),
            finished: Vec::new(),
        }
    }

    /// Whether a row may subscribe to all of these.
    pub fn has_room_for(&self, names: &[Box<[u8]>]) -> bool {
        let size = |name: &[u8]| SUBSCRIPTION_BYTES + if self.find(name).is_none() { CHANNEL_BYTES + name.len() } else { 0 };
        self.bytes + names.iter().map(|name| size(name)).sum::<usize>() <= self.most_bytes
    }

    /// Whether a row is on the list of a channel.
    pub fn is_on(&self, row: u32, name: &[u8]) -> bool {
        self.find(name).is_some_and(|channel| self.subscription_of(row, channel) != NONE)
    }

    /// Puts a row on the list of a channel, which is made if necessary. Does nothing if it is on the list already. Everything
    /// that waited for the row must have been taken before (`take_due`).
    pub fn subscribe(&mut self, row: u32, name: &[u8]) {
        let channel = self.find_or_make(name);
        if self.subscription_of(row, channel) != NONE {
            return;
        }
        if self.firsts.len() <= row as usize {
            self.firsts.resize(row as usize + 1, NONE);
        }
        let list = &mut self.channels[channel as usize];
        let made = Subscription { channel, place: list.rows.len() as u32, next: self.firsts[row as usize] };
        list.rows.push(row);
        if list.fan_out.is_some() {
            self.pass_over(row);
        }
        self.firsts[row as usize] = self.subscriptions.len() as u32;
        self.subscriptions.push(made);
        self.grow(SUBSCRIPTION_BYTES);
    }

    /// The opposite of `subscribe`. Does nothing if the row is not on the list.
    pub fn unsubscribe(&mut self, row: u32, name: &[u8]) {
        let Some(channel) = self.find(name) else { return };
        let found = self.subscription_of(row, channel);
        if found != NONE {
            let next = self.subscriptions[found as usize].next;
            self.relink(row, found, next);
            self.release(found);
        }
    }

    /// Takes a row off all lists.
    pub fn unsubscribe_all(&mut self, row: u32) {
        self.forget_ahead(row);
        loop {
            // Releasing one may move the others.
            let first = self.first_of(row);
            if first == NONE {
                return;
            }
            self.firsts[row as usize] = self.subscriptions[first as usize].next;
            self.release(first);
        }
    }

    /// The first subscription of a row, or NONE.
    fn first_of(&self, row: u32) -> u32 {
        self.firsts.get(row as usize).copied().unwrap_or(NONE)
    }

    /// The subscriptions of a row, the newest first.
    fn subscriptions_of(&self, row: u32) -> impl Iterator<Item = Subscription> {
        // No table is so long that NONE is an index of it.
        let at = |index: u32| self.subscriptions.get(index as usize).copied();
        successors(at(self.first_of(row)), move |subscription| at(subscription.next))
    }

    /// How many subscribe to a channel.
    #[cfg(test)]
    pub fn count(&self, name: &[u8]) -> usize {
        self.find(name).map_or(0, |channel| self.channels[channel as usize].rows.len())
    }

    /// Those that subscribe to a channel.
    pub fn rows_of(&self, name: &[u8]) -> &[u32] {
        self.find(name).map_or(&[], |channel| &self.channels[channel as usize].rows)
    }

    /// The channels that a row subscribes to, in the order in which it has subscribed.
    pub fn names_of(&self, row: u32) -> Vec<Box<[u8]>> {
        let name = |subscription: Subscription| self.channels[subscription.channel as usize].name.as_slice().into();
        let mut names: Vec<Box<[u8]>> = self.subscriptions_of(row).map(name).collect();
        names.reverse();
        names
    }

    /// Whether a row has subscriptions.
    pub fn has(&self, row: u32) -> bool {
        self.first_of(row) != NONE
    }

    /// Whether so much memory became free that the allocator should return it to the system. True once.
    pub fn has_memory_to_give_back(&mut self) -> bool {
        let freed = self.peak_bytes - self.bytes;
        let is_worth_it = freed >= WORTH_GIVING_BACK && freed > self.peak_bytes / 2;
        if is_worth_it {
            self.peak_bytes = self.bytes;
        }
        is_worth_it
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
        assert_eq!(subscribed, self.subscriptions.len(), "a subscription belongs to a row");
        let (mut listed, mut bytes, mut fan_outs) = (0, subscribed * SUBSCRIPTION_BYTES, 0);
        for channel in &self.by_name {
            let Channel { name, rows, fan_out } = &self.channels[*channel as usize];
            assert_eq!(self.find(name), Some(*channel));
            assert!(!rows.is_empty(), "a channel has rows");
            listed += rows.len();
            bytes += CHANNEL_BYTES + name.len();
            if let Some(fan_out) = fan_out {
                fan_out.check(rows.len());
                assert!(self.turns.contains(channel), "it will have its turn");
                fan_outs += 1;
            }
        }
        assert_eq!((listed, bytes, fan_outs), (subscribed, self.bytes, self.fan_outs));
        assert_eq!(self.by_name.len() + self.free_channels.len(), self.channels.len(), "a channel has a name or is free");
        assert!(fan_outs > 0 || self.ahead.is_empty(), "nobody is ahead of nothing");
        assert!(fan_outs > 0 || self.turns.is_empty(), "without fan-outs, nobody has a turn");
    }

    fn find(&self, name: &[u8]) -> Option<u32> {
        self.find_hashed(self.hasher.hash_one(name), name)
    }

    fn find_hashed(&self, hash: u64, name: &[u8]) -> Option<u32> {
        self.by_name.find(hash, |channel| *self.channels[*channel as usize].name == *name).copied()
    }

    fn find_or_make(&mut self, name: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(name);
        if let Some(channel) = self.find_hashed(hash, name) {
            return channel;
        }
        let channel = self.free_channels.pop().unwrap_or(self.channels.len() as u32);
        if channel as usize == self.channels.len() {
            self.channels.push(Channel::default());
        }
        self.channels[channel as usize].name = name.into();
        let (channels, hasher) = (&self.channels, &self.hasher);
        let hash_of = |channel: &u32| hasher.hash_one(&*channels[*channel as usize].name);
        self.by_name.insert_unique(hash, channel, hash_of);
        self.grow(CHANNEL_BYTES + name.len());
        channel
    }

    fn grow(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.peak_bytes = self.peak_bytes.max(self.bytes);
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

    /// Has whatever leads a row to the subscription `from` lead to `to`.
    fn relink(&mut self, row: u32, from: u32, to: u32) {
        let mut at = self.firsts[row as usize];
        if at == from {
            self.firsts[row as usize] = to;
            return;
        }
        while self.subscriptions[at as usize].next != from {
            at = self.subscriptions[at as usize].next;
        }
        self.subscriptions[at as usize].next = to;
    }

    /// Takes a subscription, which its row has already forgotten, off its channel's list.
    fn release(&mut self, index: u32) {
        let Subscription { channel, place, .. } = self.subscriptions[index as usize];
        self.take_off(channel, place as usize);
        self.remove(index);
        if self.channels[channel as usize].rows.is_empty() {
            self.drop_channel(channel);
        }
    }

    /// The last row fills the gap. During a fan-out, rows that have had the batch stay behind those that have not.
    fn take_off(&mut self, channel: u32, place: usize) {
        let Channel { rows, fan_out, .. } = &mut self.channels[channel as usize];
        let gap = fan_out.as_mut().map_or(place, |fan_out| fan_out.leave(place));
        rows[place] = rows[gap];
        rows.swap_remove(gap);
        if rows.len() < rows.capacity() / 4 {
            rows.shrink_to_fit();
        }
        for moved in [place, gap] {
            self.note_place(channel, moved);
        }
    }

    /// Tells the row at a place of a list, if there is one, where it is.
    fn note_place(&mut self, channel: u32, place: usize) {
        if let Some(row) = self.channels[channel as usize].rows.get(place) {
            let subscription = self.subscription_of(*row, channel);
            if subscription != NONE {
                self.subscriptions[subscription as usize].place = place as u32;
            }
        }
    }

    /// Removes a subscription that is on no list any more. The last one takes its index.
    fn remove(&mut self, index: u32) {
        self.subscriptions.swap_remove(index as usize);
        self.bytes -= SUBSCRIPTION_BYTES;
        if let Some(Subscription { channel, place, .. }) = self.subscriptions.get(index as usize) {
            let row = self.channels[*channel as usize].rows[*place as usize];
            self.relink(row, self.subscriptions.len() as u32, index);
        }
        if self.subscriptions.len() < self.subscriptions.capacity() / 4 {
            self.subscriptions.shrink_to((self.subscriptions.len() * 2).max(KEPT));
        }
    }

    /// Forgets a channel that nobody subscribes to. What it had to send has reached everyone who is left.
    fn drop_channel(&mut self, channel: u32) {
        let Channel { name, fan_out, .. } = std::mem::take(&mut self.channels[channel as usize]);
        if let Ok(entry) = self.by_name.find_entry(self.hasher.hash_one(&*name), |found| *found == channel) {
            entry.remove();
        }
        self.bytes -= CHANNEL_BYTES + name.len();
        self.free_channels.push(channel);
        if let Some(fan_out) = fan_out {
            self.finished.extend(fan_out.into_finished());
            self.note_end_of_fan_out();
        }
        if self.by_name.is_empty() && self.channels.len() > KEPT {
            self.by_name = HashTable::new();
            self.channels = Vec::new();
            self.free_channels = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLENTY: usize = 1 << 20;

    /// Channels that are checked after each step.
    struct Table {
        channels: Channels,
    }

    impl Table {
        fn of(rows: usize) -> Self {
            Table { channels: Channels::new(rows, PLENTY) }
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

        /// The list of a channel.
        fn rows(&self, name: &str) -> Vec<u32> {
            let found = self.channels.find(name.as_bytes());
            found.map_or(Vec::new(), |channel| self.channels.channels[channel as usize].rows.to_vec())
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
        assert_eq!((table.rows("news"), table.channels.count(b"news")), (vec![0, 1], 2));
    }

    #[test]
    fn a_channel_without_subscribers_does_not_exist() {
        let mut table = listening(1);
        table.unsubscribe(0, "other");
        assert_eq!((table.rows("news"), table.channels.find(b"other")), (vec![0], None));
    }

    #[test]
    fn places_are_right_after_the_last_row_of_a_list_filled_a_gap() {
        let mut table = listening(5);
        table.unsubscribe(1, "news");
        assert_eq!(table.rows("news"), [0, 4, 2, 3]);
        // Row 4 moved to place 1. Were its place still 4, it would take another off, or nobody.
        table.unsubscribe(4, "news");
        assert_eq!(table.rows("news"), [0, 3, 2]);
        table.leave(3);
        table.leave(0);
        assert_eq!(table.rows("news"), [2]);
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
                assert_eq!(table.rows(name), expected, "{name} when {left} was left");
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
        assert_eq!((table.rows("a"), table.rows("b"), table.rows("c")), (vec![], vec![1], vec![]));
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
            assert_eq!(table.rows(&name), [0u32; 0]);
            table.subscribe(2, &name);
            assert_eq!(table.rows(&name), [2]);
            table.leave(2);
        }
        assert_eq!((table.channels.channels.len(), table.channels.bytes), (1, 0));
    }

    #[test]
    fn a_name_takes_its_bytes_once_however_many_subscribe() {
        let mut table = Table::of(100);
        let name = "n".repeat(256);
        table.subscribe(0, &name);
        let first = table.channels.bytes;
        assert!(first < 256 + 160, "{first}");
        (1..100).for_each(|row| table.subscribe(row, &name));
        assert_eq!(table.channels.bytes, first + 99 * SUBSCRIPTION_BYTES);
    }

    #[test]
    fn there_is_room_up_to_the_limit_and_a_name_that_exists_needs_less() {
        let names = |name: &str| [name.as_bytes().into()];
        let each = CHANNEL_BYTES + SUBSCRIPTION_BYTES + 1;
        let mut channels = Channels::new(10, 2 * each);
        channels.subscribe(0, b"a");
        assert!(channels.has_room_for(&names("b")) && !channels.has_room_for(&[names("b"), names("c")].concat()));
        channels.subscribe(0, b"b");
        assert!(!channels.has_room_for(&names("c")) && channels.has_room_for(&[]));
        channels.unsubscribe(0, b"b");
        assert!(channels.has_room_for(&names("a")) && channels.has_room_for(&names("c")));
    }

    #[test]
    fn memory_comes_back_once_most_of_it_is_free() {
        let mut channels = Channels::new(10_000, usize::MAX);
        let name = |row: u32| format!("{row:0256}").into_bytes();
        (0..10_000).for_each(|row| channels.subscribe(row, &name(row)));
        assert!(!channels.has_memory_to_give_back());
        (0..5000).for_each(|row| channels.unsubscribe_all(row));
        assert!(!channels.has_memory_to_give_back(), "only half");
        channels.unsubscribe_all(5000);
        assert!(channels.has_memory_to_give_back() && !channels.has_memory_to_give_back());
        (5001..10_000).for_each(|row| channels.unsubscribe_all(row));
        channels.check();
        assert!(channels.has_memory_to_give_back());
        let kept = (channels.channels.capacity(), channels.by_name.capacity(), channels.free_channels.capacity());
        assert_eq!((kept, channels.bytes), ((0, 0, 0), 0));
        assert!(channels.subscriptions.capacity() <= 4 * KEPT, "{}", channels.subscriptions.capacity());
    }

    #[test]
    fn lists_and_subscriptions_agree_after_a_thousand_random_steps() {
        let mut table = Table::of(20);
        let mut draw = random();
        for _ in 0..1000 {
            let (row, name) = (draw(20), ["a", "b", "c"][draw(3) as usize]);
            match draw(7) {
                0..4 => table.subscribe(row, name),
                4 | 5 => table.unsubscribe(row, name),
                _ => table.leave(row),
            }
        }
    }

    /// Numbers below what is asked for, the same each time.
    pub(super) fn random() -> impl FnMut(u32) -> u32 {
        let mut seed = 1u32;
        move |below| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % below
        }
    }
}
