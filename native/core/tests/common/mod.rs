//! What the tests share: records as `transport/commands.js` writes them, clients, and waiting for what must happen.

#![allow(dead_code)] // each test binary uses a part of it

pub mod by_hand;
pub mod pair;
pub mod tls;
pub mod tls_client;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use holdfast_core::id::Id;
use holdfast_core::labels::Kind;
use holdfast_core::mail::{Events, Heads};
use holdfast_core::protocol::op;
use holdfast_core::response::Refusal;
use holdfast_core::telemetry::{Reason, Telemetry};
use holdfast_core::{Hold, Options};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Nothing here takes this long on a machine that works.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// How long to wait for the bell before looking again: not every change rings it.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// The formats: an encoding, and a framing in the upper four bits.
pub const TEXT: u8 = 0;
pub const EVENTS: u8 = 1;
pub const CHUNKED: u8 = 0x10;
pub const CHUNKED_EVENTS: u8 = 0x11;
pub const UPDATES: u8 = 2;

/// Parts of a publication.
const HAS_MESSAGE: u8 = 1;
const HAS_CURSOR: u8 = 2;

/// The head of a response, without Date and the empty line.
pub const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
/// What the core adds to the head of a response after which the connection ends.
pub const CLOSE: &[u8] = b"Connection: close\r\n";
pub const NOT_FOUND: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n";

fn text(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes(), bytes].concat()
}

fn texts(all: &[&[u8]]) -> Vec<u8> {
    let items: Vec<u8> = all.iter().flat_map(|one| text(one)).collect();
    [&(all.len() as u16).to_le_bytes()[..], &items].concat()
}

fn record(operation: u8, id: Id) -> Vec<u8> {
    [&[operation][..], &id.number().to_le_bytes()].concat()
}

/// A message with the parts that are not empty.
fn message(id: &str, kind: &str, data: &[u8]) -> Vec<u8> {
    let bits = u8::from(!id.is_empty()) | u8::from(!kind.is_empty()) << 1;
    let parts = [id, kind].into_iter().filter(|part| !part.is_empty());
    [vec![bits], parts.flat_map(|part| text(part.as_bytes())).collect(), text(data)].concat()
}

/// How the streams begin that are held after it in the same buffer.
pub fn opening(format: u8, head: &[u8], welcomes: &[&[u8]], channels: &[&str]) -> Vec<u8> {
    let channels: Vec<&[u8]> = channels.iter().map(|channel| channel.as_bytes()).collect();
    [vec![op::opening, format], text(head), texts(welcomes), texts(&channels)].concat()
}

/// Held with the last opening.
pub fn hold_so(id: Id) -> Vec<u8> {
    record(op::hold, id)
}

/// Held with an opening of its own: the usual head, and no welcome.
pub fn hold(id: Id, format: u8, channels: &[&str]) -> Vec<u8> {
    [opening(format, HEAD, &[], channels), hold_so(id)].concat()
}

pub fn refuse(id: Id, status: u16) -> Vec<u8> {
    [record(op::refuse, id), status.to_le_bytes().to_vec()].concat()
}

pub fn respond(id: Id, head: &[u8], body: &[u8]) -> Vec<u8> {
    [record(op::respond, id), text(head), text(body)].concat()
}

pub fn pass(id: Id) -> Vec<u8> {
    record(op::pass, id)
}

pub fn send(id: Id, data: &[u8]) -> Vec<u8> {
    [record(op::send, id), message("", "", data)].concat()
}

pub fn end(id: Id) -> Vec<u8> {
    record(op::end, id)
}

pub fn subscribe(id: Id, channel: &str) -> Vec<u8> {
    [record(op::subscribe, id), text(channel.as_bytes())].concat()
}

pub fn unsubscribe(id: Id, channel: &str) -> Vec<u8> {
    [record(op::unsubscribe, id), text(channel.as_bytes())].concat()
}

pub fn publish(channel: &str, data: &[u8]) -> Vec<u8> {
    publish_event(channel, "", "", data)
}

pub fn publish_event(channel: &str, id: &str, kind: &str, data: &[u8]) -> Vec<u8> {
    publish_with_token(0, channel, id, kind, data)
}

/// A publication whose outcome is reported.
pub fn publish_with_token(token: u32, channel: &str, id: &str, kind: &str, data: &[u8]) -> Vec<u8> {
    [publication(token, HAS_MESSAGE, &[channel]), message(id, kind, data)].concat()
}

/// The beginning of a publication.
fn publication(token: u32, bits: u8, channels: &[&str]) -> Vec<u8> {
    let names: Vec<u8> = channels.iter().flat_map(|channel| text(channel.as_bytes())).collect();
    [&[op::publish][..], &token.to_le_bytes(), &[bits], &text(&names)].concat()
}

