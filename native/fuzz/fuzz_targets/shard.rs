//! A shard turned by hand, while clients connect, write, read and leave, in an order that is fuzzed, and commands come with
//! ids that are right, stale or made up. Fan-outs span many turns, because a turn does one step of them. After each turn
//! the books of the shard must agree. In the end each client must have read exactly what was for it, in the order in which
//! it was requested, and nothing may be left.
#![no_main]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use holdfast_core::command::{Command, Opening};
use holdfast_core::framing::{Cursor, Format, Message};
use holdfast_core::id::Id;
use holdfast_core::labels::{Kind, Label};
use holdfast_core::mail::{Events, Inbox, Outbox, ShardMessage};
use holdfast_core::parcel::{self, Adoption};
use holdfast_core::queue::{Queue, Queued};
use holdfast_core::response::Refusal;
use holdfast_core::telemetry::{Reason, Telemetry};
use holdfast_core::wire::Names;
use holdfast_core::{Fds, Options, Phase, Shard, Shared};
use libfuzzer_sys::fuzz_target;
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use rustix::pipe::{PipeFlags, pipe_with};

const SHARD: u8 = 3;
const MOST_CLIENTS: usize = 16;
const MOST_OPERATIONS: usize = 200;
const MS: u64 = 1_000_000;
/// Between two turns of which nobody cares when they come.
const MOMENT_NS: u64 = MS / 100;
/// JS is told after a shorter time.
const TELL_NS: u64 = 5 * MS;
const PING: &[u8] = b"\n";
const PING_EVENT: &[u8] = b":\n\n";
/// Streams of HTTP, WebSockets and polls: numbers of `framing.rs`.
const FORMATS: [u8; 15] = [0, 1, 2, 3, 4, 0x10, 0x11, 0x12, 0x13, 0x14, 0x20, 0x23, 0x24, 0x33, 0x34];
/// A request like this may become anything. The connection of HTTP ends after the answer.
const FIELDS: &str = "Host: a\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                      Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
/// How long a poll waits.
const WAIT_MS: u32 = 200;
/// When the time of a stream is over.
const SOON_MS: f64 = 100.0;
/// What every message begins with: a letter, its number and its size.
const LABEL_BYTES: usize = 17;
/// As many as the decision cache has room for.
const REMEMBERED: usize = 16;

#[derive(Default)]
struct Client {
    end: Option<UnixStream>,
    head: Vec<u8>,
    /// A target that several clients have, whose decision may be remembered.
    shared_target: Option<u8>,
    /// It sends several requests at once, on a connection that is kept. What it reads is not checked.
    is_chatty: bool,
    written: usize,
    /// Its format, its channel, and the number of the command.
    adopted: Option<(Format, u8, usize)>,
    id: Option<Id>,
    /// When the shard may have seen its head, or taken it over: after so many commands at least, and at most.
    since: usize,
    until: Option<usize>,
    read: Vec<u8>,
    letters: usize,
    has_ended: bool,
}

/// Something that was said, by its number.
enum Said {
    Hold {
        id: Id,
        stream: Stream,
    },
    Remember {
        target: u8,
        stream: Stream,
    },
    /// Heads that no client sends: so many that all others are forgotten.
    Forget,
    Respond {
        id: Id,
    },
    Send {
        id: Id,
    },
    /// What is not encoded.
    Write {
        id: Id,
    },
    End {
        id: Id,
    },
    /// To some of four channels, one bit for each.
    Publish {
        channels: u8,
    },
    Label {
        id: Id,
        subject: u32,
    },
    EndChannel {
        channel: u8,
    },
    EndLabelled {
        subject: u32,
    },
    EndUpdates,
    Subscribe {
        id: Id,
        channel: u8,
    },
    Unsubscribe {
        id: Id,
        channel: u8,
    },
    Other,
}

#[derive(Clone)]
struct Stream {
    format: Format,
    channels: BTreeSet<u8>,
}

