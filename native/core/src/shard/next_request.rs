//! Connections that are kept after an answer: they wait, idle, for the next request, which is then read as the first one was.
//!
//! Requests are answered one at a time. What a client has sent beyond the one that is being answered waits in the kernel, which bounds it.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::door::MOST_ARRIVING_BYTES;
use super::{LINGER_MS, Shard};
use crate::framing::Format;
use crate::id::Id;
use crate::rows::{Input, State};
use crate::socket::{Socket, Stop};
use crate::tls::Alert;

/// What was read of next requests may take so much of the memory for heads: it stays for as long as a poll waits, so the rest is for heads
/// that are not complete.
const MOST_KEPT_BYTES: usize = MOST_ARRIVING_BYTES / 2;
/// The list of idle connections may have so many that are not idle any more, and as many as are.
const MOST_STALE: usize = 64;

/// Connections without a request, the one that has waited longest first. Some are not idle any more.
#[derive(Debug, Default)]
pub(super) struct IdleList {
    /// With the times since when they wait.
    waiting: VecDeque<(Id, u32)>,
    /// At this length, those that are not idle are removed.
    full: usize,
}

impl IdleList {
    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}

impl Shard {
    /// Whether the client may send another request, once the one that waits for an answer is answered.
    pub(super) fn may_go_on(&mut self, index: u32) -> bool {
        self.rows.row(index).keeps_connection() && !self.is_closing()
    }

