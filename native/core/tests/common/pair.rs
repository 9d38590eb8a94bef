//! A shard that gives its streams to another one. Both are turned by hand.

use std::sync::mpsc::channel;

use holdfast_core::Options;
use holdfast_core::id::Id;
use holdfast_core::mail::{Events, MoveReport, ShardMessage};

use super::by_hand::ByHand;
use super::{options, read_heads};

/// Longer than any of these rounds takes.
pub const ROUND_MS: u32 = 10_000;

pub struct Pair {
    pub giver: ByHand,
    pub taker: ByHand,
    /// What both have reported, apart from heads.
    pub from_giver: Events,
    pub from_taker: Events,
}

pub fn keep(events: &mut Events, mut new: Events) {
    events.closed.append(&mut new.closed);
    events.moves.append(&mut new.moves);
    events.released.append(&mut new.released);
    events.taken.append(&mut new.taken);
    events.went.append(&mut new.went);
    events.heads.append(&mut new.heads);
    events.said.append(&mut new.said);
}

/// The heads that JS is asked about, of those that were kept.
pub fn asked(by_hand: &mut ByHand, kept: &mut Events) -> Vec<(Id, String)> {
    let before: Vec<_> = kept.heads.drain(..).flat_map(read_heads).collect();
    [before, by_hand.asked()].concat()
}

pub fn say_to(by_hand: &mut ByHand, message: ShardMessage) {
    by_hand.inbox.post([message]);
    by_hand.turn(0);
}

impl Pair {
    pub fn new(giver: ByHand, taker: Options) -> Self {
        Pair { giver, taker: ByHand::new(taker), from_giver: Events::default(), from_taker: Events::default() }
    }

    pub fn usual() -> Self {
        Pair::new(ByHand::new(options()), options())
    }

    pub fn offer(&mut self) -> String {
        let (reply, name) = channel();
        say_to(&mut self.giver, ShardMessage::Offer(reply));
        name.recv().unwrap().unwrap()
    }

    pub fn connect(&mut self) {
        let (name, (reply, connected)) = (self.offer(), channel());
        say_to(&mut self.taker, ShardMessage::TakeFrom { name, weight: 1.0, reply });
        connected.recv().unwrap().unwrap();
    }

    /// A turn of each.
    pub fn turn(&mut self) {
        for (by_hand, events) in [(&mut self.giver, &mut self.from_giver), (&mut self.taker, &mut self.from_taker)] {
            by_hand.turn(5);
            keep(events, by_hand.outbox.take(usize::MAX).0);
        }
    }

    pub fn until<T>(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> Option<T>) -> T {
        for _ in 0..10_000 {
            if let Some(found) = look(self) {
                return found;
            }
            self.turn();
        }
        panic!("never happened: {what}");
    }

    pub fn begin(&mut self) {
        say_to(&mut self.giver, ShardMessage::Move { length_ms: ROUND_MS, wants_ids: true });
    }

    /// A round, up to the point of no return.
    pub fn prepare(&mut self) -> MoveReport {
        self.begin();
        self.until("the report of a round", |pair| pair.from_giver.moves.pop())
    }

    /// The rest of it. Returns the ids before and after.
    pub fn complete(&mut self) -> Vec<(Id, Id)> {
        say_to(&mut self.giver, ShardMessage::Release);
        let (_, ids) = self.until("the release", |pair| pair.from_giver.released.pop());
        say_to(&mut self.taker, ShardMessage::Go { quiet: Some([].into()) });
        self.until("that the taker goes on", |pair| pair.from_taker.went.pop());
        ids
    }

    pub fn take_back(&mut self) {
        say_to(&mut self.giver, ShardMessage::TakeBack);
        say_to(&mut self.taker, ShardMessage::DropParked);
        self.turn();
    }
}
