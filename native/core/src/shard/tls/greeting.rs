//! From accepted to a head: the handshake, and the records that the head comes in.

use std::net::IpAddr;

use crate::id::Id;
use crate::response;
use crate::rows::{Input, State};
use crate::shard::Shard;
use crate::socket::Stop;
use crate::telemetry::add;
use crate::tls::{Alert, Handshake, LONGEST_RECORD, Message, Progress};

/// What a client may send until its handshake is over. The hello of a browser has about 2 KB.
const MOST_BYTES: usize = 32_768;
/// One that takes more records isn't either: an honest hello has one or two.
const MOST_RECORDS: usize = 64;
/// Records before the end of a head that say nothing, key updates for example: each costs far more to read than to send.
const MOST_IDLE: usize = 32;
/// Handshakes of a shard at the same time. Each takes about 10 KB.
pub(in crate::shard) const MOST_GREETINGS: usize = 4096;

#[derive(Debug, Default)]
pub(in crate::shard) struct Greeting {
    /// None until the client has said something.
    handshake: Option<Box<Handshake>>,
    /// That the client has sent in whole records.
    bytes: usize,
    records: usize,
}

impl Shard {
    /// A connection for TLS was accepted.
    pub(in crate::shard) fn greet(&mut self, index: u32, address: Option<IpAddr>) {
        self.tls.greetings.insert(index, Greeting::default());
        let id = self.rows.id_of(index);
        self.oldest_greeting(); // so that the list does not grow with those that are over
        self.tls.greeted.push_back(id);
        self.tls.shaken += 1;
        self.tls.greeted_ns = self.now_ns;
        self.expect_head(index, address);
        if self.rows.state(index) == State::Head {
            self.continue_tls(index, false);
        }
        if self.rows.state(index) == State::Head && self.rows.row(index).input == Input::Unwatched {
            self.watch(index);
        }
    }

    /// Reads more of a handshake, or of a head, as it comes.
    pub(in crate::shard) fn continue_tls(&mut self, index: u32, has_ended: bool) {
        let Some(socket) = self.rows.socket(index) else { return };
        let id = self.rows.id_of(index);
        // No more than a record: what follows it waits in the kernel, whose memory has a limit.
        let most = LONGEST_RECORD.saturating_sub(self.tls.unread(index).len()).max(1);
        let read = socket.read(&mut self.scratch[..most]);
        match read {
            Ok(0) => self.lose_head(index),
            Ok(count) => {
                self.door.continued_in_turn += 1;
                self.tls.add_unread(index, &self.scratch[..count]);
                self.note_memory(index);
                self.read_head_records(index, has_ended);
                if self.is_reading_head(id) {
                    self.note_memory(index);
                    self.limit_arriving();
                }
            }
            Err(Stop::Later) if !has_ended => {}
            Err(_) => self.lose_head(index),
        }
        if self.is_reading_head(id) {
            self.write_held_back(index);
        }
        if self.is_reading_head(id) {
            match read {
                Ok(count) if count == most => self.watch_again(index, self.rows.is_backlogged(index)),
                Ok(_) if has_ended => self.lose_head(index),
                _ => {}
            }
        }
    }

    /// What it has said and is no head yet counts with the heads that come in pieces.
    fn note_memory(&mut self, index: u32) {
        let in_handshake = self.tls.greetings.get(&index).map_or(0, |greeting| greeting.bytes);
        self.door.arriving.note_outside(index, in_handshake + self.tls.unread(index).len());
    }

    /// The greeting that has taken longest.
    pub(in crate::shard) fn oldest_greeting(&mut self) -> Option<u32> {
        while let Some(id) = self.tls.greeted.front() {
            let found = self.rows.find(*id).filter(|index| self.tls.is_greeting(*index));
            if found.is_some() {
                return found;
            }
            self.tls.greeted.pop_front();
        }
        None
    }

    /// The client has left before its head was complete.
    pub(in crate::shard) fn lose_head(&mut self, index: u32) {
        if self.tls.is_greeting(index) {
            add(&self.telemetry.handshake_failures, 1);
        }
        self.free(index);
    }

    /// Reads whole records, until the head is complete. What follows waits.
    pub(in crate::shard) fn read_head_records(&mut self, index: u32, has_ended: bool) {
        let is_first = self.tls.greetings.get(&index).is_some_and(|greeting| greeting.bytes == 0);
        if is_first && is_http(self.tls.unread(index)) {
            return self.refuse_plain_http(index);
        }
        let id = self.rows.id_of(index);
        while self.is_reading_head(id) {
            match self.tls.next_record(index) {
                Ok(Some(mut record)) => self.read_head_record(index, &mut record, has_ended),
                Ok(None) => return,
                Err(alert) => self.fail_head(index, alert),
            }
        }
        self.tls.forget_idle(index);
    }

    fn is_reading_head(&self, id: Id) -> bool {
        self.rows.find(id).is_some_and(|index| self.rows.state(index) == State::Head)
    }

