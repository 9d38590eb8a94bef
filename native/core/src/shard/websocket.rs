//! WebSockets: what their clients say, what keeps them alive, and how they end. The frames themselves are in `crate::websocket`.

use std::collections::{HashMap, VecDeque};

use super::Shard;
use super::stream::reason_of;
use crate::clock::MS;
use crate::handover::More;
use crate::head;
use crate::id::Id;
use crate::response::Refusal;
use crate::rows::{Input, State};
use crate::socket::{SCRATCH_BYTES, Stop};
use crate::telemetry::Reason;
use crate::websocket::{self, Code, Heard, Incoming};

/// Reads of one client, before everything else gets its turn.
const READS_A_TURN: usize = 4;
/// The most bytes that a shard keeps of messages and frames that are not complete, but at least so many of the longest.
const MOST_INCOMING_BYTES: usize = 16 << 20;
const LEAST_INCOMING: usize = 4;
/// So many entries of the list of the oldest may be out of date.
const MOST_STALE: usize = 64;
/// After so many heartbeats without a word, a client is asked whether it is there, and after as many again it is not.
const MOST_BEATS: u32 = 4;
/// How soon JS may have taken what it was told.
const RETRY_NS: u64 = 4 * MS;

#[derive(Debug, Default)]
pub(super) struct WebSockets {
    /// What is not complete, by row.
    unfinished: HashMap<u32, Unfinished>,
    /// Memory that it takes.
    bytes: usize,
    /// Rows with what is not complete, the oldest first, and its numbers. Those that are complete meanwhile are there too.
    order: VecDeque<(u32, u64)>,
    last_number: u64,
    /// Those that are not read, because JS has not taken what others have said.
    waiting: VecDeque<Id>,
}

#[derive(Debug, Default)]
struct Unfinished {
    incoming: Incoming,
    /// None as long as it is not kept.
    number: Option<u64>,
}

impl WebSockets {
    fn take(&mut self, index: u32) -> Unfinished {
        if self.unfinished.is_empty() {
            return Unfinished::default();
        }
        let unfinished = self.unfinished.remove(&index).unwrap_or_default();
        self.bytes -= unfinished.incoming.bytes();
        unfinished
    }

    fn keep(&mut self, index: u32, Unfinished { incoming, number }: Unfinished) {
        if incoming.is_empty() {
            return;
        }
        let number = number.unwrap_or_else(|| self.begin(index));
        self.bytes += incoming.bytes();
        self.unfinished.insert(index, Unfinished { incoming, number: Some(number) });
    }

    /// It is the newest.
    fn begin(&mut self, index: u32) -> u64 {
        if self.order.len() > 2 * self.unfinished.len() + MOST_STALE {
            let is_current = |(index, number): &(u32, u64)| self.unfinished.get(index).is_some_and(|one| one.number == Some(*number));
            self.order.retain(is_current);
        }
        self.last_number += 1;
        self.order.push_back((index, self.last_number));
        self.last_number
    }

    /// Takes the row with the oldest off the list.
    fn pop_oldest(&mut self) -> Option<u32> {
        loop {
            let (index, number) = self.order.pop_front()?;
            if self.unfinished.get(&index).is_some_and(|one| one.number == Some(number)) {
                return Some(index);
            }
        }
    }

    pub fn pack(&self, index: u32) -> More {
        let (unread, message) = self.unfinished.get(&index).map(|one| one.incoming.parts()).unwrap_or_default();
        More::WebSocket { unread: unread.into(), message: message.map(Into::into) }
    }

    pub fn park(&mut self, index: u32, unread: &[u8], message: Option<&[u8]>) {
        self.keep(index, Unfinished { incoming: Incoming::of(unread, message), number: None });
    }

    pub fn remove(&mut self, index: u32) {
        self.take(index);
    }

    /// Panics if it does not agree with the rows.
    pub fn check(&self, is_websocket: impl Fn(u32) -> bool) {
        assert_eq!(self.bytes, self.unfinished.values().map(|one| one.incoming.bytes()).sum::<usize>());
        assert!(self.unfinished.keys().all(|index| is_websocket(*index)), "only WebSockets have frames");
    }
}

impl Shard {
    /// The header line that answers the key of a request, or how to refuse one that does not ask for a WebSocket in the right way.
    pub(super) fn accept_line(&mut self, index: u32) -> Result<String, Refusal> {
        let size = self.rows.row(index).head_size();
        let read = self.door.arriving.read_of(index);
        let key = if read.is_empty() {
            let peeked = self.rows.socket(index).and_then(|socket| socket.peek(&mut self.scratch[..size]).ok());
            head::websocket_key(&self.scratch[..peeked.unwrap_or(0)])
        } else {
            head::websocket_key(&read[..size])
        };
        Ok(format!("Sec-WebSocket-Accept: {}\r\n", websocket::accept_of(&key?)))
    }

    pub(super) fn refuse_websocket(&mut self, index: u32, refusal: Refusal) {
        self.mail.events.closed.push((self.rows.id_of(index), Reason::BadRequest));
        self.refuse_row(index, refusal);
    }

