//! Descriptors that move as in a handover: out of an epoll, through a Unix socket (SCM_RIGHTS, unix(7)), and into an epoll again. One
//! thread does both sides, so nobody waits.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recvmsg, sendmsg, socketpair,
};

/// What epoll reports about a stream.
pub const EDGES: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP).union(epoll::EventFlags::ET);
/// Descriptors in a message: as many as in a handover.
const IN_A_MESSAGE: usize = 250;

/// Moves all of them, and returns how many. Each stays in its place, which is its event id.
pub fn move_all(epoll: &OwnedFd, streams: &mut [Option<OwnedFd>]) -> io::Result<usize> {
    let (here, there) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let mut moved = 0;
    for (number, some) in streams.chunks_mut(IN_A_MESSAGE).enumerate() {
        let places: Vec<usize> = (0..some.len()).filter(|place| some[*place].is_some()).collect();
        if places.is_empty() {
            continue;
        }
        send_all(epoll, &here, some)?;
        for (place, stream) in places.iter().zip(receive(&there)?) {
            let data = epoll::EventData::new_u64((number * IN_A_MESSAGE + place) as u64);
            epoll::add(epoll, &stream, data, EDGES)?;
            some[*place] = Some(stream);
            moved += 1;
        }
    }
    Ok(moved)
}

/// Those are closed here afterwards.
fn send_all(epoll: &OwnedFd, to: &OwnedFd, streams: &mut [Option<OwnedFd>]) -> io::Result<()> {
    for stream in streams.iter().flatten() {
        epoll::delete(epoll, stream)?;
    }
    let fds: Vec<_> = streams.iter().flatten().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(IN_A_MESSAGE))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(to, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    streams.fill_with(|| None);
    Ok(())
}

fn receive(from: &OwnedFd) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(IN_A_MESSAGE))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(from, &mut [IoSliceMut::new(&mut [0])], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut streams = Vec::with_capacity(IN_A_MESSAGE);
    for sent in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = sent {
            streams.extend(fds);
        }
    }
    Ok(streams)
}
