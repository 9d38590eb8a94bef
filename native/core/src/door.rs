//! From accepted to answered: connections that carry no stream yet, or never will.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType, accept_with, bind,
    getsockname, listen, recv, send, sendmsg, shutdown, socket_with, sockopt,
};

use crate::head::{self, Head};
use crate::id::Id;
use crate::rows::{Input, NONE, State};
use crate::shard::{MS, Options, SCRATCH_BYTES, Shard};
use crate::sys;
use crate::telemetry::{Reason, add, take_off};

/// The queue of a listening socket: as long as the kernel (somaxconn) lets it be.
const ACCEPT_QUEUE: i32 = 65_535;
/// For how long a connection that has sent nothing is not worth waking for.
const DEFER_S: i32 = 1;
/// Connections that one turn accepts.
const ACCEPTS_A_TURN: usize = 64;
/// How long to wait where the system is short of something.
const SHORT_NS: u64 = 100 * MS;
/// How long an answered client may take to read and close. A connection closed at once, with bytes of the client
/// unread, would be reset, and the answer lost.
pub const LINGER_NS: u64 = 1000 * MS;
/// Reads of a client that is being let go, before the others have their turn.
const DISCARDS_A_TURN: usize = 16;
const MOST_SWEEP_MS: u32 = 250;
const FEWEST_SWEEP_MS: u32 = 10;

/// The part of a request head that comes with the first segment in every case we know.
const USUAL_HEAD_BYTES: usize = 32_768;

/// A listening socket, and whether it is listened to.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    state: Accepting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepting {
    Yes,
    /// Until a row is free.
    Full,
    /// Until a moment.
    Short(u64),
}

impl Listener {
    /// One of several on the same port (SO_REUSEPORT); the kernel shares connections out by a hash. What is set
    /// here the accepted inherit. Returns the port.
    pub fn open(address: SocketAddr, options: &Options) -> io::Result<(Self, u16)> {
        let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let fd = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
        sockopt::set_socket_reuseaddr(&fd, true)?;
        sockopt::set_socket_reuseport(&fd, true)?;
        if address.ip() == IpAddr::from([0u16; 8]) {
            sockopt::set_ipv6_v6only(&fd, false)?;
        }
        sockopt::set_tcp_nodelay(&fd, options.nodelay)?;
        sockopt::set_tcp_user_timeout(&fd, options.user_timeout_ms)?;
        sys::defer_accept(&fd, DEFER_S)?;
        if options.max_head_bytes > USUAL_HEAD_BYTES {
            // A head is peeked at, so all of it must fit the kernel's buffer.
            sockopt::set_socket_recv_buffer_size(&fd, options.max_head_bytes * 2)?;
        }
        bind(&fd, &address)?;
        listen(&fd, ACCEPT_QUEUE)?;
        let port = SocketAddr::try_from(getsockname(&fd)?)?.port();
        Ok((Listener { fd, state: Accepting::Yes }, port))
    }

    pub fn fd(&self) -> impl AsFd {
        self.fd.as_fd()
    }

    /// When to try again.
    pub fn resume_ns(&self) -> Option<u64> {
        if let Accepting::Short(until_ns) = self.state { Some(until_ns) } else { None }
    }
}

