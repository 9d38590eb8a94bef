//! A client that opens streams and reads them at little cost.
//!
//!     client PORT PATH CONCURRENCY [HEADS]
//!
//! HEADS is a file of complete request heads, which the streams use in turn; without it, each asks for PATH.
//!
//! Takes orders on standard input: `open N` opens streams until there are N, at most CONCURRENCY at a time, and answers
//! `open N MS`; `close` resets all of them and answers `closed`; `read` answers `read BYTES`, everything received after the
//! welcomes. A stream is open when it gets "Welcome!", or the id-only block that a hub begins with. It exits with status 1 if a stream does not open or is lost.

use std::fs::read_to_string;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::Duration;

use holdfast_bare::{STDIN, new_epoll, now_ms, read_order, wait};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with, sockopt};

/// Streams per address of the loopback range: with more, the kernel's search for a free port gets slow.
const STREAMS_AN_ADDRESS: usize = 5000;

struct Client {
    port: u16,
    /// At least one; they take turns.
    requests: Vec<String>,
    concurrency: usize,
    epoll: OwnedFd,
    streams: Vec<Stream>,
    welcomed: usize,
    target: usize,
    begun_ms: u64,
    read: u64,
}

struct Stream {
    socket: OwnedFd,
    state: State,
}

#[derive(PartialEq)]
enum State {
    Connecting,
    Asked,
    Open,
}

fn main() -> io::Result<()> {
    let mut words = std::env::args().skip(1);
    let mut word = || words.next().unwrap_or_default();
    let (port, path, concurrency) = (word().parse().unwrap_or(0), word(), word().parse().unwrap_or(64));
    let requests = match word() {
        file if file.is_empty() => vec![format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")],
        file => read_to_string(file)?.split_inclusive("\r\n\r\n").map(String::from).collect(),
    };
    let mut client = Client {
        port,
        requests,
        concurrency,
        epoll: new_epoll()?,
        streams: Vec::with_capacity(20_000),
        welcomed: 0,
        target: 0,
        begun_ms: 0,
        read: 0,
    };
    let mut ready = Vec::with_capacity(1024);
    let mut bytes = vec![0; 65_536];
    loop {
        wait(&client.epoll, &mut ready, None)?;
        for event in &ready {
            if event.data.u64() != STDIN {
                client.see(event.data.u64() as usize, &mut bytes)?;
                continue;
            }
            match read_order() {
                None => {
                    client.reset();
                    return Ok(());
                }
                Some((order, target)) if order == "open" => {
                    client.target = target as usize;
                    client.begun_ms = now_ms();
                    client.dial()?;
                }
                Some((order, _)) if order == "close" => {
                    client.reset();
                    client.welcomed = 0;
                    println!("closed");
                    break; // the remaining events belong to streams that are gone
                }
                Some(_) => println!("read {}", client.read),
            }
        }
    }
}

impl Client {
    /// An ordinary close leaves a socket in TIME-WAIT for a minute, and a hundred thousand of those slow down whatever is
    /// measured next.
    fn reset(&mut self) {
        for Stream { socket, .. } in self.streams.drain(..) {
            let _ = sockopt::set_socket_linger(&socket, Some(Duration::ZERO));
        }
    }

    fn dial(&mut self) -> io::Result<()> {
        while self.streams.len() < self.target && self.streams.len() - self.welcomed < self.concurrency {
            let index = self.streams.len();
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
            sockopt::set_tcp_nodelay(&socket, true)?;
            let target = Ipv4Addr::new(127, 0, std::process::id() as u8, 1 + (index / STREAMS_AN_ADDRESS) as u8);
            let events = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
            epoll::add(&self.epoll, &socket, epoll::EventData::new_u64(index as u64), events)?;
            match connect(&socket, &SocketAddrV4::new(target, self.port)) {
                Ok(()) | Err(Errno::INPROGRESS) => {}
                Err(error) => return Err(error.into()),
            }
            self.streams.push(Stream { socket, state: State::Connecting });
        }
        Ok(())
    }

    fn see(&mut self, index: usize, bytes: &mut [u8]) -> io::Result<()> {
        let Stream { socket, state } = &mut self.streams[index];
        if *state == State::Connecting {
            let request = &self.requests[index % self.requests.len()];
            send(&*socket, request.as_bytes(), SendFlags::NOSIGNAL)?;
            *state = State::Asked;
            return Ok(());
        }
        loop {
            match recv(&*socket, &mut *bytes, RecvFlags::empty()) {
                Ok((0, _)) => return Err(io::Error::other(format!("stream {index} was closed"))),
                Ok((count, _)) if *state == State::Open => {
                    self.read += count as u64;
                    if count < bytes.len() {
                        return Ok(());
                    }
                }
                Ok((count, _)) if is_welcome(&bytes[..count]) => {
                    *state = State::Open;
                    self.welcomed += 1;
                    if self.welcomed == self.target {
                        println!("open {} {}", self.welcomed, now_ms() - self.begun_ms);
                    }
                    return self.dial();
                }
                Ok(_) if bytes.starts_with(b"HTTP/1.1 200 ") => {}
                Ok((count, _)) => return Err(io::Error::other(String::from_utf8_lossy(&bytes[..count.min(80)]).into_owned())),
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn is_welcome(bytes: &[u8]) -> bool {
    let contains = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    contains(b"Welcome!") || contains(b"\nid: ")
}
