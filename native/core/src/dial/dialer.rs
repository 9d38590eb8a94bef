//! All threads that dial in a process, as the thread of JS sees them.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::client::{Client, Word};
use super::tally::{Gauges, MOST_SAMPLES, Sample, Tally};
use super::{CAUSES, Cause, Target};
use crate::hold::can_unshare;
use crate::id::MOST_ROWS;
use crate::sys::KeptFds;
use crate::telemetry::{Histogram, Merged};

const MOST_THREADS: usize = 255;
/// What threads that only move bytes stand below the event loop in priority.
const NICE: i32 = 10;

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Streams of one thread: as its descriptor table has room for.
    pub connections: usize,
    /// Whether each thread is to have a descriptor table of its own; where it can't there is but one thread.
    pub unshare: bool,
}

/// Sums over the threads. Counts are since the beginning, histograms (µs) and samples since the last time.
#[derive(Debug, Default)]
pub struct Counters {
    pub in_flight: u64,
    pub open: u64,
    pub overdue: u64,
    pub opened: u64,
    pub closed: u64,
    pub pings: u64,
    pub messages: u64,
    pub bytes: u64,
    pub failed: [u64; CAUSES],
    pub lost: [u64; CAUSES],
    pub samples: Vec<Sample>,
    pub connect: Merged,
    pub first_byte: Merged,
    pub lateness: Merged,
    pub delivery: Merged,
}

struct Handle {
    words: Sender<Word>,
    bell: OwnedFd,
    tally: Arc<Tally>,
    /// Streams that it was told to open, and to close.
    asked: u64,
    to_close: u64,
    thread: Option<JoinHandle<()>>,
}

/// Opens streams and keeps them. Dropped, it stops its threads and closes what they have.
pub struct Dialer {
    connections: usize,
    is_unshared: bool,
    threads: Vec<Handle>,
    target: Option<Arc<Target>>,
    turn: u64,
    /// What found no thread to open it.
    unplaced: [u64; CAUSES],
    is_stopped: bool,
}

impl Dialer {
    pub fn new(options: Options) -> Self {
        Dialer {
            // As many rows as a thread will have.
            connections: options.connections.min(MOST_ROWS),
            is_unshared: options.unshare && can_unshare(),
            threads: Vec::new(),
            target: None,
            turn: 0,
            unplaced: [0; CAUSES],
            is_stopped: false,
        }
    }

    /// Streams that it can hold.
    pub fn most(&self) -> usize {
        self.connections * self.most_threads()
    }

    fn most_threads(&self) -> usize {
        if self.is_unshared { MOST_THREADS } else { 1 }
    }

    /// What is dialled from now on. InvalidInput where it has no port.
    pub fn aim(&mut self, target: Target) -> io::Result<()> {
        if target.ports.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.target = Some(Arc::new(target));
        Ok(())
    }

    /// Opens so many, in threads that have room, and in others as they are needed. What there is no room for has failed.
    pub fn open(&mut self, count: u64) {
        let Some(target) = self.target.clone().filter(|_| !self.is_stopped) else { return };
        let mut left = count;
        let mut next = 0;
        while left > 0 {
            if let Err(error) = self.reach(next) {
                self.unplaced[cause_of(&error) as usize] += left;
                return;
            }
            let thread = &mut self.threads[next];
            let share = left.min(thread.room(self.connections as u64));
            if share > 0 {
                thread.asked += share;
                thread.tell(Word::Open(target.clone(), self.turn, share));
            }
            self.turn += share;
            left -= share;
            next += 1;
        }
    }

    /// Has a thread of this number.
    fn reach(&mut self, number: usize) -> io::Result<()> {
        if number < self.threads.len() {
            return Ok(());
        }
        if number >= self.most_threads() {
            return Err(Errno::MFILE.into());
        }
        self.threads.push(start(number, self.connections, self.is_unshared)?);
        Ok(())
    }

    /// Closes so many of those that are open; the threads that were started last go first.
    pub fn close(&mut self, count: u64) {
        let mut left = count;
        for thread in self.threads.iter_mut().rev() {
            let share = left.min(thread.gauges().open);
            if share > 0 {
                thread.to_close += share;
                thread.tell(Word::Close(share));
            }
            left -= share;
        }
    }

    pub fn take(&self) -> Counters {
        let mut counters = Counters { failed: self.unplaced, ..Counters::default() };
        for thread in &self.threads {
            counters.add(thread);
        }
        counters
    }