impl Shard {
    /// Takes in a slice of those that wait.
    pub(crate) fn accept(&mut self) {
        for _ in 0..ACCEPTS_A_TURN {
            let Some(listener) = &self.listener else { return };
            if self.rows.is_full() {
                return self.set_accepting(Accepting::Full);
            }
            match accept_with(&listener.fd, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(fd) => self.let_in(fd),
                Err(Errno::AGAIN) => return,
                // Out of descriptors or memory: it would fail at once again.
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    return self.set_accepting(Accepting::Short(self.now_ns + SHORT_NS));
                }
                // Gone before it was accepted, or a fault of the network below: that one alone.
                Err(_) => {}
            }
        }
    }

    fn set_accepting(&mut self, state: Accepting) {
        let Some(listener) = &mut self.listener else { return };
        if listener.state == state {
            return;
        }
        listener.state = state;
        let flags = if state == Accepting::Yes { epoll::EventFlags::IN } else { epoll::EventFlags::empty() };
        // The descriptor is in the epoll as long as the listener is there.
        let _ = epoll::modify(&self.epoll, &listener.fd, Shard::listener_data(), flags);
    }

    pub(crate) fn let_in(&mut self, fd: OwnedFd) {
        let index = self.insert(fd);
        self.let_in_turn += 1;
        self.read_head(index, false);
    }

    /// Makes a row for a connection. There is room.
    pub(crate) fn insert(&mut self, fd: OwnedFd) -> u32 {
        if !self.has_outsiders() {
            self.sweep_ns = self.now_ns + self.sweep_every_ns();
        }
        add(&self.telemetry.connections, 1);
        self.rows.insert(fd, (self.now_ns / MS) as u32)
    }

    /// Has epoll tell of input and of the end, once for each change, and at once of what is there already. A row
    /// that can't be watched is closed.
    pub(crate) fn watch(&mut self, index: u32) {
        let data = epoll::EventData::new_u64(self.rows.id_of(index).bits());
        let mut flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        let row = self.rows.row(index);
        row.input = Input::None;
        // An opening that the kernel took only in part waits already.
        flags.set(epoll::EventFlags::OUT, row.is_backlogged);
        if row.fd.as_ref().is_none_or(|fd| epoll::add(&self.epoll, fd, data, flags).is_err()) {
            self.close(index, Reason::Error);
        }
    }

    fn is_watched(&mut self, index: u32) -> bool {
        self.rows.row(index).input != Input::Unwatched
    }

    /// Closes a connection that carries no stream any more.
    pub(crate) fn free(&mut self, index: u32) -> Option<OwnedFd> {
        let fd = self.rows.remove(index);
        take_off(&self.telemetry.connections, 1);
        if self.listener.as_ref().is_some_and(|listener| listener.state == Accepting::Full) {
            self.set_accepting(Accepting::Yes);
        }
        fd
    }

    /// Peeks at what came, and asks JS once the head is whole.
    pub(crate) fn read_head(&mut self, index: u32, has_ended: bool) {
        let row = self.rows.row(index);
        let Some(fd) = &row.fd else { return };
        let most = self.options.max_head_bytes + 1;
        let peeked = match recv(fd, &mut self.scratch[..most], RecvFlags::PEEK) {
            Ok((0, _)) => return drop(self.free(index)),
            Ok((count, _)) => &self.scratch[..count],
            Err(Errno::AGAIN | Errno::INTR) if !has_ended => return self.watch_head(index),
            Err(_) => return drop(self.free(index)),
        };
        let options = &self.options;
        match head::read(peeked, options.max_head_bytes, &options.headers, &mut self.heads.lines) {
            Head::Partial if has_ended => drop(self.free(index)),
            Head::Partial => self.watch_head(index),
            Head::Whole(size) => {
                if row.input != Input::Unwatched && (has_ended || peeked.len() > size) {
                    row.input = Input::Some;
                }
                row.head_bytes = size as u32;
                match self.standing.find(self.heads.newest(), self.now_ns) {
                    Some((openings, turn)) => {
                        self.heads.forget_newest();
                        self.rows.row(index).state = State::Asked;
                        self.hold(self.rows.id_of(index), &openings[turn]);
                    }
                    None => self.ask(index),
                }
            }
            Head::Bad(status) => self.ask_refusal(index, status),
        }
    }

    fn watch_head(&mut self, index: u32) {
        if !self.is_watched(index) {
            self.watch(index);
        }
    }

    /// Asks JS; the lines of the head stand in the batch already.
    fn ask(&mut self, index: u32) {
        self.rows.row(index).state = State::Asked;
        self.heads.add(self.rows.id_of(index));
    }

    /// Asks JS for a response that refuses: to a head without a method, whose target is the status.
    pub(crate) fn ask_refusal(&mut self, index: u32, status: u16) {
        let lines = &mut self.heads.lines;
        lines.extend_from_slice(format!("\n{status}").as_bytes());
        lines.push(head::END);
        self.ask(index);
    }

    /// Sends a whole response, and closes once the client has.
    pub(crate) fn refuse(&mut self, id: Id, response: &[u8]) {
        let Some(index) = self.asked(id) else { return };
        let since_ms = (self.now_ns / MS) as u32;
        let row = self.rows.row(index);
        let Some(fd) = &row.fd else { return };
        let sent = send(fd, response, SendFlags::NOSIGNAL);
        if sent != Ok(response.len()) || shutdown(fd, Shutdown::Write).is_err() {
            return drop(self.free(index));
        }
        row.state = State::Lingering;
        row.since_ms = since_ms;
        if self.is_watched(index) { self.discard(index) } else { self.watch(index) }
    }

    /// The row that waits for this answer; None where it came too late.
    pub(crate) fn asked(&self, id: Id) -> Option<u32> {
        self.rows.find(id).filter(|index| self.rows.state(*index) == State::Asked)
    }

    /// Reads and forgets, up to the end.
    pub(crate) fn discard(&mut self, index: u32) {
        for _ in 0..DISCARDS_A_TURN {
            let Some(fd) = &self.rows.row(index).fd else { return };
            // With MSG_TRUNC the kernel copies nothing.
            match recv(fd, &mut self.scratch[..SCRATCH_BYTES], RecvFlags::TRUNC) {
                Ok((_, 1..)) => {}
                Err(Errno::AGAIN) => return,
                _ => return drop(self.free(index)),
            }
        }
        self.watch_again(index, epoll::EventFlags::empty());
    }

    /// Has epoll tell of what is there already once more, and of `more` from now on.
    pub(crate) fn watch_again(&mut self, index: u32, more: epoll::EventFlags) {
        let data = epoll::EventData::new_u64(self.rows.id_of(index).bits());
        let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET | more;
        if let Some(fd) = &self.rows.row(index).fd {
            // It is watched since it was let in.
            let _ = epoll::modify(&self.epoll, fd, data, flags);
        }
    }

    /// Hands a connection, of which nothing was read, to node:http.
    pub(crate) fn pass(&mut self, id: Id) {
        if !self.hand_over(id) {
            self.passing.push_back(id);
        }
    }

    /// False where the kernel has no room for it.
    fn hand_over(&mut self, id: Id) -> bool {
        let Some(index) = self.asked(id) else { return true };
        let row = self.rows.row(index);
        let Some(fd) = &row.fd else { return true };
        let fds = [fd.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        match sendmsg(&self.transfer, &[io::IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(_) => {
                // Closing it would not: node's copy keeps it in this epoll.
                if row.input != Input::Unwatched {
                    let _ = epoll::delete(&self.epoll, fd);
                }
                self.events.passed.push(self.number);
                self.free(index);
            }
            // The pair is full, or too many descriptors are on their way.
            Err(Errno::AGAIN | Errno::TOOMANYREFS | Errno::NOBUFS) => return false,
            Err(_) => drop(self.free(index)),
        }
        true
    }

    /// Where the kernel has no room for one it has none for those behind it.
    pub(crate) fn retry_passing(&mut self) {
        while let Some(id) = self.passing.front().copied()
            && self.hand_over(id)
        {
            self.passing.pop_front();
        }
    }

    /// Whether there are connections that carry no stream.
    pub(crate) fn has_outsiders(&self) -> bool {
        self.rows.used() > self.held
    }

    fn sweep_every_ns(&self) -> u64 {
        let ms = (self.options.head_timeout_ms / 4).clamp(FEWEST_SWEEP_MS, MOST_SWEEP_MS);
        u64::from(ms) * MS
    }

    /// Looks for those who took too long: one look at the table for all, instead of a timer each.
    pub(crate) fn sweep(&mut self) {
        if let Some(Listener { state: Accepting::Short(until_ns), .. }) = self.listener
            && until_ns <= self.now_ns
        {
            self.set_accepting(Accepting::Yes);
        }
        if !self.has_outsiders() || self.now_ns < self.sweep_ns {
            return;
        }
        self.sweep_ns = self.now_ns + self.sweep_every_ns();
        let now_ms = (self.now_ns / MS) as u32;
        let is_over = self.drain.is_some_and(|drain| self.now_ns >= drain.since_ns + LINGER_NS);
        for index in 0..self.rows.len() as u32 {
            let age_ms = now_ms.wrapping_sub(self.rows.row(index).since_ms);
            match self.rows.state(index) {
                State::Head if is_over => drop(self.free(index)),
                State::Asked if is_over && u64::from(age_ms) * MS >= LINGER_NS => drop(self.free(index)),
                State::Head if age_ms >= self.options.head_timeout_ms => self.ask_refusal(index, 408),
                State::Ending | State::Lingering if u64::from(age_ms) * MS >= LINGER_NS => drop(self.end_row(index)),
                _ => {}
            }
        }
    }

    /// Frees a row that is not held, with what it left behind.
    pub(crate) fn end_row(&mut self, index: u32) -> Option<OwnedFd> {
        self.forget_backlog(index);
        self.rows.row(index).link = NONE;
        self.free(index)
    }
}
