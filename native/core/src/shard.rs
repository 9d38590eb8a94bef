//! One shard: a thread, its epoll and its rows. A turn of its loop waits for what happens first, sees to events,
//! commands, pings and fan-out in slices of a few ms at most, and tells JS what it must know.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::thread::nanosleep;
use rustix::time::{ClockId, clock_gettime};

use crate::channels::Channels;
use crate::command::Command;
use crate::door::Listener;
use crate::framing::{FORMATS, Format, Message, Payload};
use crate::id::Id;
use crate::mail::{Events, Heads, Inbox, Outbox, Word};
use crate::rows::{Input, Rows, State};
use crate::standing::Standing;
use crate::stream::{Backlog, Job, Walk};
use crate::telemetry::Telemetry;
use crate::wheel::Wheel;

/// Events that one turn sees to.
const EVENTS_A_TURN: usize = 256;
/// How long pings, or deliveries, go on before the others have their turn.
pub const SLICE_NS: u64 = 2_000_000;
/// How many of them between two looks at the clock.
pub const STRIDE: u32 = 16;
pub const MS: u64 = 1_000_000;
/// What may be read, or discarded, at once.
pub const SCRATCH_BYTES: usize = 65_536;

/// JS is told no oftener: what comes together is answered together, and one that comes alone is told at once. To wake
/// JS and be woken by it costs as much as some tens of heads.
const TELL_EVERY_NS: u64 = 4 * MS;

/// Where connections come oftener than this, a shard sleeps for a breath after each turn, and sees to all at once that
/// came meanwhile: a turn for each would cost as much as they do.
const OFTEN_NS: u64 = 2 * MS;
const BREATH: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// What epoll says of things that are no rows: ids of shards that can't be.
const BELL: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;
const TRANSFER: u64 = u64::MAX - 2;

#[derive(Clone, Debug)]
pub struct Options {
    /// Streams that a shard holds; past it 503.
    pub capacity: usize,
    /// Connections that a shard has, streams and others; past it it accepts no more.
    pub connections: usize,
    pub ping_interval_ms: u32,
    pub ping: Payload,
    pub nodelay: bool,
    pub max_head_bytes: usize,
    pub head_timeout_ms: u32,
    /// Past it a stream is slow.
    pub max_backlog_bytes: usize,
    /// How long a peer may leave what was sent unacknowledged; past it it is dead.
    pub user_timeout_ms: u32,
    /// Headers that JS wants to see, in lower case.
    pub headers: Vec<String>,
    /// Whether JS wants to know of each stream that ends.
    pub reports_closes: bool,
}

/// What a shard shares with the thread of JS.
#[derive(Clone)]
pub struct Shared {
    pub inbox: Arc<Inbox>,
    pub outbox: Arc<Outbox>,
    pub telemetry: Arc<Telemetry>,
}

