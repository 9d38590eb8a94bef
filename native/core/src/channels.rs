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
    pub fn count(&self, name: &[u8]) -> usize {
        let list = self.by_name.get(name).map(|channel| &self.channels[*channel as usize]);
        list.map_or(0, |list| list.rows.len() - list.gaps as usize)
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