struct World {
    shard: Shard,
    inbox: Arc<Inbox>,
    outbox: Arc<Outbox>,
    telemetry: Arc<Telemetry>,
    queue: Arc<Queue>,
    transfer: OwnedFd,
    _bell: OwnedFd,
    clients: Vec<Client>,
    said: Vec<Said>,
    /// So many commands were read by the shard.
    read_by_shard: usize,
    /// Asked about, and perhaps not answered yet.
    asked: BTreeSet<u64>,
    /// Those of a target that several clients have.
    shared_ids: Vec<Id>,
    owners: HashMap<u64, usize>,
    /// How often the end of each was reported: JS may hold a stream again that is gone.
    closed: BTreeMap<u64, usize>,
    over_capacity: BTreeSet<u64>,
    /// Publications that have reached everyone, and how many that were.
    published: BTreeMap<u32, u32>,
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
            shards: 1,
            phase: 0,
            phases: 1,
            own_tables: false,
            capacity: bit(0, 16, 3),
            connection_limit: bit(1, 32, 4),
            ping_interval_ms: bit(2, 3_600_000, 40) as u64,
            idle_pings: false,
            nagle: false,
            max_head_bytes: bit(3, 1000, FIELDS.len() + 19),
            head_timeout_ms: 300,
            max_heads_per_address: 2,
            answer_timeout_ms: 400,
            max_backlog_bytes: bit(4, 20_000, 1000),
            max_channel_bytes: bit(6, 1 << 20, 300),
            user_timeout_ms: 1000,
            reports_addresses: false,
            max_message_bytes: 1000,
            takes_messages: setting > 127,
            keep_alive_timeout_ms: 250,
            headers: vec!["host".into()],
            pings: [PING.into(), PING_EVENT.into(), PING_EVENT.into(), b"\n"[..].into(), b"\n"[..].into()],
            proxies: Vec::new(),
        };
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let (bell_of_js, to_ring) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        let (transfer, its_transfer) = parcel::pair().unwrap();
        let fds = Fds { bell: bell.try_clone().unwrap(), bell_of_js: to_ring, transfer: its_transfer };
        let (inbox, outbox, telemetry) = (Arc::new(Inbox::new(bell)), Arc::new(Outbox::default()), Arc::new(Telemetry::default()));
        let shared = Shared { inbox: inbox.clone(), outbox: outbox.clone(), telemetry: telemetry.clone() };
        let mut shard = Shard::new(SHARD, 0, Phase { number: 0, of: 1 }, Arc::new(options), shared, fds).unwrap();
        if setting >> 5 & 1 == 0 {
            shard.set_slice(0);
        }
        World {
            shard,
            inbox,
            outbox,
            telemetry,
            queue: Arc::default(),
            transfer,
            _bell: bell_of_js,
            clients: Vec::new(),
            said: Vec::new(),
            read_by_shard: 0,
            asked: BTreeSet::new(),
            shared_ids: Vec::new(),
            owners: HashMap::new(),
            closed: BTreeMap::new(),
            over_capacity: BTreeSet::new(),
            published: BTreeMap::new(),
            is_drained: false,
            ahead_ns: 0,
        }
    }

    fn operate(&mut self, operation: u8, who: u8, what: u8) {
        let size = usize::from(what) * 32;
        match operation % 23 {
            0 => self.connect(who, what),
            1 => self.write_head(who, what),
            2 => self.with_client(who, |client| {
                // The last one is a message of a WebSocket.
                client.write([&b"\r\n"[..], b"noise", b"\r\n", b"\x81\x82\0\0\0\0hi"][usize::from(what % 4)]);
            }),
            3 => self.with_client(who, |client| client.read(size)),
            4 if what % 2 == 0 => self.with_client(who, |client| client.end = None),
            4 => self.with_client(who, |client| drop(client.end.as_ref().map(|end| end.shutdown(Shutdown::Write)))),
            5 => self.hold(who, what),
            6 => {
                let status = Refusal::STATUSES[usize::from(what) % Refusal::STATUSES.len()];
                self.command_to(who, |id, _| (Command::Refuse { id, status }, Said::Other));
            }
            7 => self.command_to(who, |id, _| (Command::Pass { id }, Said::Other)),
            8 => {
                let queue = self.queue.clone();
                self.command_to(who, |id, number| (Command::Send { id, queued: queued(&queue, number, size) }, Said::Send { id }));
            }
            9 => self.command_to(who, |id, _| (Command::End { id }, Said::End { id })),
            10 => self.command_to(who, |id, _| (Command::Subscribe { id, channel: name(what) }, Said::Subscribe { id, channel: what % 4 })),
            11 => self
                .command_to(who, |id, _| (Command::Unsubscribe { id, channel: name(what) }, Said::Unsubscribe { id, channel: what % 4 })),
            12 => {
                let queued = queued(&self.queue, self.said.len(), size);
                let channels = 1 << (who % 4) | who >> 2 & 0xf;
                let cursor = (who > 127).then(|| self.cursor());
                self.command(Command::Publish { channels: names(channels), queued: Some(queued), cursor }, Said::Publish { channels });
            }
            // Not too often: not much happens after it.
            13 if who == 0 => self.command(Command::Drain { period_ms: u32::from(what) }, Said::Other),
            13 => {}
            14 => self.turn(u64::from(what) * 2 * MS + MOMENT_NS),
            15 => self.adopt(what),
            16 => self.command_to(who, |id, number| {
                let head = format!("HTTP/1.1 200 Answer\r\nX-Number: {number}\r\n").into_bytes().into();
                (Command::Respond { id, head, body: labelled(number, size * 4) }, Said::Respond { id })
            }),
            17 if who == 255 => self.forget(),
            17 => self.remember(who, what),
            18 => {
                let queue = self.queue.clone();
                // Also those that are longer than a backlog may be.
                self.command_to(who, |id, number| {
                    (
                        Command::Write { id, queued: Queued::raw(&queue, labelled(number, size * 8)), is_exempt: what % 2 == 0 },
                        Said::Write { id },
                    )
                });
            }
            19 => self.command_to(who, |id, _| {
                let (subject, expires) = (u32::from(what % 4), what > 127);
                let label = Label::new(subject, subject + 1, if expires { unix_ms() + SOON_MS } else { f64::INFINITY });
                (Command::Label { id, label }, Said::Label { id, subject })
            }),
            20 if what > 127 => {
                let cursor = Some(self.cursor());
                self.command(Command::Publish { channels: names(0), queued: None, cursor }, Said::Other);
            }
            20 => self.command(Command::EndChannel { channel: name(who), reason: Reason::Revoked }, Said::EndChannel { channel: who % 4 }),
            21 => self.command(Command::EndUpdates { reason: Reason::Restarted }, Said::EndUpdates),
            _ => {
                let (kind, subject) = if what > 127 { (Kind::Token, u32::from(who % 4) + 1) } else { (Kind::Subject, u32::from(who % 4)) };
                let said = Said::EndLabelled { subject: if what > 127 { subject - 1 } else { subject } };
                // As a subject, 0 is nobody's; as a token, everybody who has one has another.
                let said = if kind == Kind::Subject && subject == 0 { Said::Other } else { said };
                self.command(Command::EndLabelled { kind, value: subject, reason: Reason::Expired }, said);
            }
        }
    }

    /// One that is the number of the command.
    fn cursor(&self) -> Arc<Cursor> {
        Arc::new(Cursor::new(format!("#{}", self.said.len()).as_bytes()))
    }

    fn with_client(&mut self, who: u8, act: impl FnOnce(&mut Client)) {
        if !self.clients.is_empty() {
            let index = usize::from(who & 15) % self.clients.len();
            act(&mut self.clients[index]);
        }
    }

    fn write_head(&mut self, who: u8, size: u8) {
        let read_by_shard = self.read_by_shard;
        self.with_client(who, |client| client.write_head(size, read_by_shard));
    }

    fn connect(&mut self, who: u8, what: u8) {
        if self.clients.len() == MOST_CLIENTS {
            return;
        }
        let (end, its) = stream_pair();
        let shared_target = (who > 127).then_some(who % 4);
        let (target, version) = match shared_target {
            Some(target) => (format!("shared{target}"), 1),
            None => (self.clients.len().to_string(), what % 2),
        };
        let is_chatty = who % 16 == 15;
        let head = if is_chatty {
            "GET /chat HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3)
        } else {
            format!("GET /{target} HTTP/1.{version}\r\n{FIELDS}")
        };
        let mut client = Client { end: Some(end), head: head.into_bytes(), shared_target, is_chatty, ..Client::default() };
        if what > 127 {
            client.write_head(255, self.read_by_shard); // it comes with the connection
        }
        // From one of two addresses: some are cut because others came from the same.
        self.shard.admit_by_hand(its, Some([10, 0, 0, who & 1].into()));
        self.clients.push(client);
    }

    fn adopt(&mut self, what: u8) {
        if self.clients.len() == MOST_CLIENTS {
            return;
        }
        let (end, its) = stream_pair();
        // Polls are not adopted.
        let format = Some(format_of(what)).filter(|format| !format.is_poll()).unwrap_or_default();
        let channel = what >> 2 & 3;
        let mut record =
            Adoption { token: self.clients.len() as u32, relayed: None, format, channels: vec![name(channel)], opening: Box::default() }
                .encode();
        let is_known = what < 192;
        if !is_known {
            record[12] = what; // the format
        }
        parcel::send(&self.transfer, &record, its.as_fd()).unwrap();
        let adopted = is_known.then_some((format, channel, self.said.len()));
        self.command(Command::Adopt, Said::Other);
        self.clients.push(Client { end: Some(end), adopted, ..Client::default() });
    }

    fn hold(&mut self, who: u8, what: u8) {
        self.command_to(who, |id, number| {
            let (opening, stream) = opening(number, what);
            (Command::Hold { id, opening }, Said::Hold { id, stream })
        });
    }

    fn remember(&mut self, target: u8, what: u8) {
        let target = target % 4;
        let (opening, stream) = opening(self.said.len(), what);
        let lines = format!("GET\n/shared{target}\n1.1\na").into_bytes().into();
        self.command(Command::Remember { lines, opening }, Said::Remember { target, stream });
    }

    fn forget(&mut self) {
        for filler in 0..REMEMBERED {
            let (opening, _) = opening(self.said.len(), 0);
            let lines = format!("GET\n/filler{}-{filler}\n1.1\na", self.said.len()).into_bytes().into();
            let said = if filler == REMEMBERED - 1 { Said::Forget } else { Said::Other };
            self.command(Command::Remember { lines, opening }, said);
        }
    }

    /// A command to an id that is right, or of another generation, or of another shard, or of another row.
    fn command_to(&mut self, who: u8, make: impl FnOnce(Id, usize) -> (Command, Said)) {
        let index = usize::from(who & 15);
        let client = self.clients.get(index % self.clients.len().max(1));
        let shared = || self.shared_ids.get(index % self.shared_ids.len().max(1)).copied();
        let id = match client {
            Some(Client { id: Some(id), .. }) => Some(*id),
            Some(Client { shared_target: Some(_), .. } | Client { is_chatty: true, .. }) => shared(),
            _ => None,
        };
        let id = id.unwrap_or(Id::new(SHARD, index as u32, 1));
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
        self.inbox.post([ShardMessage::Command(command)]);
    }

    fn turn(&mut self, later_ns: u64) {
        self.ahead_ns += later_ns;
        self.shard.turn_by_hand(self.ahead_ns);
        self.shard.check();
        self.read_by_shard = self.said.len();
        for client in &mut self.clients {
            if client.until.is_none() && client.written == client.head.len() {
                client.until = Some(self.said.len());
            }
        }
        let (events, _) = self.outbox.take(usize::MAX);
        self.note_events(events);
        while let Some((_, fd)) = parcel::receive(&self.transfer, &mut [0]) {
            assert!(fd.is_some(), "a connection that was passed on");
        }
    }

    fn note_events(&mut self, events: Events) {
        for heads in events.heads {
            let lines = String::from_utf8(heads.lines).unwrap();
            assert_eq!(lines.matches('\0').count(), heads.ids.len());
            let mut last = "";
            for (id, lines) in heads.ids.iter().zip(lines.split('\0')) {
                last = if lines.is_empty() { last } else { lines };
                self.asked.insert(id.bits());
                // Noise in the middle of a head makes it another one, or a bad one.
                let target = last.strip_prefix("GET\n/").and_then(|rest| rest.split('\n').next()).unwrap_or_default();
                if let Ok(index) = target.parse() {
                    self.own(*id, index);
                } else if target.starts_with("shared") || target == "chat" {
                    self.shared_ids.push(*id);
                }
            }
        }
        for (token, id) in events.adopted {
            if let Some(id) = id {
                self.own(id, token as usize);
            }
        }
        for (id, reason) in events.closed {
            if reason == Reason::OverCapacity {
                assert!(self.over_capacity.insert(id.bits()), "the end of a stream is reported once");
            } else {
                *self.closed.entry(id.bits()).or_default() += 1;
            }
        }
        for (token, listeners) in events.published {
            assert!(self.published.insert(token, listeners).is_none(), "a publication is reported once");
            assert!(listeners as usize <= self.clients.len(), "a publication is counted once for each stream");
        }
        for shard in events.drained {
            assert!(shard == SHARD && !std::mem::replace(&mut self.is_drained, true), "the end of a drain is reported once");
        }
        assert!(events.failed.is_empty());
        assert!(events.said.iter().all(|(_, text)| text == b"hi"), "what clients say");
    }

    fn own(&mut self, id: Id, index: usize) {
        let before = self.owners.insert(id.bits(), index);
        assert!(before.is_none_or(|before| before == index), "an id belongs to one connection");
        assert!(self.clients[index].id.is_none_or(|before| before == id), "a connection has one id");
        self.clients[index].id = Some(id);
    }

    /// Has all clients read until nothing more comes, and JS hear everything.
    fn settle(&mut self) {
        for _ in 0..2 {
            self.turn(TELL_NS);
            self.read_all();
        }
    }

    fn read_all(&mut self) {
        let mut quiet = 0;
        while quiet < 3 {
            self.turn(if self.shard.is_busy() { MOMENT_NS } else { MS });
            let before = self.letters();
            self.clients.iter_mut().for_each(|client| client.read(usize::MAX));
            let is_quiet = self.letters() == before && !self.shard.is_busy() && self.telemetry.backlog_bytes.load(Relaxed) == 0;
            quiet = if is_quiet { quiet + 1 } else { 0 };
            assert!(self.ahead_ns < 1_000_000 * MS, "it settles");
        }
    }

    /// What clients have read, without pings, which never end.
    fn letters(&self) -> usize {
        self.clients.iter().map(|client| client.letters).sum()
    }

    fn check_clients(&self) {
        for client in self.clients.iter().filter(|client| !client.is_chatty) {
            if client.read.is_empty() { self.check_waiting(client) } else { self.check_client(client) }
        }
    }

    /// A poll that waits has nothing to say.
    fn check_waiting(&self, client: &Client) {
        let may_wait = |id: &Id| client.is_alive() && client.adopted.is_none() && !self.closed.contains_key(&id.bits());
        let Some(id) = client.id.filter(may_wait) else { return };
        let held = |said: &Said| matches!(said, Said::Hold { id: own, stream } if *own == id && stream.format.is_poll());
        let mut decisions = self.said.iter().enumerate().filter(|(_, said)| said.id() == Some(id) && said.decides());
        if let Some((number, said @ Said::Hold { stream, .. })) = decisions.next()
            && held(said)
        {
            assert_eq!(self.expected(number, Some(id), stream), (Vec::new(), false), "a poll is answered");
        }
    }

    fn check_client(&self, client: &Client) {
        if let Some((format, channel, number)) = client.adopted {
            let stream = Stream { format, channels: [channel].into() };
            return self.check_stream(client, &client.read, &stream, number..=number, &[client.id]);
        }
        let Some((status, number, rest)) = parse_head(&client.read) else {
            return assert!(!client.is_alive(), "a head is complete: {:?}", String::from_utf8_lossy(&client.read));
        };
        let Some(number) = number else { return self.check_refusal(client, status, rest) };
        let said = &self.said[number];
        if let Said::Respond { id } = said {
            return check_response(client, *id, number, rest);
        }
        let (Said::Hold { stream, .. } | Said::Remember { stream, .. }) = said else { panic!("the opening of something else") };
        assert_eq!(status, [200, 101, rest_status(rest)][usize::from(stream.format.framing().saturating_sub(1))]);
        let welcome = if stream.format.is_poll() { Some(rest) } else { rest.strip_prefix(&*stream.format.frame(b"w")) };
        let Some(rest) = welcome else { return assert!(!client.is_alive(), "a welcome is whole") };
        match said {
            Said::Hold { id, stream } => {
                // The id was guessed if JS was not asked about it.
                assert!(client.id.is_none_or(|own| own == *id), "a stream of another");
                self.check_stream(client, rest, stream, number..=number, &[Some(*id)]);
            }
            Said::Remember { target, stream } => {
                assert!(client.id.is_none() && client.shared_target == Some(*target), "a decision about another head");
                self.check_cached(client, *target, number);
                let until = client.until.unwrap_or(self.said.len());
                self.check_stream(client, rest, stream, client.since..=until, &self.guessed_ids());
            }
            _ => unreachable!(),
        }
    }

    /// The decision was remembered when it was used: not too new, not replaced, not forgotten.
    fn check_cached(&self, client: &Client, target: u8, number: usize) {
        assert!(number < client.until.unwrap_or(self.said.len()), "a decision that was not made yet");
        let between = self.said.get(number + 1..client.since).unwrap_or_default();
        for said in between {
            match said {
                Said::Remember { target: other, .. } => assert!(*other != target, "a decision that was replaced"),
                Said::Forget => panic!("a decision that was forgotten"),
                _ => {}
            }
        }
    }

    /// A stream whose id JS never learned may have any that was guessed, or one that was not.
    fn guessed_ids(&self) -> Vec<Option<Id>> {
        let ids = self.said.iter().filter_map(Said::id).map(Id::bits);
        let ids: BTreeSet<u64> = ids.filter(|bits| !self.owners.contains_key(bits)).collect();
        [None].into_iter().chain(ids.into_iter().map(|bits| Some(Id::from_bits(bits)))).collect()
    }

    fn check_refusal(&self, client: &Client, status: u16, body: &[u8]) {
        let whole = Refusal::of(status).expect("a refusal").body();
        assert!(whole.as_bytes().starts_with(body), "the body of a refusal");
        assert!(!client.is_alive() || body.len() == whole.len(), "a refusal is whole");
    }

    /// Checks the frames of a stream that was opened after one of so many commands, under one of these ids.
    fn check_stream(&self, client: &Client, bytes: &[u8], stream: &Stream, after: std::ops::RangeInclusive<usize>, ids: &[Option<Id>]) {
        let (heard, cursors, is_cut) = if stream.format.is_poll() { read_poll(bytes) } else { read_frames(bytes, stream.format) };
        assert!(cursors.is_sorted_by_key(|(_, cursor)| *cursor), "a cursor never goes backwards");
        assert!(heard.windows(2).all(|pair| pair[0] < pair[1]), "messages are heard once and in order");
        assert!(!client.is_alive() || !is_cut, "what is still a stream is cut off nowhere");
        let fits = |begin: usize, id: Option<Id>| {
            let (expected, has_ended) = self.expected(begin, id, stream);
            // What comes after a cursor is newer than it.
            let is_ahead = |(place, cursor): &(usize, usize)| expected.get(*place).is_some_and(|next| next <= cursor);
            let is_right = if client.is_alive() { heard == expected && !has_ended } else { expected.starts_with(&heard) };
            is_right && !cursors.iter().any(is_ahead)
        };
        let found = ids.iter().any(|id| after.clone().any(|begin| fits(begin, *id)));
        let expected = self.expected(*after.start(), ids[0], stream);
        assert!(found, "it heard {heard:?} of {expected:?}, open after {after:?}, alive: {}", client.is_alive());
    }

    /// The messages for a stream that was opened after so many commands, in order, and whether it was ended then.
    fn expected(&self, begin: usize, own: Option<Id>, stream: &Stream) -> (Vec<usize>, bool) {
        let mut channels = stream.channels.clone();
        let (mut label, mut is_to_end) = (None, false);
        let mut expected = Vec::new();
        for (number, said) in self.said.iter().enumerate().skip(begin) {
            match said {
                Said::Publish { channels: to } if channels.iter().any(|channel| to >> channel & 1 == 1) => expected.push(number),
                Said::Label { id, subject } if Some(*id) == own => label = Some(*subject),
                // Not at once: it may still get some of what is said later.
                Said::EndChannel { channel } if channels.contains(channel) => is_to_end = true,
                Said::EndLabelled { subject } if label == Some(*subject) => is_to_end = true,
                Said::EndUpdates if stream.format.is_of_updates() => return (expected, true),
                Said::Send { id } if Some(*id) == own => expected.push(number),
                Said::Write { id } if Some(*id) == own && !stream.format.is_poll() => expected.push(number),
                Said::Subscribe { id, channel } if Some(*id) == own => drop(channels.insert(*channel)),
                Said::Unsubscribe { id, channel } if Some(*id) == own => drop(channels.remove(channel)),
                Said::End { id } if Some(*id) == own => return (expected, true),
                _ => {}
            }
        }
        (expected, is_to_end)
    }

    /// All clients leave, everything that is asked about is refused, and nothing may be left.
    fn end(&mut self) {
        self.clients.iter_mut().for_each(|client| client.end = None);
        self.command(Command::Drain { period_ms: 100 }, Said::Other);
        for _ in 0..40 {
            for bits in std::mem::take(&mut self.asked) {
                self.command(Command::Refuse { id: Id::from_bits(bits), status: 503 }, Said::Other);
            }
            self.turn(100 * MS);
        }
        let left = |count: &AtomicU64| count.load(Relaxed);
        let telemetry = &self.telemetry;
        let gauges = [&telemetry.connections, &telemetry.streams, &telemetry.backlog_bytes];
        assert_eq!(gauges.map(left), [0; 3]);
        assert_eq!(self.queue.bytes(), 0, "no message is left");
        let closed: u64 = telemetry.closed.iter().map(left).sum();
        // Streams that ended because there was no room for another channel.
        let too_many = left(&telemetry.closed[Reason::OverCapacity as usize]);
        assert_eq!(left(&telemetry.opened), closed, "what was opened was closed");
        self.check_reports(closed - too_many);
        assert!(self.over_capacity.len() as u64 - too_many <= left(&telemetry.refused[Refusal::ServiceUnavailable as usize]));
        assert!(self.is_drained);
    }
}

