//! From connecting to the request sent, and attempts that take too long.

use std::net::SocketAddr;

use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_nodelay, socket_error};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

use super::answer::Answer;
use super::attempt::Attempt;
use super::client::Client;
use super::streams::State;
use super::tally::count;
use super::{Cause, Target};
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
        while let Some(batch) = self.batches.front_mut().filter(|batch| batch.due_ns <= slice.now_ns) {
            let (target, number) = (batch.target, batch.next());
            if batch.left == 0 {
                self.batches.pop_front();
            }
            self.open(target, number);
            if slice.is_over() {
                break;
            }
        }
    }

    /// When `open_due` has something to do again.
    pub(super) fn next_open_ns(&self) -> Option<u64> {
        self.batches.front().map(|batch| batch.due_ns.max(self.now_ns + TOGETHER_NS))
    }

    fn open(&mut self, target_index: u32, number: u64) {
        let begun_ns = now_ns();
        let target = self.targets.get(target_index);
        let answer = Answer::new(target.is_strict, target.allows_messages);
        let deadline_ns = begun_ns + u64::from(target.timeout_ms) * MS;
        // The caller knows how much room there is, so this thread should never be full.
        let begun = if self.streams.is_full() { Err(Errno::MFILE) } else { begin(target, number) };
        let socket = match begun {
            Ok(socket) => socket,
            Err(error) => {
                self.targets.release(target_index);
                return count(&self.tally.failed[Cause::from(error) as usize], 1);
            }
        };
        let index = self.streams.insert(socket, target_index, answer);
        self.attempts.insert(index, Attempt { begun_ns, deadline_ns, has_first_byte: false });
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

    /// Connecting has succeeded or failed: sends the request, or ends the stream. Returns whether the stream goes on.
    pub(super) fn finish_connecting(&mut self, index: u32) -> bool {
        match self.send_request(index) {
            Ok(()) => {
                self.streams.row_mut(index).state = State::Asked;
                true
            }
            Err(cause) => {
                self.end(index, cause);
                false
            }
        }
    }

    fn send_request(&self, index: u32) -> Result<(), Cause> {
        let row = self.streams.row(index);
        let socket = row.socket.as_ref().ok_or(Cause::Other)?;
        socket_error(socket).and_then(|error| error)?;
        if let Some(attempt) = self.attempts.get(&index) {
            self.tally.connect.record((now_ns() - attempt.begun_ns) / 1000, 1);
        }
        let request = &self.targets.get(row.target).request;
        // A few hundred bytes always fit into the buffer of a new socket.
        if socket.write(request)? == request.len() { Ok(()) } else { Err(Cause::Other) }
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
fn begin(target: &Target, number: u64) -> Result<Socket, Errno> {
    let (source, address) = target.pair(number);
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