pub struct Shard {
    pub(crate) number: u8,
    pub(crate) options: Arc<Options>,
    pub(crate) telemetry: Arc<Telemetry>,
    inbox: Arc<Inbox>,
    outbox: Arc<Outbox>,
    pub(crate) epoll: OwnedFd,
    bell: OwnedFd,
    /// The end to write to of the pipe that the event loop of JS reads.
    bell_of_js: OwnedFd,
    /// A pair of sockets through which descriptors come and go.
    pub(crate) transfer: OwnedFd,
    pub(crate) listener: Option<Listener>,
    pub(crate) rows: Rows,
    pub(crate) held: usize,
    pub(crate) channels: Channels,
    pub(crate) backlogs: HashMap<u32, Backlog>,
    pub(crate) wheel: Wheel,
    pub(crate) ping: [Box<[u8]>; FORMATS],
    pub(crate) jobs: VecDeque<Job>,
    pub(crate) walk: Option<Walk>,
    /// Connections to hand over that the kernel had no room for.
    pub(crate) passing: VecDeque<Id>,
    pub(crate) sweep_ns: u64,
    pub(crate) drain: Option<Drain>,
    pub(crate) scratch: Vec<u8>,
    pub(crate) heads: Heads,
    pub(crate) standing: Standing,
    pub(crate) events: Events,
    told_ns: u64,
    pub(crate) now_ns: u64,
    /// CPU spent on connections since the last stream was opened.
    door_cpu_ns: u64,
    pub(crate) opened_in_turn: u32,
    pub(crate) let_in_turn: u32,
    is_stopped: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Drain {
    pub since_ns: u64,
    pub period_ns: u64,
    /// Whether what was said before has left, so that the streams may go.
    pub lets_go: bool,
    /// Rows below it were let go.
    pub next_row: usize,
    pub is_said: bool,
}

/// Where a shard stands among all of a machine, so that they don't wake together.
#[derive(Clone, Copy, Debug)]
pub struct Seat {
    pub number: u64,
    pub of: u64,
}

impl Shard {
    /// On the thread that will run it: its descriptors are of that thread's table.
    pub fn new(number: u8, seat: Seat, options: Arc<Options>, shared: Shared, luggage: [OwnedFd; 3]) -> io::Result<Self> {
        let [bell, bell_of_js, transfer] = luggage;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &bell, epoll::EventData::new_u64(BELL), epoll::EventFlags::IN)?;
        epoll::add(&epoll, &transfer, epoll::EventData::new_u64(TRANSFER), epoll::EventFlags::IN)?;
        let now_ns = now_ns();
        let ping = Message::new(options.ping.clone());
        Ok(Shard {
            number,
            telemetry: shared.telemetry,
            inbox: shared.inbox,
            outbox: shared.outbox,
            epoll,
            bell,
            bell_of_js,
            transfer,
            listener: None,
            rows: Rows::new(number, options.connections),
            held: 0,
            channels: Channels::default(),
            backlogs: HashMap::new(),
            wheel: Wheel::new(options.ping_interval_ms.into(), seat.number, seat.of, now_ns),
            ping: std::array::from_fn(|bits| Format::from_bits(bits as u8).map(|format| ping.frame(format).into()).unwrap_or_default()),
            jobs: VecDeque::new(),
            walk: None,
            passing: VecDeque::new(),
            sweep_ns: 0,
            drain: None,
            scratch: vec![0; SCRATCH_BYTES.max(options.max_head_bytes + 1)],
            heads: Heads::default(),
            standing: Standing::default(),
            events: Events::default(),
            told_ns: 0,
            now_ns,
            door_cpu_ns: 0,
            opened_in_turn: 0,
            let_in_turn: 0,
            is_stopped: false,
            options,
        })
    }

    /// Turns until it is told to stop.
    pub fn run(mut self) {
        let mut ready = Vec::with_capacity(EVENTS_A_TURN);
        while !self.is_stopped {
            ready.clear();
            // EINTR is no failure, and another can't be mended here: the turn goes on either way.
            let _ = epoll::wait(&self.epoll, spare_capacity(&mut ready), Some(&self.timeout()));
            let woken_ns = self.now_ns;
            self.let_in_turn = 0;
            self.turn(&ready, now_ns());
            let is_often = self.now_ns < woken_ns + OFTEN_NS && self.let_in_turn > 0;
            if is_often && ready.len() < EVENTS_A_TURN && !self.has_jobs() {
                let _ = nanosleep(&BREATH);
            }
        }
    }

    pub(crate) fn turn(&mut self, ready: &[epoll::Event], now_ns: u64) {
        self.now_ns = now_ns;
        let cpu_ns = cpu_ns();
        // Where there is more to see than one turn takes, who is new and what JS says would wait behind all of it.
        if ready.len() == EVENTS_A_TURN {
            self.read_mail();
            self.accept();
        }
        for event in ready {
            self.see(event);
        }
        self.retry_passing();
        self.note_door_cpu(cpu_ns);
        self.ping_due();
        self.deliver_jobs();
        self.sweep();
        self.let_go();
        self.flush();
    }

    fn see(&mut self, event: &epoll::Event) {
        let epoll::Event { data, flags } = *event;
        match data.u64() {
            BELL => self.read_mail(),
            LISTENER => self.accept(),
            TRANSFER => self.receive(),
            bits => {
                if let Some(index) = self.rows.find(Id::from_bits(bits)) {
                    self.see_row(index, flags);
                }
            }
        }
    }

    fn see_row(&mut self, index: u32, flags: epoll::EventFlags) {
        let has_input = flags.intersects(!epoll::EventFlags::OUT);
        let has_ended = flags.intersects(epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR);
        match self.rows.state(index) {
            State::Free => {}
            State::Head => self.read_head(index, has_ended),
            State::Asked => self.rows.row(index).input = Input::Some,
            State::Held | State::Ending => {
                if flags.contains(epoll::EventFlags::OUT) {
                    self.write_backlog(index);
                }
                if has_input {
                    self.read_stream(index);
                }
            }
            State::Lingering => self.discard(index),
        }
    }