    /// The header line that tells the client whether it may.
    pub(super) fn connection_line(&mut self, index: u32, goes_on: bool) -> &'static [u8] {
        match (goes_on, self.rows.row(index).is_http_1_0()) {
            (false, _) => b"Connection: close\r\n",
            (true, true) => b"Connection: keep-alive\r\n",
            (true, false) => b"",
        }
    }

    /// Writes a response after which the client may send another request.
    pub(super) fn answer_and_go_on(&mut self, index: u32, bytes: &[u8]) {
        let Some(rest) = self.take_head(index) else { return };
        if !self.keep_for_later(index, &rest) {
            return self.answer(index, bytes);
        }
        self.become_idle(index);
        self.write_and_go_on(index, bytes);
    }

    /// The same for one that is idle already.
    pub(super) fn write_and_go_on(&mut self, index: u32, bytes: &[u8]) {
        let wire = self.on_wire(index, bytes);
        let is_open = self.write_wire(index, &wire, true);
        self.reuse(wire);
        if is_open {
            self.go_on(index);
        }
    }

    /// Keeps what was read after a request until that is answered. It does not count as incomplete meanwhile. False if there is no room for
    /// it: then the connection ends after the answer.
    pub(super) fn keep_for_later(&mut self, index: u32, rest: &[u8]) -> bool {
        if rest.is_empty() {
            return true;
        }
        if self.door.arriving.bytes() + rest.len() > MOST_KEPT_BYTES {
            self.rows.row(index).end_connection();
            return false;
        }
        self.door.arriving.insert(index, None, None);
        self.door.arriving.append(index, rest);
        self.door.arriving.complete(index);
        true
    }

    /// Nothing is known of its next request. Its answer may still be in the backlog.
    pub(super) fn become_idle(&mut self, index: u32) {
        let row = self.rows.row(index);
        row.forget_request();
        row.format = Format::default();
        self.enter(index, State::Idle);
        self.note_room(); // it may be cut
        let entry = (self.rows.id_of(index), self.now_ms());
        self.door.idle.waiting.push_back(entry);
        if self.door.idle.waiting.len() > self.door.idle.full {
            let mut waiting = std::mem::take(&mut self.door.idle.waiting);
            waiting.retain(|entry| self.idle_row(*entry).is_some());
            self.door.idle = IdleList { full: 2 * waiting.len() + MOST_STALE, waiting };
        }
    }

    /// The row of an entry of the list, if it still waits.
    fn idle_row(&mut self, (id, since_ms): (Id, u32)) -> Option<u32> {
        let index = self.rows.find(id)?;
        let row = self.rows.row(index);
        (row.state == State::Idle && row.since_ms == since_ms).then_some(index)
    }

    /// The next request may be there already. It has to wait until the answer is written.
    fn go_on(&mut self, index: u32) {
        let row = self.rows.row(index);
        let (is_unwatched, has_input) = (row.input == Input::Unwatched, row.input == Input::Some);
        if is_unwatched {
            self.watch(index);
        }
        if self.rows.state(index) != State::Idle || self.rows.is_backlogged(index) {
            return;
        }
        self.rows.row(index).input = Input::None;
        match self.door.arriving.take(index) {
            Some(rest) => {
                self.begin_head(index, &rest);
                if has_input && self.rows.state(index) == State::Head {
                    self.continue_head(index, false);
                }
            }
            None if has_input || self.tls.has_unread(index) => self.begin_request(index, false),
            None => {}
        }
    }

    /// All of the answer was written.
    pub(super) fn go_on_after_backlog(&mut self, index: u32) {
        self.become_idle(index); // it begins to wait now
        self.go_on(index);
    }

    /// A part of the next head, or all of it, was read already.
    fn begin_head(&mut self, index: u32, read: &[u8]) {
        self.mail.is_urgent = true;
        self.enter(index, State::Head);
        let address = self.peer_of(index);
        self.expect_head(index, address);
        let is_time = self.door.arriving.append(index, read);
        if self.rows.state(index) == State::Head {
            self.parse_in_time(index, is_time, false);
        }
    }

    /// Something has come on an idle connection, or its client has left.
    pub(super) fn begin_request(&mut self, index: u32, has_ended: bool) {
        self.mail.is_urgent = true;
        if self.rows.is_backlogged(index) {
            self.rows.row(index).input = Input::Some;
        } else if self.tls.session(index).is_some() {
            self.begin_tls_request(index, has_ended);
        } else {
            self.begin_plain_request(index, has_ended);
        }
    }

    /// As after accepting, most heads come whole.
    fn begin_plain_request(&mut self, index: u32, has_ended: bool) {
        let most = self.options.max_head_bytes + 1;
        let Some(socket) = self.rows.socket(index) else { return };
        let count = match socket.peek(&mut self.scratch[..most]) {
            Ok(count @ 1..) => count,
            Err(Stop::Later) if !has_ended => return,
            _ => return self.free(index),
        };
        self.enter(index, State::Head);
        self.look_at(index, count, None);
    }

    fn begin_tls_request(&mut self, index: u32, has_ended: bool) {
        self.enter(index, State::Head);
        let address = self.peer_of(index);
        self.expect_head(index, address);
        if self.rows.state(index) == State::Head && self.tls.has_unread(index) {
            self.read_head_records(index, has_ended);
        }
        if self.rows.state(index) == State::Head {
            self.continue_tls(index, has_ended);
        }
    }

    /// Its client, as far as it is known.
    pub(super) fn peer_of(&self, index: u32) -> Option<IpAddr> {
        self.rows.socket(index).and_then(Socket::peer)
    }

    /// Whether no request has come for too long, or its client does not read the answer.
    pub(super) fn is_idle_too_long(&self, index: u32, age_ms: u32) -> bool {
        if self.rows.is_backlogged(index) {
            return u64::from(age_ms) >= LINGER_MS;
        }
        self.is_closing() || age_ms >= self.options.keep_alive_timeout_ms
    }

    pub(super) fn close_idle(&mut self, index: u32) {
        if self.tls.session(index).is_some() {
            self.send_alert(index, Alert::CloseNotify);
        }
        self.free(index);
    }

    pub(super) fn oldest_idle(&mut self) -> Option<u32> {
        while let Some(entry) = self.door.idle.waiting.front().copied() {
            let found = self.idle_row(entry);
            if found.is_some() {
                return found;
            }
            self.door.idle.waiting.pop_front();
        }
        None
    }
}
