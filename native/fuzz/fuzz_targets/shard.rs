//! A shard turned by hand, while clients connect, write, read and go in an order that is fuzzed, and commands come
//! with ids that are right, stale or made up. After each turn its books must agree; each client must have read what
//! was for it, whole, once, in order, and nothing else; and in the end nothing may be left.
#![no_main]

use std::collections::{BTreeSet, HashMap};
use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use holdfast_core::command::{Command, Opening};
use holdfast_core::framing::{Format, Message, Payload};
use holdfast_core::id::Id;
use holdfast_core::mail::{Inbox, Outbox, Word};
use holdfast_core::telemetry::Telemetry;
use holdfast_core::{Options, Seat, Shard, Shared};
use libfuzzer_sys::fuzz_target;
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair, sockopt,
};
use rustix::pipe::{PipeFlags, pipe_with};

const SHARD: u8 = 3;
const MOST_CLIENTS: usize = 16;
const MOST_OPERATIONS: usize = 200;
const MS: u64 = 1_000_000;
const PING: &[u8] = b"\n";
const PING_EVENT: &[u8] = b":\n\n";
/// What every message begins with: a letter, its number and its size.
const LABEL_BYTES: usize = 17;

#[derive(Default)]
struct Client {
    end: Option<UnixStream>,
    head: Vec<u8>,
    written: usize,
    /// Its format where it was adopted.
    adopted: Option<Format>,
    id: Option<Id>,
    read: Vec<u8>,
    has_ended: bool,
}

/// Something that was said, by its number.
enum Said {
    Hold { id: Id, format: Format, channels: BTreeSet<u8> },
    Send { id: Id },
    Publish { channel: u8 },
    Subscribe { id: Id, channel: u8 },
    Unsubscribe { id: Id, channel: u8 },
    Other,
}

struct World {
    shard: Shard,
    inbox: Arc<Inbox>,
    outbox: Arc<Outbox>,
    telemetry: Arc<Telemetry>,
    transfer: OwnedFd,
    _bell: OwnedFd,
    clients: Vec<Client>,
    said: Vec<Said>,
    /// Asked about, and not refused or passed on for good.
    asked: BTreeSet<u64>,
    owners: HashMap<u64, usize>,
    closed: BTreeSet<u64>,
    is_drained: bool,
    ahead_ns: u64,
}

fuzz_target!(|input: &[u8]| {
    let Some((setting, operations)) = input.split_first() else { return };
    let mut world = World::new(*setting);
    for operation in operations.chunks_exact(3).take(MOST_OPERATIONS) {
        world.operate(operation[0], operation[1], operation[2]);
    }
    world.settle();
    world.check_clients();
    world.end();
});

impl World {
    fn new(setting: u8) -> Self {
        let bit = |bit: u8, no: usize, yes: usize| if setting >> bit & 1 == 0 { no } else { yes };
        let options = Options {
            capacity: bit(0, 16, 3),
            connections: bit(1, 32, 4),
            ping_interval_ms: bit(2, 3_600_000, 40) as u32,
            ping: Payload { text: PING.into(), events: PING_EVENT.into() },
            nodelay: true,
            max_head_bytes: bit(3, 1000, 30),
            head_timeout_ms: 300,
            max_backlog_bytes: bit(4, 20_000, 1000),
            user_timeout_ms: 1000,
            headers: vec!["host".into()],
            reports_closes: true,
        };
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let (bell_of_js, to_ring) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        let (transfer, its_transfer) = pair(SocketType::SEQPACKET);
        let luggage = [bell.try_clone().unwrap(), to_ring, its_transfer];
        let (inbox, outbox, telemetry) = (Arc::new(Inbox::new(bell)), Arc::new(Outbox::default()), Arc::new(Telemetry::default()));
        let shared = Shared { inbox: inbox.clone(), outbox: outbox.clone(), telemetry: telemetry.clone() };
        let shard = Shard::new(SHARD, Seat { number: 0, of: 1 }, Arc::new(options), shared, luggage).unwrap();
        World {
            shard,
            inbox,
            outbox,
            telemetry,
            transfer,
            _bell: bell_of_js,
            clients: Vec::new(),
            said: Vec::new(),
            asked: BTreeSet::new(),
            owners: HashMap::new(),
            closed: BTreeSet::new(),
            is_drained: false,
            ahead_ns: 0,
        }
    }