/// A publication to several channels, with a cursor if it is not empty.
pub fn publish_to(token: u32, channels: &[&str], cursor: &str, data: &[u8]) -> Vec<u8> {
    if cursor.is_empty() {
        return [publication(token, HAS_MESSAGE, channels), message("", "", data)].concat();
    }
    [publication(token, HAS_MESSAGE | HAS_CURSOR, channels), text(cursor.as_bytes()), message("", "", data)].concat()
}

/// Moves the cursor, and nothing else.
pub fn set_cursor(cursor: &str) -> Vec<u8> {
    [publication(0, HAS_CURSOR, &[]), text(cursor.as_bytes())].concat()
}

pub fn write(id: Id, bytes: &[u8]) -> Vec<u8> {
    [record(op::write, id), text(bytes)].concat()
}

/// `expires_at_ms` is in ms since 1970; infinite for never.
pub fn label(id: Id, subject: u32, token: u32, expires_at_ms: f64) -> Vec<u8> {
    [&record(op::label, id)[..], &subject.to_le_bytes(), &token.to_le_bytes(), &expires_at_ms.to_le_bytes()].concat()
}

pub fn tag(id: Id, tag: &str) -> Vec<u8> {
    [record(op::tag, id), text(tag.as_bytes())].concat()
}

/// In ms since 1970.
pub fn now_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() * 1000.0
}

pub fn end_channel(channel: &str, reason: Reason) -> Vec<u8> {
    [vec![op::end_channel, reason as u8], text(channel.as_bytes())].concat()
}

pub fn end_updates(reason: Reason) -> Vec<u8> {
    vec![op::end_updates, reason as u8]
}

pub fn end_labelled(kind: Kind, value: u32, reason: Reason) -> Vec<u8> {
    [&[op::end_labelled, reason as u8, kind as u8][..], &value.to_le_bytes()].concat()
}

pub fn drain(period_ms: u32) -> Vec<u8> {
    [&[op::drain][..], &period_ms.to_le_bytes()].concat()
}

/// Uses the last opening.
pub fn remember(lines: &str) -> Vec<u8> {
    [vec![op::remember], text(lines.as_bytes())].concat()
}

/// One shard, and pings that only come in an hour.
pub fn options() -> Options {
    Options {
        shards: 1,
        phase: 0,
        phases: 1,
        own_tables: true,
        capacity: 100,
        connection_limit: 200,
        ping_interval_ms: 3_600_000,
        idle_pings: false,
        nagle: false,
        max_head_bytes: 8192,
        head_timeout_ms: 20_000,
        max_heads_per_address: 1000,
        answer_timeout_ms: 20_000,
        max_backlog_bytes: 1 << 20,
        max_channel_bytes: 1 << 20,
        user_timeout_ms: 20_000,
        reports_addresses: false,
        max_message_bytes: 1000,
        takes_messages: false,
        keep_alive_timeout_ms: 20_000,
        headers: vec!["host".into()],
        pings: [b"\n"[..].into(), b":\n\n"[..].into(), b":\n\n"[..].into(), b"\n"[..].into(), b"\n"[..].into()],
        proxies: Vec::new(),
    }
}

pub fn options_with(change: impl FnOnce(&mut Options)) -> Options {
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
        assert!(begun.elapsed() < PATIENCE, "never happened: {what}");
        let _ = poll(&mut [], Some(&LOOK_AGAIN));
    }
}

/// A Hold, and everything it has reported so far.
pub struct Held {
    pub hold: Hold,
    pub address: SocketAddr,
    bell: OwnedFd,
    /// Heads that JS would be asked about: the id, and the lines.
    pub heads: Vec<(Id, String)>,
    pub rest: Events,
}

impl Held {
    pub fn start(options: Options) -> Self {
        let mut hold = Hold::new(options).unwrap();
        let port = hold.listen(([127, 0, 0, 1], 0).into(), false).unwrap();
        let bell = hold.take_bell().unwrap();
        Held { hold, address: ([127, 0, 0, 1], port).into(), bell, heads: Vec::new(), rest: Events::default() }
    }

    pub fn command(&self, records: &[u8]) {
        self.hold.command(records, true).unwrap();
    }

