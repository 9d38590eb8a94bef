//! What goes between the thread of JS and the shards: messages in, events out, and a bell on each side that is rung
//! once, however much is waiting.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::channels::Counted;
use crate::command::{Command, Opening};
use crate::head;
use crate::id::Id;
use crate::labels::Label;
use crate::reactor::ring;
use crate::telemetry::Reason;
use crate::tls::TlsConfig;

/// What a shard is told.
#[derive(Debug)]
pub enum ShardMessage {
    Command(Command),
    /// Make a stream of a connection whose head is remembered: JS was not asked.
    HoldCached(Id, Arc<Opening>),
    /// Listen, and report the port.
    Listen {
        address: SocketAddr,
        is_tls: bool,
        reply: Sender<io::Result<u16>>,
    },
    /// What TLS handshakes begin with from now on.
    UseTls(TlsConfig),
    /// Stop listening: another shard could not.
    Unlisten,
    /// Report the channels with most rows, so many of them, with this token.
    Count {
        token: u32,
        most: usize,
    },
    /// Handover (shard/handover), the giver: let takers connect, and report under which name.
    Offer(Sender<io::Result<String>>),
    /// Move rows for so long.
    Move {
        length_ms: u32,
        wants_ids: bool,
    },
    Release,
    TakeBack,
    Withdraw,
    /// The taker: connect to this giver.
    TakeFrom {
        name: String,
        weight: f64,
        reply: Sender<io::Result<()>>,
    },
    /// `quiet`: channels of streams that need not be reported begin like these; None: no stream is reported.
    Go {
        quiet: Option<Arc<[Box<[u8]>]>>,
    },
    DropParked,
    /// Panic: for tests of what follows.
    Fail,
    Stop,
}

/// The mailbox of one shard.
#[derive(Debug)]
pub struct Inbox {
    messages: Mutex<Vec<ShardMessage>>,
    has_mail: AtomicBool,
    is_rung: AtomicBool,
    /// Its shard has panicked, and has not restarted yet.
    is_down: AtomicBool,
    bell: OwnedFd,
}

impl Inbox {
    /// `bell` is an eventfd of which the shard has a copy.
    pub fn new(bell: OwnedFd) -> Self {
        Inbox {
            messages: Mutex::default(),
            has_mail: AtomicBool::new(false),
            is_rung: AtomicBool::new(false),
            is_down: AtomicBool::new(false),
            bell,
        }
    }

    pub fn post(&self, messages: impl IntoIterator<Item = ShardMessage>) {
        self.post_quietly(messages);
        self.wake();
    }

    /// Without waking the shard, which reads it in its next turn.
    pub fn post_quietly(&self, messages: impl IntoIterator<Item = ShardMessage>) {
        lock(&self.messages).extend(messages);
        self.has_mail.store(true, Release);
    }

    /// Wakes the shard, if something has come that it was not woken for.
    pub fn wake(&self) {
        if self.has_mail() && !self.is_rung.swap(true, AcqRel) {
            ring(&self.bell);
        }
    }

    /// Whether something came that was not taken.
    pub fn has_mail(&self) -> bool {
        self.has_mail.load(Acquire)
    }

    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Release);
    }

    pub fn is_down(&self) -> bool {
        self.is_down.load(Acquire)
    }

    /// Whether JS waits until the shard has read a message.
    pub fn is_awaited(&self) -> bool {
        lock(&self.messages).iter().any(|message| {
            matches!(message, ShardMessage::Stop | ShardMessage::Listen { .. } | ShardMessage::Offer(_) | ShardMessage::TakeFrom { .. })
        })
    }

    /// Whether the shard is to stop.
    pub fn is_stopping(&self) -> bool {
        lock(&self.messages).iter().any(|message| matches!(message, ShardMessage::Stop))
    }

    /// Everything that has come. Silence the bell first.
    pub fn take(&self) -> Vec<ShardMessage> {
        self.is_rung.store(false, Release);
        self.has_mail.store(false, Release);
        std::mem::take(&mut lock(&self.messages))
    }
}

