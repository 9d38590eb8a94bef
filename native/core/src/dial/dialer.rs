//! All dialing threads of a process, as the thread of JS sees them.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::client::{Client, DialMessage, Place};
use super::servers::{MOST_SERVERS, Server, ServerCounts};
use super::tally::{Asked, Gauges, MOST_SAMPLES, Sample, Tally};
use super::tokens::Tokens;
use super::{CAUSES, COUNTS, Cause, HISTOGRAMS, Target};
use crate::id::MOST_ROWS;
use crate::reactor::ring;
use crate::sys::{KeptFds, can_unshare, yield_to_js};
use crate::telemetry::Merged;

const MOST_THREADS: usize = 255;

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of streams per thread: as many as fit into its descriptor table.
    pub connections: usize,
    /// Whether each thread gets a descriptor table of its own. If the kernel refuses, there is only one thread.
    pub unshare: bool,
}

/// Sums over the threads. Counts are since the beginning, histograms and samples since the last time.
#[derive(Debug, Default)]
pub struct Counters {
    /// In the order of `COUNTS`.
    pub counts: [u64; COUNTS.len()],
    /// By cause.
    pub failed: [u64; CAUSES],
    /// By cause.
    pub lost: [u64; CAUSES],
    pub samples: Vec<Sample>,
    /// Of the target's servers, in their order; none if there is only one.
    pub servers: Vec<ServerCounts>,
    /// In the order of `HISTOGRAMS`.
    pub histograms: [Merged; HISTOGRAMS.len()],
}

/// A thread, which starts again after a panic.
struct Handle {
    messages: Sender<DialMessage>,
    bell: OwnedFd,
    tally: Arc<Tally>,
    asked: Asked,
    /// None after a panic, and when it was told to stop.
    thread: Option<JoinHandle<()>>,
}

/// Opens streams and keeps them open. Dropping it stops its threads and closes everything they have.
pub struct Dialer {
    connections: usize,
    has_own_tables: bool,
    threads: Vec<Handle>,
    target: Option<Arc<Target>>,
    tokens: Arc<Tokens>,
    /// Streams opened so far: see `Target::pair`.
    number: u64,
    /// Streams for which there was no thread.
    unplaced: [u64; CAUSES],
    is_stopped: bool,
}

impl Dialer {
    pub fn new(options: Options) -> Self {
        Dialer {
            // No thread has more rows than this.
            connections: options.connections.min(MOST_ROWS),
            has_own_tables: options.unshare && can_unshare(),
            threads: Vec::new(),
            target: None,
            tokens: Arc::default(),
            number: 0,
            unplaced: [0; CAUSES],
            is_stopped: false,
        }
    }

    /// The number of streams that it has room for.
    pub fn most(&self) -> usize {
        self.connections * self.most_threads()
    }

    fn most_threads(&self) -> usize {
        if self.has_own_tables { MOST_THREADS } else { 1 }
    }

