//! From connecting to the request sent, and attempts that take too long.

use std::collections::VecDeque;
use std::net::SocketAddr;

use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_nodelay, socket_error};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

use super::answer::Answer;
use super::attempt::{Attempt, Batch};
use super::client::Client;
use super::frames::add_key;
use super::streams::State;
use super::subscriber::Subscriber;
use super::tally::count;
use super::template::Filling;
use super::{Cause, Format, Target};
use crate::clock::{MS, Slice, now_ns};
use crate::socket::Socket;
use crate::sys;

/// Streams that are due within this time are opened together: every wake-up costs.
const TOGETHER_NS: u64 = 2 * MS;
/// How often attempts are checked for timeouts.
const SWEEP_EVERY_NS: u64 = 100 * MS;

impl Client {
    /// Starts opening the streams that are due, for a slice.
    pub(super) fn open_due(&mut self) {
        if self.batches.is_empty() {
            return;
        }
        let mut slice = Slice::begin();
        while self.batches.front().is_some_and(|batch| !self.must_wait(batch.target))
            && let Some((target, number)) = Batch::take_due(&mut self.batches, slice.now_ns)
        {
            self.open(target, number);
            if slice.is_over() {
                break;
            }
        }
    }

    /// When `open_due` or `churn_due` has something to do again.
    pub(super) fn next_open_ns(&self) -> Option<u64> {
        let due_ns = [&self.batches, &self.churns].into_iter().filter_map(VecDeque::front).map(|batch| batch.due_ns).min()?;
        Some(due_ns.max(self.now_ns + TOGETHER_NS))
    }

    pub(super) fn open(&mut self, target_index: u32, number: u64) {
        let begun_ns = now_ns();
        let target = self.targets.get(target_index);
        let answer = match &target.subscription {
            Some(_) => Answer::of_hub(target.is_strict),
            None => Answer::new(target.is_strict, target.allows_messages),
        }
        .in_format(target.format);
        let deadline_ns = begun_ns + u64::from(target.timeout_ms) * MS;
        // The caller knows how much room there is, so this thread should never be full.
        let row = self.streams.next_row();
        let place = self.base + u64::from(row);
        let stream = target.subscription.as_ref().map_or(place, |subscription| subscription.number(place));
        let server = self.visits.next(row, &target.servers, stream);
        let begun = if self.streams.is_full() { Err(Errno::MFILE) } else { begin(target, server, number) };
        let socket = match begun {
            Ok(socket) => socket,
            Err(error) => {
                if target.servers.len() > 1 {
                    count(&target.servers[server].tally.failed, 1);
                }
                self.targets.release(target_index);
                return count(&self.tally.failed[Cause::from(error) as usize], 1);
            }
        };
        let index = self.streams.insert(socket, target_index, answer);
        match &target.subscription {
            Some(subscription) => self.subscribers.begin(index, subscription, place, self.streams.most()),
            None => self.subscribers.forget(index),
        }
        self.attempts.insert(index, Attempt { begun_ns, connected_ns: 0, deadline_ns, has_first_byte: false });
        if let Err(error) = self.watch(index) {
            self.end(index, error.into());
        }
    }

    /// A socket becomes writable when it is connected. Nothing is written after the request, so it stays writable and
    /// that is reported only once.
    fn watch(&self, index: u32) -> Result<(), Errno> {
        let socket = self.streams.row(index).socket.as_ref().ok_or(Errno::BADF)?;
        self.reactor.watch(socket, self.streams.id_of(index), true)
    }

    /// Connecting has succeeded or failed: sends the request, or has the handshake begin, or ends the stream. Returns whether the
    /// stream goes on.
    pub(super) fn finish_connecting(&mut self, index: u32) -> bool {
        let is_secured = self.is_secured(index);
        let begun = self.note_connected(index).and_then(|()| if is_secured { Ok(()) } else { self.send_request(index) });
        match begun {
            Ok(()) => {
                self.streams.row_mut(index).state = if is_secured { State::Greeting } else { State::Asked };
                if !is_secured {
                    self.begin_poll(index);
                }
                true
            }
            Err(cause) => {
                self.end(index, cause);
                false
            }
        }
    }

    fn note_connected(&mut self, index: u32) -> Result<(), Cause> {
        let socket = self.streams.row(index).socket.as_ref().ok_or(Cause::Other)?;
        socket_error(socket).and_then(|error| error)?;
        if let Some(attempt) = self.attempts.get_mut(&index) {
            attempt.connected_ns = now_ns();
            self.tally.connect.record((attempt.connected_ns - attempt.begun_ns) / 1000, 1);
        }
        Ok(())
    }

    fn send_request(&mut self, index: u32) -> Result<(), Cause> {
        let request = self.request_for(index);
        let socket = self.streams.row(index).socket.as_ref().ok_or(Cause::Other)?;
        // A few thousand bytes always fit into the buffer of a new socket.
        let is_whole = socket.write(&request)? == request.len();
        self.request = request;
        if is_whole { Ok(()) } else { Err(Cause::Other) }
    }

    /// The request of a stream, in the buffer for it: the caller gives it back.
    pub(super) fn request_for(&mut self, index: u32) -> Vec<u8> {
        let mut request = std::mem::take(&mut self.request);
        request.clear();
        let target = self.targets.get(self.streams.row(index).target);
        match &target.subscription {
            None => request.extend_from_slice(&target.request),
            Some(subscription) => {
                let place = self.base + u64::from(index);
                let cursor = self.subscribers.get(index).map_or(&[][..], Subscriber::cursor);
                let (number, token_place) = (subscription.number(place), if subscription.is_token_shared { 0 } else { place });
                self.tokens.with(token_place, |token| subscription.request.write(Filling { number, token, cursor }, &mut request));
            }
        }
        if target.format == Format::WebSocket {
            add_key(&mut request, &self.key_of(index));
        }
        request
    }

    /// Ends attempts that take too long.
    pub(super) fn sweep(&mut self) {
        if self.attempts.is_empty() || self.now_ns < self.sweep_ns {
            return;
        }
        self.sweep_ns = self.now_ns + SWEEP_EVERY_NS;
        let late = self.attempts.iter().filter(|(_, attempt)| attempt.deadline_ns <= self.now_ns);
        for index in late.map(|(index, _)| *index).collect::<Vec<u32>>() {
            self.end(index, Cause::Timeout);
        }
        // Gives back the memory that a burst took.
        self.attempts.shrink_to(2 * self.attempts.len());
    }
}

/// A socket that is connecting.
fn begin(target: &Target, server: usize, number: u64) -> Result<Socket, Errno> {
    let (source, address) = target.pair(server, number);
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let fd = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    set_tcp_nodelay(&fd, true)?;
    if let Some(source) = source {
        // Otherwise bind chooses a port that is free for all targets, and an address has only 64k of those.
        let _ = sys::bind_address_no_port(&fd);
        bind(&fd, &SocketAddr::new(source, 0))?;
    }
    match connect(&fd, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd.into()),
        Err(error) => Err(error),
    }
}
