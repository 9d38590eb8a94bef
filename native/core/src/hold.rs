//! All shards of a process, as the thread of JS sees them.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::command::{Command, Malformed, Records};
use crate::framing::Format;
use crate::id::MOST_SHARDS;
use crate::mail::{Events, Inbox, Outbox, Word};
use crate::shard::{Options, Seat, Shard, Shared};
use crate::stream::ADOPTION_BYTES;
use crate::sys::{self, Luggage};
use crate::telemetry::Telemetry;

/// What threads that only move bytes stand below the event loop in priority.
const NICE: i32 = 10;
/// The thread of JS does a little, often: with short slices it waits less for those that do much.
const SLICE_OF_JS_NS: u64 = 100_000;

#[derive(Clone, Debug)]
pub struct HoldOptions {
    pub shard: Options,
    pub shards: u8,
    /// Where its shards stand among all of the machine.
    pub seat: u64,
    pub seats: u64,
    /// Whether each shard is to have a descriptor table of its own.
    pub unshare: bool,
}

struct Handle {
    inbox: Arc<Inbox>,
    telemetry: Arc<Telemetry>,
    transfer: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

/// Streams held outside of JS. Dropped, it stops its threads and closes what they held.
pub struct Hold {
    shards: Vec<Handle>,
    outbox: Arc<Outbox>,
    is_unshared: bool,
    /// A byte can be read from it when there are events to take.
    bell: Option<OwnedFd>,
}

/// A connection that another server answered.
#[derive(Debug)]
pub struct Adoption<'a> {
    pub token: u32,
    pub format: Format,
    pub channels: &'a [Vec<u8>],
}

impl Hold {
    /// Starts the threads. The calling thread is that of JS.
    pub fn new(options: HoldOptions) -> io::Result<Self> {
        // It does as well without, only later.
        let _ = sys::set_slice(SLICE_OF_JS_NS);
        let (bell, to_ring) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let outbox = Arc::new(Outbox::default());
        let mut hold = Hold { shards: Vec::new(), outbox, is_unshared: options.unshare, bell: Some(bell) };
        let shard_options = Arc::new(options.shard);
        for number in 0..options.shards {
            let seat = Seat { number: options.seat + u64::from(number), of: options.seats };
            let (handle, is_unshared) = start(number, seat, shard_options.clone(), hold.outbox.clone(), &to_ring, options.unshare)?;
            hold.is_unshared &= is_unshared;
            hold.shards.push(handle);
        }
        Ok(hold)
    }

    /// Whether each shard has a descriptor table of its own.
    pub fn is_unshared(&self) -> bool {
        self.is_unshared
    }

    /// The end to read of a pipe, once: a byte comes when there are events to take, and no other until they were.
    pub fn take_bell(&mut self) -> Option<OwnedFd> {
        self.bell.take()
    }

    /// Every shard listens on the same port: the one given, or for 0 one that the system chose.
    pub fn listen(&self, mut address: SocketAddr) -> io::Result<u16> {
        for shard in &self.shards {
            let (reply, bound) = mpsc::channel();
            shard.inbox.post([Word::Listen(address, reply)]);
            address.set_port(bound.recv().map_err(|_| gone())??);
        }
        Ok(address.port())
    }

    /// Does what the records say. Those before a malformed one take effect.
    pub fn command(&self, records: &[u8]) -> Result<(), Malformed> {
        let mut words: Vec<Vec<Word>> = self.shards.iter().map(|_| Vec::new()).collect();
        let mut result = Ok(());
        for record in Records::new(records) {
            match record {
                Ok(command) => route(&mut words, command),
                Err(malformed) => result = Err(malformed),
            }
        }
        for (shard, words) in self.shards.iter().zip(words) {
            if !words.is_empty() {
                shard.inbox.post(words);
            }
        }
        result
    }

    /// What the shards said, with no more heads than `most` and a batch; the flag says whether others are left.
    pub fn take_events(&self, most: usize) -> (Events, bool) {
        self.outbox.take(most)
    }

