//! What follows a panic: the shard's streams are lost, JS is told, and the shard starts again on the same thread.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use super::drain::Drain;
use super::{Fds, Phase, Shard, Shared};
use crate::mail::{Heads, ShardMessage};
use crate::options::Options;
use crate::reactor;
use crate::rows::State;
use crate::telemetry::{Reason, add};

/// Ids of one life have this many generations before they could name rows of the next one.
pub(super) const GENERATIONS_A_LIFE_LOG2: u32 = 16;
/// The pause before the first restart; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What a shard leaves to the next one.
#[derive(Default)]
struct Legacy {
    address: Option<SocketAddr>,
    drain: Option<Drain>,
    is_stopped: bool,
    /// What it was told but has not read: the panic may have been caused by the message before.
    unread: VecDeque<ShardMessage>,
}

impl Legacy {
    /// Whether it was told to stop before or after the panic.
    fn is_stopped(&self) -> bool {
        self.is_stopped || self.unread.iter().any(|message| matches!(message, ShardMessage::Stop))
    }
}

/// Runs a shard, and another in its place after each panic, until it is told to stop. `report` gets the outcome of the
/// first start.
pub fn supervise(number: u8, phase: Phase, options: &Arc<Options>, shared: &Shared, fds: &Fds, report: &Sender<io::Result<()>>) {
    let mut legacy = Legacy::default();
    for life in 0.. {
        let made = fds.try_clone().and_then(|fds| Shard::new(number, life, phase, options.clone(), shared.clone(), fds));
        match made {
            Ok(mut shard) => {
                // Nobody waits any more if the caller is gone, or after the first start.
                let _ = report.send(Ok(()));
                let run = || {
                    shard.resume(legacy);
                    reactor::run(&mut shard);
                };
                if catch_unwind(AssertUnwindSafe(run)).is_ok() {
                    return;
                }
                legacy = shard.retire();
                // A shard that is half broken is not trusted with anything, its own end included.
                let _ = catch_unwind(AssertUnwindSafe(|| drop(shard)));
            }
            Err(error) if life == 0 => return drop(report.send(Err(error))),
            // The system is short of something: it may be there the next time.
            Err(_) => {}
        }
        thread::sleep(pause(life));
        if legacy.is_stopped() || shared.inbox.is_stopping() {
            return;
        }
    }
}

fn pause(life: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << life.min(16)).min(LONGEST_PAUSE)
}

impl Shard {
    /// Goes on where the one before it panicked.
    fn resume(&mut self, legacy: Legacy) {
        if let Some(drain) = legacy.drain {
            self.resume_drain(drain);
        } else if let Some(address) = legacy.address {
            // If that fails, the other shards go on accepting; JS knows about the failure.
            let _ = self.listen(address);
        }
        self.mail.unread = legacy.unread;
        self.read_unread();
    }

    /// Counts and reports every stream as lost. Called on a shard that panicked in the middle of anything, so it only
    /// looks at the rows.
    fn retire(&mut self) -> Legacy {
        let held: Vec<u32> = (0..self.rows.len() as u32).filter(|index| self.rows.state(*index) == State::Held).collect();
        let telemetry = &self.telemetry;
        add(&telemetry.closed[Reason::Failed as usize], telemetry.streams.load(Relaxed));
        add(&telemetry.shard_failures, 1);
        for gauge in [&telemetry.streams, &telemetry.connections, &telemetry.backlog_bytes, &telemetry.queued_jobs] {
            gauge.store(0, Relaxed);
        }
        if self.options.reports_closes {
            self.mail.events.closed.extend(held.iter().map(|index| (self.rows.id_of(*index), Reason::Failed)));
        }
        self.mail.events.failed.push(self.number);
        // JS can't decide about these any more, and the last one may be half written.
        self.mail.heads = Heads::default();
        self.mail.post();
        let unread = std::mem::take(&mut self.mail.unread);
        Legacy { address: self.door.address, drain: self.drain, is_stopped: self.is_stopped, unread }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_that_keeps_failing_restarts_less_and_less_often() {
        assert_eq!([0, 1, 6, 7, 40].map(|life| pause(life).as_millis()), [10, 20, 640, 1000, 1000]);
    }
}
