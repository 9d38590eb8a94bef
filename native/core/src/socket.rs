//! Every read and write of a connection. Nothing else in the crate calls recv or send on one.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, getpeername, recv, send, shutdown, sockopt};

/// How much may be read, or discarded, at once.
pub const SCRATCH_BYTES: usize = 65_536;
/// An adopted socket may be a blocking one.
const WRITE: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);
const READ: RecvFlags = RecvFlags::DONTWAIT;

/// Why nothing was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Nothing is there, or there is no room, at the moment: epoll tells when to go on.
    Later,
    Broken(Errno),
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        if error == Errno::AGAIN || error == Errno::INTR { Stop::Later } else { Stop::Broken(error) }
    }
}

/// A connection. Dropping it closes it.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// Copies what has arrived into `buffer` and leaves it there to be read. 0 bytes: the peer has closed.
    pub fn peek(&self, buffer: &mut [u8]) -> Result<usize, Stop> {
        Ok(recv(&self.0, buffer, READ | RecvFlags::PEEK)?.0)
    }

    /// Removes up to `scratch.len()` bytes. The kernel doesn't copy them.
    pub fn skip(&self, scratch: &mut [u8]) -> Result<usize, Stop> {
        Ok(recv(&self.0, scratch, READ | RecvFlags::TRUNC)?.1)
    }

    /// Reads into `buffer`. 0 bytes: the peer has closed.
    pub fn read(&self, buffer: &mut [u8]) -> Result<usize, Stop> {
        Ok(recv(&self.0, buffer, READ)?.0)
    }

    /// Writes as much as the kernel takes.
    pub fn write(&self, bytes: &[u8]) -> Result<usize, Stop> {
        Ok(send(&self.0, bytes, WRITE)?)
    }

    /// The address of the client; None if it has none, or is gone.
    pub fn peer(&self) -> Option<IpAddr> {
        self.peer_address().map(|peer| peer.ip())
    }

    /// The same, with the port.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        let peer = SocketAddr::try_from(getpeername(&self.0).ok()??).ok()?;
        Some(SocketAddr::new(peer.ip().to_canonical(), peer.port()))
    }

    /// Sets the options that accepted connections inherit from their listener.
    pub fn tune(&self, nagle: bool, user_timeout_ms: u32) {
        // They can only fail for something that is not TCP.
        let _ = sockopt::set_tcp_nodelay(&self.0, !nagle);
        let _ = sockopt::set_tcp_user_timeout(&self.0, user_timeout_ms);
    }

    /// Whether it has these options already.
    pub fn is_tuned(&self, nagle: bool, user_timeout_ms: u32) -> bool {
        sockopt::tcp_nodelay(&self.0) == Ok(!nagle) && sockopt::tcp_user_timeout(&self.0) == Ok(user_timeout_ms)
    }

    /// Whether the other side has closed, although what it has said before may not have been read.
    pub fn has_hung_up(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::empty())]; // it is always reported
        poll(&mut fds, Some(&Timespec::default())).is_ok() && fds[0].revents().contains(PollFlags::HUP)
    }

    /// Says that nothing more will be written. What the peer sends can still be read.
    pub fn close_write(&self) -> Result<(), Stop> {
        Ok(shutdown(&self.0, Shutdown::Write)?)
    }
}

impl From<OwnedFd> for Socket {
    fn from(fd: OwnedFd) -> Self {
        Socket(fd)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (Socket, Socket) {
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        (one.into(), other.into())
    }

    #[test]
    fn what_is_peeked_at_can_be_read_and_what_is_read_is_gone() {
        let (one, other) = pair();
        let mut buffer = [0; 8];
        assert_eq!(one.read(&mut buffer), Err(Stop::Later), "a blocking socket does not block");
        assert_eq!(other.write(b"abc"), Ok(3));
        assert_eq!((one.peek(&mut buffer), &buffer[..3]), (Ok(3), &b"abc"[..]));
        assert_eq!((one.read(&mut buffer[..2]), one.read(&mut buffer)), (Ok(2), Ok(1)));
        other.close_write().unwrap();
        assert_eq!(one.read(&mut buffer), Ok(0));
        assert_eq!(one.write(b"x"), Ok(1), "the other direction is still open");
    }

    #[test]
    fn options_that_a_socket_has_already_are_seen() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = Socket(client.into());
        socket.tune(false, 30_000);
        assert!(socket.is_tuned(false, 30_000));
        assert!(!socket.is_tuned(true, 30_000) && !socket.is_tuned(false, 0));
        socket.tune(true, 0);
        assert!(socket.is_tuned(true, 0) && !socket.is_tuned(false, 0));
    }

    #[test]
    fn a_peer_that_is_gone_is_an_error_and_no_signal() {
        let (one, other) = pair();
        drop(other);
        assert_eq!(one.write(b"x"), Err(Stop::Broken(Errno::PIPE)));
    }
}
