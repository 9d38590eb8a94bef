//! A listening socket, and whether connections are accepted from it at the moment.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketFlags, SocketType, acceptfrom_with, bind, getsockname, listen, socket_with, sockopt,
};

use crate::options::Options;
use crate::socket::Socket;
use crate::sys;

/// The length of its queue: as long as the kernel (somaxconn) allows.
const ACCEPT_QUEUE: i32 = 65_535;
/// A connection that has sent nothing is accepted after about this time.
const DEFER_S: i32 = 1;
/// The kernel's default receive buffer holds a head of this size.
const USUAL_HEAD_BYTES: usize = 32_768;

#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    pub is_tls: bool,
}

/// Whether a shard accepts connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accepting {
    #[default]
    Yes,
    /// Not before a row is free, or this time, when a connection without a head is old enough to be cut.
    Full(u64),
    /// The system was short of something: not before this time.
    Short(u64),
    /// Pings are late: not before this time.
    Late(u64),
}

/// What came of trying to accept.
#[derive(Debug)]
pub enum Accepted {
    /// With the address of the client.
    Connection(Socket, Option<IpAddr>),
    /// Nobody is waiting.
    Nobody,
    /// Out of descriptors or memory: it would fail again at once.
    Short,
    /// That connection was gone already.
    Gone,
}

impl Listener {
    /// One of several on the same port (SO_REUSEPORT): the kernel distributes connections by a hash. Accepted sockets
    /// inherit its options. Returns the port.
    pub fn open(address: SocketAddr, is_tls: bool, options: &Options) -> io::Result<(Self, u16)> {
        let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let fd = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
        sockopt::set_socket_reuseaddr(&fd, true)?;
        sockopt::set_socket_reuseport(&fd, true)?;
        if address.ip() == IpAddr::from([0u16; 8]) {
            sockopt::set_ipv6_v6only(&fd, false)?;
        }
        sys::defer_accept(&fd, DEFER_S)?;
        let listener = Listener { fd, is_tls };
        listener.tune(options)?;
        bind(&listener.fd, &address)?;
        listen(&listener.fd, ACCEPT_QUEUE)?;
        let port = listener.port()?;
        Ok((listener, port))
    }

    /// One that another process has opened.
    pub fn taken(fd: OwnedFd, is_tls: bool, options: &Options) -> io::Result<Self> {
        let listener = Listener { fd, is_tls };
        listener.tune(options)?;
        Ok(listener)
    }

    /// Sets the options that accepted connections inherit.
    fn tune(&self, options: &Options) -> io::Result<()> {
        sockopt::set_tcp_nodelay(&self.fd, !options.nagle)?;
        sockopt::set_tcp_user_timeout(&self.fd, options.user_timeout_ms)?;
        if options.max_head_bytes > USUAL_HEAD_BYTES {
            // A head that comes at once is only peeked at, so a whole one should fit the kernel's buffer.
            sockopt::set_socket_recv_buffer_size(&self.fd, options.max_head_bytes * 2)?;
        }
        Ok(())
    }

    pub fn port(&self) -> io::Result<u16> {
        Ok(SocketAddr::try_from(getsockname(&self.fd)?)?.port())
    }

    /// Whether both are descriptors of the same socket.
    pub fn is_same(&self, other: &Listener) -> bool {
        let cookie = |listener: &Listener| sockopt::socket_cookie(&listener.fd).ok();
        cookie(self).is_some() && cookie(self) == cookie(other)
    }

    pub fn accept(&self) -> Accepted {
        match acceptfrom_with(&self.fd, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok((fd, peer)) => Accepted::Connection(fd.into(), peer.and_then(address_of)),
            Err(Errno::AGAIN) => Accepted::Nobody,
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Accepted::Short,
            Err(_) => Accepted::Gone,
        }
    }
}

impl Accepting {
    /// When to try again.
    pub fn resume_ns(self) -> Option<u64> {
        match self {
            Accepting::Yes => None,
            Accepting::Full(until_ns) | Accepting::Short(until_ns) | Accepting::Late(until_ns) => Some(until_ns),
        }
    }
}

fn address_of(peer: SocketAddrAny) -> Option<IpAddr> {
    SocketAddr::try_from(peer).ok().map(|peer| peer.ip().to_canonical())
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
