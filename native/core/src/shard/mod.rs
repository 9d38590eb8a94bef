//! One shard: a thread with an epoll, a table of connections and, if the kernel allows it, a descriptor table of its own.
//!
//! In reading order: `turn` (the loop), `commands` (what JS says), `door` (from accepted to decided), `answer` (complete
//! responses), `next_request` (on the same connection), `room` (who is cut when there is none), `tls`, `stream` (from held to closed), `fan_out` (publications), `pings`,
//! `sweep` (what takes too long), `drain`, `ending` (of many streams, and of those whose time is over), `handover` (to
//! another process), `failure` (after a panic).

mod answer;
mod check;
mod commands;
mod door;
mod drain;
mod ending;
mod failure;
mod fan_out;
mod handover;
mod next_request;
mod passing;
mod pings;
mod poll;
mod room;
mod stream;
mod sweep;
mod tls;
mod turn;
mod websocket;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::epoll::Event;

use crate::arriving::Arriving;
use crate::backlog::Backlogs;
use crate::cache::DecisionCache;
use crate::channels::{Census, Channels};
use crate::clock::{now_ns, slice_ns, threads_a_core};
use crate::framing::{Cursor, FORMATS};
use crate::id::Id;
use crate::labels::Labels;
use crate::listener::{Accepting, Listener};
use crate::mail::{Events, Heads, Inbox, Outbox, ShardMessage};
use crate::options::Options;
use crate::reactor::Reactor;
use crate::response::DateLine;
use crate::rows::Rows;
use crate::socket::SCRATCH_BYTES;
use crate::telemetry::{Reason, Telemetry};
use crate::wheel::Wheel;

use drain::Drain;
pub use failure::Supervisor;
use handover::{Giving, Taking};
use next_request::IdleList;
use poll::Polls;
use tls::Tls;
use websocket::WebSockets;

/// How long a client that was answered, or that has not read the end of its stream, has to read and close. Closing at once, with bytes of
/// the client unread, would reset the connection, and the answer would be lost.
const LINGER_MS: u64 = 1000;

/// What a shard shares with the thread of JS.
#[derive(Clone)]
pub struct Shared {
    pub inbox: Arc<Inbox>,
    pub outbox: Arc<Outbox>,
    pub telemetry: Arc<Telemetry>,
}

/// The position of a shard among all shards of the machine: they wake up at different times.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    pub number: u64,
    pub of: u64,
}

/// The descriptors that a shard is given. They are open in the table of its thread.
#[derive(Debug)]
pub struct Fds {
    /// An eventfd that is rung when its inbox has messages.
    pub bell: OwnedFd,
    /// The write end of the pipe that the event loop of JS reads.
    pub bell_of_js: OwnedFd,
    /// One end of a pair of sockets: parcels with connections to adopt come in, connections that are passed on go out.
    pub transfer: OwnedFd,
}

impl Fds {
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Fds { bell: self.bell.try_clone()?, bell_of_js: self.bell_of_js.try_clone()?, transfer: self.transfer.try_clone()? })
    }

    pub fn from_array([bell, bell_of_js, transfer]: [OwnedFd; 3]) -> Self {
        Fds { bell, bell_of_js, transfer }
    }
}

pub struct Shard {
    number: u8,
    options: Arc<Options>,
    telemetry: Arc<Telemetry>,
    reactor: Reactor,
    mail: Mail,
    transfer: OwnedFd,
    rows: Rows,
    /// Streams held.
    held: usize,
    backlogs: Backlogs,
    door: Door,
    channels: Channels,
    /// Of the channels, if JS has asked for one.
    census: Option<Census>,
    labels: Labels,
    /// What the application calls its streams, by row. Few have a tag.
    tags: HashMap<u32, Box<[u8]>>,
    tls: Tls,
    websockets: WebSockets,
    polls: Polls,
    giving: Giving,
    taking: Taking,
    pinger: Pinger,
    drain: Option<Drain>,
    /// Streams that are to end, and why. Some are gone already.
    ending: VecDeque<(Id, Reason)>,
    /// Events of connections that were not handled yet.
    events: VecDeque<Event>,
    scratch: Vec<u8>,
    now_ns: u64,
    /// How long events, commands, pings, or fan-outs go on in one turn.
    slice_ns: u64,
    /// How long it waits between two connections while pings are late.
    rest_ns: u64,
    is_stopped: bool,
}