impl World {
    /// Each stream that was opened was reported when it ended (`ended` of them), and each that JS held was reported even if
    /// it was not opened.
    fn check_reports(&self, ended: u64) {
        let mut holds: BTreeMap<u64, usize> = BTreeMap::new();
        for said in &self.said {
            if let Said::Hold { id, .. } = said {
                *holds.entry(id.bits()).or_default() += 1;
            }
        }
        for (bits, count) in &self.closed {
            // One that was adopted or cached may have been held in vain too.
            assert!(*count <= holds.get(bits).copied().unwrap_or(0) + 1, "the end of a stream is reported once");
        }
        for bits in holds.keys() {
            assert!(self.closed.contains_key(bits) || self.over_capacity.contains(bits), "each decision to hold has an end");
        }
        let reported: usize = self.closed.values().sum();
        let misses = reported as u64 - ended;
        assert!(misses <= holds.values().sum::<usize>() as u64, "nothing else is reported");
        for (number, said) in self.said.iter().enumerate() {
            assert!(!matches!(said, Said::Publish { .. }) || self.published.contains_key(&(number as u32 + 1)), "it is reported");
        }
    }
}

impl Said {
    /// Whether it decides about a request.
    fn decides(&self) -> bool {
        matches!(self, Said::Hold { .. } | Said::Respond { .. } | Said::Other)
    }