    /// The target of all streams opened from now on. Those that are opened again keep their cursors if its subscription is
    /// the same. InvalidInput if it has too many servers, one without a port, none with an address, or if its `security` is no
    /// good.
    pub fn aim(&mut self, mut target: Target) -> io::Result<()> {
        let is_good = target.servers.len() <= MOST_SERVERS
            && target.servers.iter().all(|server| !server.ports.is_empty())
            && target.servers.iter().any(|server| !server.addresses.is_empty());
        if !is_good {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if let Some(before) = &self.target {
            if before.subscription == target.subscription {
                target.subscription.clone_from(&before.subscription);
            }
            keep_tallies(&mut target.servers, &before.servers);
        }
        secure(&mut target, self.target.as_deref())?;
        self.target = Some(Arc::new(target));
        Ok(())
    }

    /// Sets the tokens of streams, from that of this place on.
    pub fn set_tokens(&mut self, from: usize, tokens: Vec<Box<[u8]>>) {
        self.tokens.set(from, tokens);
    }

    /// Opens streams in threads that have room, and starts threads as needed. Streams without room count as failed.
    pub fn open(&mut self, count: u64) {
        let Some(target) = self.target.clone().filter(|_| !self.is_stopped) else { return };
        self.reap();
        let mut left = count;
        let mut next = 0;
        while left > 0 {
            if let Err(error) = self.ensure_thread(next) {
                self.unplaced[cause_of(&error) as usize] += left;
                return;
            }
            let thread = &mut self.threads[next];
            let share = left.min(thread.room(self.connections as u64));
            if share > 0 {
                thread.asked.to_open += share;
                thread.send(DialMessage::Open { target: target.clone(), number: self.number, count: share });
            }
            self.number += share;
            left -= share;
            next += 1;
        }
    }

    /// Starts the thread with this index, if it is not running.
    fn ensure_thread(&mut self, index: usize) -> io::Result<()> {
        let connections = self.connections;
        let place = Place { connections, base: (index * connections) as u64, tokens: self.tokens.clone() };
        if let Some(thread) = self.threads.get_mut(index) {
            return if thread.is_running() { Ok(()) } else { thread.restart(index, place, self.has_own_tables) };
        }
        if index >= self.most_threads() {
            return Err(Errno::MFILE.into());
        }
        self.threads.push(Handle::start(index, place, self.has_own_tables)?);
        Ok(())
    }

    /// Counts what threads had that have panicked. The next `open` starts them again.
    fn reap(&mut self) {
        self.threads.iter_mut().for_each(Handle::reap);
    }

    /// Closes as many open streams, beginning with the threads that were started last.
    pub fn close(&mut self, count: u64) {
        self.end(count, DialMessage::Close);
    }

    /// Cuts off as many open streams, in the same order, with a reset: as if their clients had died. They keep their cursors, and are
    /// the first that `open` opens.
    pub fn cut(&mut self, count: u64) {
        self.end(count, DialMessage::Cut);
    }

    fn end(&mut self, count: u64, message: fn(u64) -> DialMessage) {
        self.reap();
        let mut left = count;
        for thread in self.threads.iter_mut().rev() {
            let share = left.min(thread.gauges().open);
            if share > 0 {
                thread.asked.to_close += share;
                thread.send(message(share));
            }
            left -= share;
        }
    }

    /// Closes as many open streams at random, and opens them again. Each thread does its share.
    pub fn churn(&mut self, count: u64) {
        let Some(target) = self.target.clone().filter(|_| !self.is_stopped) else { return };
        self.reap();
        let gauges: Vec<u64> = self.threads.iter().map(|thread| thread.gauges().open).collect();
        let mut open: u64 = gauges.iter().sum();
        let mut left = count.min(open);
        for (thread, its) in self.threads.iter_mut().zip(gauges) {
            let share = (left * its).div_ceil(open.max(1));
            if share > 0 {
                thread.asked.to_close += share;
                thread.asked.to_open += share;
                thread.send(DialMessage::Churn { target: target.clone(), number: self.number, count: share });
            }
            self.number += share;
            left -= share;
            open -= its;
        }
    }

    pub fn take(&mut self) -> Counters {
        self.reap();
        let mut counters = Counters { failed: self.unplaced, ..Counters::default() };
        for thread in &self.threads {
            counters.add(thread);
        }
        if let Some(target) = self.target.as_ref().filter(|target| target.servers.len() > 1) {
            counters.servers = target.servers.iter().map(|server| server.tally.counts()).collect();
        }
        counters
    }

    /// Makes a thread panic: for tests of what follows.
    pub fn fail(&self, index: usize) {
        if let Some(thread) = self.threads.get(index) {
            thread.send(DialMessage::Fail);
        }
    }

    /// Tells the threads to close everything and to end. Returns what to wait for.
    pub fn begin_stop(&mut self) -> Vec<JoinHandle<()>> {
        self.reap();
        self.is_stopped = true;
        for thread in &self.threads {
            thread.send(DialMessage::Stop);
        }
        self.threads.iter_mut().filter_map(|thread| thread.thread.take()).collect()
    }

    /// Stops, and waits until everything is closed.
    pub fn stop(&mut self) {
        for thread in self.begin_stop() {
            // If it panicked, it has said so on stderr, and its descriptors are closed.
            let _ = thread.join();
        }
    }
}

impl Drop for Dialer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Handle {
    fn start(index: usize, place: Place, has_own_table: bool) -> io::Result<Self> {
        let tally = Arc::new(Tally::default());
        let (messages, bell, thread) = start_thread(index, place, has_own_table, tally.clone())?;
        Ok(Handle { messages, bell, tally, asked: Asked::default(), thread: Some(thread) })
    }

    /// Starts the thread again after a panic. It goes on counting where the one before it stopped.
    fn restart(&mut self, index: usize, place: Place, has_own_table: bool) -> io::Result<()> {
        let (messages, bell, thread) = start_thread(index, place, has_own_table, self.tally.clone())?;
        (self.messages, self.bell, self.thread) = (messages, bell, Some(thread));
        Ok(())
    }

    fn is_running(&self) -> bool {
        self.thread.is_some()
    }

    /// If the thread has ended, it has panicked. Whatever it was asked since then, nobody has read.
    fn reap(&mut self) {
        if let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) {
            // It is on stderr. The thread doesn't write any counter any more.
            let _ = thread.join();
            self.tally.write_off(self.asked);
        }
    }

    fn send(&self, message: DialMessage) {
        // If the thread has panicked, nobody gets it: see `reap`.
        let _ = self.messages.send(message);
        ring(&self.bell);
    }

    fn gauges(&self) -> Gauges {
        self.tally.gauges(self.asked)
    }

