//! One run: connections that send batches until all requests are answered, the time is up, or somebody stops it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::epoll;

use crate::clock::{SECOND_NS, now_ns};
use crate::connection::{Connection, cause_of, words_of};
use crate::events::wait;
use crate::options::Options;
use crate::order::Order;
use crate::protocol::{Answer, Dialog, Verdict};
use crate::random::Random;
use crate::tally::{Cause, End, Tally};

/// The event id of standard input; all others are connections.
const STDIN: u64 = u64::MAX;
/// How often late answers are looked for, and failed connections dialled again.
const SWEEP_NS: u64 = 50_000_000;

pub struct Load<'a> {
    options: &'a Options,
    dialog: &'a Dialog,
    order: Order,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    random: Random,
    pub tally: Tally,
    end: Option<End>,
    /// For requests that are about to be sent, and bytes that have just arrived.
    out: Vec<u8>,
    bytes: Vec<u8>,
}

impl<'a> Load<'a> {
    pub fn new(options: &'a Options, dialog: &'a Dialog, order: Order) -> io::Result<Load<'a>> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, io::stdin(), epoll::EventData::new_u64(STDIN), epoll::EventFlags::IN)?;
        Ok(Load {
            options,
            dialog,
            order,
            epoll,
            connections: (0..options.connections).map(|_| Connection::default()).collect(),
            random: Random::new(now_ns() | 1),
            tally: Tally::new(),
            end: None,
            out: Vec::new(),
            bytes: vec![0; 65_536],
        })
    }

    /// Returns why it ended, and when.
    pub fn run(&mut self) -> io::Result<(End, u64)> {
        let begun_ns = now_ns();
        let end_ns = if self.options.duration_ms > 0 { begun_ns + self.options.duration_ms * 1_000_000 } else { u64::MAX };
        let (mut sweep_ns, mut progress_ns) = (begun_ns, begun_ns + SECOND_NS);
        let mut ready = Vec::with_capacity(256);
        loop {
            let now = now_ns();
            if now >= end_ns {
                self.end.get_or_insert(End::Duration);
            }
            if let Some(end) = self.end {
                return Ok((end, now));
            }
            if now >= sweep_ns {
                self.sweep(now);
                sweep_ns = now + SWEEP_NS;
            }
            if now >= progress_ns {
                self.say_progress();
                progress_ns += SECOND_NS;
            }
            if self.end.is_none() {
                wait(&self.epoll, &mut ready, sweep_ns.min(end_ns).min(progress_ns).saturating_sub(now))?;
                for event in &ready {
                    self.see(event.data.u64(), event.flags);
                }
            }
        }
    }

    fn say_progress(&self) {
        if self.order != Order::Fill {
            eprintln!("progress {} {}", self.tally.complete, self.tally.failures);
        }
    }

    fn see(&mut self, index: u64, flags: epoll::EventFlags) {
        if index == STDIN {
            self.end.get_or_insert(End::Stopped);
            return;
        }
        let connection = &mut self.connections[index as usize];
        if connection.is_connecting {
            return match connection.finish_dial(&self.epoll, index) {
                Ok(()) => self.send_batch(index as usize),
                Err(error) => self.fail(index as usize, cause_of(error), &words_of(error)),
            };
        }
        if flags.contains(epoll::EventFlags::OUT)
            && let Err(error) = connection.send_rest(&self.epoll, index)
        {
            return self.fail(index as usize, cause_of(error), &words_of(error));
        }
        if flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR) {
            self.receive(index as usize);
        }
    }

    /// Fails requests that took too long, and dials connections that are closed while there is something to send.
    fn sweep(&mut self, now: u64) {
        for index in 0..self.connections.len() {
            let connection = &self.connections[index];
            let is_late = connection.unanswered() > 0 && now.saturating_sub(connection.sent_ns) >= self.options.timeout_ms * 1_000_000;
            if is_late {
                self.fail(index, Cause::Timeout, "");
            } else if connection.is_closed() {
                self.take(index);
            }
        }
    }

    /// Gives a connection its next batch, if there is something left to send.
    fn take(&mut self, index: usize) {
        let left = if self.options.requests == 0 { u64::MAX } else { self.options.requests - self.tally.sent };
        let size = left.min(self.options.pipeline as u64);
        if size == 0 || self.end.is_some() {
            return;
        }
        self.connections[index].answered = 0;
        self.connections[index].batch.clear();
        for _ in 0..size {
            let request = self.order.next(self.tally.sent, self.options.keys, &mut self.random);
            self.connections[index].batch.push(request);
            self.tally.sent += 1;
        }
        self.connections[index].sent_ns = now_ns(); // a timeout covers connecting, too
        if self.connections[index].is_open() {
            return self.send_batch(index);
        }
        if let Err(error) = self.connections[index].dial(&self.epoll, index as u64, &self.options.address) {
            self.fail(index, cause_of(error), &words_of(error));
        }
    }

    fn send_batch(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        self.out.clear();
        for request in &connection.batch {
            self.dialog.append(*request, &mut self.out);
        }
        self.tally.sent_bytes += self.out.len() as u64;
        connection.sent_ns = now_ns();
        self.tally.started_ns.get_or_insert(connection.sent_ns);
        if let Err(error) = connection.send(&self.epoll, index as u64, &self.out) {
            self.fail(index, cause_of(error), &words_of(error));
        }
    }

    fn receive(&mut self, index: usize) {
        let count = match self.connections[index].receive(&mut self.bytes) {
            Ok(Some(0)) => return self.fail(index, Cause::Closed, ""),
            Ok(Some(count)) => count,
            Ok(None) => return,
            Err(error) => return self.fail(index, cause_of(error), &words_of(error)),
        };
        self.tally.received_bytes += count as u64;
        let mut whole = std::mem::take(&mut self.connections[index].received);
        if whole.is_empty() {
            let bytes = std::mem::take(&mut self.bytes);
            if let Some(used) = self.read(index, &bytes[..count]) {
                self.connections[index].received.extend_from_slice(&bytes[used..count]);
            }
            self.bytes = bytes;
        } else {
            whole.extend_from_slice(&self.bytes[..count]);
            if let Some(used) = self.read(index, &whole) {
                whole.drain(..used);
                self.connections[index].received = whole;
            }
        }
        if self.connections[index].is_open() && self.connections[index].unanswered() == 0 {
            self.take(index);
            self.end_if_done();
        }
    }

    /// Reads complete answers, and returns how many bytes they took: the rest is the beginning of another. None if the connection
    /// failed.
    fn read(&mut self, index: usize, bytes: &[u8]) -> Option<usize> {
        let now = now_ns();
        let mut used = 0;
        while used < bytes.len() {
            let connection = &mut self.connections[index];
            let rest = &bytes[used..];
            let answer = connection.expected().map_or(Answer::Garbled, |request| self.dialog.read(request, rest));
            match answer {
                Answer::Partial => break,
                Answer::Garbled => {
                    let start = String::from_utf8_lossy(&rest[..rest.len().min(60)]).into_owned();
                    self.fail(index, Cause::Unexpected, &format!("not the answer to a request: {start}"));
                    return None;
                }
                Answer::Whole { bytes: length, verdict } => {
                    connection.answered += 1;
                    connection.has_answered = true;
                    self.tally.add_answer(verdict, now - connection.sent_ns, now);
                    if verdict == Verdict::Error {
                        self.tally.last_error = String::from_utf8_lossy(&rest[..length.min(200)]).trim_end().into();
                    }
                    used += length;
                }
            }
        }
        Some(used)
    }

    /// A connection is lost, and what it had asked stays unanswered.
    fn fail(&mut self, index: usize, cause: Cause, words: &str) {
        let connection = &mut self.connections[index];
        let (lost, has_answered) = (connection.unanswered() as u64, connection.has_answered);
        connection.close();
        self.tally.add_failures(cause, lost, now_ns());
        if !words.is_empty() {
            self.tally.last_error = words.into();
        }
        // Nobody is there, or nobody who speaks this protocol: more requests would tell nothing new.
        if self.tally.complete == 0 && self.tally.failures >= self.options.connections as u64 {
            self.end.get_or_insert(End::Unanswered);
        }
        self.end_if_done();
        // One that never worked waits for the next sweep, so that this isn't a busy loop.
        if has_answered {
            self.take(index);
        }
    }

    fn end_if_done(&mut self) {
        if self.options.requests > 0 && self.tally.complete + self.tally.failures >= self.options.requests {
            self.end.get_or_insert(End::Count);
        }
    }
}