    fn operate(&mut self, operation: u8, who: u8, what: u8) {
        let size = usize::from(what) * 32;
        match operation % 16 {
            0 => self.connect(what),
            1 => self.with_client(who, |client| client.write_head(what)),
            2 => self.with_client(who, |client| client.write(if what % 2 == 0 { b"\r\n" } else { b"noise" })),
            3 => self.with_client(who, |client| client.read(size)),
            4 if what % 2 == 0 => self.with_client(who, |client| client.end = None),
            4 => self.with_client(who, |client| drop(client.end.as_ref().map(|end| end.shutdown(Shutdown::Write)))),
            5 => self.hold(who, what),
            6 => self.command_to(who, |id, _| (Command::Refuse { id, response: REFUSAL.into() }, Said::Other)),
            7 => self.command_to(who, |id, _| (Command::Pass { id }, Said::Other)),
            8 => self.command_to(who, |id, number| (Command::Send { id, message: message(number, size) }, Said::Send { id })),
            9 => self.command_to(who, |id, _| (Command::Close { id }, Said::Other)),
            10 => self.command_to(who, |id, _| (Command::Subscribe { id, channel: name(what) }, Said::Subscribe { id, channel: what % 4 })),
            11 => self
                .command_to(who, |id, _| (Command::Unsubscribe { id, channel: name(what) }, Said::Unsubscribe { id, channel: what % 4 })),
            12 => {
                let message = message(self.said.len(), size);
                self.command(Command::Publish { channel: name(who), message }, Said::Publish { channel: who % 4 });
            }
            // Not too often: not much happens after it.
            13 if who == 0 => self.command(Command::Drain { period_ms: u32::from(what) }, Said::Other),
            13 => {}
            14 => self.turn(u64::from(what) * 2),
            _ => self.adopt(what),
        }
    }

    fn with_client(&mut self, who: u8, act: impl FnOnce(&mut Client)) {
        if !self.clients.is_empty() {
            let index = usize::from(who & 15) % self.clients.len();
            act(&mut self.clients[index]);
        }
    }

    fn connect(&mut self, what: u8) {
        if self.clients.len() == MOST_CLIENTS {
            return;
        }
        let (end, its) = stream_pair();
        let head = format!("GET /{} HTTP/1.{}\r\nHost: a\r\n\r\n", self.clients.len(), what % 2).into_bytes();
        let mut client = Client { end: Some(end), head, ..Client::default() };
        if what > 127 {
            client.write_head(255); // comes with the connection
        }
        self.shard.let_in_by_hand(its);
        self.clients.push(client);
    }