    fn id(&self) -> Option<Id> {
        match self {
            Said::Hold { id, .. }
            | Said::Respond { id }
            | Said::Send { id }
            | Said::Write { id }
            | Said::End { id }
            | Said::Label { id, .. }
            | Said::Subscribe { id, .. }
            | Said::Unsubscribe { id, .. } => Some(*id),
            Said::Remember { .. }
            | Said::Forget
            | Said::Publish { .. }
            | Said::EndChannel { .. }
            | Said::EndLabelled { .. }
            | Said::EndUpdates
            | Said::Other => None,
        }
    }
}

impl Client {
    /// Connected, as far as it knows.
    fn is_alive(&self) -> bool {
        self.end.is_some() && !self.has_ended
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(end) = &mut self.end {
            let _ = end.write(bytes);
        }
    }

    /// So many bytes of the head, or what is left of it.
    fn write_head(&mut self, size: u8, read_by_shard: usize) {
        if self.written == 0 {
            self.since = read_by_shard;
        }
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
                    self.letters += bytes[..count].iter().filter(|byte| byte.is_ascii_alphabetic()).count();
                    left -= count;
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(_) => return self.has_ended = true,
            }
        }
    }
}

fn opening(number: usize, what: u8) -> (Arc<Opening>, Stream) {
    let format = format_of(what);
    let channels: BTreeSet<u8> = (0..4).filter(|channel| what >> 2 >> channel & 1 == 1).collect();
    let filler = "x".repeat(usize::from(what >> 6) * 2000);
    let status = if format.is_websocket() { "101 Switching Protocols" } else { "200 Stream" };
    let lines = format!("X-Number: {number}\r\nX-Filler: {filler}\r\n");
    let head = if format.is_poll() { lines } else { format!("HTTP/1.1 {status}\r\n{lines}") };
    let opening = Opening {
        format,
        head: head.into_bytes().into(),
        welcomes: [format.frame(b"w").into()].into(),
        wait_ms: if format.is_poll() { WAIT_MS } else { 0 },
        // Each of them twice: the stream is in its list once.
        channels: channels.iter().chain(&channels).map(|channel| name(*channel)).collect(),
    };
    (Arc::new(opening), Stream { format, channels })
}

