//! The sockets between two shards. A giver offers itself under a random name that only the taker is told, in the abstract namespace:
//! there is no file to protect or to clean up. Only processes of the same user are served.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, recvmsg, sendmsg, socket_with, sockopt,
};
use rustix::process::geteuid;

use super::PARCEL_ROWS;
use crate::parcel::is_full;

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);
const QUEUE: i32 = 256;
/// Read at once, to the stack: freeing a buffer of 64 KB makes the allocator tidy up, which costs more than to read again.
const READ_BYTES: usize = 32_768;
/// No frame is larger. A stream may have a backlog of many megabytes.
const MOST_FRAME_BYTES: usize = 1 << 30;

/// What came in one piece, with its descriptors.
pub type Frame = (Vec<u8>, VecDeque<OwnedFd>);

/// The peer has closed, or has sent something that is not one of our frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// A giver that waits for takers.
#[derive(Debug)]
pub struct Offer {
    fd: OwnedFd,
    name: String,
}

impl Offer {
    pub fn open() -> io::Result<Self> {
        let name = random_name();
        let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
        bind(&fd, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        listen(&fd, QUEUE)?;
        Ok(Offer { fd, name })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next taker that waits.
    pub fn accept(&self) -> Option<Peer> {
        loop {
            let fd = accept_with(&self.fd, FLAGS).ok()?;
            if sockopt::socket_peercred(&fd).is_ok_and(|peer| peer.uid == geteuid()) {
                return Some(Peer::of(fd));
            }
        }
    }
}

impl AsFd for Offer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// 128 bits that nobody can guess: the keys of hash tables come from the system's generator.
fn random_name() -> String {
    let random = || RandomState::new().hash_one(());
    format!("holdfast-{:016x}{:016x}", random(), random())
}

/// The other shard.
#[derive(Debug)]
pub struct Peer {
    fd: OwnedFd,
    input: Vec<u8>,
    fds: VecDeque<OwnedFd>,
    /// What the kernel has not taken yet.
    output: Vec<u8>,
}

impl Peer {
    fn of(fd: OwnedFd) -> Self {
        Peer { fd, input: Vec::new(), fds: VecDeque::new(), output: Vec::new() }
    }

    /// Connects to the giver with this name.
    pub fn connect(name: &str) -> io::Result<Self> {
        let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
        connect(&fd, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        Ok(Peer::of(fd))
    }

    /// Sends a frame. Nothing of the one before may be left. False: there is no room at the moment, and nothing was sent.
    pub fn send(&mut self, frame: &[u8], fds: &[BorrowedFd]) -> Result<bool, Gone> {
        debug_assert!(self.output.is_empty());
        let size = (frame.len() as u32).to_le_bytes();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PARCEL_ROWS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(fds));
        }
        let parts = [IoSlice::new(&size), IoSlice::new(frame)];
        match sendmsg(&self.fd, &parts, &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(sent) => {
                self.output.extend(size.iter().chain(frame).skip(sent));
                Ok(true)
            }
            Err(error) if is_full(error) || error == Errno::INTR => Ok(false),
            Err(_) => Err(Gone),
        }
    }

    /// Whether a part of a frame is left.
    pub fn is_sending(&self) -> bool {
        !self.output.is_empty()
    }

    /// Sends more of the frame.
    pub fn send_more(&mut self) -> Result<(), Gone> {
        while !self.output.is_empty() {
            match rustix::net::send(&self.fd, &self.output, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) => drop(self.output.drain(..sent)),
                Err(error) if is_full(error) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(_) => return Err(Gone),
            }
        }
        Ok(())
    }

    /// Reads what has come.
    pub fn read(&mut self) -> Result<(), Gone> {
        let mut buffer = [0; READ_BYTES];
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PARCEL_ROWS))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let message = match recvmsg(&self.fd, &mut [IoSliceMut::new(&mut buffer)], &mut control, flags) {
                Ok(message) => message,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(_) => return Err(Gone),
            };
            for sent in control.drain() {
                if let RecvAncillaryMessage::ScmRights(fds) = sent {
                    self.fds.extend(fds);
                }
            }
            if message.bytes == 0 {
                return Err(Gone);
            }
            self.input.extend_from_slice(&buffer[..message.bytes]);
        }
    }

    /// The next whole frame, with the descriptors that the kernel had room for in our table.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, Gone> {
        let Some((size, rest)) = self.input.split_first_chunk() else { return Ok(None) };
        let size = u32::from_le_bytes(*size) as usize;
        if size > MOST_FRAME_BYTES {
            return Err(Gone);
        }
        let Some(frame) = rest.get(..size) else { return Ok(None) };
        let frame = frame.to_vec();
        self.input.drain(..size_of::<u32>() + size);
        // There is one frame at a time, so all of them belong to it.
        Ok(Some((frame, std::mem::take(&mut self.fds))))
    }
}

impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Peer, Peer) {
        let offer = Offer::open().unwrap();
        let one = Peer::connect(offer.name()).unwrap();
        (one, offer.accept().unwrap())
    }

    fn files(count: usize) -> Vec<OwnedFd> {
        (0..count).map(|_| std::fs::File::open("/dev/null").unwrap().into()).collect()
    }

    #[test]
    fn a_frame_arrives_with_its_descriptors_however_large_it_is() {
        let (mut one, mut other) = pair();
        let (frame, files) = (vec![7; 3 << 20], files(PARCEL_ROWS));
        let fds: Vec<BorrowedFd> = files.iter().map(AsFd::as_fd).collect();
        assert_eq!(one.send(&frame, &fds), Ok(true));
        assert!(one.is_sending(), "it does not fit into the kernel's buffer");
        let (read, fds) = loop {
            other.read().unwrap();
            if let Some(frame) = other.next_frame().unwrap() {
                break frame;
            }
            one.send_more().unwrap();
        };
        assert_eq!((read == frame, fds.len(), one.is_sending()), (true, PARCEL_ROWS, false));
    }

    #[test]
    fn frames_are_read_one_by_one_and_the_end_is_noticed() {
        let (mut one, mut other) = pair();
        assert_eq!((one.send(b"ab", &[]), one.send(b"", &[])), (Ok(true), Ok(true)));
        other.read().unwrap();
        let mut next = || other.next_frame().unwrap().map(|(frame, _)| frame);
        assert_eq!([next(), next(), next()], [Some(b"ab".to_vec()), Some(Vec::new()), None]);
        drop(one);
        assert_eq!(other.read(), Err(Gone));
        assert_eq!(other.send(b"x", &[]), Err(Gone));
    }

    #[test]
    fn a_name_can_be_used_as_long_as_the_offer_lasts() {
        let offer = Offer::open().unwrap();
        let name = offer.name().to_string();
        assert!(Peer::connect(&name).is_ok());
        drop(offer);
        assert!(Peer::connect(&name).is_err());
    }
}
