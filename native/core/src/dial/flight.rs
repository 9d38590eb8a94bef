//! From dialled to asked: sockets, connecting, the request, and openings that take too long.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_nodelay, socket_error};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, bind, connect, send, socket_with};

use super::answer::Answer;
use super::client::Client;
use super::streams::State;
use super::tally::count;
use super::{Cause, Target};
use crate::clock::{MS, SLICE_NS, now_ns};
use crate::sys;

const STRIDE: u32 = 16;

/// How often whoever orders does (`STEP_MS` in `fleet/drone.js`), less what it may be early.
const STEP_NS: u64 = 90 * MS;
/// Those that are due within so long are dialled together: each wake-up costs.
const TOGETHER_NS: u64 = 2 * MS;
/// How often openings are looked at that take too long.
const SWEEP_NS: u64 = 100 * MS;

/// What is known of a stream until it is open.
#[derive(Debug)]
pub struct Flight {
    pub begun_ns: u64,
    deadline_ns: u64,
    pub has_first_byte: bool,
}

/// Streams to open: how many, to what, and the turn of the first.
#[derive(Debug)]
pub struct Order {
    pub target: u32,
    pub turn: u64,
    pub left: u64,
    /// When the next is to be dialled, and how long after it the one after that.
    pub due_ns: u64,
    pub every_ns: u64,
}

impl Order {
    /// Its streams are dialled one after the other over the time that passes until more are ordered.
    pub fn new(target: u32, turn: u64, left: u64, now_ns: u64) -> Self {
        Order { target, turn, left, due_ns: now_ns, every_ns: STEP_NS / left.max(1) }
    }
}

impl Client {
    /// Opens what was ordered and is due, for a slice.
    pub(super) fn dial_some(&mut self) {
        let begun_ns = now_ns();
        let mut now_ns = begun_ns;
        while now_ns < begun_ns + SLICE_NS && self.orders.front().is_some_and(|order| order.due_ns <= now_ns) {
            for _ in 0..STRIDE {
                let Some(order) = self.orders.front_mut().filter(|order| order.due_ns <= now_ns) else { break };
                let (target, turn) = (order.target, order.turn);
                order.turn += 1;
                order.left -= 1;
                order.due_ns += order.every_ns;
                if order.left == 0 {
                    self.orders.pop_front();
                }
                self.dial(target, turn);
            }
            now_ns = crate::clock::now_ns();
        }
    }

    /// When to dial on: those that are due within a moment are dialled together.
    pub(super) fn next_dial_ns(&self) -> Option<u64> {
        self.orders.front().map(|order| order.due_ns.max(self.now_ns + TOGETHER_NS))
    }

    fn dial(&mut self, place: u32, turn: u64) {
        let begun_ns = now_ns();
        let target = self.targets.get(place);
        let answer = Answer::new(target.is_strict, target.allows_messages);
        let deadline_ns = begun_ns + u64::from(target.timeout_ms) * MS;
        // The caller knows how many there is room for: a thread that is full was told too much.
        let begun = if self.streams.is_full() { Err(Errno::MFILE) } else { begin(target, turn) };
        let fd = match begun {
            Ok(fd) => fd,
            Err(error) => {
                self.targets.release(place);
                return count(&self.tally.failed[Cause::from(error) as usize], 1);
            }
        };
        let index = self.streams.insert(fd, place, answer);
        self.flights.insert(index, Flight { begun_ns, deadline_ns, has_first_byte: false });
        if let Err(error) = self.watch(index) {
            self.end(index, error.into());
        }
    }

    /// Edge-triggered, once and for all: to be writable is to be connected, and later on nothing is written.
    fn watch(&self, index: u32) -> Result<(), Errno> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        let Some(fd) = &self.streams.row(index).fd else { return Err(Errno::BADF) };
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(self.streams.id_of(index)), flags)
    }

    /// It connected, or could not: sends the request. Returns whether it is still there.
    pub(super) fn see_connected(&mut self, index: u32) -> bool {
        match self.ask(index) {
            Ok(()) => self.streams.row_mut(index).state = State::Asked,
            Err(cause) => self.end(index, cause),
        }
        self.streams.row(index).state == State::Asked
    }

    fn ask(&self, index: u32) -> Result<(), Cause> {
        let row = self.streams.row(index);
        let fd = row.fd.as_ref().ok_or(Cause::Other)?;
        socket_error(fd).and_then(|error| error)?;
        if let Some(flight) = self.flights.get(&index) {
            self.tally.connect.record((now_ns() - flight.begun_ns) / 1000, 1);
        }
        let request = &self.targets.get(row.target).request;
        let sent = send(fd, request, SendFlags::NOSIGNAL)?;
        // Some hundred bytes always fit in the buffer of a fresh socket.
        if sent == request.len() { Ok(()) } else { Err(Cause::Other) }
    }

    /// Ends the openings that take too long.
    pub(super) fn sweep(&mut self) {
        if self.flights.is_empty() || self.now_ns < self.sweep_ns {
            return;
        }
        self.sweep_ns = self.now_ns + SWEEP_NS;
        let late = self.flights.iter().filter(|(_, flight)| flight.deadline_ns <= self.now_ns);
        for index in late.map(|(index, _)| *index).collect::<Vec<u32>>() {
            self.end(index, Cause::Timeout);
        }
        // What a burst took is given back.
        self.flights.shrink_to(2 * self.flights.len());
    }
}

/// A socket that is connecting.
fn begin(target: &Target, turn: u64) -> Result<OwnedFd, Errno> {
    let (source, address) = target.pair(turn);
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let fd = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    set_tcp_nodelay(&fd, true)?;
    if let Some(source) = source {
        // Without it the port is chosen before it is known for what, and an address has 64k ports for all targets.
        let _ = sys::bind_address_no_port(&fd);
        bind(&fd, &SocketAddr::new(source, 0))?;
    }
    match connect(&fd, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(error) => Err(error),
    }
}
