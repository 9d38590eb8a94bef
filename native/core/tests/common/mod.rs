//! What the tests share: records as `transport/commands.js` writes them, clients, and a wait for what is to come.

#![allow(dead_code)] // each test binary uses a part of it

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use holdfast_core::framing::Payload;
use holdfast_core::id::Id;
use holdfast_core::mail::Events;
use holdfast_core::telemetry::{Reason, Telemetry};
use holdfast_core::{Hold, HoldOptions, Options};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Nothing here takes so long on a machine that works at all.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long to wait for the bell before another look: not all that changes rings it.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// The formats.
pub const TEXT: u8 = 0;
pub const EVENTS: u8 = 1;
pub const CHUNKED: u8 = 2;
pub const CHUNKED_EVENTS: u8 = 3;

fn text(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes(), bytes].concat()
}

fn record(operation: u8, id: Id) -> Vec<u8> {
    [&[operation][..], &id.number().to_le_bytes()].concat()
}

pub fn hold(id: Id, format: u8, opening: &[u8], channels: &[&str]) -> Vec<u8> {
    let mut bytes = [vec![10, format], text(opening)].concat();
    bytes.extend_from_slice(&(channels.len() as u16).to_le_bytes());
    bytes.extend(channels.iter().flat_map(|channel| text(channel.as_bytes())));
    bytes.extend(record(1, id));
    bytes
}

pub fn refuse(id: Id, response: &[u8]) -> Vec<u8> {
    [record(2, id), text(response)].concat()
}

pub fn pass(id: Id) -> Vec<u8> {
    record(3, id)
}

/// The same payload as text and as an event.
pub fn send(id: Id, payload: &[u8]) -> Vec<u8> {
    [record(4, id), text(payload), text(payload)].concat()
}

pub fn close(id: Id) -> Vec<u8> {
    record(5, id)
}

pub fn subscribe(id: Id, channel: &str) -> Vec<u8> {
    [record(6, id), text(channel.as_bytes())].concat()
}

pub fn unsubscribe(id: Id, channel: &str) -> Vec<u8> {
    [record(7, id), text(channel.as_bytes())].concat()
}

pub fn publish(channel: &str, plain: &[u8], event: &[u8]) -> Vec<u8> {
    [vec![8], text(channel.as_bytes()), text(plain), text(event)].concat()
}

pub fn drain(period_ms: u32) -> Vec<u8> {
    [&[9][..], &period_ms.to_le_bytes()].concat()
}

/// One shard, and pings that come only in an hour.
pub fn options() -> HoldOptions {
    let shard = Options {
        capacity: 100,
        connections: 200,
        ping_interval_ms: 3_600_000,
        ping: Payload { text: (*b"\n").into(), events: (*b":\n\n").into() },
        nodelay: true,
        max_head_bytes: 8192,
        head_timeout_ms: 20_000,
        max_backlog_bytes: 1 << 20,
        user_timeout_ms: 20_000,
        headers: vec!["host".into()],
        reports_closes: true,
    };
    HoldOptions { shard, shards: 1, seat: 0, seats: 1, unshare: true }
}

pub fn options_with(change: impl FnOnce(&mut HoldOptions)) -> HoldOptions {
    let mut options = options();
    change(&mut options);
    options
}

/// Looks until there is something to see.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "never came: {what}");
        let _ = poll(&mut [], Some(&LOOK_AGAIN));
    }
}

/// A Hold, and all it said so far.
pub struct Held {
    pub hold: Hold,
    pub address: SocketAddr,
    bell: OwnedFd,
    /// Heads that came: the id, and the lines.
    pub heads: Vec<(Id, String)>,
    pub rest: Events,
}

impl Held {
    pub fn start(options: HoldOptions) -> Self {
        let mut hold = Hold::new(options).unwrap();
        let port = hold.listen(([127, 0, 0, 1], 0).into()).unwrap();
        let bell = hold.take_bell().unwrap();
        Held { hold, address: ([127, 0, 0, 1], port).into(), bell, heads: Vec::new(), rest: Events::default() }
    }