    /// Reads what a client has sent, as long as JS has room for it.
    pub(super) fn read_websocket(&mut self, index: u32) {
        for _ in 0..READS_A_TURN {
            if self.mail.outbox.is_full() {
                return self.hear_later(index);
            }
            let Some(socket) = self.rows.socket(index).filter(|_| self.rows.state(index) == State::Held) else { return };
            match socket.read(&mut self.scratch[..SCRATCH_BYTES]) {
                Ok(0) => return self.close(index, Reason::ClientGone),
                Ok(count) => {
                    let mut unfinished = self.websockets.take(index);
                    unfinished.incoming.add(&self.scratch[..count]);
                    self.hear_all(index, unfinished);
                }
                Err(Stop::Later) => return,
                Err(Stop::Broken(error)) => return self.close(index, reason_of(error)),
            }
        }
        if self.rows.state(index) == State::Held {
            self.watch_again(index, self.rows.is_backlogged(index));
        }
    }

    /// It goes on in the next turn, or when JS has room.
    pub(super) fn hear_later(&mut self, index: u32) {
        let id = self.rows.id_of(index);
        let row = self.rows.row(index);
        if row.input != Input::Some {
            row.input = Input::Some;
            self.websockets.waiting.push_back(id);
        }
    }

    /// Reads those that had to wait.
    pub(super) fn hear_waiting(&mut self) {
        for _ in 0..self.websockets.waiting.len() {
            if self.mail.outbox.is_full() {
                return;
            }
            let Some(id) = self.websockets.waiting.pop_front() else { return };
            if let Some(index) = self.held_row(id) {
                self.rows.row(index).input = Input::None;
                self.read_stream(index);
            }
        }
    }

    pub(super) fn next_hearing_ns(&self) -> Option<u64> {
        (!self.websockets.waiting.is_empty()).then_some(self.now_ns + RETRY_NS)
    }

    /// Takes what a client has sent.
    pub(super) fn hear(&mut self, index: u32, bytes: &[u8]) {
        let mut unfinished = self.websockets.take(index);
        unfinished.incoming.add(bytes);
        self.hear_all(index, unfinished);
    }

    fn hear_all(&mut self, index: u32, mut unfinished: Unfinished) {
        self.rows.row(index).set_aside(0);
        // The hub always wants to know what its clients say.
        let takes_messages = self.options.takes_messages || self.rows.format(index).is_of_updates();
        // Of several pings, the last one has to be answered (RFC 6455, section 5.5.3).
        let mut ping = None;
        let end = loop {
            match unfinished.incoming.next(self.options.max_message_bytes) {
                Ok(Some(Heard::Text(text))) if takes_messages => {
                    // What is left is the beginning of another one.
                    unfinished.number = None;
                    let id = self.rows.id_of(index);
                    self.mail.hear(id, text);
                }
                Ok(Some(Heard::Text(_))) => break Some(Err(Code::Unsupported)),
                Ok(Some(Heard::Ping(payload))) => ping = Some(payload),
                Ok(Some(Heard::Pong)) => {}
                Ok(Some(Heard::Close(code))) => break Some(Ok(code)),
                Ok(None) => break None,
                Err(code) => break Some(Err(code)),
            }
        };
        match end {
            None => {
                self.websockets.keep(index, unfinished);
                if let Some(payload) = ping {
                    self.write(index, &websocket::pong(&payload));
                }
                self.make_room_for_messages();
            }
            Some(Ok(code)) => self.end_websocket(index, &websocket::close_answer(code), Reason::ClientGone),
            Some(Err(code)) => self.fail_websocket(index, code, Reason::BadRequest),
        }
    }

    /// Ends those that have taken longest over a message.
    fn make_room_for_messages(&mut self) {
        let most = MOST_INCOMING_BYTES.max(LEAST_INCOMING * self.options.max_message_bytes);
        while self.websockets.bytes > most
            && let Some(oldest) = self.websockets.pop_oldest()
        {
            self.fail_websocket(oldest, Code::TryAgainLater, Reason::OverCapacity);
        }
    }

    fn fail_websocket(&mut self, index: u32, code: Code, reason: Reason) {
        self.end_websocket(index, &websocket::close(code, reason.name()), reason);
    }

    /// Ends one at once. The last frame goes out if nothing waits before it.
    fn end_websocket(&mut self, index: u32, frame: &[u8], reason: Reason) {
        if self.rows.state(index) != State::Held {
            return;
        }
        if !self.rows.is_backlogged(index) {
            let wire = self.last_on_wire(index, frame);
            if let Some(socket) = self.rows.socket(index) {
                // Whether it arrives or not, the connection ends.
                let _ = socket.write(&wire);
            }
            self.reuse(wire);
        }
        self.release(index, reason);
        self.forget_backlog(index);
        self.linger(index);
    }

    /// Keeps it alive, and now and then asks whether somebody is there. An answer costs the server about as much as a ping, so most
    /// heartbeats don't want one.
    pub(super) fn send_heartbeat(&mut self, index: u32) {
        let row = self.rows.row(index);
        let beats = row.aside() + 1;
        row.set_aside(beats);
        if beats >= 2 * MOST_BEATS {
            return self.close(index, Reason::DeadPeer);
        }
        self.write(index, if beats == MOST_BEATS { &websocket::PING } else { &websocket::HEARTBEAT });
    }
}

/// What a client is told when its WebSocket ends.
pub(super) fn code_of(reason: Reason) -> Code {
    match reason {
        Reason::ClientGone => Code::Normal,
        Reason::Drain => Code::GoingAway,
        Reason::Restarted => Code::Restart,
        Reason::OverCapacity => Code::TryAgainLater,
        Reason::BadRequest => Code::ProtocolError,
        Reason::Slow | Reason::Expired | Reason::Revoked => Code::Policy,
        _ => Code::InternalError,
    }
}