    /// Tells the threads to close all and to end, and gives what can be waited for.
    pub fn begin_stop(&mut self) -> Vec<JoinHandle<()>> {
        self.is_stopped = true;
        for thread in &self.threads {
            thread.tell(Word::Stop);
        }
        self.threads.iter_mut().filter_map(|thread| thread.thread.take()).collect()
    }

    /// Takes as long as it takes to close all.
    pub fn stop(&mut self) {
        for thread in self.begin_stop() {
            // One that panicked has said so on stderr, and its descriptors are closed.
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
    fn tell(&self, word: Word) {
        // It has ended where it can't be told; a ring can only fail where 2^64 were not heard.
        let _ = self.words.send(word);
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    fn gauges(&self) -> Gauges {
        self.tally.gauges(self.asked, self.to_close)
    }

    /// Streams that it has room for. Those that are to be closed take theirs until they are.
    fn room(&self, connections: u64) -> u64 {
        let Gauges { in_flight, open } = self.tally.gauges(self.asked, 0);
        connections.saturating_sub(in_flight + open)
    }
}

impl Counters {
    fn add(&mut self, thread: &Handle) {
        let tally = &thread.tally;
        let Gauges { in_flight, open } = thread.gauges();
        let counts: [(&mut u64, &AtomicU64); 6] = [
            (&mut self.overdue, &tally.overdue),
            (&mut self.opened, &tally.opened),
            (&mut self.closed, &tally.closed),
            (&mut self.pings, &tally.pings),
            (&mut self.messages, &tally.messages),
            (&mut self.bytes, &tally.bytes),
        ];
        for (sum, counter) in counts {
            *sum += counter.load(Relaxed);
        }
        self.in_flight += in_flight;
        self.open += open;
        add_each(&mut self.failed, &tally.failed);
        add_each(&mut self.lost, &tally.lost);
        self.samples.extend(tally.take_samples());
        self.samples.truncate(MOST_SAMPLES);
        let histograms: [(&mut Merged, &Histogram); 4] = [
            (&mut self.connect, &tally.connect),
            (&mut self.first_byte, &tally.first_byte),
            (&mut self.lateness, &tally.lateness),
            (&mut self.delivery, &tally.delivery),
        ];
        for (merged, histogram) in histograms {
            merged.take(histogram);
        }
    }
}

fn add_each(sums: &mut [u64; CAUSES], counters: &[AtomicU64; CAUSES]) {
    for (sum, counter) in sums.iter_mut().zip(counters) {
        *sum += counter.load(Relaxed);
    }
}

fn cause_of(error: &io::Error) -> Cause {
    error.raw_os_error().map_or(Cause::Other, |number| Cause::from(Errno::from_raw_os_error(number)))
}

/// How the end of the bell that a thread hears comes to it.
enum Bell {
    OfSharedTable(OwnedFd),
    KeptFds(KeptFds<1>),
}

impl Bell {
    fn unpack(self) -> io::Result<OwnedFd> {
        match self {
            Bell::OfSharedTable(bell) => Ok(bell),
            Bell::KeptFds(luggage) => luggage.unshare().map(|[bell]| bell),
        }
    }
}

fn start(number: usize, connections: usize, unshare: bool) -> io::Result<Handle> {
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let its = [bell.try_clone()?];
    let luggage = KeptFds::of(&its);
    let (its_bell, _kept) = if unshare {
        (Bell::KeptFds(luggage), Some(its))
    } else {
        let [its] = its;
        (Bell::OfSharedTable(its), None)
    };
    let (words, heard) = mpsc::channel();
    let (report, reported) = mpsc::channel();
    let tally = Arc::new(Tally::default());
    let its_tally = tally.clone();
    let body = move || run(its_bell, heard, its_tally, connections, &report);
    let thread = thread::Builder::new().name(format!("dial-{number}")).spawn(body)?;
    // Until then the descriptor of its bell must stay open here, for the table to be copied.
    reported.recv().map_err(|_| io::Error::other("a thread that dials has ended"))??;
    Ok(Handle { words, bell, tally, asked: 0, to_close: 0, thread: Some(thread) })
}

fn run(bell: Bell, words: Receiver<Word>, tally: Arc<Tally>, connections: usize, report: &Sender<io::Result<()>>) {
    match bell.unpack().and_then(|bell| Client::new(words, bell, tally, connections)) {
        Ok(client) => {
            // Nobody waits any more where the caller is gone.
            let _ = report.send(Ok(()));
            // The whole thread; it may always lower itself.
            let _ = rustix::process::setpriority_process(None, NICE);
            client.run();
        }
        Err(error) => drop(report.send(Err(error))),
    }
}
