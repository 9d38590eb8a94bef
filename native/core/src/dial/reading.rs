//! What arrives on a stream.

use super::answer::{Item, Partial};
use super::block::Block;
use super::client::Client;
use super::frames::{key_of, pong};
use super::streams::State;
use super::tally::count;
use super::{Cause, Format, schedule};
use crate::clock::{Slice, now_ns, unix_us};
use crate::socket::Stop;
use crate::telemetry::add;
use crate::websocket::accept_of;

/// Reads of one stream before the others get their turn.
const READS_A_TURN: usize = 8;

/// What one read contained.
#[derive(Debug, Default)]
struct Received {
    is_welcomed: bool,
    pings: u32,
    messages: u64,
    /// The answer to the last ping of a WebSocket.
    pong: Option<Vec<u8>>,
    /// Whether a poll has its answer, and the next one can follow.
    is_answered: bool,
    end: Option<Cause>,
}

impl Client {
    /// Reads what has arrived on a stream; if `has_ended`, up to the end.
    pub(super) fn read(&mut self, index: u32, has_ended: bool) {
        let mut scratch = std::mem::take(&mut self.scratch);
        self.read_into(&mut scratch, index, has_ended);
        self.scratch = scratch;
    }

    fn read_into(&mut self, scratch: &mut [u8], index: u32, has_ended: bool) {
        let is_secured = self.is_secured(index);
        for _ in 0..READS_A_TURN {
            let Some(socket) = &self.streams.row(index).socket else { return };
            let kept = if is_secured { self.secrets.copy_cut(index, scratch) } else { 0 };
            match socket.read(&mut scratch[kept..]) {
                Ok(0) => {
                    let cause = self.cause_of_end(index);
                    return self.end(index, cause);
                }
                Ok(size) => {
                    if is_secured {
                        self.handle_records(index, &mut scratch[..kept + size]);
                    } else {
                        self.handle_bytes(index, &scratch[..size]);
                    }
                    let is_drained = kept + size < scratch.len() && !has_ended;
                    if is_drained || self.streams.row(index).state == State::Free {
                        return;
                    }
                }
                Err(Stop::Later) => return,
                Err(Stop::Broken(error)) => return self.end(index, error.into()),
            }
        }
        // epoll doesn't report it again.
        self.unread.push_back(self.streams.id_of(index));
    }

    /// The server has closed the connection. With TLS it says so before: otherwise somebody else may have cut it off.
    fn cause_of_end(&mut self, index: u32) -> Cause {
        if self.secrets.sessions.get(index).is_some() { Cause::Truncated } else { Cause::Closed }
    }

    /// Continues with the streams that had more to read than fits into one turn, for a slice.
    pub(super) fn continue_reading(&mut self) {
        if self.unread.is_empty() {
            return;
        }
        let mut slice = Slice::begin();
        while let Some(id) = self.unread.pop_front() {
            if let Some(index) = self.streams.find(id) {
                self.read(index, true);
            }
            // A step is up to 8 reads of 64 KiB.
            if slice.is_over_now() {
                break;
            }
        }
    }

    pub(super) fn handle_bytes(&mut self, index: u32, bytes: &[u8]) {
        let now_ns = now_ns();
        add(&self.tally.bytes, bytes.len() as u64);
        let row = self.streams.row(index);
        if row.state == State::Open {
            let is_at_boundary = self.partials.is_empty() || !self.partials.contains_key(&index);
            if is_at_boundary && let Some(pings) = row.answer.pings_in(bytes) {
                return self.record_pings(index, pings, now_ns);
            }
        } else {
            self.record_first_byte(index, now_ns);
        }
        let received = self.parse(index, bytes, now_ns);
        self.apply(index, received, now_ns);
    }

    fn record_first_byte(&mut self, index: u32, now_ns: u64) {
        if let Some(attempt) = self.attempts.get_mut(&index)
            && !attempt.has_first_byte
        {
            attempt.has_first_byte = true;
            self.tally.first_byte.record((now_ns - attempt.begun_ns) / 1000, 1);
        }
    }

