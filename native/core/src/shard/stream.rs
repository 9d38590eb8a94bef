//! From held to closed: what is written to a stream, what waits when the kernel takes no more, and how streams end.

use std::borrow::Cow;

use rustix::io::Errno;

use super::Shard;
use super::websocket::code_of;
use crate::backlog::Backlog;
use crate::command::Opening;
use crate::framing::Format;
use crate::id::Id;
use crate::parcel::{self, Adoption};
use crate::response::Refusal;
use crate::rows::{Input, State};
use crate::socket::{SCRATCH_BYTES, Socket, Stop};
use crate::telemetry::{Reason, add, subtract};
use crate::websocket;

/// Reads of input that a stream may cause before it counts as nonsense.
pub(super) const EMPTY_READS: usize = 16;
/// Bytes of an opening that the buffer for it keeps room for.
const MOST_KEPT: usize = 65_536;

impl Shard {
    /// Makes a stream of a connection that waits for an answer, and writes its opening. If there is no room it gets 503. If it
    /// is gone, nothing happens (`miss` reports that).
    pub(super) fn hold(&mut self, id: Id, opening: &Opening) {
        let Some(index) = self.asked(id) else { return };
        if self.held >= self.options.capacity || self.is_closing() || !self.channels.has_room_for(&opening.channels) {
            return self.refuse_stream(index);
        }
        let input = self.rows.row(index).input;
        let accept = if opening.format.is_websocket() { self.accept_line(index) } else { Ok(String::new()) };
        let accept = match accept {
            Ok(accept) => accept,
            Err(refusal) => return self.refuse_websocket(index, refusal),
        };
        let Some(rest) = self.take_head(index) else { return self.miss(id) };
        self.open(index, opening.format, &opening.channels);
        self.door.opened_in_turn += 1;
        if opening.format.is_poll() {
            return self.begin_poll(index, opening, &rest, input);
        }
        if !self.write_opening(index, opening, &accept) {
            return;
        }
        if !rest.is_empty() {
            self.read_rest(index, &rest);
        }
        if self.rows.state(index) != State::Held {
            return;
        }
        match input {
            Input::Unwatched => self.watch(index),
            Input::None => {}
            Input::Some => self.read_stream(index),
        }
    }

    /// JS believes that it holds a stream, but its client has left, or was answered because JS took too long: JS gets to know
    /// that.
    pub(super) fn miss(&mut self, id: Id) {
        // If it was said twice, the end of the stream will be reported.
        if self.held_row(id).is_none() {
            self.mail.events.closed.push((id, Reason::ClientGone));
        }
    }

    fn refuse_stream(&mut self, index: u32) {
        self.mail.events.closed.push((self.rows.id_of(index), Reason::OverCapacity));
        self.refuse_row(index, Refusal::ServiceUnavailable);
    }

    /// What a client has sent after its request.
    fn read_rest(&mut self, index: u32, rest: &[u8]) {
        if self.rows.format(index).is_websocket() {
            self.hear(index, rest);
        } else if !is_empty_lines(rest) {
            self.close(index, Reason::BadRequest);
        }
    }

    /// The head of the response with its Date, and one of its welcomes. `accept`: a header line of a WebSocket.
    fn write_opening(&mut self, index: u32, opening: &Opening, accept: &str) -> bool {
        let mut bytes = std::mem::take(&mut self.door.opening);
        bytes.clear();
        bytes.extend_from_slice(&opening.head);
        bytes.extend_from_slice(accept.as_bytes());
        bytes.extend_from_slice(self.door.date.bytes());
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(self.next_welcome(opening));
        // A welcome may be large, such as a replay: what the kernel refuses of it doesn't make the stream slow yet.
        let is_open = self.write_exempt(index, &bytes);
        // The buffer of a large one is not kept.
        bytes.shrink_to(MOST_KEPT);
        self.door.opening = bytes;
        is_open
    }

