//! From accepted to decided: connections that are not streams yet, or never will be.

use std::net::IpAddr;

use super::Shard;
use super::turn::LISTENER;
use crate::address::Site;
use crate::clock::MS;
use crate::head::{self, Head, Whole};
use crate::id::Id;
use crate::listener::{Accepted, Accepting};
use crate::rows::{Input, State};
use crate::socket::{Socket, Stop};
use crate::telemetry::{Reason, add, subtract};

/// Connections that one turn accepts.
const ACCEPTS_A_TURN: usize = 64;
/// How long a shard that has a core to itself waits between two connections while pings are late: streams that are open come first,
/// and opening goes on slowly.
pub(super) const REST_NS: u64 = MS / 5;
/// How long to wait when the system is short of something.
const SHORT_NS: u64 = 100 * MS;
/// The most bytes that a shard keeps of heads that come in pieces: 16 of the largest.
pub(super) const MOST_ARRIVING_BYTES: usize = 16 << 20;
const HEAD_REQUEST: &[u8] = b"HEAD\n";

impl Shard {
    /// Accepts connections, as many as one turn may, for a slice.
    pub(super) fn accept(&mut self) {
        if matches!(self.door.accepting, Accepting::Late(_)) {
            return;
        }
        let (mut slice, is_late) = (self.slice(), self.has_been_late());
        let mut from = 0;
        for _ in 0..ACCEPTS_A_TURN {
            if !self.has_room() {
                return;
            }
            let Some(listener) = self.door.listeners.get(from) else { return };
            match listener.accept() {
                Accepted::Connection(socket, address) => {
                    let is_tls = listener.is_tls;
                    self.admit(socket, address, is_tls);
                    if is_late {
                        self.set_accepting(Accepting::Late(self.now_ns + self.rest_ns));
                        break;
                    }
                }
                Accepted::Nobody => from += 1,
                Accepted::Short => return self.set_accepting(Accepting::Short(self.now_ns + SHORT_NS)),
                Accepted::Gone => {}
            }
            if slice.is_over_now() {
                return;
            }
        }
        // With several listeners, each takes its turn to be the first.
        let count = self.door.listeners.len();
        self.door.listeners.rotate_left(1.min(count));
    }

    pub(super) fn set_accepting(&mut self, state: Accepting) {
        if std::mem::replace(&mut self.door.accepting, state) == state {
            return;
        }
        for listener in &self.door.listeners {
            self.reactor.set_level(listener, LISTENER, state == Accepting::Yes);
        }
    }

    /// Makes a connection a row, and looks at its head. There is room for it (`has_room`).
    pub(super) fn admit(&mut self, socket: Socket, address: Option<IpAddr>, is_tls: bool) {
        self.make_room();
        let index = self.insert(socket);
        self.door.accepted_in_turn += 1;
        if is_tls { self.greet(index, address) } else { self.look(index, address) }
    }

    /// Makes a row. There is room.
    pub(super) fn insert(&mut self, socket: Socket) -> u32 {
        self.expect_outsider();
        self.rows.insert(socket, self.now_ms())
    }

    /// Makes a row at an index that is free.
    pub(super) fn insert_at(&mut self, index: u32, socket: Socket) -> u32 {
        self.expect_outsider();
        self.rows.insert_at(index, socket, self.now_ms());
        index
    }

    fn expect_outsider(&mut self) {
        if !self.has_outsiders() {
            self.door.sweep_ns = self.now_ns + self.sweep_every_ns();
        }
        add(&self.telemetry.connections, 1);
    }

    pub(super) fn now_ms(&self) -> u32 {
        (self.now_ns / MS) as u32
    }

    /// Has epoll report input and the end of a connection, including what is there already. A row that can't be watched
    /// is closed.
    pub(super) fn watch(&mut self, index: u32) {
        let token = self.rows.id_of(index).bits();
        let row = self.rows.row(index);
        row.input = Input::None;
        // The kernel may have taken only a part of the opening.
        let is_writable = row.is_backlogged();
        if row.socket.as_ref().is_none_or(|socket| self.reactor.watch(socket, token, is_writable).is_err()) {
            self.close(index, Reason::Error);
        }
    }