fn check_response(client: &Client, id: Id, number: usize, body: &[u8]) {
    assert!(client.id.is_none_or(|own| own == id), "a response to another");
    match unlabelled(body) {
        Some((found, rest)) => assert!(found == number && rest.is_empty(), "nothing follows a response"),
        None => assert!(!client.is_alive(), "a response is whole"),
    }
}

/// The status of a response, the number in its head, and what follows the head; None if the head is cut off.
fn parse_head(bytes: &[u8]) -> Option<(u16, Option<usize>, &[u8])> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let (head, rest) = (std::str::from_utf8(&bytes[..end]).expect("a head"), &bytes[end + 4..]);
    let status = head
        .strip_prefix("HTTP/1.1 ")
        .and_then(|head| head[..3].parse().ok())
        .unwrap_or_else(|| panic!("a status: {}", &head[..head.len().min(200)]));
    let lines = || head.split("\r\n").skip(1);
    assert_eq!(lines().filter(|line| line.starts_with("Date: ")).count(), 1, "a Date");
    let number = lines().find_map(|line| line.strip_prefix("X-Number: ")).map(|number| number.parse().unwrap());
    Some((status, number, rest))
}

/// 204 if the answer to a poll has no body.
fn rest_status(body: &[u8]) -> u16 {
    if body.is_empty() { 204 } else { 200 }
}

