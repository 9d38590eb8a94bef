//! The floor: a bare epoll loop that accepts, answers, keeps the descriptor and sends. No checks, no timeouts, no
//! back-pressure: it shows what the kernel alone costs.
//!
//!     floor [PING_INTERVAL_MS [PORT]]
//!
//! Prints `port N`. Several processes may share a PORT: the kernel distributes connections among them. Each stream is pinged
//! once in an interval, always at the same time of it, unless it has been published to since; an interval of 0 means no pings. The load fleet's consent request gets
//! a 404. Takes orders on standard input: `publish BYTES [SENT_US]` sends a chunk of that length to every stream and answers
//! `published N`; with a time, the text begins with it, as the fleet expects it. `spread BYTES COUNT` sends that many chunks,
//! each to a stream far from the one before it. `move` moves all streams as a handover does, and answers `moved N`.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use holdfast_bare::moves::{EDGES, move_all};
use holdfast_bare::{STDIN, new_epoll, now_ms, read_words, wait};
use rustix::event::epoll;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, accept_with, bind, getsockname, listen, recv, send, socket_with, sockopt,
};

const LISTENER: u64 = STDIN - 1;
/// A shard of the server wakes as often.
const TICK_MS: u64 = 200;
/// Neighbours are pinged together, as in a shard.
const BLOCK: usize = 64;
const OPENING: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n\
Connection: close\r\nTransfer-Encoding: chunked\r\nDate: Sat, 21 Nov 2026 11:29:39 GMT\r\n\r\n8\r\nWelcome!\r\n";
const QUESTION: &[u8] = b"GET /.well-known/";
const NOT_FOUND: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const PING: &[u8] = b"4\r\nping\r\n";
/// Steps of this part of a circle, the golden ratio, stay away from all earlier places for as long as possible.
const STEP_AROUND: f64 = 0.618_033_988_749_895;

fn main() -> io::Result<()> {
    let number = |place| std::env::args().nth(place).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let (interval_ms, port) = (Some(number(1)).filter(|ms| *ms > 0), number(2) as u16);
    let epoll = new_epoll()?;
    let listener = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    sockopt::set_tcp_nodelay(&listener, true)?;
    sockopt::set_socket_reuseport(&listener, true)?;
    bind(&listener, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
    listen(&listener, 65_535)?;
    epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
    println!("port {}", SocketAddr::try_from(getsockname(&listener)?)?.port());

    let mut streams: Vec<Option<OwnedFd>> = Vec::with_capacity(20_000);
    let mut is_open: Vec<bool> = Vec::with_capacity(20_000);
    // Whether it has been published to since its last ping.
    let mut was_told: Vec<bool> = Vec::with_capacity(20_000);
    let mut free: Vec<usize> = Vec::new();
    let mut ready = Vec::with_capacity(256);
    let mut bytes = vec![0; 8192];
    // Each stream belongs to a slot of the interval, which is its schedule.
    let slots = interval_ms.map_or(1, |ms| ms.div_ceil(TICK_MS) as usize);
    let slot_ms = interval_ms.map_or(TICK_MS, |ms| ms.div_ceil(slots as u64));
    // If the last slots have fewer streams, they are not the same ones in all processes.
    let (mut slot, mut next_ms) = (std::process::id() as usize % slots, now_ms() + slot_ms);
    let mut around = 0.0;
    loop {
        wait(&epoll, &mut ready, interval_ms.map(|_| next_ms.saturating_sub(now_ms())))?;
        for event in &ready {
            match event.data.u64() {
                STDIN => {
                    let Some((order, [size, other])) = read_words() else { return Ok(()) };
                    if order == "move" {
                        println!("moved {}", move_all(&epoll, &mut streams)?);
                        continue;
                    }
                    let (sent_us, spread) = if order == "spread" { (0, other) } else { (other, 0) };
                    let begin = if sent_us > 0 { format!("@{sent_us} ") } else { String::new() };
                    let message = format!("{size:x}\r\n{begin:x<width$}\r\n", width = size as usize);
                    let send_to = |stream: &OwnedFd| {
                        let _ = send(stream, message.as_bytes(), SendFlags::NOSIGNAL);
                    };
                    if spread == 0 {
                        streams.iter().flatten().for_each(send_to);
                        was_told.fill(true);
                    }
                    for _ in 0..spread {
                        around = (around + STEP_AROUND) % 1.0;
                        streams.get((around * streams.len() as f64) as usize).and_then(Option::as_ref).map(send_to);
                    }
                    println!("published {}", if spread > 0 { spread as usize } else { streams.len() - free.len() });
                }
                LISTENER => {
                    for _ in 0..64 {
                        let Ok(stream) = accept_with(&listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) else { break };
                        let index = free.pop().unwrap_or(streams.len());
                        let data = epoll::EventData::new_u64(index as u64);
                        epoll::add(&epoll, &stream, data, EDGES)?;
                        if index == streams.len() {
                            streams.push(Some(stream));
                            is_open.push(false);
                            was_told.push(false);
                        } else {
                            streams[index] = Some(stream);
                        }
                    }
                }
                index => {
                    let index = index as usize;
                    let Some(stream) = &streams[index] else { continue };
                    let count = recv(stream, &mut bytes[..], RecvFlags::empty()).map_or(0, |(count, _)| count);
                    let is_question = bytes[..count].starts_with(QUESTION);
                    if count > 0 {
                        let _ = send(stream, if is_question { NOT_FOUND } else { OPENING }, SendFlags::NOSIGNAL);
                    }
                    is_open[index] = count > 0 && !is_question;
                    if !is_open[index] {
                        streams[index] = None;
                        free.push(index);
                    }
                }
            }
        }
        if interval_ms.is_some() && now_ms() >= next_ms {
            for first in (slot * BLOCK..streams.len()).step_by(slots * BLOCK) {
                let rows = first..streams.len().min(first + BLOCK);
                let untold = rows.filter(|row| is_open[*row] && !std::mem::take(&mut was_told[*row]));
                for stream in untold.filter_map(|row| streams[row].as_ref()) {
                    let _ = send(stream, PING, SendFlags::NOSIGNAL);
                }
            }
            slot = (slot + 1) % slots;
            next_ms += slot_ms;
        }
    }
}
