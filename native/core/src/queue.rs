//! Messages that wait for delivery, and how many bytes they take together.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::framing::Message;
use crate::wire::Names;

/// What a message takes besides its text.
const MESSAGE_BYTES: usize = 256;
/// What a channel takes besides its name, in a publication to several.
const CHANNEL_BYTES: usize = 64;
/// The token of messages whose outcome nobody waits for.
pub const NO_TOKEN: u32 = 0;

/// The messages of a Hold that not every shard is done with. A message counts once, however many shards it waits in.
#[derive(Debug, Default)]
pub struct Queue {
    bytes: AtomicU64,
    /// The part that is written to single streams as it is, which no limit applies to.
    raw_bytes: AtomicU64,
    /// Messages that a panic has dropped, as `Queued::finish` returns them.
    dropped: Mutex<Vec<(u32, u32)>>,
}

impl Queue {
    /// The messages that were dropped since the last time: nothing else reports them.
    pub fn take_dropped(&self) -> Vec<(u32, u32)> {
        std::mem::take(&mut self.dropped.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Bytes of messages.
    pub fn message_bytes(&self) -> u64 {
        self.bytes().saturating_sub(self.raw_bytes.load(Relaxed))
    }
}

/// A message in the queue, until the last reference to it is dropped.
#[derive(Debug)]
pub struct Queued {
    pub message: Message,
    token: u32,
    listeners: AtomicU32,
    bytes: u64,
    is_raw: bool,
    queue: Arc<Queue>,
}

impl Queued {
    /// With the token JS is told how many streams it was for.
    pub fn new(queue: &Arc<Queue>, token: u32, message: Message) -> Arc<Self> {
        Queued::for_channels(queue, token, message, &Names::of(&[]))
    }

    /// One that is published. Its channels count too, from the second one on.
    pub fn for_channels(queue: &Arc<Queue>, token: u32, message: Message, channels: &Names) -> Arc<Self> {
        let others = channels.iter().skip(1).map(|name| name.len() + CHANNEL_BYTES).sum::<usize>();
        Queued::with(queue, token, message, others, false)
    }

    /// Bytes that are written as they are.
    pub fn raw(queue: &Arc<Queue>, bytes: Box<[u8]>) -> Arc<Self> {
        Queued::with(queue, NO_TOKEN, Message::new(None, None, bytes), 0, true)
    }

    fn with(queue: &Arc<Queue>, token: u32, message: Message, others: usize, is_raw: bool) -> Arc<Self> {
        let bytes = (message.size() + others + MESSAGE_BYTES) as u64;
        queue.bytes.fetch_add(bytes, Relaxed);
        if is_raw {
            queue.raw_bytes.fetch_add(bytes, Relaxed);
        }
        Arc::new(Queued { message, token, listeners: AtomicU32::new(0), bytes, is_raw, queue: queue.clone() })
    }

    /// One channel of one shard is done with it, and had this many streams to write it to. If it was the last one, and somebody
    /// waits for the outcome, returns the token and the sum over all. Each reference must end here, except in a panic.
    pub fn finish(self: Arc<Self>, listeners: u32) -> Option<(u32, u32)> {
        self.listeners.fetch_add(listeners, Relaxed);
        Arc::into_inner(self)?.take_outcome()
    }

    /// The token and the sum, once.
    fn take_outcome(&mut self) -> Option<(u32, u32)> {
        let token = std::mem::replace(&mut self.token, NO_TOKEN);
        (token != NO_TOKEN).then(|| (token, *self.listeners.get_mut()))
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.queue.bytes.fetch_sub(self.bytes, Relaxed);
        if self.is_raw {
            self.queue.raw_bytes.fetch_sub(self.bytes, Relaxed);
        }
        if let Some(outcome) = self.take_outcome() {
            self.queue.dropped.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
        }
    }
}

const _: () = assert!(size_of::<Queued>() + 2 * size_of::<usize>() <= MESSAGE_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(queue: &Arc<Queue>, token: u32, size: usize) -> Arc<Queued> {
        Queued::new(queue, token, Message::new(None, None, vec![b'x'; size].into()))
    }

    #[test]
    fn a_message_counts_once_until_the_last_shard_is_done_with_it() {
        let queue = Arc::default();
        let first = queued(&queue, 7, 1000);
        let second = first.clone();
        assert_eq!(queue.bytes(), 1000 + MESSAGE_BYTES as u64);
        assert_eq!(first.finish(3), None);
        assert_eq!(queue.bytes(), 1000 + MESSAGE_BYTES as u64);
        assert_eq!(second.finish(4), Some((7, 7)), "the sum of both");
        assert_eq!(queue.bytes(), 0);
    }

    #[test]
    fn the_channels_of_a_message_count_from_the_second_one_on() {
        let queue = Arc::default();
        let names = Names::of(&[b"first", b"second", b""]);
        let queued = Queued::for_channels(&queue, NO_TOKEN, Message::default(), &names);
        assert_eq!(queue.bytes(), (MESSAGE_BYTES + 2 * CHANNEL_BYTES + 6) as u64);
        drop(queued);
        assert_eq!(queue.bytes(), 0);
    }

    #[test]
    fn raw_bytes_are_in_the_queue_but_are_no_message() {
        let queue = Arc::default();
        let (raw, _message) = (Queued::raw(&queue, vec![0; 1000].into()), queued(&queue, NO_TOKEN, 5));
        assert_eq!((queue.bytes(), queue.message_bytes()), (1005 + 2 * MESSAGE_BYTES as u64, 5 + MESSAGE_BYTES as u64));
        drop(raw);
        assert_eq!(queue.bytes(), queue.message_bytes());
    }

    #[test]
    fn nobody_is_told_about_a_message_without_a_token() {
        assert_eq!(queued(&Arc::default(), NO_TOKEN, 1).finish(1), None);
    }

    #[test]
    fn a_message_that_is_dropped_leaves_the_queue_and_is_reported_once() {
        let queue = Arc::default();
        let other = queued(&queue, 1, 5);
        drop((other.clone(), queued(&queue, NO_TOKEN, 5)));
        assert_eq!(other.finish(3), Some((1, 3)), "another shard is done with it");
        let dropped = queued(&queue, 2, 5);
        assert_eq!(dropped.clone().finish(4), None);
        drop(dropped);
        assert_eq!((queue.bytes(), queue.take_dropped()), (0, vec![(2, 4)]));
        assert_eq!(queue.take_dropped(), []);
    }
}