/// The numbers of the messages in the answer to a poll, and whether it is not whole.
fn read_poll(body: &[u8]) -> (Vec<usize>, Vec<(usize, usize)>, bool) {
    let body = std::str::from_utf8(body).unwrap();
    let Some(mut rest) = body.strip_prefix("{\"messages\":[") else {
        assert!(body.is_empty() || !body.ends_with('\n'), "an answer is JSON");
        return (Vec::new(), Vec::new(), !body.is_empty());
    };
    let mut heard = Vec::new();
    if !rest.ends_with('\n') {
        return (heard, Vec::new(), true);
    }
    while rest.starts_with(['{', ',']) {
        let end = rest.find('}').unwrap() + 1;
        heard.push(json_number(rest[..end].trim_start_matches(',')));
        rest = &rest[end..];
    }
    let last = heard.last().copied().expect("an answer with a body has messages");
    let cursor = if last % 2 == 1 { format!(",\"cursor\":\"{last}\"") } else { String::new() };
    assert_eq!(rest, format!("]{cursor}}}\n"));
    (heard, Vec::new(), false)
}

/// The number of a message that is an object of JSON.
fn json_number(object: &str) -> usize {
    let data = object.split("\"data\":\"").nth(1).and_then(|data| data.strip_suffix("\"}")).expect("data at the end");
    let (number, nothing) = unlabelled(data.as_bytes()).expect("a whole message");
    assert!(nothing.is_empty());
    let id = if number % 2 == 1 { format!("\"id\":\"{number}\",") } else { String::new() };
    let kind = if number % 3 == 1 { "\"type\":\"kind\"," } else { "" };
    assert_eq!(object, format!("{{{id}{kind}\"data\":\"{data}\"}}"));
    number
}

