//! Waiting for sockets.

use std::io;
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::clock::SECOND_NS;

/// Waits for events, at most `timeout_ns`.
pub fn wait(epoll: &OwnedFd, ready: &mut Vec<epoll::Event>, timeout_ns: u64) -> io::Result<()> {
    ready.clear();
    let timeout = Timespec { tv_sec: (timeout_ns / SECOND_NS) as _, tv_nsec: (timeout_ns % SECOND_NS) as _ };
    match epoll::wait(epoll, spare_capacity(ready), Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