    fn adopt(&mut self, what: u8) {
        if self.clients.len() == MOST_CLIENTS {
            return;
        }
        let (end, its) = stream_pair();
        let token = self.clients.len() as u32;
        let mut record = token.to_le_bytes().to_vec();
        record.push(what); // most are no format
        record.extend_from_slice(&1u16.to_le_bytes());
        record.extend_from_slice(&1u32.to_le_bytes());
        record.extend_from_slice(&name(what));
        let fds = [its.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        sendmsg(&self.transfer, &[IoSlice::new(&record)], &mut control, SendFlags::NOSIGNAL).unwrap();
        self.clients.push(Client { end: Some(end), adopted: Format::from_bits(what), ..Client::default() });
    }

    fn hold(&mut self, who: u8, what: u8) {
        let format = Format::from_bits(what & 3).unwrap();
        let channels: BTreeSet<u8> = (0..4).filter(|channel| what >> 2 >> channel & 1 == 1).collect();
        let size = usize::from(what >> 6) * 5000;
        self.command_to(who, |id, number| {
            // Of each twice: it is on the list once.
            let names = channels.iter().chain(&channels).map(|channel| name(*channel)).collect();
            let opening = Arc::new(Opening { format, bytes: labelled(b'o', number, size), channels: names });
            (Command::Hold { id, opening }, Said::Hold { id, format, channels })
        });
    }

    /// A command to an id that is right, or of another generation, or of another shard, or of another row.
    fn command_to(&mut self, who: u8, make: impl FnOnce(Id, usize) -> (Command, Said)) {
        let index = usize::from(who & 15);
        let id = match self.clients.get(index % self.clients.len().max(1)).and_then(|client| client.id) {
            Some(id) => id,
            None => Id::new(SHARD, index as u32, 0),
        };
        let id = match who >> 4 {
            0..13 => id,
            13 => Id::new(SHARD, id.index(), id.generation().wrapping_sub(1)),
            14 => Id::new(SHARD + 1, id.index(), id.generation()),
            _ => Id::new(SHARD, id.index() + 1000, id.generation()),
        };
        let (command, said) = make(id, self.said.len());
        self.command(command, said);
    }

    fn command(&mut self, command: Command, said: Said) {
        self.said.push(said);
        self.inbox.post([Word::Command(command)]);
    }

    fn turn(&mut self, ms: u64) {
        self.ahead_ns += (ms + 1) * MS;
        self.shard.turn_by_hand(self.ahead_ns);
        self.shard.check();
        self.take_events();
        self.take_passed();
    }

    fn take_events(&mut self) {
        let (events, _) = self.outbox.take(usize::MAX);
        for heads in events.heads {
            let lines = String::from_utf8(heads.lines).unwrap();
            assert_eq!(lines.matches('\0').count(), heads.ids.len());
            let mut last = "";
            for (id, lines) in heads.ids.iter().zip(lines.split('\0')) {
                last = if lines.is_empty() { last } else { lines };
                self.asked.insert(id.bits());
                // What was written into the middle of a head made it another, or none.
                let target = last.strip_prefix("GET\n/").and_then(|rest| rest.split('\n').next());
                if let Some(index) = target.and_then(|target| target.parse().ok()) {
                    self.own(*id, index);
                }
            }
        }
        for (token, id) in events.adopted {
            if let Some(id) = id {
                self.own(id, token as usize);
            }
        }
        for (id, _) in events.closed {
            assert!(self.closed.insert(id.bits()), "the end of a stream is said once");
        }
        for shard in events.drained {
            assert!(shard == SHARD && !std::mem::replace(&mut self.is_drained, true), "the end of a drain is said once");
        }
    }

    fn own(&mut self, id: Id, index: usize) {
        let before = self.owners.insert(id.bits(), index);
        assert!(before.is_none_or(|before| before == index), "an id is of one connection");
        assert!(self.clients[index].id.is_none_or(|before| before == id), "a connection has one id");
        self.clients[index].id = Some(id);
    }

    /// Takes the connections that were passed on, and closes them.
    fn take_passed(&mut self) {
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            if recvmsg(&self.transfer, &mut [IoSliceMut::new(&mut [0])], &mut control, RecvFlags::DONTWAIT).is_err() {
                return;
            }
            assert_eq!(control.drain().count(), 1);
        }
    }

    /// Has all clients read until nothing more comes.
    fn settle(&mut self) {
        let mut quiet = 0;
        while quiet < 3 {
            self.turn(0);
            let before = self.progress();
            self.clients.iter_mut().for_each(|client| client.read(usize::MAX));
            let is_quiet = self.progress() == before && !self.shard.is_busy() && self.telemetry.backlog_bytes.load(Relaxed) == 0;
            quiet = if is_quiet { quiet + 1 } else { 0 };
            assert!(self.ahead_ns < 1_000_000 * MS, "it settles");
        }
    }

    /// Bytes that clients have read, without pings, which never end.
    fn progress(&self) -> usize {
        self.clients.iter().map(|client| client.read.iter().filter(|byte| byte.is_ascii_alphabetic()).count()).sum()
    }