    fn parse(&mut self, index: u32, bytes: &[u8], now_ns: u64) -> Received {
        let key = (self.format_of(index) == Format::WebSocket && self.streams.row(index).state != State::Open).then(|| self.key_of(index));
        let mask = self.random();
        let tally = &self.tally;
        let mut subscriber = self.subscribers.get_mut(index);
        let mut received = Received::default();
        let mut partial: Partial = self.partials.remove(&index).unwrap_or_default();
        let answer = &mut self.streams.row_mut(index).answer;
        answer.read(bytes, &mut partial, &mut |item| match item {
            Item::Open => {
                received.is_welcomed = received.end.is_none();
                if let Some(subscriber) = subscriber.as_mut().filter(|_| received.is_welcomed) {
                    subscriber.welcome(tally, now_ns);
                }
            }
            Item::Ping => received.pings += 1,
            Item::Message(sent_us) => {
                received.messages += 1;
                if let Some(sent_us) = sent_us {
                    tally.delivery.record(unix_us().saturating_sub(sent_us), 1);
                }
            }
            Item::Gap => {
                if let Some(subscriber) = &mut subscriber {
                    subscriber.expect_gap(tally);
                }
            }
            Item::Block(Block { id, data, .. }) => {
                received.messages += u64::from(data.is_some());
                if let Some(subscriber) = &mut subscriber {
                    subscriber.note(id, data, tally, now_ns);
                }
            }
            Item::Accept(accept) => {
                let is_right = key.as_ref().is_some_and(|key| accept_of(key.as_bytes()).as_bytes() == accept);
                if !is_right {
                    tally.keep_sample(Cause::Unexpected, accept);
                    received.end = Some(Cause::Unexpected);
                }
            }
            Item::Asked(payload) => received.pong = Some(pong(payload, (mask as u32).to_be_bytes())),
            Item::Answered(goes_on) => {
                received.is_answered = goes_on;
                if !goes_on {
                    received.end = Some(Cause::Closed);
                }
            }
            Item::End => received.end = Some(Cause::Closed),
            Item::Wrong(cause, sample) => {
                tally.keep_sample(cause, sample);
                received.end = Some(cause);
            }
        });
        if !partial.is_empty() {
            self.partials.insert(index, partial);
        }
        received
    }

    fn apply(&mut self, index: u32, received: Received, now_ns: u64) {
        if received.is_welcomed {
            self.welcome(index, now_ns);
        }
        self.record_pings(index, received.pings, now_ns);
        if received.messages > 0 {
            self.note_messages(index, received.messages, now_ns);
        }
        let end = received.end.or_else(|| self.reply(index, received).err());
        if let Some(cause) = end {
            self.end(index, cause);
        }
    }

    /// Sends what has to follow: a pong, or the next poll.
    fn reply(&mut self, index: u32, received: Received) -> Result<(), Cause> {
        if let Some(pong) = received.pong {
            self.send(index, &pong)?;
        }
        if received.is_answered {
            if self.has_no_place(index) {
                self.tally.keep_sample(Cause::Unexpected, b"an answer without a cursor");
                return Err(Cause::Unexpected);
            }
            let request = self.request_for(index);
            let sent = self.send(index, &request);
            self.request = request;
            sent?;
        }
        Ok(())
    }

    /// Whether it subscribes to topics of a hub and does not know where it is in their publications.
    fn has_no_place(&self, index: u32) -> bool {
        self.subscribers.get(index).is_some_and(|subscriber| subscriber.cursor().is_empty())
    }

    /// A poll is open as long as it waits for its answer: from when its request was sent. Of a hub, it first has to know where it is.
    pub(super) fn begin_poll(&mut self, index: u32) {
        if self.format_of(index) == Format::Poll && !self.has_no_place(index) {
            let now_ns = now_ns();
            self.streams.row_mut(index).answer.set_open();
            if let Some(subscriber) = self.subscribers.get_mut(index) {
                subscriber.welcome(&self.tally, now_ns);
            }
            self.welcome(index, now_ns);
        }
    }

    pub(super) fn format_of(&self, index: u32) -> Format {
        self.targets.get(self.streams.row(index).target).format
    }

    /// The key of a WebSocket follows from its id, so that it need not be kept.
    pub(super) fn key_of(&self, index: u32) -> String {
        key_of(self.seed ^ self.streams.id_of(index).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn welcome(&mut self, index: u32, now_ns: u64) {
        self.attempts.remove(&index);
        self.streams.welcome(index);
        let row = self.streams.row_mut(index);
        let interval_ns = self.targets.interval_ns(row.target);
        let has_pings = interval_ns > 0 && self.targets.get(row.target).format != Format::Poll;
        if has_pings {
            row.due_ns = schedule::first_due_ns(now_ns, interval_ns);
        }
        count(&self.tally.opened, 1);
        if let Some(tally) = self.server_tally(index) {
            count(&tally.opened, 1);
            add(&self.tally.moved, u64::from(self.visits.arrive(index)));
        }
    }

    fn note_messages(&mut self, index: u32, messages: u64, now_ns: u64) {
        add(&self.tally.messages, messages);
        let row = self.streams.row_mut(index);
        let target = self.targets.get(row.target);
        if target.idle_pings && target.format != Format::WebSocket {
            let record = |late_ns| self.tally.lateness.record(late_ns / 1000, 1);
            row.due_ns = schedule::after_message_ns(row.due_ns, now_ns, self.targets.interval_ns(row.target), record);
        }
    }

    fn record_pings(&mut self, index: u32, pings: u32, now_ns: u64) {
        add(&self.tally.pings, pings.into());
        let row = self.streams.row_mut(index);
        let interval_ns = self.targets.interval_ns(row.target);
        if interval_ns == 0 {
            return;
        }
        for _ in 0..pings {
            let record = |late_ns| self.tally.lateness.record(late_ns / 1000, 1);
            row.due_ns = schedule::next_due_ns(row.due_ns, now_ns, interval_ns, record);
        }
    }
}
