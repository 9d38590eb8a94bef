//! Descriptors that move between threads with different descriptor tables: one message over a Unix socket carries a
//! record and a descriptor (SCM_RIGHTS, unix(7)). Both sides of each record are here.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recvmsg, sendmsg, socketpair,
};

use crate::framing::Format;
use crate::id::Id;
use crate::wire::{Malformed, Reader};

/// The largest record.
pub const RECORD_BYTES: usize = 16_384;

/// Two connected sockets that parcels can go through.
pub fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Sends a descriptor, which stays open here, with a record of at least one byte.
/// AGAIN, TOOMANYREFS or NOBUFS: there is no room at the moment.
pub fn send(through: impl AsFd, record: &[u8], fd: BorrowedFd) -> Result<(), Errno> {
    let fds = [fd];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(through, &[IoSlice::new(record)], &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).map(drop)
}

/// Whether sending may succeed in a moment.
pub fn is_full(error: Errno) -> bool {
    matches!(error, Errno::AGAIN | Errno::TOOMANYREFS | Errno::NOBUFS)
}

/// Receives one parcel: the size of its record, and its descriptor if the kernel had room for it in our table.
/// None when nothing is waiting or the other end is closed.
pub fn receive(through: impl AsFd, record: &mut [u8]) -> Option<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let message = recvmsg(through, &mut [IoSliceMut::new(record)], &mut control, flags).ok()?;
    let fd = control.drain().find_map(|sent| match sent {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    (message.bytes > 0).then_some((message.bytes, fd))
}

/// Instead of an id.
const NOBODY: u64 = 0;

/// The record of a connection whose stream a shard is to take over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adoption {
    /// Under which JS is told the outcome.
    pub token: u32,
    /// With TLS: the connection whose relay this descriptor is an end of.
    pub relayed: Option<Id>,
    pub format: Format,
    pub channels: Vec<Box<[u8]>>,
    /// Written first: the response that opens a WebSocket. Its client says nothing before it has that.
    pub opening: Box<[u8]>,
}

impl Adoption {
    pub fn encode(&self) -> Vec<u8> {
        let mut record = self.token.to_le_bytes().to_vec();
        record.extend_from_slice(&self.relayed.map_or(NOBODY, Id::bits).to_le_bytes());
        record.push(self.format.byte());
        record.extend_from_slice(&(self.channels.len() as u16).to_le_bytes());
        for channel in &self.channels {
            record.extend_from_slice(&(channel.len() as u32).to_le_bytes());
            record.extend_from_slice(channel);
        }
        record.extend_from_slice(&(self.opening.len() as u32).to_le_bytes());
        record.extend_from_slice(&self.opening);
        record
    }

    pub fn decode(record: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(record);
        let (token, relayed) = (reader.u32()?, reader.u64()?);
        let relayed = (relayed != NOBODY).then(|| Id::from_bits(relayed));
        Ok(Adoption { token, relayed, format: reader.format()?, channels: reader.texts()?, opening: reader.text()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adoption_is_read_as_it_was_written() {
        let format = Format::from_byte(0x11).unwrap();
        let relayed = Some(Id::new(1, 2, 3));
        let channels = vec![b"news"[..].into(), Box::default()];
        let adoption = Adoption { token: 7, relayed, format, channels, opening: b"101"[..].into() };
        let record = adoption.encode();
        assert_eq!(Adoption::decode(&record), Ok(adoption));
        for end in 0..record.len() {
            assert_eq!(Adoption::decode(&record[..end]), Err(Malformed), "{end}");
        }
    }

    #[test]
    fn a_descriptor_arrives_with_its_record() {
        let (one, other) = pair().unwrap();
        let mut record = [0; RECORD_BYTES];
        assert!(receive(&other, &mut record).is_none(), "nothing is waiting");
        let sent = std::fs::File::open("/dev/null").unwrap();
        send(&one, b"abc", sent.as_fd()).unwrap();
        let (size, fd) = receive(&other, &mut record).unwrap();
        assert_eq!((&record[..size], fd.is_some()), (&b"abc"[..], true));
        drop(one);
        assert!(receive(&other, &mut record).is_none(), "the other end is closed");
    }
}
