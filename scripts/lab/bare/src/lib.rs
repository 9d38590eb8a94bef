//! What the programs share.

pub mod moves;

use std::io;
use std::os::fd::OwnedFd;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

/// The event id of standard input; all others are streams.
pub const STDIN: u64 = u64::MAX;

pub fn now_ms() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

pub fn new_epoll() -> io::Result<OwnedFd> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, std::io::stdin(), epoll::EventData::new_u64(STDIN), epoll::EventFlags::IN)?;
    Ok(epoll)
}

/// Waits for events, at most `timeout_ms` or without limit.
pub fn wait(epoll: &OwnedFd, ready: &mut Vec<epoll::Event>, timeout_ms: Option<u64>) -> io::Result<()> {
    ready.clear();
    let timeout = timeout_ms.map(|ms| Timespec { tv_sec: (ms / 1000) as _, tv_nsec: (ms % 1000 * 1_000_000) as _ });
    match epoll::wait(epoll, spare_capacity(ready), timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Reads a line of standard input: a word and a number. None at the end of input.
pub fn read_order() -> Option<(String, u64)> {
    read_words().map(|(word, [first, _])| (word, first))
}

/// Reads a line of standard input: a word and two numbers, 0 for those that are missing. None at the end of input.
pub fn read_words() -> Option<(String, [u64; 2])> {
    let mut line = String::new();
    if io::stdin().read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut words = line.split_whitespace();
    let word = words.next().unwrap_or_default().to_string();
    let mut number = || words.next().and_then(|number| number.parse().ok()).unwrap_or_default();
    Some((word, [number(), number()]))
}
