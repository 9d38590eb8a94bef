//! A claim to a port. Shards share a port (SO_REUSEPORT), so the kernel would let another server of the same user share it too.
//!
//! Whoever wants a port first listens on it for a moment without that option, which fails if anybody else has the port. The
//! socket then stays bound but accepts nothing. From then on it allows sockets with SO_REUSEPORT, the shards', but no further
//! claim, even while no shard is listening. (The kernel compares these options when a socket binds, so they can be changed
//! afterwards.)

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, bind, getsockname, listen, shutdown, socket_with, sockopt};

/// Attempts, if other claims are made at the same moment.
const TRIES: u32 = 20;

#[derive(Debug)]
pub struct Claim {
    _fd: OwnedFd,
    port: u16,
}

impl Claim {
    /// Claims a port until it is dropped; 0 takes a free one. Fails with EADDRINUSE if anybody else has it.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        // A port that the kernel chose is lost as soon as nobody listens; one that was asked for stays bound.
        let chosen = if address.port() == 0 { Some(bound(address)?) } else { None };
        let port = chosen.as_ref().map_or(Ok(address.port()), port_of)?;
        let address = SocketAddr::new(address.ip(), port);
        for _ in 0..TRIES {
            if let Some(fd) = try_claim(address)? {
                return Ok(Claim { _fd: fd, port });
            }
            thread::sleep(pause());
        }
        Err(Errno::ADDRINUSE.into())
    }

    /// Shares a port that another process of this user has claimed: it counts as claimed until both have dropped it.
    pub fn join(address: SocketAddr) -> io::Result<Self> {
        let fd = unbound(address)?;
        sockopt::set_socket_reuseport(&fd, true)?;
        bind(&fd, &address)?;
        sockopt::set_socket_reuseaddr(&fd, false)?;
        let port = port_of(&fd)?;
        Ok(Claim { _fd: fd, port })
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

/// None if another claim to the port is being made at this moment: then both may have failed.
fn try_claim(address: SocketAddr) -> io::Result<Option<OwnedFd>> {
    let fd = bound(address)?;
    match listen(&fd, 0) {
        Err(Errno::ADDRINUSE) => return Ok(None),
        result => result?,
    }
    // No other claim can listen from here on: first because this one does, then because of its options.
    sockopt::set_socket_reuseaddr(&fd, false)?;
    sockopt::set_socket_reuseport(&fd, true)?;
    shutdown(&fd, Shutdown::Both)?;
    Ok(Some(fd))
}

/// Random, below 10 ms, so that two processes don't collide again.
fn pause() -> Duration {
    Duration::from_micros(RandomState::new().hash_one(()) % 10_000)
}

/// A socket that does not listen yet. Closed connections of an earlier server (TIME_WAIT) don't prevent it (SO_REUSEADDR).
fn bound(address: SocketAddr) -> io::Result<OwnedFd> {
    let fd = unbound(address)?;
    bind(&fd, &address)?;
    Ok(fd)
}

fn unbound(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let fd = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    if address.ip() == IpAddr::from([0u16; 8]) {
        sockopt::set_ipv6_v6only(&fd, false)?;
    }
    Ok(fd)
}

fn port_of(fd: &OwnedFd) -> io::Result<u16> {
    Ok(SocketAddr::try_from(getsockname(fd)?)?.port())
}