    fn read_mail(&mut self) {
        let mut rings = [0; 8];
        let _ = rustix::io::read(&self.bell, &mut rings);
        for word in self.inbox.take() {
            match word {
                Word::Command(command) => self.apply(command),
                Word::Listen(address, reply) => self.listen(address, &reply),
                Word::Stop => self.is_stopped = true,
            }
        }
    }

    /// Answers take effect at once; what is said to streams keeps its order.
    fn apply(&mut self, command: Command) {
        match command {
            Command::Hold { id, opening } => self.hold(id, &opening),
            Command::Standing { lines, openings } => self.standing.say(lines, openings, self.now_ns),
            Command::Refuse { id, response } => self.refuse(id, &response),
            Command::Pass { id } => self.pass(id),
            Command::Send { id, message } => self.jobs.push_back(Job::Send(id, message)),
            Command::Close { id } => self.jobs.push_back(Job::Close(id)),
            Command::Subscribe { id, channel } => self.jobs.push_back(Job::Subscribe(id, channel)),
            Command::Unsubscribe { id, channel } => self.jobs.push_back(Job::Unsubscribe(id, channel)),
            Command::Publish { channel, message } => self.jobs.push_back(Job::Publish(channel, message)),
            Command::Drain { period_ms } => self.begin_drain(u64::from(period_ms) * MS),
        }
    }

    fn listen(&mut self, address: SocketAddr, reply: &Sender<io::Result<u16>>) {
        let bound = Listener::open(address, &self.options).and_then(|(listener, port)| {
            epoll::add(&self.epoll, listener.fd(), epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
            self.listener = Some(listener);
            Ok(port)
        });
        // Nobody waits any more where the caller is gone.
        let _ = reply.send(bound);
    }

    pub(crate) fn listener_data() -> epoll::EventData {
        epoll::EventData::new_u64(LISTENER)
    }

    /// Says what was gathered, unless JS was told a moment ago.
    fn flush(&mut self) {
        if !self.has_news() || self.now_ns < self.told_ns + TELL_EVERY_NS {
            return;
        }
        self.told_ns = self.now_ns;
        if !self.heads.ids.is_empty() {
            self.events.heads.push_back(std::mem::take(&mut self.heads));
        }
        if self.outbox.post(&mut self.events) {
            // It can only fail where nobody reads any more.
            let _ = rustix::io::write(&self.bell_of_js, &[0]);
        }
    }

    fn has_news(&self) -> bool {
        !self.heads.ids.is_empty() || !self.events.is_empty()
    }

    /// CPU that went into connections counts for the streams that came of them, in this turn or the next.
    fn note_door_cpu(&mut self, before_ns: u64) {
        self.door_cpu_ns += cpu_ns() - before_ns;
        if self.opened_in_turn > 0 {
            self.telemetry.open_cpu.record(self.door_cpu_ns / u64::from(self.opened_in_turn), self.opened_in_turn);
            self.door_cpu_ns = 0;
            self.opened_in_turn = 0;
        }
    }

    /// Until what comes first.
    fn timeout(&self) -> Timespec {
        let mut until_ns = self.now_ns + 3600 * 1000 * MS;
        if self.has_jobs() {
            until_ns = 0;
        }
        if self.has_news() {
            until_ns = until_ns.min(self.told_ns + TELL_EVERY_NS);
        }
        if self.held > 0 {
            until_ns = until_ns.min(self.wheel.due_ns());
        }
        if self.has_outsiders() {
            until_ns = until_ns.min(self.sweep_ns);
        }
        if let Some(resume_ns) = self.listener.as_ref().and_then(Listener::resume_ns) {
            until_ns = until_ns.min(resume_ns);
        }
        if let Some(step_ns) = self.next_step_ns() {
            until_ns = until_ns.min(step_ns);
        }
        if !self.passing.is_empty() {
            until_ns = until_ns.min(self.now_ns + MS);
        }
        let wait_ns = until_ns.saturating_sub(now_ns());
        Timespec { tv_sec: (wait_ns / 1_000_000_000) as _, tv_nsec: (wait_ns % 1_000_000_000) as _ }
    }
}

/// Since the machine began.
pub fn now_ns() -> u64 {
    ns_of(ClockId::Monotonic)
}

/// Of the calling thread.
pub fn cpu_ns() -> u64 {
    ns_of(ClockId::ThreadCPUTime)
}

fn ns_of(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
