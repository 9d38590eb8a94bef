//! One connection: a batch of requests is sent, and when all of them are answered the next one is.
//!
//!     Closed --dial--> Connecting --connected--> Open --failed--> Closed

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send, socket_with, sockopt,
};

use crate::options::Address;
use crate::protocol::Request;

#[derive(Default)]
pub struct Connection {
    socket: Option<OwnedFd>,
    pub is_connecting: bool,
    /// Whether anything was answered since it was dialled.
    pub has_answered: bool,
    /// The batch, and how many of its requests are answered.
    pub batch: Vec<Request>,
    pub answered: usize,
    /// When the batch was sent, or given to a connection that isn't open yet.
    pub sent_ns: u64,
    /// What the kernel didn't take yet.
    unsent: Vec<u8>,
    /// The beginning of an answer whose rest hasn't arrived.
    pub received: Vec<u8>,
}

impl Connection {
    pub fn is_open(&self) -> bool {
        self.socket.is_some() && !self.is_connecting
    }

    pub fn is_closed(&self) -> bool {
        self.socket.is_none()
    }

    pub fn unanswered(&self) -> usize {
        self.batch.len() - self.answered
    }

    /// The request whose answer comes next.
    pub fn expected(&self) -> Option<Request> {
        self.batch.get(self.answered).copied()
    }

    /// Begins to connect; an event tells how it ended.
    pub fn dial(&mut self, epoll: &OwnedFd, index: u64, address: &Address) -> Result<(), Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (socket, begun) = match address {
            Address::Tcp(address) => {
                let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
                let socket = socket_with(family, SocketType::STREAM, flags, None)?;
                sockopt::set_tcp_nodelay(&socket, true)?;
                let begun = connect(&socket, address);
                (socket, begun)
            }
            Address::Unix(path) => {
                let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
                let begun = connect(&socket, &SocketAddrUnix::new(path)?);
                (socket, begun)
            }
        };
        match begun {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        epoll::add(epoll, &socket, EventData::new_u64(index), EventFlags::IN | EventFlags::OUT)?;
        self.socket = Some(socket);
        self.is_connecting = true;
        self.has_answered = false;
        Ok(())
    }

    /// The kernel says that connecting has ended.
    pub fn finish_dial(&mut self, epoll: &OwnedFd, index: u64) -> Result<(), Errno> {
        let Some(socket) = &self.socket else { return Ok(()) };
        sockopt::socket_error(socket)??;
        self.is_connecting = false;
        epoll::modify(epoll, socket, EventData::new_u64(index), EventFlags::IN)
    }

    /// Sends `bytes`, or keeps what the kernel doesn't take. Nothing else may be unsent.
    pub fn send(&mut self, epoll: &OwnedFd, index: u64, bytes: &[u8]) -> Result<(), Errno> {
        let Some(socket) = &self.socket else { return Ok(()) };
        let sent = match send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => sent,
            Err(Errno::AGAIN) => 0,
            Err(error) => return Err(error),
        };
        if sent == bytes.len() {
            return Ok(());
        }
        self.unsent.extend_from_slice(&bytes[sent..]);
        epoll::modify(epoll, socket, EventData::new_u64(index), EventFlags::IN | EventFlags::OUT)
    }

    /// Goes on sending, when the kernel has room again.
    pub fn send_rest(&mut self, epoll: &OwnedFd, index: u64) -> Result<(), Errno> {
        let Some(socket) = &self.socket else { return Ok(()) };
        match send(socket, &self.unsent, SendFlags::NOSIGNAL) {
            Ok(sent) => drop(self.unsent.drain(..sent)),
            Err(Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
        if self.unsent.is_empty() {
            epoll::modify(epoll, socket, EventData::new_u64(index), EventFlags::IN)?;
        }
        Ok(())
    }

    /// Returns how many bytes arrived: none at the end, None if there is nothing now.
    pub fn receive(&self, bytes: &mut [u8]) -> Result<Option<usize>, Errno> {
        let Some(socket) = &self.socket else { return Ok(None) };
        match recv(socket, bytes, RecvFlags::empty()) {
            Ok((count, _)) => Ok(Some(count)),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives up the batch.
    pub fn close(&mut self) {
        self.socket = None; // the kernel takes it out of epoll
        self.is_connecting = false;
        self.has_answered = false;
        self.answered = 0;
        self.batch.clear();
        self.unsent.clear();
        self.received.clear();
    }
}

/// What an error of a connection means.
pub fn cause_of(error: Errno) -> crate::tally::Cause {
    use crate::tally::Cause::*;
    match error {
        Errno::CONNREFUSED | Errno::NOENT => Refused,
        Errno::HOSTUNREACH | Errno::NETUNREACH => Unreachable,
        Errno::TIMEDOUT => Timeout,
        Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => NoPort,
        Errno::MFILE | Errno::NFILE => Descriptors,
        Errno::CONNRESET | Errno::PIPE => Reset,
        _ => Other,
    }
}

/// The words for an error.
pub fn words_of(error: Errno) -> String {
    io::Error::from(error).to_string()
}