/// The numbers of the messages; the cursors, each with how many messages came before it; and whether the last frame is cut
/// off or the stream has ended.
fn read_frames(mut bytes: &[u8], format: Format) -> (Vec<usize>, Vec<(usize, usize)>, bool) {
    let (mut heard, mut cursors) = (Vec::new(), Vec::new());
    while let Some((frame, rest)) = next_frame(bytes, format) {
        match frame {
            Frame::Message(number) => heard.push(number),
            Frame::Ping => {}
            Frame::Cursor(number) => {
                assert!(format.has_cursor(), "a cursor is for streams of updates");
                cursors.push((heard.len(), number));
            }
            Frame::End => {
                assert!(rest.is_empty(), "nothing follows the end");
                return (heard, cursors, true);
            }
        }
        bytes = rest;
    }
    (heard, cursors, !bytes.is_empty())
}

enum Frame {
    Message(usize),
    Ping,
    Cursor(usize),
    End,
}

/// The next frame that is whole, and what follows it.
fn next_frame(bytes: &[u8], format: Format) -> Option<(Frame, &[u8])> {
    if format.framing() == 0 {
        return next_payload(bytes, format);
    }
    if format.is_websocket() {
        return next_of_websocket(bytes, format);
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

/// RFC 6455, section 5.2.
fn next_of_websocket(bytes: &[u8], format: Format) -> Option<(Frame, &[u8])> {
    let (&[first, second], rest) = bytes.split_first_chunk()?;
    assert!(second < 127, "a server masks nothing, and has no messages as long as that");
    let (size, rest) = match second {
        126 => rest.split_first_chunk().map(|(size, rest)| (u16::from_be_bytes(*size).into(), rest))?,
        size => (usize::from(size), rest),
    };
    let (payload, rest) = rest.split_at_checked(size)?;
    let frame = match first {
        0x81 if format.encoding() > 0 && !payload.starts_with(b"m") => Frame::Message(json_number(str::from_utf8(payload).unwrap())),
        0x81 => Frame::Message(unlabelled(payload).filter(|(_, rest)| rest.is_empty()).expect("a whole message").0),
        0x88 => {
            assert!(size >= 2, "it says why");
            Frame::End
        }
        0x89 | 0x8a => {
            assert_eq!(size, 0);
            Frame::Ping
        }
        _ => panic!("a frame that servers don't send"),
    };
    Some((frame, rest))
}

fn next_payload(bytes: &[u8], format: Format) -> Option<(Frame, &[u8])> {
    // What is written to a stream is not encoded.
    if matches!(format.encoding(), 1 | 2) && !bytes.starts_with(b"m") {
        return next_event(bytes);
    }
    if bytes.starts_with(b"{") {
        assert!(format.encoding() > 2);
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        return Some((Frame::Message(json_number(str::from_utf8(&bytes[..end]).unwrap())), &bytes[end + 1..]));
    }
    if let Some(rest) = bytes.strip_prefix(PING) {
        return Some((Frame::Ping, rest));
    }
    let (number, rest) = unlabelled(bytes)?;
    Some((Frame::Message(number), rest))
}

fn next_event(bytes: &[u8]) -> Option<(Frame, &[u8])> {
    if let Some(rest) = bytes.strip_prefix(PING_EVENT) {
        return Some((Frame::Ping, rest));
    }
    let end = bytes.windows(2).position(|pair| pair == b"\n\n")?;
    let (event, rest) = (std::str::from_utf8(&bytes[..end]).unwrap(), &bytes[end + 2..]);
    if let Some(cursor) = event.strip_prefix("id: #") {
        return Some((Frame::Cursor(cursor.parse().unwrap()), rest));
    }
    let field = |name: &str| event.split('\n').find_map(|line| line.strip_prefix(name));
    let (number, nothing) = unlabelled(field("data: ").expect("data").as_bytes()).expect("a whole message");
    assert!(nothing.is_empty());
    assert_eq!(field("id: "), (number % 2 == 1).then(|| number.to_string()).as_deref());
    assert_eq!(field("event: "), (number % 3 == 1).then_some("kind"));
    Some((Frame::Message(number), rest))
}

/// A letter, a number, a size, and so many bytes that show the number.
fn labelled(number: usize, size: usize) -> Box<[u8]> {
    let mut bytes = format!("m{number:08}{size:08}").into_bytes();
    bytes.resize(LABEL_BYTES + size, b'A' + (number % 26) as u8);
    bytes.into()
}

fn unlabelled(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (label, rest) = bytes.split_at_checked(LABEL_BYTES)?;
    assert_eq!(label[0], b'm', "a message: {:?}", String::from_utf8_lossy(bytes));
    let number = |digits| std::str::from_utf8(digits).unwrap().parse::<usize>().expect("a label");
    let (count, size) = (number(&label[1..9]), number(&label[9..]));
    let (filler, rest) = rest.split_at_checked(size)?;
    assert!(filler.iter().all(|byte| *byte == b'A' + (count % 26) as u8), "the content of a message is its own");
    Some((count, rest))
}

fn queued(queue: &Arc<Queue>, number: usize, size: usize) -> Arc<Queued> {
    let id = (number % 2 == 1).then(|| number.to_string().into_bytes().into());
    let kind = (number % 3 == 1).then(|| b"kind"[..].into());
    Queued::new(queue, number as u32 + 1, Message::new(id, kind, labelled(number, size)))
}

/// The names of the channels whose bits are set, the first of them twice.
fn names(channels: u8) -> Names {
    let all: Vec<Box<[u8]>> = (0..4).filter(|channel| channels >> channel & 1 == 1).map(name).collect();
    let all: Vec<&[u8]> = all.iter().chain(all.first()).map(|name| &**name).collect();
    Names::of(&all)
}

fn format_of(what: u8) -> Format {
    Format::from_byte(FORMATS[usize::from(what ^ what >> 3) % FORMATS.len()]).unwrap()
}

fn unix_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() * 1000.0
}

fn name(channel: u8) -> Box<[u8]> {
    [b'a' + channel % 4].into()
}

/// A client's end and the shard's, with little room between them.
fn stream_pair() -> (UnixStream, OwnedFd) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (end, its) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    sockopt::set_socket_send_buffer_size(&its, 1).unwrap();
    (end.into(), its)
}
