//! All shards of a process, as the thread of JS sees them.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::command::{Command, Records};
use crate::id::{Id, MOST_SHARDS};
use crate::mail::{Events, Inbox, Outbox, ShardMessage};
use crate::options::Options;
use crate::parcel::{self, Adoption, RECORD_BYTES};
use crate::queue::Queue;
use crate::shard::{Fds, Phase, Shared, Supervisor};
use crate::sys::{self, KeptFds};
use crate::telemetry::Telemetry;
use crate::tls::TlsConfig;
use crate::wire::Malformed;

/// A shard that takes longer than this to answer never will.
const LONGEST_ANSWER: Duration = Duration::from_secs(10);

struct Handle {
    inbox: Arc<Inbox>,
    transfer: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

/// Streams held outside of JS. Dropping it stops its threads and closes everything they hold.
pub struct Hold {
    /// Empty once it is stopped.
    shards: Vec<Handle>,
    /// By shard. It can be read after the stop too.
    telemetry: Vec<Arc<Telemetry>>,
    outbox: Arc<Outbox>,
    queue: Arc<Queue>,
    capacity: usize,
    has_own_tables: bool,
    /// A byte can be read from it when there are events to take.
    bell: Option<OwnedFd>,
}

impl Hold {
    /// Starts the threads. To be called on the thread of JS.
    pub fn new(options: Options) -> io::Result<Self> {
        sys::favour_js();
        let (bell, to_ring) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let mut hold = Hold {
            shards: Vec::new(),
            telemetry: Vec::new(),
            outbox: Arc::default(),
            queue: Arc::default(),
            capacity: options.capacity,
            has_own_tables: options.own_tables,
            bell: Some(bell),
        };
        let options = Arc::new(options);
        for number in 0..options.shards {
            let telemetry = Arc::<Telemetry>::default();
            let (handle, has_own_table) = start(number, &options, hold.outbox.clone(), telemetry.clone(), &to_ring)?;
            hold.telemetry.push(telemetry);
            hold.has_own_tables &= has_own_table;
            hold.shards.push(handle);
        }
        Ok(hold)
    }

    /// Whether each shard has a descriptor table of its own.
    pub fn has_own_tables(&self) -> bool {
        self.has_own_tables
    }

    /// The read end of a pipe, the first time: a byte comes when there are events to take, and no other until they were
    /// taken.
    pub fn take_bell(&mut self) -> Option<OwnedFd> {
        self.bell.take()
    }

    /// Every shard listens on the same port: the one given, or for 0 one that the system chooses. If one of them can't,
    /// none does.
    pub fn listen(&self, mut address: SocketAddr, is_tls: bool) -> io::Result<u16> {
        for (number, shard) in self.shards.iter().enumerate() {
            match shard.listen(address, is_tls) {
                Ok(port) => address.set_port(port),
                Err(error) => {
                    for listening in &self.shards[..number] {
                        listening.inbox.post([ShardMessage::Unlisten]);
                    }
                    return Err(error);
                }
            }
        }
        Ok(address.port())
    }

    /// TLS handshakes that begin from now on are done in this way.
    pub fn use_tls(&self, config: &TlsConfig) {
        self.post_all(|| ShardMessage::UseTls(config.clone()));
    }

    /// Does what the records say. Those before a malformed one take effect. Unless it wakes all, shards that get only publications are
    /// not woken: they do in their next turn, or when all are woken.
    pub fn command(&self, records: &[u8], wakes_all: bool) -> Result<(), Malformed> {
        let mut messages: Vec<Vec<ShardMessage>> = self.shards.iter().map(|_| Vec::new()).collect();
        let mut result = Ok(());
        for record in Records::new(records, &self.queue) {
            match record {
                Ok(command) => route(&mut messages, command),
                Err(malformed) => result = Err(malformed),
            }
        }
        for (shard, messages) in self.shards.iter().zip(messages) {
            if !messages.is_empty() {
                let is_urgent = messages.iter().any(|message| !matches!(message, ShardMessage::Command(Command::Publish { .. })));
                shard.inbox.post_quietly(messages);
                if is_urgent && !wakes_all {
                    shard.inbox.wake();
                }
            }
            if wakes_all {
                shard.inbox.wake();
            }
        }
        result
    }