/// What goes to and from JS.
struct Mail {
    inbox: Arc<Inbox>,
    /// What was taken from the inbox and not read yet.
    unread: VecDeque<ShardMessage>,
    /// Nothing more is read until the streams that are to end have ended (`end_updates`).
    is_paused: bool,
    outbox: Arc<Outbox>,
    bell_of_js: OwnedFd,
    /// Heads, and other events, not yet reported to JS.
    heads: Heads,
    events: Events,
    told_ns: u64,
    /// A client waits that does nothing else.
    is_urgent: bool,
}

/// Where connections come in.
#[derive(Default)]
struct Door {
    /// Usually one; several if they came from more shards than there are now.
    listeners: Vec<Listener>,
    accepting: Accepting,
    arriving: Arriving,
    /// Rows that linger, the oldest first, and some that don't any more.
    lingering: VecDeque<Id>,
    idle: IdleList,
    cache: DecisionCache,
    /// Connections to pass on that the kernel had no room for.
    passing: VecDeque<Id>,
    /// When to look for connections that take too long.
    sweep_ns: u64,
    date: DateLine,
    /// Streams opened, for the choice among several welcomes.
    welcomed: u32,
    /// What the next stream begins with, made here so that it takes no memory of its own.
    opening: Vec<u8>,
    /// CPU spent on connections since the last stream was opened.
    cpu_ns: u64,
    opened_in_turn: u32,
    accepted_in_turn: u32,
    /// Heads of which a part has come in this turn.
    continued_in_turn: u32,
}

struct Pinger {
    wheel: Wheel,
    /// A framed ping for each format.
    pings: [Box<[u8]>; FORMATS],
    /// What streams of updates have got if nothing waits for them; see `send_ping`.
    cursor: Option<Arc<Cursor>>,
    /// Whether what was due last was late.
    was_late: bool,
}

impl Shard {
    /// To be called on the thread that will run it. Its ids begin with `first_generation`.
    pub fn new(number: u8, first_generation: u32, phase: Phase, options: Arc<Options>, shared: Shared, fds: Fds) -> io::Result<Self> {
        let reactor = Reactor::new(fds.bell)?;
        let now_ns = now_ns();
        Ok(Shard {
            number,
            telemetry: shared.telemetry,
            reactor,
            mail: Mail {
                inbox: shared.inbox,
                unread: VecDeque::new(),
                is_paused: false,
                outbox: shared.outbox,
                bell_of_js: fds.bell_of_js,
                heads: Heads::default(),
                events: Events::default(),
                told_ns: 0,
                is_urgent: false,
            },
            transfer: fds.transfer,
            rows: Rows::new(number, options.connection_limit, first_generation),
            held: 0,
            backlogs: Backlogs::new(),
            door: Door::default(),
            channels: Channels::new(options.connection_limit, options.max_channel_bytes),
            census: None,
            pinger: Pinger {
                wheel: Wheel::new(options.ping_interval_ms, phase.number, phase.of, now_ns),
                pings: pings::framed(&options.pings),
                cursor: None,
                was_late: false,
            },
            labels: Labels::default(),
            tags: HashMap::new(),
            tls: Tls::default(),
            websockets: WebSockets::default(),
            polls: Polls::default(),
            giving: Giving::default(),
            taking: Taking::default(),
            drain: None,
            ending: VecDeque::new(),
            events: VecDeque::new(),
            scratch: vec![0; SCRATCH_BYTES.max(options.max_head_bytes + 1)],
            now_ns,
            slice_ns: slice_ns(phase.of),
            rest_ns: door::REST_NS * threads_a_core(phase.of),
            is_stopped: false,
            options,
        })
    }
}