    fn check_clients(&self) {
        for client in &self.clients {
            let opening = match client.read.first() {
                None => continue,
                Some(b'r') => {
                    assert!(REFUSAL.starts_with(&client.read), "a refusal is all that is said");
                    continue;
                }
                Some(b'o') => Some(self.check_opening(client)),
                Some(_) => None,
            };
            match (opening, client.adopted) {
                (Some(Some((number, format, rest))), _) => self.check_stream(client, format, rest, Some(number)),
                (Some(None), _) => assert!(client.end.is_none() || client.has_ended, "an opening is whole"),
                (None, Some(format)) => self.check_stream(client, format, &client.read, None),
                (None, None) => panic!("neither a refusal nor a stream: {:?}", String::from_utf8_lossy(&client.read)),
            }
        }
    }

    /// The number of the command that held a stream, its format, and what follows the opening.
    fn check_opening<'a>(&self, client: &'a Client) -> Option<(usize, Format, &'a [u8])> {
        let (letter, number, rest) = unlabelled(&client.read)?;
        let Said::Hold { id, format, .. } = &self.said[number] else { panic!("an opening of no hold") };
        // Of a head that was bad it is not known whose it was. It may be held still, by an id that was guessed.
        assert!(letter == b'o' && client.id.is_none_or(|own| own == *id), "the opening of another");
        Some((number, *format, rest))
    }

    fn check_stream(&self, client: &Client, format: Format, mut bytes: &[u8], held_by: Option<usize>) {
        let mut heard = Vec::new();
        let mut is_over = false;
        while let Some((number, rest)) = next_message(bytes, format) {
            assert!(!is_over, "nothing follows the end");
            match number {
                Frame::Message(number) => {
                    assert!(heard.last().is_none_or(|last| *last < number), "messages are heard once and in order");
                    assert!(self.may_hear(client, number), "{number} was not for it");
                    heard.push(number);
                }
                Frame::Ping => {}
                Frame::End => is_over = true,
            }
            bytes = rest;
        }
        if client.end.is_none() || client.has_ended {
            return;
        }
        assert!(bytes.is_empty() && !is_over, "what is still a stream is cut off nowhere: {:?}", String::from_utf8_lossy(bytes));
        let (Some(held_by), Some(_)) = (held_by, client.id) else { return };
        for number in held_by..self.said.len() {
            if self.must_hear(client, number, held_by) {
                assert!(heard.contains(&number), "{number} was lost");
            }
        }
    }

    fn may_hear(&self, client: &Client, number: usize) -> bool {
        if client.id.is_none() {
            return true;
        }
        match &self.said[number] {
            Said::Send { id } => Some(*id) == client.id,
            Said::Publish { channel } => {
                client.adopted.is_some_and(|format| format.bits() % 4 == *channel)
                    || self.said.iter().any(|said| match said {
                        Said::Hold { id, channels, .. } => Some(*id) == client.id && channels.contains(channel),
                        Said::Subscribe { id, channel: listened } => Some(*id) == client.id && listened == channel,
                        _ => false,
                    })
            }
            _ => false,
        }
    }

    fn must_hear(&self, client: &Client, number: usize, held_by: usize) -> bool {
        match &self.said[number] {
            Said::Send { id } => Some(*id) == client.id,
            Said::Publish { channel } => {
                let Said::Hold { channels, .. } = &self.said[held_by] else { return false };
                let left =
                    |said: &Said| matches!(said, Said::Unsubscribe { id, channel: left } if Some(*id) == client.id && left == channel);
                channels.contains(channel) && !self.said.iter().any(left)
            }
            _ => false,
        }
    }

    /// All clients go, all that is asked about is refused, and nothing may be left.
    fn end(&mut self) {
        self.clients.iter_mut().for_each(|client| client.end = None);
        self.command(Command::Drain { period_ms: 100 }, Said::Other);
        for _ in 0..40 {
            for bits in std::mem::take(&mut self.asked) {
                self.command(Command::Refuse { id: Id::from_bits(bits), response: REFUSAL.into() }, Said::Other);
            }
            self.turn(100);
        }
        let left = |count: &std::sync::atomic::AtomicU64| count.load(Relaxed);
        let telemetry = &self.telemetry;
        assert_eq!((left(&telemetry.connections), left(&telemetry.streams), left(&telemetry.backlog_bytes)), (0, 0, 0));
        let closed: u64 = telemetry.closed.iter().map(left).sum();
        assert_eq!((left(&telemetry.opened), self.closed.len() as u64), (closed, closed), "what was opened was closed");
        assert!(self.is_drained);
    }
}