    fn read_head_record(&mut self, index: u32, record: &mut [u8], has_ended: bool) {
        if self.tls.is_greeting(index) {
            return self.shake_hands(index, record);
        }
        let is_idle = self.tls.idle.get(&index).is_some_and(|count| *count >= MOST_IDLE);
        let Some(session) = self.tls.session_mut(index) else { return };
        match session.open(record) {
            Ok(Message::Data([]) | Message::KeyUpdate(_)) if is_idle => self.fail_head(index, Alert::UnexpectedMessage),
            Ok(Message::Data(text)) => {
                if text.is_empty() {
                    *self.tls.idle.entry(index).or_default() += 1;
                }
                let is_time = self.door.arriving.append(index, text);
                self.parse_in_time(index, is_time, has_ended);
            }
            Ok(Message::KeyUpdate(is_requested)) => {
                *self.tls.idle.entry(index).or_default() += 1;
                self.update_key(index, is_requested);
            }
            Ok(Message::CloseNotify | Message::Failure(_)) => self.free(index),
            Ok(Message::Handshake(_)) => self.fail_head(index, Alert::UnexpectedMessage),
            Err(alert) => self.fail_head(index, alert),
        }
    }

    /// Whether the client has said hello and left before it was answered. After a storm there can be thousands of those in the queue, and
    /// an answer to each would keep the others waiting.
    fn has_given_up(&self, index: u32) -> bool {
        let is_first = self.tls.greetings.get(&index).is_some_and(|greeting| greeting.handshake.is_none());
        is_first && self.rows.socket(index).is_some_and(|socket| matches!(socket.peek(&mut [0]), Ok(0) | Err(Stop::Broken(_))))
    }

    /// Gives rustls a record, and sends what it answers.
    fn shake_hands(&mut self, index: u32, record: &[u8]) {
        let Some(config) = self.tls.config.clone() else { return self.lose_head(index) };
        if self.has_given_up(index) {
            return self.lose_head(index);
        }
        let Some(greeting) = self.tls.greetings.get_mut(&index) else { return };
        greeting.bytes += record.len();
        greeting.records += 1;
        if greeting.handshake.is_none() {
            greeting.handshake = Handshake::server(config).map(Box::new);
        }
        let Some(handshake) = greeting.handshake.as_mut().filter(|_| greeting.bytes <= MOST_BYTES && greeting.records <= MOST_RECORDS)
        else {
            return self.lose_head(index);
        };
        let mut answer = Vec::new();
        let progress = handshake.read(record, &mut answer);
        if progress == Progress::Done {
            return self.begin_session(index, answer);
        }
        let is_open = answer.is_empty() || self.write_wire(index, &answer, true);
        if is_open && progress == Progress::Failed {
            self.fail_greeting(index);
        }
    }

    /// `last`: what still has to be said, usually a ticket. Most clients send their request together with the end of the handshake, and
    /// then it can go out with the response: a write costs as much as a dozen records.
    fn begin_session(&mut self, index: u32, last: Vec<u8>) {
        let Some(handshake) = self.tls.greetings.remove(&index).and_then(|greeting| greeting.handshake) else { return };
        let is_resumed = handshake.is_resumed();
        let Some(session) = handshake.finish() else { return self.lose_head(index) };
        add(&self.telemetry.handshakes, 1);
        add(&self.telemetry.resumed, u64::from(is_resumed));
        self.tls.sessions.insert(index, session, self.rows.most());
        if !last.is_empty() {
            self.tls.held_back.insert(index, last);
        }
        self.note_room();
    }

    /// Whatever alert there was for the client has been sent. It has a moment to read it.
    fn fail_greeting(&mut self, index: u32) {
        add(&self.telemetry.handshake_failures, 1);
        self.door.arriving.take(index);
        self.tls.end_greeting(index);
        self.note_room();
        self.forget_backlog(index);
        self.linger(index);
    }

    /// The client has sent something that is not TLS, or that does not belong here.
    fn fail_head(&mut self, index: u32, alert: Alert) {
        if self.tls.is_greeting(index) {
            return self.fail_greeting(index);
        }
        self.door.arriving.take(index);
        self.send_alert(index, alert);
        self.forget_backlog(index);
        self.linger(index);
    }

    /// Writes an alert, if nothing waits to be written before it.
    pub(in crate::shard) fn send_alert(&mut self, index: u32, alert: Alert) {
        let mut record = self.tls.take_held_back(index);
        if let Some(session) = self.tls.session_mut(index) {
            session.seal_alert(alert, &mut record);
        }
        if !self.rows.is_backlogged(index)
            && let Some(socket) = self.rows.socket(index)
        {
            // Whether it arrives or not, the connection ends.
            let _ = socket.write(&record);
        }
    }

    /// The client writes with its next key; if it wants us to do that too, the answer goes out before anything else.
    pub(super) fn update_key(&mut self, index: u32, is_requested: bool) {
        if !is_requested {
            return;
        }
        let mut record = self.tls.take_held_back(index);
        if let Some(session) = self.tls.session_mut(index) {
            session.seal_key_update(&mut record);
            self.write_wire(index, &record, false);
        }
    }

    /// What can't go out with an answer, because that is still to come.
    pub(in crate::shard) fn write_held_back(&mut self, index: u32) {
        let last = self.tls.take_held_back(index);
        if !last.is_empty() {
            self.write_wire(index, &last, true);
        }
    }

    /// The answer that clients with a wrong URL understand.
    fn refuse_plain_http(&mut self, index: u32) {
        add(&self.telemetry.handshake_failures, 1);
        add(&self.telemetry.refused[response::Refusal::BadRequest as usize], 1);
        self.tls.end_greeting(index);
        self.note_room();
        let bytes = response::plain_http(self.door.date.bytes());
        self.answer(index, &bytes);
    }
}

/// Whether somebody speaks HTTP without TLS: methods begin with a capital letter, records do not.
fn is_http(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(u8::is_ascii_uppercase)
}