    /// Has epoll report once more what is there already, and from now on `is_writable` too.
    pub(super) fn watch_again(&mut self, index: u32, is_writable: bool) {
        let token = self.rows.id_of(index).bits();
        if let Some(socket) = self.rows.socket(index) {
            self.reactor.watch_again(socket, token, is_writable);
        }
    }

    /// Closes a connection that is not a stream, or not any more.
    pub(super) fn free(&mut self, index: u32) {
        drop(self.take_out(index));
    }

    fn take_out(&mut self, index: u32) -> Option<Socket> {
        self.door.arriving.take(index);
        self.tls.remove(index);
        self.forget_backlog(index);
        let socket = self.rows.remove(index);
        subtract(&self.telemetry.connections, 1);
        self.note_room();
        socket
    }

    /// Peeks at what has arrived. Most heads are complete then, and decided about, or asked about, at once.
    fn look(&mut self, index: u32, address: Option<IpAddr>) {
        let most = self.options.max_head_bytes + 1;
        let Some(socket) = self.rows.socket(index) else { return };
        let count = match socket.peek(&mut self.scratch[..most]) {
            Ok(0) => return self.free(index),
            Ok(count) => count,
            Err(Stop::Later) => 0,
            Err(Stop::Broken(_)) => return self.free(index),
        };
        self.look_at(index, count, address);
    }

    /// The same for what was peeked at already, and is at the beginning of the scratch.
    pub(super) fn look_at(&mut self, index: u32, count: usize, address: Option<IpAddr>) {
        let options = &self.options;
        match head::read(&self.scratch[..count], options.max_head_bytes, &options.headers, &mut self.mail.heads.lines) {
            Head::Partial => self.expect_more(index, count, address),
            Head::Bad(refusal) => self.refuse_row(index, refusal),
            Head::Whole(head) => self.decide(index, head, count > head.size, address),
        }
    }

    /// From now on the head is read as it comes, beginning with the bytes that were peeked at.
    fn expect_more(&mut self, index: u32, count: usize, address: Option<IpAddr>) {
        let Some(socket) = self.rows.socket(index) else { return };
        if count > 0 && socket.skip(&mut self.scratch[..count]) != Ok(count) {
            return self.free(index);
        }
        let scratch = std::mem::take(&mut self.scratch);
        self.await_head(index, &scratch[..count], address.or_else(|| self.peer_of(index)));
        self.scratch = scratch;
    }

    /// Reads the rest of a head as it comes.
    pub(super) fn await_head(&mut self, index: u32, read: &[u8], address: Option<IpAddr>) {
        self.expect_head(index, address);
        self.door.arriving.append(index, read);
        self.limit_arriving();
        if self.rows.state(index) == State::Head && self.rows.row(index).input == Input::Unwatched {
            self.watch(index);
        }
    }

    /// Lists a connection among those whose head is not complete, and cuts another one if its client has too many.
    pub(super) fn expect_head(&mut self, index: u32, address: Option<IpAddr>) {
        self.door.arriving.insert(index, address, self.site_of(address));
        if let Some(oldest) = self.door.arriving.oldest_of_crowd(index, self.options.max_heads_per_address) {
            self.cut(oldest);
        }
    }

    /// Whose heads a head is counted with. A proxy has those of all its clients, so they don't count.
    fn site_of(&self, address: Option<IpAddr>) -> Option<Site> {
        let address = address?;
        let is_proxy = self.options.proxies.iter().any(|range| range.contains(address));
        (!is_proxy).then(|| Site::of(address))
    }

    /// Cuts connections as long as the heads that come in pieces take too much memory: the largest first, because small
    /// heads are not the reason.
    pub(super) fn limit_arriving(&mut self) {
        while self.door.arriving.bytes() > MOST_ARRIVING_BYTES
            && let Some(largest) = self.door.arriving.largest()
        {
            self.cut(largest);
        }
    }