    /// The number of streams that it has room for. A stream that is to be closed takes up room until it is.
    fn room(&self, connections: u64) -> u64 {
        let Gauges { in_flight, open } = self.tally.gauges(Asked { to_close: 0, ..self.asked });
        connections.saturating_sub(in_flight + open)
    }
}

impl Counters {
    /// Reads ends before what they leave: a stream that is counted here as failed or lost is not also in flight or open.
    fn add(&mut self, thread: &Handle) {
        let tally = &thread.tally;
        add_each(&mut self.failed, tally.failed.each_ref());
        add_each(&mut self.lost, tally.lost.each_ref());
        let Gauges { in_flight, open } = thread.gauges();
        tally.in_flight.store(in_flight, Relaxed);
        tally.open.store(open, Relaxed);
        add_each(&mut self.counts, tally.counts());
        self.samples.extend(tally.take_samples());
        self.samples.truncate(MOST_SAMPLES);
        for (merged, histogram) in self.histograms.iter_mut().zip(tally.histograms()) {
            merged.take(histogram);
        }
    }
}

/// Those that were there before continue to count.
fn keep_tallies(servers: &mut [Server], before: &[Server]) {
    for server in servers {
        if let Some(same) = before.iter().find(|one| one.name == server.name) {
            server.tally = same.tally.clone();
        }
    }
}

/// Prepares handshakes with each server. If nothing about them has changed, the tickets of earlier ones can still be used.
fn secure(target: &mut Target, before: Option<&Target>) -> io::Result<()> {
    let Some(security) = &target.security else { return Ok(()) };
    let hosts: Vec<&str> = target.servers.iter().map(|server| &*server.host).collect();
    let secured = match before {
        Some(before) if before.security == target.security && are_same(&target.servers, &before.servers) => {
            before.servers.iter().map(|server| server.secured.clone()).collect()
        }
        _ => security
            .secure(&hosts)
            .map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?
            .into_iter()
            .map(Some)
            .collect::<Vec<_>>(),
    };
    for (server, secured) in target.servers.iter_mut().zip(secured) {
        server.secured = secured;
    }
    Ok(())
}

fn are_same(servers: &[Server], before: &[Server]) -> bool {
    let names = |servers: &[Server]| servers.iter().map(|server| (server.name.clone(), server.host.clone())).collect::<Vec<_>>();
    names(servers) == names(before)
}

fn add_each<const N: usize>(sums: &mut [u64; N], counters: [&AtomicU64; N]) {
    for (sum, counter) in sums.iter_mut().zip(counters) {
        *sum += counter.load(SeqCst);
    }
}

fn cause_of(error: &io::Error) -> Cause {
    error.raw_os_error().map_or(Cause::Other, |number| Cause::from(Errno::from_raw_os_error(number)))
}

/// The way in which a thread gets its bell.
enum BellTransfer {
    /// It shares our descriptor table.
    Shared(OwnedFd),
    /// It keeps the bell in a table of its own.
    Kept(KeptFds<1>),
}

impl BellTransfer {
    /// To be called on the new thread.
    fn complete(self) -> io::Result<OwnedFd> {
        match self {
            BellTransfer::Shared(bell) => Ok(bell),
            BellTransfer::Kept(kept) => kept.unshare().map(|[bell]| bell),
        }
    }
}

fn start_thread(
    index: usize,
    place: Place,
    has_own_table: bool,
    tally: Arc<Tally>,
) -> io::Result<(Sender<DialMessage>, OwnedFd, JoinHandle<()>)> {
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let its = [bell.try_clone()?];
    let kept = KeptFds::of(&its);
    let (its_bell, _open_until_kept) = if has_own_table {
        (BellTransfer::Kept(kept), Some(its))
    } else {
        let [its] = its;
        (BellTransfer::Shared(its), None)
    };
    let (messages, inbox) = mpsc::channel();
    let (report, reported) = mpsc::channel();
    let body = move || run(its_bell, inbox, tally, place, &report);
    let thread = thread::Builder::new().name(format!("dial-{index}")).spawn(body)?;
    // Until then its bell must stay open here, because the thread copies our table.
    reported.recv().map_err(|_| io::Error::other("a dialing thread has ended"))??;
    Ok((messages, bell, thread))
}

/// The body of a thread. A panic ends only the thread: see `Handle::reap`.
fn run(bell: BellTransfer, messages: Receiver<DialMessage>, tally: Arc<Tally>, place: Place, report: &Sender<io::Result<()>>) {
    match bell.complete().and_then(|bell| Client::new(messages, bell, tally, place)) {
        Ok(client) => {
            // Nobody waits any more if the caller is gone.
            let _ = report.send(Ok(()));
            yield_to_js();
            client.run();
        }
        Err(error) => drop(report.send(Err(error))),
    }
}
