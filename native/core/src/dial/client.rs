//! One dialing thread: its reactor and its streams. A turn handles events, then reads, closes and opens for a slice each.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;

use rustix::event::epoll::{Event, EventFlags};

use super::Target;
use super::answer::Partial;
use super::attempt::{Attempt, Batch};
use super::schedule;
use super::secrets::Secrets;
use super::servers::{ServerTally, Visits};
use super::streams::{Id, State, Streams};
use super::subscriber::Subscribers;
use super::tally::{Tally, count};
use super::targets::Targets;
use super::tokens::Tokens;
use crate::clock::{MS, now_ns};
use crate::reactor::{self, BELL, Reactor, Task, has_ended, has_input};
use crate::socket::SCRATCH_BYTES;

/// How often overdue streams are counted.
const COUNT_EVERY_NS: u64 = 1000 * MS;
const NEVER_NS: u64 = u64::MAX;

/// What a thread is told.
#[derive(Debug)]
pub enum DialMessage {
    Open {
        target: Arc<Target>,
        /// The number of the first stream: see `Target::pair`.
        number: u64,
        count: u64,
    },
    Close(u64),
    /// Cut so many streams off: they can be opened again with their cursors.
    Cut(u64),
    /// Close so many streams at random, and open them again. The fields are those of `Open`.
    Churn {
        target: Arc<Target>,
        number: u64,
        count: u64,
    },
    /// Panic: for tests of what follows.
    Fail,
    Stop,
}

/// What a thread has in common with the others, and what tells them apart.
#[derive(Clone, Debug)]
pub struct Place {
    /// The number of streams that it has room for.
    pub connections: usize,
    /// The place of its first stream.
    pub base: u64,
    pub tokens: Arc<Tokens>,
}

pub struct Client {
    messages: Receiver<DialMessage>,
    pub(super) reactor: Reactor,
    pub(super) tally: Arc<Tally>,
    pub(super) streams: Streams,
    pub(super) targets: Targets,
    /// By row, until the stream is open.
    pub(super) attempts: HashMap<u32, Attempt>,
    /// By row, for streams in the middle of a unit.
    pub(super) partials: HashMap<u32, Partial>,
    pub(super) secrets: Secrets,
    pub(super) batches: VecDeque<Batch>,
    /// Streams to close and to open again.
    pub(super) churns: VecDeque<Batch>,
    pub(super) to_close: u64,
    pub(super) to_cut: u64,
    /// Streams that have more to read.
    pub(super) unread: VecDeque<Id>,
    pub(super) sweep_ns: u64,
    count_ns: u64,
    pub(super) scratch: Vec<u8>,
    /// What outlives the connections of streams that subscribe to topics.
    pub(super) subscribers: Subscribers,
    pub(super) visits: Visits,
    /// The place of the stream in the first row, among the streams of all threads.
    pub(super) base: u64,
    pub(super) tokens: Arc<Tokens>,
    /// The last request that was written for one stream.
    pub(super) request: Vec<u8>,
    /// Never 0.
    pub(super) random: u64,
    /// What keys of WebSockets are made from.
    pub(super) seed: u64,
    pub(super) now_ns: u64,
    is_stopped: bool,
}

impl Client {
    /// To be called on the thread that will run it. `bell` is an eventfd that is rung after each message.
    pub fn new(messages: Receiver<DialMessage>, bell: OwnedFd, tally: Arc<Tally>, place: Place) -> io::Result<Self> {
        let Place { connections, base, tokens } = place;
        Ok(Client {
            messages,
            reactor: Reactor::new(bell)?,
            tally,
            streams: Streams::new(connections),
            targets: Targets::default(),
            attempts: HashMap::new(),
            partials: HashMap::new(),
            secrets: Secrets::default(),
            batches: VecDeque::new(),
            churns: VecDeque::new(),
            to_close: 0,
            to_cut: 0,
            unread: VecDeque::new(),
            sweep_ns: 0,
            count_ns: 0,
            scratch: vec![0; SCRATCH_BYTES],
            subscribers: Subscribers::default(),
            visits: Visits::default(),
            base,
            tokens,
            request: Vec::new(),
            random: now_ns() | 1,
            seed: now_ns().wrapping_mul(0x2545_f491_4f6c_dd1d),
            now_ns: now_ns(),
            is_stopped: false,
        })
    }

    /// Runs until it is told to stop, and closes everything.
    pub fn run(mut self) {
        reactor::run(&mut self);
        self.close_all();
    }