    /// Bytes of everything that was published, sent or written and has not reached everyone.
    pub fn queued_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// The same without what was written.
    pub fn queued_message_bytes(&self) -> u64 {
        self.queue.message_bytes()
    }

    /// What the shards reported, with batches of heads until there are `most`; the flag says whether others are left.
    pub fn take_events(&self, most: usize) -> (Events, bool) {
        let (mut events, has_more) = self.outbox.take(most);
        events.published.append(&mut self.queue.take_dropped());
        (events, has_more)
    }

    /// A connection that was passed on. Others before it are closed: a shard that panicked did not report them.
    pub fn take_passed(&self, id: Id) -> Option<OwnedFd> {
        let transfer = &self.shards.get(usize::from(id.shard()))?.transfer;
        loop {
            let mut record = [0; size_of::<u64>()];
            let (_, fd) = parcel::receive(transfer, &mut record)?;
            if u64::from_le_bytes(record) == id.bits() {
                return fd;
            }
        }
    }

    /// Hands a connection to the shard that relays it, or to the one that has the fewest; the caller closes its own descriptor. It
    /// becomes a stream after what was said before. WouldBlock if too many are on their way, OutOfMemory if no shard has room.
    pub fn adopt(&self, fd: BorrowedFd, adoption: &Adoption) -> io::Result<()> {
        let connections = |(_, telemetry): &(&Handle, &Arc<Telemetry>)| telemetry.connections.load(Relaxed);
        // One that is about to restart has no connections, and no use for any.
        let number = adoption.relayed.map(|id| usize::from(id.shard()));
        let all = self.shards.iter().zip(&self.telemetry).enumerate();
        let fitting = all.filter(|(place, _)| number.is_none_or(|number| number == *place)).map(|(_, shard)| shard);
        let running = fitting.filter(|(shard, _)| !shard.inbox.is_down());
        let emptiest = running.min_by_key(connections).ok_or(io::ErrorKind::WouldBlock)?;
        let (shard, _) = emptiest;
        if number.is_none() && connections(&emptiest) >= self.capacity as u64 {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let record = adoption.encode();
        if record.len() > RECORD_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        parcel::send(&shard.transfer, &record, fd).map_err(|error| match error {
            full if parcel::is_full(full) => io::ErrorKind::WouldBlock.into(),
            error => io::Error::from(error),
        })?;
        shard.inbox.post([ShardMessage::Command(Command::Adopt)]);
        Ok(())
    }

    /// Handover (shard/handover), the giver: each shard lets takers connect. Returns the names under which they can, by shard.
    pub fn offer(&self) -> io::Result<Vec<String>> {
        self.shards.iter().map(|shard| shard.ask(ShardMessage::Offer)).collect()
    }

    /// The giver: rows move for so long, after what was said before. Each shard reports as an event what came of it.
    pub fn begin_move(&self, length_ms: u32, wants_ids: bool) {
        self.post_all(|| ShardMessage::Move { length_ms, wants_ids });
    }

    /// The giver: what has moved belongs to others. Each shard reports it.
    pub fn release(&self) {
        self.post_all(|| ShardMessage::Release);
    }

    /// The giver: everything goes on here as before the round, and the offer ends.
    pub fn take_back(&self) {
        self.post_all(|| ShardMessage::TakeBack);
    }

    /// The giver: the offer ends.
    pub fn withdraw(&self) {
        self.post_all(|| ShardMessage::Withdraw);
    }

    /// The taker: a shard connects to a giver, of whose rows it wants a share of this weight.
    pub fn take_from(&self, shard: u8, name: String, weight: f64) -> io::Result<()> {
        let shard = self.shards.get(usize::from(shard)).ok_or(io::ErrorKind::InvalidInput)?;
        shard.ask(|reply| ShardMessage::TakeFrom { name, weight, reply })
    }

    /// The taker: what is parked belongs to this process. Each shard reports it, and before that the streams that are not quiet.
    pub fn go(&self, quiet: Option<Vec<Box<[u8]>>>) {
        let quiet: Option<Arc<[Box<[u8]>]>> = quiet.map(Arc::from);
        self.post_all(|| ShardMessage::Go { quiet: quiet.clone() });
    }

    /// The taker: what is parked is closed here, and so are the connections to givers.
    pub fn drop_parked(&self) {
        self.post_all(|| ShardMessage::DropParked);
    }

    fn post_all(&self, message: impl Fn() -> ShardMessage) {
        for shard in &self.shards {
            shard.inbox.post([message()]);
        }
    }

    /// Every shard reports its largest channels, `most` at most, as an event with the token. If it is asked again before it has,
    /// it answers only the last time.
    pub fn count_channels(&self, token: u32, most: usize) {
        for shard in &self.shards {
            shard.inbox.post([ShardMessage::Count { token, most }]);
        }
    }

    pub fn telemetry(&self) -> impl Iterator<Item = &Telemetry> {
        self.telemetry.iter().map(|telemetry| &**telemetry)
    }

    /// Makes a shard panic: for tests of what follows.
    pub fn fail(&self, shard: u8) {
        if let Some(shard) = self.shards.get(usize::from(shard)) {
            shard.inbox.post([ShardMessage::Fail]);
        }
    }

    /// Stops the threads, which closes everything they hold, and closes all descriptors. Takes about as long as a slice of
    /// their work.
    pub fn stop(&mut self) {
        for shard in &self.shards {
            shard.inbox.post([ShardMessage::Stop]);
        }
        for shard in &mut self.shards {
            if let Some(thread) = shard.thread.take() {
                // Panics end in the supervisor.
                let _ = thread.join();
            }
        }
        self.shards.clear();
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Handle {
    fn listen(&self, address: SocketAddr, is_tls: bool) -> io::Result<u16> {
        self.ask(|reply| ShardMessage::Listen { address, is_tls, reply })
    }

    /// Waits for the answer of the shard.
    fn ask<T>(&self, message: impl FnOnce(mpsc::Sender<io::Result<T>>) -> ShardMessage) -> io::Result<T> {
        let (reply, answer) = mpsc::channel();
        self.inbox.post([message(reply)]);
        answer.recv_timeout(LONGEST_ANSWER).map_err(|_| gone())?
    }
}

fn route(messages: &mut [Vec<ShardMessage>], command: Command) {
    match command.shard() {
        Some(shard) => {
            if let Some(messages) = messages.get_mut(usize::from(shard)) {
                messages.push(ShardMessage::Command(command));
            }
        }
        None => {
            for messages in messages {
                messages.push(ShardMessage::Command(command.clone()));
            }
        }
    }
}

/// Starts one shard. Its descriptors are made here and kept in its thread's table; if the kernel refuses it one, they are
/// moved to it instead. Returns whether it has a table of its own.
fn start(
    number: u8,
    options: &Arc<Options>,
    outbox: Arc<Outbox>,
    telemetry: Arc<Telemetry>,
    to_ring: &OwnedFd,
) -> io::Result<(Handle, bool)> {
    debug_assert!(usize::from(number) < MOST_SHARDS); // the next one belongs to JS
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let (transfer, its_transfer) = parcel::pair()?;
    let its = [bell.try_clone()?, to_ring.try_clone()?, its_transfer];
    let kept = KeptFds::of(&its);
    let shared = Shared { inbox: Arc::new(Inbox::new(bell)), outbox, telemetry };
    let inbox = shared.inbox.clone();
    let phase = Phase { number: options.phase + u64::from(number), of: options.phases };
    let options = options.clone();
    let (say, said) = mpsc::channel::<bool>();
    let (give, given) = mpsc::channel::<[OwnedFd; 3]>();
    let (report, reported) = mpsc::channel::<io::Result<()>>();
    let thread = thread::Builder::new().name(format!("holdfast-{number}")).spawn(move || {
        sys::yield_to_js();
        let taken = if options.own_tables { kept.unshare().ok() } else { None };
        let _ = say.send(taken.is_some());
        let Some(fds) = taken.or_else(|| given.recv().ok()) else { return };
        Supervisor { number, phase, options, shared, fds: Fds::from_array(fds) }.run(&report);
    })?;
    let has_own_table = said.recv().map_err(|_| gone())?;
    if !has_own_table {
        let _ = give.send(its);
    }
    reported.recv().map_err(|_| gone())??;
    Ok((Handle { inbox, transfer, thread: Some(thread) }, has_own_table))
}

fn gone() -> io::Error {
    io::Error::other("the thread of a shard has ended")
}