/// Request heads that became complete in one turn of one shard.
#[derive(Debug, Default)]
pub struct Heads {
    pub ids: Vec<Id>,
    /// As `head::read` writes them. Of a head that equals the one before, as many do, only the `END`.
    pub lines: Vec<u8>,
    /// Where the last head is that was written in full.
    last: Range<usize>,
    /// What follows belongs to the next head.
    end: usize,
}

impl Heads {
    /// The head that was appended to the lines but not added yet, without its `END`.
    pub fn newest(&self) -> &[u8] {
        let lines = &self.lines[self.end..];
        lines.strip_suffix(&[head::END]).unwrap_or(lines)
    }

    /// Removes it again.
    pub fn forget_newest(&mut self) {
        self.lines.truncate(self.end);
    }

    /// Adds the head that was appended to the lines.
    pub fn add(&mut self, id: Id) {
        self.ids.push(id);
        if self.lines[self.last.clone()] == self.lines[self.end..] {
            self.lines.truncate(self.end);
            self.lines.push(head::END);
        } else {
            self.last = self.end..self.lines.len();
        }
        self.end = self.lines.len();
    }
}

/// A connection that a shard passed on.
#[derive(Debug)]
pub struct Passed {
    /// The id that it had.
    pub id: Id,
    /// What the shard has read from it. The rest can still be read from the connection.
    pub read: Vec<u8>,
    /// With TLS: its client. The descriptor is the end of a relay then.
    pub from: Option<SocketAddr>,
}

/// What a round of a handover has done in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveReport {
    pub shard: u8,
    /// Connections that have their receipt.
    pub prepared: u32,
    /// Those that may still move in a later round.
    pub left: u32,
    /// Whether a taker is gone, or there is none: the round can't be released.
    pub is_broken: bool,
}

/// A stream that was taken over.
#[derive(Debug)]
pub struct Taken {
    pub id: Id,
    pub channels: Vec<Box<[u8]>>,
    pub tag: Box<[u8]>,
    pub label: Label,
    /// Of its client, if JS wants to know addresses.
    pub address: Option<IpAddr>,
}

/// What the shards report.
#[derive(Debug, Default)]
pub struct Events {
    pub heads: VecDeque<Heads>,
    /// Streams that ended, if JS wants to know.
    pub closed: Vec<(Id, Reason)>,
    /// What the clients of WebSockets have said.
    pub said: Vec<(Id, Vec<u8>)>,
    /// The outcome of adoptions, by their tokens.
    pub adopted: Vec<(u32, Option<Id>)>,
    /// Publications that have reached every stream they were for, by their tokens, and how many streams that were.
    pub published: Vec<(u32, u32)>,
    /// The largest channels of a shard.
    pub counted: Vec<Counted>,
    /// Connections that were passed on, and are to be fetched in this order.
    pub passed: Vec<Passed>,
    /// Rounds in which nothing is on its way any more.
    pub moves: Vec<MoveReport>,
    /// Shards that have released what moved, with the ids before and after if JS wanted them.
    pub released: Vec<(u8, Vec<(Id, Id)>)>,
    /// Streams that were taken over, if JS wanted to know.
    pub taken: Vec<Taken>,
    /// Shards in which everything that was parked is used, and how many streams that were. Those are reported before.
    pub went: Vec<(u8, u32)>,
    /// Shards that panicked, and are about to restart.
    pub failed: Vec<u8>,
    /// Shards whose drain is complete.
    pub drained: Vec<u8>,
}

impl Events {
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
            && self.closed.is_empty()
            && self.said.is_empty()
            && self.adopted.is_empty()
            && self.published.is_empty()
            && self.counted.is_empty()
            && self.passed.is_empty()
            && self.moves.is_empty()
            && self.released.is_empty()
            && self.taken.is_empty()
            && self.went.is_empty()
            && self.failed.is_empty()
            && self.drained.is_empty()
    }

    fn append(&mut self, mut other: Events) {
        self.heads.append(&mut other.heads);
        self.closed.append(&mut other.closed);
        self.said.append(&mut other.said);
        self.adopted.append(&mut other.adopted);
        self.published.append(&mut other.published);
        self.counted.append(&mut other.counted);
        self.passed.append(&mut other.passed);
        self.moves.append(&mut other.moves);
        self.released.append(&mut other.released);
        self.taken.append(&mut other.taken);
        self.went.append(&mut other.went);
        self.failed.append(&mut other.failed);
        self.drained.append(&mut other.drained);
    }
}