    fn handle(&mut self, event: &Event) {
        let Event { data, flags } = *event;
        if data.u64() == BELL {
            return self.read_messages();
        }
        // A row that was freed earlier in this turn has another generation.
        if let Some(index) = self.streams.find(data.u64()) {
            self.handle_row(index, flags);
        }
    }

    fn handle_row(&mut self, index: u32, flags: EventFlags) {
        if self.streams.row(index).state == State::Connecting && !self.finish_connecting(index) {
            return;
        }
        if self.streams.row(index).state == State::Greeting {
            return self.queue_greeting(index);
        }
        if has_input(flags) {
            self.read(index, has_ended(flags));
        }
    }

    fn read_messages(&mut self) {
        self.reactor.silence_bell();
        while let Ok(message) = self.messages.try_recv() {
            match message {
                DialMessage::Open { target, number, count } => {
                    let batch = self.batch(target, number, count);
                    self.batches.push_back(batch);
                }
                DialMessage::Churn { target, number, count } => {
                    let batch = self.batch(target, number, count);
                    self.churns.push_back(batch);
                }
                DialMessage::Close(count) => self.to_close += count,
                DialMessage::Cut(count) => self.to_cut += count,
                DialMessage::Fail => panic!("a test asked for it"),
                DialMessage::Stop => self.is_stopped = true,
            }
        }
    }

    fn batch(&mut self, target: Arc<Target>, number: u64, count: u64) -> Batch {
        let target = self.targets.claim(target, count);
        Batch::new(target, number, count, self.now_ns)
    }

    /// Where to count what becomes of a stream, if there are several servers.
    pub(super) fn server_tally(&self, index: u32) -> Option<&ServerTally> {
        let servers = &self.targets.get(self.streams.row(index).target).servers;
        (servers.len() > 1).then(|| &*servers[self.visits.at(index)].tally)
    }

    fn count_overdue(&mut self) {
        if self.now_ns < self.count_ns {
            return;
        }
        self.count_ns = self.now_ns + COUNT_EVERY_NS;
        let is_overdue = |interval_ns, due_ns| schedule::overdue_ns(due_ns, self.now_ns, interval_ns).is_some();
        let open = self.streams.iter().filter(|row| row.state == State::Open);
        let overdue = open.filter(|row| is_overdue(self.targets.interval_ns(row.target), row.due_ns)).count();
        self.tally.overdue.store(overdue as u64, Relaxed);
    }

    /// Dropping the rows closes their sockets.
    fn close_all(self) {
        let begun = self.streams.iter().filter(|row| !matches!(row.state, State::Free | State::Open)).count() as u64;
        let left = |batches: &VecDeque<Batch>| batches.iter().map(|batch| batch.left).sum::<u64>();
        let (waiting, churning) = (left(&self.batches), left(&self.churns));
        self.tally.overdue.store(0, Relaxed);
        count(&self.tally.withdrawn, begun + waiting + churning);
        count(&self.tally.settled, self.to_close + self.to_cut + churning);
        count(&self.tally.closed, self.streams.open() as u64);
    }

    fn has_more_to_do(&self) -> bool {
        !self.unread.is_empty() || self.to_close + self.to_cut > 0 || !self.secrets.ready.is_empty()
    }
}

impl Task for Client {
    /// Waking up for each event separately costs the sender as much as the reader. What is measured may be 1 ms too late
    /// because of it.
    const OFTEN_NS: u64 = 12 * MS;
    const REST_NS: u64 = 5 * MS;

    fn reactor(&self) -> &Reactor {
        &self.reactor
    }

    fn turn(&mut self, ready: &[Event], now_ns: u64) {
        self.now_ns = now_ns;
        for event in ready {
            self.handle(event);
        }
        self.continue_reading();
        self.continue_greetings();
        self.close_requested();
        self.open_due();
        self.churn_due();
        self.sweep();
        self.count_overdue();
    }

    fn next_turn_ns(&self) -> u64 {
        if self.has_more_to_do() {
            return 0;
        }
        let needs_counting = self.streams.open() > 0 || self.tally.overdue.load(Relaxed) > 0;
        let times = [self.next_open_ns(), (!self.attempts.is_empty()).then_some(self.sweep_ns), needs_counting.then_some(self.count_ns)];
        times.into_iter().flatten().min().unwrap_or(NEVER_NS)
    }

    fn may_rest(&self) -> bool {
        !self.has_more_to_do()
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped
    }
}
