//! Connections that node:http serves. It gets one end of a pair of sockets, and what goes through the other end is encrypted and
//! decrypted here.
//!
//! Each direction has at most one record under way: nothing more is read before the other side has taken it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::id::Id;
use crate::parcel::Adoption;
use crate::rows::State;
use crate::shard::Shard;
use crate::shard::stream::is_empty_lines;
use crate::socket::{SCRATCH_BYTES, Socket, Stop};
use crate::telemetry::{Reason, add};
use crate::tls::{Alert, Content, Message, Renewal};

/// Marks the token of the end that faces node:http. Ids are smaller.
pub(in crate::shard) const RELAYED: u64 = 1 << 59;
/// What is read from node:http at once: a record.
const MOST_BYTES: usize = 1 << 14;
/// A client for which more waits is not read from.
const MOST_WAITING_BYTES: usize = 1 << 16;
/// Steps in each direction, before everything else gets its turn.
const STEPS_A_TURN: usize = 16;

#[derive(Debug)]
pub(in crate::shard) struct Relay {
    /// Faces node:http.
    inner: Socket,
    /// What node:http has not taken yet.
    to_inner: Vec<u8>,
    /// Records that the client has not taken yet.
    to_client: Vec<u8>,
    /// The client writes nothing more.
    is_client_done: bool,
    /// node:http writes nothing more.
    is_inner_done: bool,
}

/// Why a direction does not go on.
enum Pause {
    /// Until epoll says something.
    Wait,
    /// It has had its turn.
    Again,
    /// The connection has ended.
    Over,
}

impl Shard {
    /// Relays a connection from now on: node:http has the other end of `inner`. Returns the address of the client, as far as it is known.
    pub(in crate::shard) fn begin_relay(&mut self, index: u32, inner: Socket) -> SocketAddr {
        let token = self.rows.id_of(index).bits() | RELAYED;
        let is_watched = self.reactor.watch(&inner, token, true).is_ok();
        let address = self.rows.socket(index).and_then(Socket::peer_address);
        let mut to_client = self.take_backlog(index);
        to_client.append(&mut self.tls.take_held_back(index));
        self.enter(index, State::Relayed);
        // One that can't be watched ends at once.
        let relay = Relay { inner, to_inner: Vec::new(), to_client, is_client_done: !is_watched, is_inner_done: !is_watched };
        self.tls.relays.insert(index, relay);
        // Reports what is there already, and from now on when there is room.
        self.watch_again(index, true);
        address.unwrap_or(SocketAddr::from(([0; 4], 0)))
    }

    pub(in crate::shard) fn relayed_row(&self, id: Id) -> Option<u32> {
        self.rows.find(id).filter(|index| self.rows.state(*index) == State::Relayed)
    }

    /// Makes a stream of a connection on which node:http writes nothing more. None if there is no room; then it is closed.
    pub(in crate::shard) fn adopt_relayed(&mut self, index: u32, adoption: &Adoption) -> Option<Id> {
        let relay = self.tls.relays.remove(&index)?;
        if !self.has_room_for(adoption) {
            self.free(index);
            return None;
        }
        self.open(index, adoption.format, &adoption.channels);
        let id = self.rows.id_of(index);
        let mut is_open = relay.to_client.is_empty() || self.write_wire(index, &relay.to_client, true);
        while is_open && let Ok(count @ 1..) = relay.inner.read(&mut self.scratch[..MOST_BYTES]) {
            let said = self.scratch[..count].to_vec();
            is_open = self.write_exempt(index, &said);
        }
        if !adoption.opening.is_empty() {
            is_open = is_open && self.write_exempt(index, &adoption.opening);
        }
        if is_open && !is_empty_lines(&relay.to_inner) {
            self.close(index, Reason::BadRequest);
        } else if is_open && relay.is_client_done {
            self.close(index, Reason::ClientGone);
        } else if is_open {
            self.read_stream(index);
        }
        if let Some(index) = self.rows.find(id) {
            self.watch_again(index, self.rows.is_backlogged(index));
        }
        // It may have ended already: that is reported, so JS has to know its id.
        Some(id)
    }

    /// Whether node:http has closed a connection, and its client has not read anything for so long. Of a connection without TLS the
    /// kernel has the rest then, and closes it after the same time.
    pub(in crate::shard) fn is_relay_left(&self, index: u32, idle_ms: u32) -> bool {
        let relay = self.tls.relays.get(&index).filter(|_| idle_ms >= self.options.user_timeout_ms);
        relay.is_some_and(|relay| !relay.to_client.is_empty() && (relay.is_inner_done || relay.inner.has_hung_up()))
    }

    /// Something happened at either end.
    pub(in crate::shard) fn continue_relay(&mut self, id: Id) {
        let Some(index) = self.relayed_row(id) else { return };
        let mut is_again = false;
        // Answers to key updates of the client have to go out too.
        for step in [Shard::relay_out, Shard::relay_in, Shard::relay_out] {
            match step(self, index) {
                Pause::Wait => {}
                Pause::Again => is_again = true,
                Pause::Over => return,
            }
        }
        if is_again {
            self.watch_again(index, true);
        }
    }