    /// Takes events until they contain what is looked for.
    pub fn until<T>(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            self.take();
            if let Some(found) = look(self) {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "never happened: {what}");
            let _ = poll(&mut [PollFd::new(&self.bell, PollFlags::IN)], Some(&LOOK_AGAIN));
            let _ = rustix::io::read(&self.bell, &mut [0; 64]);
        }
    }

    fn take(&mut self) {
        loop {
            let (mut events, has_more) = self.hold.take_events(1000);
            for heads in events.heads.drain(..) {
                self.heads.extend(read_heads(heads));
            }
            self.rest.closed.append(&mut events.closed);
            self.rest.said.append(&mut events.said);
            self.rest.adopted.append(&mut events.adopted);
            self.rest.published.append(&mut events.published);
            self.rest.counted.append(&mut events.counted);
            self.rest.passed.append(&mut events.passed);
            self.rest.failed.append(&mut events.failed);
            self.rest.moves.append(&mut events.moves);
            self.rest.drained.append(&mut events.drained);
            if !has_more {
                return;
            }
        }
    }

    /// The next head that JS is asked about.
    pub fn asked(&mut self) -> (Id, String) {
        self.until("a head", |held| (!held.heads.is_empty()).then(|| held.heads.remove(0)))
    }

    /// The id of the next head, which must have this target.
    pub fn asked_for(&mut self, target: &str) -> Id {
        let (id, lines) = self.asked();
        assert_eq!(lines, lines_of(target));
        id
    }

    /// A client and its open stream.
    pub fn stream(&mut self, format: u8, channels: &[&str]) -> (TcpStream, Id) {
        self.stream_of(connect(self.address), format, channels)
    }

    pub fn stream_of(&mut self, mut client: TcpStream, format: u8, channels: &[&str]) -> (TcpStream, Id) {
        client.write_all(&request("/stream")).unwrap();
        let id = self.asked_for("/stream");
        self.command(&hold(id, format, channels));
        assert_eq!(read_head(&mut client), HEAD);
        (client, id)
    }

    /// Has the shard remember how heads of a target are held, and waits until it does.
    pub fn remember(&mut self, opening: Vec<u8>, target: &str) {
        let mut client = ask(self.address, &request("/before"));
        let id = self.asked_for("/before");
        self.command(&[opening, remember(&lines_of(target)), refuse(id, 404)].concat());
        expect_refusal(&mut client, 404);
    }

    /// Waits for the end of a stream and returns its reason.
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

    pub fn deliveries(&self) -> u64 {
        self.total(|telemetry| telemetry.deliveries.load(Relaxed))
    }

    pub fn closed_for(&self, reason: Reason) -> u64 {
        self.total(|telemetry| telemetry.closed[reason as usize].load(Relaxed))
    }

    pub fn refused_with(&self, status: u16) -> u64 {
        let refusal = Refusal::of(status).unwrap();
        self.total(|telemetry| telemetry.refused[refusal as usize].load(Relaxed))
    }

    pub fn until_connections(&mut self, count: u64) {
        self.until(&format!("{count} connections"), |held| (held.connections() == count).then_some(()));
    }
}

/// The ids and lines of heads. Those that equal the one before were not written again.
pub fn read_heads(heads: Heads) -> Vec<(Id, String)> {
    let all = String::from_utf8(heads.lines).unwrap();
    let all: Vec<&str> = all.split_terminator('\0').collect();
    assert_eq!(all.len(), heads.ids.len(), "as many heads as ids");
    let mut last = "";
    let all = all.into_iter().map(|lines| {
        last = if lines.is_empty() { last } else { lines };
        last.to_string()
    });
    heads.ids.into_iter().zip(all).collect()
}

/// A request, and the lines of its head.
pub fn request(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").into_bytes()
}

pub fn lines_of(target: &str) -> String {
    format!("GET\n{target}\n1.1\na")
}

/// A client that fails rather than wait forever.
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

/// A client, and its connection, which another server accepted.
pub fn accepted() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = connect(listener.local_addr().unwrap());
    let (server, _) = listener.accept().unwrap();
    server.set_nonblocking(true).unwrap();
    (client, server)
}

/// Reads the head of a response, in which there must be a Date; returns the rest of it.
pub fn read_head(client: &mut impl Read) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    without_date(&head)
}

/// The header lines of a head, without the Date and the empty line.
pub fn without_date(head: &[u8]) -> Vec<u8> {
    let head = std::str::from_utf8(head).unwrap().strip_suffix("\r\n").unwrap();
    let (dates, lines): (Vec<&str>, Vec<&str>) = head.split_inclusive("\r\n").partition(|line| line.starts_with("Date: "));
    assert!(dates.len() == 1 && dates[0].ends_with(" GMT\r\n"), "one Date: {dates:?}");
    lines.concat().into_bytes()
}

/// The next bytes are these.
pub fn expect(client: &mut impl Read, bytes: &[u8]) {
    let mut found = vec![0; bytes.len()];
    client.read_exact(&mut found).unwrap();
    assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(bytes));
}

/// The next bytes are these, and then the connection ends.
pub fn expect_end(client: &mut impl Read, bytes: &[u8]) {
    let mut found = Vec::new();
    client.read_to_end(&mut found).unwrap();
    assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(bytes));
}

/// The next bytes are a whole refusal, and then the connection ends.
pub fn expect_refusal(client: &mut impl Read, status: u16) {
    let refusal = Refusal::of(status).unwrap();
    let reason = refusal.reason();
    let head = String::from_utf8(read_head(client)).unwrap();
    assert!(head.starts_with(&format!("HTTP/1.1 {status} {reason}\r\n")), "{head}");
    expect_end(client, refusal.body().as_bytes());
}