    /// Reads more of a head, and decides, or asks JS to, once it is complete.
    pub(super) fn continue_head(&mut self, index: u32, has_ended: bool) {
        if self.tls.has(index) {
            return self.continue_tls(index, has_ended);
        }
        let most = self.options.max_head_bytes + 1 - self.door.arriving.read_of(index).len();
        let Some(socket) = self.rows.socket(index) else { return };
        let count = match socket.read(&mut self.scratch[..most]) {
            Ok(0) => return self.free(index),
            Ok(count) => count,
            Err(Stop::Later) if !has_ended => return,
            Err(_) => return self.free(index),
        };
        self.door.continued_in_turn += 1;
        let is_time = self.door.arriving.append(index, &self.scratch[..count]);
        self.parse_in_time(index, is_time, has_ended);
    }

    /// Parses a head to which something was added, if it may be complete.
    pub(super) fn parse_in_time(&mut self, index: u32, is_time: bool, has_ended: bool) {
        let is_too_large = self.door.arriving.read_of(index).len() > self.options.max_head_bytes;
        self.limit_arriving();
        if self.rows.state(index) == State::Head && (is_time || has_ended || is_too_large) {
            self.parse(index, has_ended);
        }
    }

    /// Parses what was read of a head.
    fn parse(&mut self, index: u32, has_ended: bool) {
        let read = self.door.arriving.read_of(index);
        let options = &self.options;
        match head::read(read, options.max_head_bytes, &options.headers, &mut self.mail.heads.lines) {
            Head::Partial if has_ended => self.free(index),
            Head::Partial => {}
            Head::Bad(refusal) => self.refuse_row(index, refusal),
            Head::Whole(head) => {
                let has_more = has_ended || read.len() > head.size || self.tls.has_unread(index);
                self.decide(index, head, has_more, self.door.arriving.address_of(index));
            }
        }
    }

    /// The head is complete, and its lines are the newest ones.
    fn decide(&mut self, index: u32, head: Whole, has_more: bool, address: Option<IpAddr>) {
        self.door.arriving.complete(index);
        let lines = self.mail.heads.newest();
        let cached = self.door.cache.find(lines);
        let row = self.rows.row(index);
        row.set_request(head, lines.starts_with(HEAD_REQUEST));
        if has_more && row.input != Input::Unwatched {
            row.input = Input::Some;
        }
        self.enter(index, State::Asked);
        let id = self.rows.id_of(index);
        match cached {
            Some(opening) => {
                self.mail.heads.forget_newest();
                self.hold_cached(id, opening);
            }
            None => {
                // Only now: a cached decision doesn't depend on it.
                if self.options.reports_addresses {
                    let address = address.or_else(|| self.peer_of(index));
                    head::add_address(&mut self.mail.heads.lines, address);
                }
                self.mail.heads.add(id);
            }
        }
    }

    /// Removes the head from what its client has sent, and returns what was read after it. None if the connection is
    /// broken, and closed.
    pub(super) fn take_head(&mut self, index: u32) -> Option<Vec<u8>> {
        let size = self.rows.row(index).head_size();
        if let Some(mut read) = self.door.arriving.take(index) {
            return Some(read.split_off(size));
        }
        // It was only peeked at.
        if self.rows.socket(index)?.skip(&mut self.scratch[..size]).is_err() {
            self.free(index);
            return None;
        }
        Some(Vec::new())
    }

    /// A state in which it may stay for a limited time.
    pub(super) fn enter(&mut self, index: u32, state: State) {
        let now_ms = self.now_ms();
        let row = self.rows.row(index);
        row.state = state;
        row.since_ms = now_ms;
    }

    /// The row that waits for an answer; None if the answer came too late.
    pub(super) fn asked(&self, id: Id) -> Option<u32> {
        self.rows.find(id).filter(|index| self.rows.state(*index) == State::Asked)
    }
}