    /// The next connection that a shard passed on.
    pub fn take_passed(&self, shard: u8) -> Option<OwnedFd> {
        let transfer = &self.shards.get(usize::from(shard))?.transfer;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        recvmsg(transfer, &mut [IoSliceMut::new(&mut [0])], &mut control, flags).ok()?;
        control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        })
    }

    /// Hands a connection to the shard that has the fewest; the caller closes its own descriptor. WouldBlock
    /// where too many are on their way, OutOfMemory where no shard has room for `capacity` streams.
    pub fn adopt(&self, fd: BorrowedFd, adoption: &Adoption, capacity: usize) -> io::Result<()> {
        let held = |shard: &&Handle| shard.telemetry.connections.load(Relaxed);
        let shard = self.shards.iter().min_by_key(held).ok_or_else(gone)?;
        if held(&shard) >= capacity as u64 {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let record = adoption.record();
        if record.len() > ADOPTION_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let fds = [fd];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        sendmsg(&shard.transfer, &[IoSlice::new(&record)], &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
        Ok(())
    }

    pub fn telemetry(&self) -> impl Iterator<Item = &Telemetry> {
        self.shards.iter().map(|shard| &*shard.telemetry)
    }

    /// Stops the threads, which closes all they hold. Takes as long as a slice of their work.
    pub fn stop(&mut self) {
        for shard in &self.shards {
            shard.inbox.post([Word::Stop]);
        }
        for shard in &mut self.shards {
            if let Some(thread) = shard.thread.take() {
                // A shard that panicked has said so on stderr, and its descriptors are closed.
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Adoption<'_> {
    fn record(&self) -> Vec<u8> {
        let mut record = self.token.to_le_bytes().to_vec();
        record.push(self.format.bits());
        record.extend_from_slice(&(self.channels.len() as u16).to_le_bytes());
        for channel in self.channels {
            record.extend_from_slice(&(channel.len() as u32).to_le_bytes());
            record.extend_from_slice(channel);
        }
        record
    }
}

/// Whether a thread may have a descriptor table of its own here.
pub fn can_unshare() -> bool {
    thread::spawn(|| Luggage::of(&[]).unshare().is_ok()).join().unwrap_or(false)
}

fn route(words: &mut [Vec<Word>], command: Command) {
    match command.shard() {
        Some(shard) => {
            if let Some(words) = words.get_mut(usize::from(shard)) {
                words.push(Word::Command(command));
            }
        }
        None => {
            for words in words {
                words.push(Word::Command(command.clone()));
            }
        }
    }
}

/// Starts one shard. Its bell, its copy of that of JS, and its end of the transfer are made here, and go along into its table; where the
/// kernel refuses it one they are moved to it instead.
fn start(
    number: u8,
    seat: Seat,
    options: Arc<Options>,
    outbox: Arc<Outbox>,
    to_ring: &OwnedFd,
    unshare: bool,
) -> io::Result<(Handle, bool)> {
    debug_assert!(usize::from(number) < MOST_SHARDS);
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (transfer, its_transfer) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let its = [bell.try_clone()?, to_ring.try_clone()?, its_transfer];
    let luggage = Luggage::of(&its);
    let inbox = Arc::new(Inbox::new(bell));
    let telemetry = Arc::new(Telemetry::default());
    let shared = Shared { inbox: inbox.clone(), outbox, telemetry: telemetry.clone() };
    let (say, said) = mpsc::channel::<bool>();
    let (give, given) = mpsc::channel::<[OwnedFd; 3]>();
    let (report, reported) = mpsc::channel::<io::Result<()>>();
    let thread = thread::Builder::new().name(format!("holdfast-{number}")).spawn(move || {
        // The whole thread; it may always lower itself.
        let _ = rustix::process::setpriority_process(None, NICE);
        let taken = if unshare { luggage.unshare().ok() } else { None };
        let _ = say.send(taken.is_some());
        let Some(its) = taken.or_else(|| given.recv().ok()) else { return };
        match Shard::new(number, seat, options, shared, its) {
            Ok(shard) => {
                let _ = report.send(Ok(()));
                shard.run();
            }
            Err(error) => drop(report.send(Err(error))),
        }
    })?;
    let is_unshared = said.recv().map_err(|_| gone())?;
    if !is_unshared {
        let _ = give.send(its);
    }
    reported.recv().map_err(|_| gone())??;
    Ok((Handle { inbox, telemetry, transfer, thread: Some(thread) }, is_unshared))
}

fn gone() -> io::Error {
    io::Error::other("the thread of a shard has ended")
}
