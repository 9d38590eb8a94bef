//! Everything said to streams (hold, subscribe, publish, send, end) in the order in which it was requested.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::Shard;
use crate::clock::{Slice, cpu_ns};
use crate::command::{Command, Opening};
use crate::framing::Message;
use crate::id::Id;
use crate::rows::State;
use crate::telemetry::{Reason, add};

/// A message on its way through the list of a channel.
#[derive(Debug)]
pub(super) struct Walk {
    channel: u32,
    message: Arc<Message>,
    place: usize,
    end: usize,
}

/// What one step did.
#[derive(Default)]
struct Step {
    deliveries: u32,
    opened: u32,
}

impl Shard {
    /// Takes effect after everything that was said before. A stream opens at once if nothing is queued: a fan-out that has
    /// begun doesn't reach streams that subscribe later.
    pub(super) fn say(&mut self, command: Command) {
        match command {
            Command::Hold { id, opening } if self.jobs.queue.is_empty() => self.hold(id, &opening),
            command => {
                self.note_answered(&command);
                self.jobs.queue.push_back(command);
            }
        }
    }

    /// JS has answered in time: how long the answer is queued here is not its fault.
    fn note_answered(&mut self, command: &Command) {
        if let Command::Hold { id, .. } = command
            && let Some(index) = self.asked(*id)
        {
            self.enter(index, State::Asked);
        }
    }

    pub(super) fn has_jobs(&self) -> bool {
        self.jobs.walk.is_some() || !self.jobs.queue.is_empty()
    }

    /// Does what was requested, for a slice.
    pub(super) fn run_jobs(&mut self) {
        if !self.has_jobs() {
            return;
        }
        let cpu_before_ns = cpu_ns();
        let mut slice = Slice::of(self.slice_ns);
        let mut done = Step::default();
        while let Some(step) = self.step() {
            done.deliveries += step.deliveries;
            done.opened += step.opened;
            if slice.is_over() {
                break;
            }
        }
        self.telemetry.queued_jobs.store(self.jobs.queue.len() as u64, Relaxed);
        self.note_jobs_cpu(cpu_ns() - cpu_before_ns, &done);
    }

    /// Deliveries and openings share the CPU of a slice by their numbers.
    fn note_jobs_cpu(&mut self, spent_ns: u64, done: &Step) {
        let Step { deliveries, opened } = *done;
        if deliveries + opened == 0 {
            return;
        }
        let each_ns = spent_ns / u64::from(deliveries + opened);
        if opened > 0 {
            self.door.cpu_ns += each_ns * u64::from(opened);
            self.record_opened();
        }
        if deliveries > 0 {
            add(&self.telemetry.deliveries, deliveries.into());
            self.telemetry.delivery_cpu.record(each_ns, deliveries);
        }
    }

    /// One delivery, or one other job. None if nothing is left to do.
    fn step(&mut self) -> Option<Step> {
        let Some(mut walk) = self.jobs.walk.take() else {
            let command = self.jobs.queue.pop_front()?;
            return Some(self.begin(command));
        };
        if walk.place == walk.end {
            self.jobs.channels.end_walk(walk.channel);
            return Some(Step::default());
        }
        let row = self.jobs.channels.row_at(walk.channel, walk.place);
        walk.place += 1;
        if let Some(index) = row {
            self.write(index, walk.message.frame(self.rows.format(index)));
        }
        self.jobs.walk = Some(walk);
        Some(Step { deliveries: row.is_some().into(), opened: 0 })
    }

    fn begin(&mut self, command: Command) -> Step {
        match command {
            Command::Hold { id, opening } => return self.hold_in_order(id, &opening),
            Command::Send { id, message } => return self.send(id, &message),
            Command::Adopt => self.receive(),
            Command::Publish { channel, message } => {
                let walk = self.jobs.channels.begin_walk(&channel);
                self.jobs.walk = walk.map(|(channel, end)| Walk { channel, message, place: 0, end });
            }
            Command::End { id } => {
                if let Some(index) = self.held_row(id) {
                    self.finish(index, Reason::Drain);
                }
            }
            Command::Subscribe { id, channel } => {
                if let Some(index) = self.held_row(id) {
                    self.jobs.channels.subscribe(index, &channel);
                }
            }
            Command::Unsubscribe { id, channel } => {
                if let Some(index) = self.held_row(id) {
                    self.jobs.channels.unsubscribe(index, &channel);
                }
            }
            Command::Drain { .. } => self.begin_closing(),
            // These never wait: see `apply`.
            Command::Refuse { .. } | Command::Respond { .. } | Command::Pass { .. } | Command::Remember { .. } => {}
        }
        Step::default()
    }

    fn hold_in_order(&mut self, id: Id, opening: &Opening) -> Step {
        let opened_before = self.door.opened_in_turn;
        self.hold(id, opening);
        Step { deliveries: 0, opened: self.door.opened_in_turn - opened_before }
    }

    fn send(&mut self, id: Id, message: &Message) -> Step {
        let Some(index) = self.held_row(id) else { return Step::default() };
        self.write(index, message.frame(self.rows.format(index)));
        Step { deliveries: 1, opened: 0 }
    }
}