/// The mailbox of JS, shared by all shards. Its bell is a pipe that the event loop reads; each shard has a copy of the
/// write end in its own descriptor table.
#[derive(Debug, Default)]
pub struct Outbox {
    events: Mutex<Events>,
    is_rung: AtomicBool,
    /// Memory of what clients have said and JS has not taken, in the box or on its way there.
    said_bytes: AtomicUsize,
}

/// What JS has not taken may take this much.
const MOST_SAID_BYTES: usize = 1 << 20;
/// What a message takes besides its text.
const SAID_BYTES: usize = 64;

impl Outbox {
    /// Moves `events` into the box. The caller rings the bell if this returns true.
    #[must_use]
    pub fn post(&self, events: &mut Events) -> bool {
        if events.is_empty() {
            return false;
        }
        lock(&self.events).append(std::mem::take(events));
        !self.is_rung.swap(true, AcqRel)
    }

    /// Something was said that will be posted.
    pub fn add_said(&self, bytes: usize) {
        self.said_bytes.fetch_add(bytes + SAID_BYTES, AcqRel);
    }

    /// Whether JS has enough to do with what was said.
    pub fn is_full(&self) -> bool {
        self.said_bytes.load(Acquire) >= MOST_SAID_BYTES
    }

    /// What has come, but batches of heads only until there are `most`; the flag says whether others are left.
    pub fn take(&self, most: usize) -> (Events, bool) {
        self.is_rung.store(false, Release);
        let mut waiting = lock(&self.events);
        let mut taken = std::mem::take(&mut *waiting);
        let said = taken.said.iter().map(|(_, text)| text.len() + SAID_BYTES).sum();
        self.said_bytes.fetch_sub(said, AcqRel);
        let mut count = 0;
        let fitting = taken.heads.iter().take_while(|heads| {
            let fits = count < most;
            count += heads.ids.len();
            fits
        });
        let fitting = fitting.count();
        waiting.heads = taken.heads.split_off(fitting);
        (taken, !waiting.heads.is_empty())
    }
}

/// A thread that panicked with the lock left nothing half done: messages are moved, never edited.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads(count: usize) -> Events {
        let ids = vec![Id::new(0, 0, 0); count];
        Events { heads: [Heads { ids, ..Heads::default() }].into(), ..Events::default() }
    }

    #[test]
    fn the_bell_is_rung_once_until_the_box_is_emptied() {
        let outbox = Outbox::default();
        assert!(!outbox.post(&mut Events::default()), "nothing was reported");
        assert!(outbox.post(&mut heads(1)));
        assert!(!outbox.post(&mut heads(1)));
        assert_eq!(outbox.take(10).0.heads.len(), 2);
        assert!(outbox.post(&mut heads(1)));
    }

    #[test]
    fn a_head_that_equals_the_one_before_is_not_written_again() {
        let mut heads = Heads::default();
        for head in ["one\0", "one\0", "one\0", "two\0", "one\0"] {
            heads.lines.extend_from_slice(head.as_bytes());
            heads.add(Id::new(0, 0, 0));
        }
        assert_eq!((heads.ids.len(), &heads.lines[..]), (5, &b"one\0\0\0two\0one\0"[..]));
    }

    #[test]
    fn a_head_that_was_not_added_can_be_removed() {
        let mut heads = Heads::default();
        heads.lines.extend_from_slice(b"one\0");
        heads.add(Id::new(0, 0, 0));
        heads.lines.extend_from_slice(b"two\0");
        assert_eq!(heads.newest(), b"two");
        heads.forget_newest();
        heads.lines.extend_from_slice(b"one\0");
        heads.add(Id::new(0, 1, 0));
        assert_eq!(&heads.lines[..], b"one\0\0");
    }

    #[test]
    fn heads_are_taken_in_portions() {
        let outbox = Outbox::default();
        for count in [5, 5, 5] {
            let _ = outbox.post(&mut heads(count));
        }
        let (first, more) = outbox.take(6);
        assert_eq!((first.heads.len(), more), (2, true));
        let (second, more) = outbox.take(6);
        assert_eq!((second.heads.len(), more), (1, false));
    }
}