impl Client {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(end) = &mut self.end {
            let _ = end.write(bytes);
        }
    }

    /// So much of the head, or of what is left of it.
    fn write_head(&mut self, size: u8) {
        let left = self.head[self.written..].to_vec();
        let part = &left[..left.len().min(size.into())];
        self.written += part.len();
        self.write(part);
    }

    fn read(&mut self, most: usize) {
        let Some(end) = &mut self.end else { return };
        let mut bytes = [0; 4096];
        let mut left = most;
        while left > 0 {
            let size = bytes.len().min(left);
            match end.read(&mut bytes[..size]) {
                Ok(0) => return self.has_ended = true,
                Ok(count) => {
                    self.read.extend_from_slice(&bytes[..count]);
                    left -= count;
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(_) => return self.has_ended = true,
            }
        }
    }
}

const REFUSAL: &[u8] = b"refused";

enum Frame {
    Message(usize),
    Ping,
    End,
}

/// The next frame that is whole, and what follows it.
fn next_message(bytes: &[u8], format: Format) -> Option<(Frame, &[u8])> {
    if !format.is_chunked() {
        return next_payload(bytes, format);
    }
    let line = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let size = usize::from_str_radix(std::str::from_utf8(&bytes[..line]).unwrap(), 16).expect("the size of a chunk");
    let (chunk, rest) = bytes[line + 2..].split_at_checked(size)?;
    let rest = match rest {
        [b'\r', b'\n', rest @ ..] => rest,
        [] | [b'\r'] => return None,
        _ => panic!("a chunk that does not end where it says"),
    };
    if size == 0 {
        return Some((Frame::End, rest));
    }
    let (frame, nothing) = next_payload(chunk, format).expect("a chunk is a payload");
    assert!(nothing.is_empty());
    Some((frame, rest))
}

fn next_payload(bytes: &[u8], format: Format) -> Option<(Frame, &[u8])> {
    let (ping, letter) = if format.is_events() { (PING_EVENT, b'e') } else { (PING, b't') };
    if bytes.is_empty() || bytes.len() < ping.len() && ping.starts_with(bytes) {
        return None;
    }
    if let Some(rest) = bytes.strip_prefix(ping) {
        return Some((Frame::Ping, rest));
    }
    assert_eq!(bytes[0], letter, "a message as its format has it: {:?}", String::from_utf8_lossy(bytes));
    let (_, number, rest) = unlabelled(bytes)?;
    Some((Frame::Message(number), rest))
}

/// A letter, a number, a size, and so many bytes that tell the number.
fn labelled(letter: u8, number: usize, size: usize) -> Box<[u8]> {
    let mut bytes = format!("{}{number:08}{size:08}", letter as char).into_bytes();
    bytes.resize(LABEL_BYTES + size, b'A' + (number % 26) as u8);
    bytes.into()
}

fn unlabelled(bytes: &[u8]) -> Option<(u8, usize, &[u8])> {
    let (label, rest) = bytes.split_at_checked(LABEL_BYTES)?;
    let number = |digits| std::str::from_utf8(digits).unwrap().parse::<usize>().expect("a label");
    let (count, size) = (number(&label[1..9]), number(&label[9..]));
    let (filler, rest) = rest.split_at_checked(size)?;
    assert!(filler.iter().all(|byte| *byte == b'A' + (count % 26) as u8), "what is in a message is of that message");
    Some((label[0], count, rest))
}

fn message(number: usize, size: usize) -> Arc<Message> {
    Arc::new(Message::new(Payload { text: labelled(b't', number, size), events: labelled(b'e', number, size) }))
}

fn name(channel: u8) -> Box<[u8]> {
    [b'a' + channel % 4].into()
}

fn pair(kind: SocketType) -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None).unwrap()
}

/// A client's end and the shard's, between which not much fits.
fn stream_pair() -> (UnixStream, OwnedFd) {
    let (end, its) = pair(SocketType::STREAM);
    sockopt::set_socket_send_buffer_size(&its, 1).unwrap();
    (end.into(), its)
}
