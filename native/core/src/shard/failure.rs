//! What follows a panic: the shard's streams are lost, JS is told, and the shard starts again on the same thread.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use super::drain::Drain;
use super::turn::LISTENER;
use super::{Fds, Phase, Shard, Shared};
use crate::cache::DecisionCache;
use crate::framing::Cursor;
use crate::listener::Listener;
use crate::mail::{Events, Heads, ShardMessage};
use crate::options::Options;
use crate::reactor;
use crate::rows::State;
use crate::telemetry::{Reason, Telemetry, add};
use crate::tls::TlsConfig;

/// The pause before the first restart; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A shard that ran for this long has recovered: the next pause is the shortest again.
const STEADY: Duration = Duration::from_secs(60);

/// What a shard leaves to the next one.
#[derive(Default)]
struct Legacy {
    /// They stay open, so that connections wait in its queue instead of being refused.
    listeners: Vec<Listener>,
    drain: Option<Drain>,
    /// JS says once what can be held without asking it.
    cache: DecisionCache,
    is_stopped: bool,
    /// What it was told but has not read: the panic may have been caused by the message before.
    unread: VecDeque<ShardMessage>,
    /// No stream is left that has not got everything up to it. Those that are opened later have their past from JS.
    cursor: Option<Arc<Cursor>>,
    /// What TLS handshakes begin with.
    tls: Option<TlsConfig>,
    /// The next generation that no id has had yet.
    generation: u32,
}

impl Legacy {
    /// Whether it was told to stop before or after the panic.
    fn is_stopped(&self) -> bool {
        self.is_stopped || self.unread.iter().any(|message| matches!(message, ShardMessage::Stop))
    }
}

/// How a shard ended.
enum End {
    Stopped,
    Panicked,
    /// It could not start.
    Failed(io::Error),
}

/// Everything that a shard is made of.
pub struct Supervisor {
    pub number: u8,
    pub phase: Phase,
    pub options: Arc<Options>,
    pub shared: Shared,
    pub fds: Fds,
}

impl Supervisor {
    /// Runs a shard, and another in its place after each panic, until it is told to stop. `report` gets the outcome of
    /// the first start.
    pub fn run(&self, report: &Sender<io::Result<()>>) {
        let mut legacy = Legacy::default();
        let mut failures = 0;
        loop {
            let begun = Instant::now();
            match self.live(&mut legacy, report) {
                End::Stopped => return,
                // Nobody waits for the outcome of a later start; then it is tried again.
                End::Failed(error) if failures == 0 => return drop(report.send(Err(error))),
                End::Failed(_) | End::Panicked => {}
            }
            failures = if begun.elapsed() > STEADY { 1 } else { failures + 1 };
            self.shared.inbox.set_down(true);
            self.pause(pause_after(failures));
            if legacy.is_stopped() || self.shared.inbox.is_stopping() {
                return;
            }
            self.shared.inbox.set_down(false);
        }
    }

    /// One shard, from its start to its end.
    fn live(&self, legacy: &mut Legacy, report: &Sender<io::Result<()>>) -> End {
        let generation = legacy.generation;
        let fds = match self.fds.try_clone() {
            Ok(fds) => fds,
            Err(error) => return End::Failed(error),
        };
        let mut shard = match Shard::new(self.number, generation, self.phase, self.options.clone(), self.shared.clone(), fds) {
            Ok(shard) => shard,
            Err(error) => return End::Failed(error),
        };
        // Nobody waits any more if the caller is gone, or after the first start.
        let _ = report.send(Ok(()));
        let run = || {
            shard.resume(std::mem::take(legacy));
            reactor::run(&mut shard);
        };
        if catch_unwind(AssertUnwindSafe(run)).is_ok() {
            return End::Stopped;
        }
        let left = catch_unwind(AssertUnwindSafe(|| shard.retire()));
        // A shard that is half broken is not trusted with anything, its own end included.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(shard)));
        *legacy = left.unwrap_or_else(|_| self.retire_blindly(generation));
        End::Panicked
    }

    /// For a shard so broken that not even its end could be noted.
    fn retire_blindly(&self, generation: u32) -> Legacy {
        lose_streams(&self.shared.telemetry);
        let mut events = Events { failed: vec![self.number], ..Events::default() };
        if self.shared.outbox.post(&mut events) {
            let _ = rustix::io::write(&self.fds.bell_of_js, &[0]);
        }
        Legacy { generation, ..Legacy::default() }
    }

    /// Sleeps, but not while JS waits for this shard.
    fn pause(&self, length: Duration) {
        const STEP: Duration = Duration::from_millis(10);
        let begun = Instant::now();
        while begun.elapsed() < length && !self.shared.inbox.is_awaited() {
            thread::sleep(STEP.min(length));
        }
    }
}

fn pause_after(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << (failures - 1).min(16)).min(LONGEST_PAUSE)
}

/// Every stream that was open counts as closed, and the gauges show nothing.
fn lose_streams(telemetry: &Telemetry) {
    add(&telemetry.closed[Reason::Failed as usize], telemetry.streams.load(Relaxed));
    add(&telemetry.shard_failures, 1);
    for gauge in [&telemetry.streams, &telemetry.updates, &telemetry.connections, &telemetry.backlog_bytes] {
        gauge.store(0, Relaxed);
    }
}

impl Shard {
    /// Goes on where the one before it panicked.
    fn resume(&mut self, legacy: Legacy) {
        if let Some(drain) = legacy.drain {
            self.resume_drain(drain);
        } else {
            self.accept_from(legacy.listeners);
        }
        self.door.cache = legacy.cache;
        self.pinger.cursor = legacy.cursor;
        self.tls.config = legacy.tls;
        self.mail.unread = legacy.unread;
    }

    /// Accepts from these too. One that can't be watched is closed.
    pub(super) fn accept_from(&mut self, listeners: Vec<Listener>) {
        for listener in listeners {
            if self.reactor.watch_level(&listener, LISTENER).is_ok() {
                self.door.listeners.push(listener);
            }
        }
    }

    /// Counts and reports every stream as lost. Called on a shard that panicked in the middle of anything.
    fn retire(&mut self) -> Legacy {
        lose_streams(&self.telemetry);
        let held = (0..self.rows.len() as u32).filter(|index| self.rows.state(*index) == State::Held);
        self.mail.events.closed.extend(held.map(|index| (self.rows.id_of(index), Reason::Failed)));
        for (queued, listeners) in self.channels.abandon() {
            self.mail.events.published.extend(queued.finish(listeners));
        }
        self.mail.events.failed.push(self.number);
        // JS can't decide about these any more, and the last one may be half written.
        self.mail.heads = Heads::default();
        self.mail.post();
        Legacy {
            listeners: self.all_listeners(),
            drain: self.drain,
            cache: std::mem::take(&mut self.door.cache),
            is_stopped: self.is_stopped,
            unread: std::mem::take(&mut self.mail.unread),
            cursor: self.pinger.cursor.take(),
            tls: self.tls.config.take(),
            generation: self.rows.next_generation(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_that_keeps_failing_restarts_less_and_less_often() {
        assert_eq!([1, 2, 7, 8, 40].map(|failures| pause_after(failures).as_millis()), [10, 20, 640, 1000, 1000]);
    }
}