    pub fn command(&self, records: &[u8]) {
        self.hold.command(records).unwrap();
    }

    /// Takes events until they hold what is looked for.
    pub fn until<T>(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            self.take();
            if let Some(found) = look(self) {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "never came: {what}");
            let _ = poll(&mut [PollFd::new(&self.bell, PollFlags::IN)], Some(&LOOK_AGAIN));
            let _ = rustix::io::read(&self.bell, &mut [0; 64]);
        }
    }

    fn take(&mut self) {
        loop {
            let (mut events, more) = self.hold.take_events(1000);
            for heads in events.heads.drain(..) {
                let lines = String::from_utf8(heads.lines).unwrap();
                let lines: Vec<&str> = lines.split_terminator('\0').collect();
                assert_eq!(lines.len(), heads.ids.len(), "as many heads as ids");
                let mut last = "";
                for (id, lines) in heads.ids.into_iter().zip(lines) {
                    last = if lines.is_empty() { last } else { lines };
                    self.heads.push((id, last.to_string()));
                }
            }
            self.rest.closed.append(&mut events.closed);
            self.rest.adopted.append(&mut events.adopted);
            self.rest.passed.append(&mut events.passed);
            self.rest.drained.append(&mut events.drained);
            if !more {
                return;
            }
        }
    }

    /// The next head that is asked about.
    pub fn asked(&mut self) -> (Id, String) {
        self.until("a head", |held| (!held.heads.is_empty()).then(|| held.heads.remove(0)))
    }

    /// The id of the next head, which must be of this target.
    pub fn asked_for(&mut self, target: &str) -> Id {
        let (id, lines) = self.asked();
        assert_eq!(lines, format!("GET\n{target}\n1.1\na"));
        id
    }

    /// A client and its stream, which has said `opening`.
    pub fn stream(&mut self, format: u8, channels: &[&str]) -> (TcpStream, Id) {
        self.stream_of(connect(self.address), format, channels)
    }

    pub fn stream_of(&mut self, mut client: TcpStream, format: u8, channels: &[&str]) -> (TcpStream, Id) {
        client.write_all(b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let id = self.asked_for("/stream");
        self.command(&hold(id, format, b"opening", channels));
        expect(&mut client, b"opening");
        (client, id)
    }

    /// Waits for the end of a stream, and says why it came.
    pub fn closed(&mut self, id: Id) -> Reason {
        self.until("the end of a stream", |held| held.rest.closed.iter().find(|(closed, _)| *closed == id).map(|(_, reason)| *reason))
    }

    pub fn total(&self, figure: impl Fn(&Telemetry) -> u64) -> u64 {
        self.hold.telemetry().map(figure).sum()
    }

    pub fn connections(&self) -> u64 {
        self.total(|telemetry| telemetry.connections.load(Relaxed))
    }

    pub fn backlog(&self) -> u64 {
        self.total(|telemetry| telemetry.backlog_bytes.load(Relaxed))
    }

    pub fn until_connections(&mut self, count: u64) {
        self.until(&format!("{count} connections"), |held| (held.connections() == count).then_some(()));
    }
}

/// A client that would rather fail than wait for ever.
pub fn connect(address: SocketAddr) -> TcpStream {
    let client = TcpStream::connect(address).unwrap();
    client.set_nodelay(true).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client
}

pub fn ask(address: SocketAddr, request: &[u8]) -> TcpStream {
    let mut client = connect(address);
    client.write_all(request).unwrap();
    client
}

/// The next bytes are these.
pub fn expect(client: &mut TcpStream, bytes: &[u8]) {
    let mut found = vec![0; bytes.len()];
    client.read_exact(&mut found).unwrap();
    assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(bytes));
}

/// The next bytes are these, and then it ends.
pub fn expect_end(client: &mut TcpStream, bytes: &[u8]) {
    let mut found = Vec::new();
    client.read_to_end(&mut found).unwrap();
    assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(bytes));
}