    /// From the client to node:http.
    fn relay_in(&mut self, index: u32) -> Pause {
        for _ in 0..STEPS_A_TURN {
            let Some(relay) = self.tls.relays.get_mut(&index) else { return Pause::Over };
            match flush(&relay.inner, &mut relay.to_inner) {
                Ok(true) => {}
                Ok(false) => return Pause::Wait,
                // node:http has closed. What it has said still goes to the client.
                Err(_) => {
                    relay.to_inner.clear();
                    relay.is_client_done = true;
                }
            }
            if relay.is_client_done || relay.to_client.len() > MOST_WAITING_BYTES {
                return Pause::Wait;
            }
            match self.read_relayed(index) {
                Ok(()) => {}
                Err(pause) => return pause,
            }
        }
        Pause::Again
    }

    /// Takes a record of the client, or reads more.
    fn read_relayed(&mut self, index: u32) -> Result<(), Pause> {
        match self.tls.next_record(index) {
            Ok(Some(mut record)) => return self.relay_record(index, &mut record),
            Ok(None) => {}
            Err(alert) => return Err(self.fail_relay(index, alert)),
        }
        let Some(socket) = self.rows.socket(index) else { return Err(Pause::Over) };
        match socket.read(&mut self.scratch[..SCRATCH_BYTES]) {
            Ok(0) => self.end_input(index),
            Ok(count) => {
                self.tls.add_unread(index, &self.scratch[..count]);
                self.enter(index, State::Relayed);
            }
            Err(Stop::Later) => return Err(Pause::Wait),
            Err(Stop::Broken(_)) => {
                self.free(index);
                return Err(Pause::Over);
            }
        }
        Ok(())
    }

    fn relay_record(&mut self, index: u32, record: &mut [u8]) -> Result<(), Pause> {
        let (Some(session), Some(relay)) = (self.tls.sessions.get_mut(index), self.tls.relays.get_mut(&index)) else {
            return Err(Pause::Over);
        };
        match session.open(record) {
            Ok(Message::Data(text)) => relay.to_inner.extend_from_slice(text),
            Ok(Message::KeyUpdate(true)) => session.seal_key_update(&mut relay.to_client),
            Ok(Message::KeyUpdate(false)) => {}
            Ok(Message::CloseNotify) => self.end_input(index),
            Ok(Message::Failure(_)) => {
                self.free(index);
                return Err(Pause::Over);
            }
            Ok(Message::Handshake(_)) => return Err(self.fail_relay(index, Alert::UnexpectedMessage)),
            Err(alert) => return Err(self.fail_relay(index, alert)),
        }
        Ok(())
    }

    /// The client says nothing more, but may still read.
    fn end_input(&mut self, index: u32) {
        if let Some(relay) = self.tls.relays.get_mut(&index) {
            relay.is_client_done = true;
            // If it fails, node:http has closed, which is noticed when it is read from.
            let _ = relay.inner.close_write();
        }
    }

    /// From node:http to the client.
    fn relay_out(&mut self, index: u32) -> Pause {
        for _ in 0..STEPS_A_TURN {
            let (Some(relay), Some(socket)) = (self.tls.relays.get_mut(&index), self.rows.socket(index)) else { return Pause::Over };
            let before = relay.to_client.len();
            let is_flushed = flush(socket, &mut relay.to_client);
            let written = before - relay.to_client.len();
            add(&self.telemetry.bytes_written, written as u64);
            if written > 0 {
                self.enter(index, State::Relayed);
            }
            let Some(relay) = self.tls.relays.get_mut(&index) else { return Pause::Over };
            match is_flushed {
                Ok(true) if relay.is_inner_done => {
                    self.tls.relays.remove(&index);
                    self.send_alert(index, Alert::CloseNotify);
                    self.linger(index);
                    return Pause::Over;
                }
                Ok(true) => {}
                Ok(false) => return Pause::Wait,
                Err(_) => {
                    self.free(index);
                    return Pause::Over;
                }
            }
            let Some(session) = self.tls.sessions.get_mut(index) else { return Pause::Over };
            match relay.inner.read(&mut self.scratch[..MOST_BYTES]) {
                Ok(count @ 1..) => {
                    session.seal(Content::Data, &self.scratch[..count], &mut relay.to_client);
                    relay.is_inner_done = session.renew(&mut relay.to_client) == Renewal::Impossible;
                }
                Err(Stop::Later) => return Pause::Wait,
                Ok(0) | Err(Stop::Broken(_)) => relay.is_inner_done = true,
            }
            self.enter(index, State::Relayed);
        }
        Pause::Again
    }

    /// The client has sent something that is not a valid record.
    fn fail_relay(&mut self, index: u32, alert: Alert) -> Pause {
        if self.tls.relays.remove(&index).is_some_and(|relay| relay.to_client.is_empty()) {
            self.send_alert(index, alert);
        }
        self.linger(index);
        Pause::Over
    }
}

/// Both ends of a relay.
pub(in crate::shard) fn relay_pair() -> io::Result<(Socket, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (inner, outer) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    Ok((inner.into(), outer))
}

/// Writes what waits. False if something is left.
fn flush(socket: &Socket, waiting: &mut Vec<u8>) -> Result<bool, Stop> {
    while !waiting.is_empty() {
        match socket.write(waiting) {
            Ok(count) => drop(waiting.drain(..count)),
            Err(Stop::Later) => return Ok(false),
            Err(broken) => return Err(broken),
        }
    }
    // The memory of a large one is not kept.
    *waiting = Vec::new();
    Ok(true)
}