    /// Welcomes are chosen in steps of the golden section: evenly, for each of several kinds of streams that alternate too.
    fn next_welcome<'a>(&mut self, opening: &'a Opening) -> &'a [u8] {
        const GOLDEN: u32 = 0x9e37_79b9;
        self.door.welcomed = self.door.welcomed.wrapping_add(GOLDEN);
        let turn = (u64::from(self.door.welcomed) * opening.welcomes.len() as u64) >> 32;
        opening.welcomes.get(turn as usize).map_or(b"", |welcome| welcome)
    }

    /// Takes over a connection that node:http has answered so far.
    pub(super) fn receive(&mut self) {
        let mut record = [0; parcel::RECORD_BYTES];
        let Some((size, fd)) = parcel::receive(&self.transfer, &mut record) else { return };
        // An answer that node:http has begun can't be one of ours.
        if let Some(adoption) = Adoption::decode(&record[..size]).ok().filter(|adoption| !adoption.format.is_poll()) {
            let relayed = adoption.relayed.and_then(|id| self.relayed_row(id));
            let adopted = match relayed {
                Some(index) => self.adopt_relayed(index, &adoption),
                None => fd.and_then(|fd| self.adopt(fd.into(), &adoption)),
            };
            self.mail.events.adopted.push((adoption.token, adopted));
        }
    }

    /// None if there is no room.
    fn adopt(&mut self, socket: Socket, adoption: &Adoption) -> Option<Id> {
        if self.rows.is_full() || !self.has_room_for(adoption) {
            return None;
        }
        socket.tune(self.options.nagle, self.options.user_timeout_ms);
        let index = self.insert(socket);
        self.open(index, adoption.format, &adoption.channels);
        let id = self.rows.id_of(index);
        self.watch(index);
        if self.rows.find(id).is_some() && !adoption.opening.is_empty() {
            self.write_exempt(index, &adoption.opening);
        }
        // It may have ended already: that is reported, so JS has to know its id.
        Some(id)
    }

    pub(super) fn has_room_for(&self, adoption: &Adoption) -> bool {
        self.held < self.options.capacity && self.channels.has_room_for(&adoption.channels) && !self.is_closing()
    }

    pub(super) fn open(&mut self, index: u32, format: Format, channels: &[Box<[u8]>]) {
        if self.held == 0 {
            self.pinger.wheel.skip_to(self.now_ns);
        }
        let row = self.rows.row(index);
        row.state = State::Held;
        row.format = format;
        row.set_aside(0);
        for channel in channels {
            self.channels.subscribe(index, channel);
        }
        self.held += 1;
        add(&self.telemetry.streams, 1);
        add(&self.telemetry.updates, u64::from(format.is_of_updates()));
        add(&self.telemetry.opened, 1);
    }

    /// Clients don't speak on a stream of HTTP: whatever one sends, or its end, ends the stream.
    pub(super) fn read_stream(&mut self, index: u32) {
        let format = self.rows.format(index);
        if self.tls.session(index).is_some() {
            return self.read_tls_stream(index);
        }
        if format.is_websocket() {
            return self.read_websocket(index);
        }
        if format.is_poll() {
            return self.read_poll(index);
        }
        for _ in 0..EMPTY_READS {
            let Some(socket) = self.rows.socket(index) else { return };
            match socket.read(&mut self.scratch[..SCRATCH_BYTES]) {
                Ok(0) => return self.close(index, Reason::ClientGone),
                Ok(count) if is_empty_lines(&self.scratch[..count]) => {}
                Ok(_) => return self.close(index, Reason::BadRequest),
                Err(Stop::Later) => return,
                Err(Stop::Broken(error)) => return self.close(index, reason_of(error)),
            }
        }
        self.close(index, Reason::BadRequest);
    }

    /// Writes at once, and keeps as backlog what the kernel refuses. False if the stream has ended because of it.
    pub(super) fn write(&mut self, index: u32, frame: &[u8]) -> bool {
        self.write_all(index, frame, false)
    }

    /// The same for what may be large, such as a replay: what waits because of it never makes the stream slow.
    pub(super) fn write_exempt(&mut self, index: u32, frame: &[u8]) -> bool {
        self.write_all(index, frame, true)
    }

    pub(super) fn write_all(&mut self, index: u32, frame: &[u8], is_exempt: bool) -> bool {
        let wire = self.on_wire(index, frame);
        let is_open = self.write_wire(index, &wire, is_exempt);
        self.reuse(wire);
        is_open
    }

    /// The same for what is on the wire as it is.
    pub(super) fn write_wire(&mut self, index: u32, frame: &[u8], is_exempt: bool) -> bool {
        let row = self.rows.row(index);
        if row.is_backlogged() {
            return self.wait(index, frame, is_exempt);
        }
        let Some(socket) = &row.socket else { return false };
        match socket.write(frame) {
            Ok(count) => {
                add(&self.telemetry.bytes_written, count as u64);
                count == frame.len() || self.wait(index, &frame[count..], is_exempt)
            }
            Err(Stop::Later) => self.wait(index, frame, is_exempt),
            Err(Stop::Broken(error)) => {
                self.close(index, reason_of(error));
                false
            }
        }
    }

    /// Adds to the backlog of a stream, or closes it as slow if too much would wait.
    pub(super) fn wait(&mut self, index: u32, bytes: &[u8], is_exempt: bool) -> bool {
        let counted = self.backlogs.get(&index).map_or(0, Backlog::counted);
        if !is_exempt && bytes.len() > self.options.max_backlog_bytes.saturating_sub(counted) {
            self.close(index, Reason::Slow);
            return false;
        }
        self.backlogs.entry(index).or_default().append(bytes, is_exempt);
        add(&self.telemetry.backlog_bytes, bytes.len() as u64);
        let row = self.rows.row(index);
        if !row.is_backlogged() {
            row.set_backlogged(true);
            self.watch_again(index, true);
        }
        true
    }

    /// The kernel has room again.
    pub(super) fn write_backlog(&mut self, index: u32) {
        let (Some(backlog), Some(socket)) = (self.backlogs.get_mut(&index), self.rows.socket(index)) else { return };
        match socket.write(backlog.waiting()) {
            Ok(count) => {
                backlog.take_off(count);
                add(&self.telemetry.bytes_written, count as u64);
                subtract(&self.telemetry.backlog_bytes, count as u64);
                if !backlog.waiting().is_empty() {
                    return self.note_progress(index);
                }
                self.forget_backlog(index);
                match self.rows.state(index) {
                    State::Ending => self.linger(index),
                    State::Idle => self.go_on_after_backlog(index),
                    _ => {}
                }
            }
            Err(Stop::Later) => {}
            Err(Stop::Broken(error)) => self.close(index, reason_of(error)),
        }
    }

    /// A stream that has ended, or an answer, keeps its connection while the client reads, except in a drain.
    fn note_progress(&mut self, index: u32) {
        let state = self.rows.state(index);
        if matches!(state, State::Ending | State::Idle) && self.drain.is_none() {
            self.enter(index, state);
        }
    }

    pub(super) fn forget_backlog(&mut self, index: u32) {
        if !self.rows.is_backlogged(index) {
            return;
        }
        self.rows.row(index).set_backlogged(false);
        if let Some(backlog) = self.backlogs.remove(&index) {
            subtract(&self.telemetry.backlog_bytes, backlog.waiting().len() as u64);
        }
    }

    /// Removes what waits, to be written in another way.
    pub(super) fn take_backlog(&mut self, index: u32) -> Vec<u8> {
        let waiting = self.backlogs.get(&index).map_or(Vec::new(), |backlog| backlog.waiting().to_vec());
        self.forget_backlog(index);
        waiting
    }

    /// Ends a stream at once, or what is left of one.
    pub(super) fn close(&mut self, index: u32, reason: Reason) {
        if self.rows.state(index) == State::Held {
            self.release(index, reason);
        }
        self.end_row(index);
    }

    /// Ends a stream gently: what was published and sent before, and a proper end, are still written. Returns the number of
    /// messages that were written because of it.
    pub(super) fn finish(&mut self, index: u32, reason: Reason) -> u32 {
        let caught_up = self.catch_up(index);
        if self.rows.state(index) == State::Held && self.rows.format(index).is_poll() {
            self.answer_poll(index, &[], reason);
        } else if self.rows.state(index) == State::Held && self.write_end(index, reason) {
            self.release(index, reason);
            if self.rows.is_backlogged(index) {
                self.enter(index, State::Ending);
            } else {
                self.end_row(index);
            }
        }
        caught_up
    }

    fn write_end(&mut self, index: u32, reason: Reason) -> bool {
        let format = self.rows.format(index);
        let wire = if format.is_websocket() {
            let frame = websocket::close(code_of(reason), reason.name());
            Cow::Owned(self.last_on_wire(index, &frame).into_owned())
        } else {
            self.last_on_wire(index, format.end())
        };
        let is_open = self.write_wire(index, &wire, true);
        self.reuse(wire);
        is_open
    }

    /// Stops being a stream, and is counted as closed.
    pub(super) fn release(&mut self, index: u32, reason: Reason) {
        self.forget_said(index);
        self.held -= 1;
        subtract(&self.telemetry.streams, 1);
        subtract(&self.telemetry.updates, u64::from(self.rows.format(index).is_of_updates()));
        add(&self.telemetry.closed[reason as usize], 1);
        self.mail.events.closed.push((self.rows.id_of(index), reason));
    }

    /// Forgets everything about a stream that is not in its row.
    pub(super) fn forget_details(&mut self, index: u32) {
        self.forget_said(index);
        self.forget_backlog(index);
    }

    /// The same, but for its backlog.
    fn forget_said(&mut self, index: u32) {
        self.channels.unsubscribe_all(index);
        self.labels.clear(index);
        self.tags.remove(&index);
        let format = self.rows.format(index);
        if format.is_websocket() {
            self.websockets.remove(index);
        } else if format.is_poll() {
            let number = self.rows.row(index).aside();
            self.polls.remove(number);
        }
    }

    /// Frees a row that is not held, with everything it left behind.
    pub(super) fn end_row(&mut self, index: u32) {
        self.free(index);
    }

    /// The stream that an id names, if it is still open.
    pub(super) fn held_row(&self, id: Id) -> Option<u32> {
        self.rows.find(id).filter(|index| self.rows.state(*index) == State::Held)
    }
}

/// All that a client may send after its head.
pub(super) fn is_empty_lines(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
}

pub(super) fn reason_of(error: Errno) -> Reason {
    match error {
        Errno::CONNRESET | Errno::PIPE => Reason::ClientGone,
        Errno::TIMEDOUT | Errno::HOSTUNREACH | Errno::NETUNREACH => Reason::DeadPeer,
        _ => Reason::Error,
    }
}
