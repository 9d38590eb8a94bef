//! What JS says: answers to heads, and everything said to streams. All of it takes effect in the order in which it was said,
//! for a slice of time in each turn.

use std::sync::Arc;

use super::Shard;
use crate::channels::Census;
use crate::clock::{MS, cpu_ns};
use crate::command::{Command, Opening};
use crate::id::Id;
use crate::mail::ShardMessage;
use crate::rows::State;
use crate::telemetry::Reason;

impl Shard {
    pub(super) fn read_mail(&mut self) {
        self.reactor.silence_bell();
        for message in self.mail.inbox.take() {
            match message {
                // These are about a handover. What was said before may have to wait for them.
                ShardMessage::Offer(reply) => drop(reply.send(self.offer())),
                ShardMessage::TakeFrom { name, weight, reply } => drop(reply.send(self.take_from(&name, weight))),
                ShardMessage::Release => self.release_moved(),
                ShardMessage::TakeBack => self.take_back(),
                ShardMessage::Withdraw => self.withdraw(),
                ShardMessage::DropParked => self.drop_parked(),
                ShardMessage::UseTls(config) => self.tls.config = Some(config),
                // It only concerns heads that come later.
                ShardMessage::Command(Command::Remember { lines, opening }) => self.door.cache.remember(lines, &opening),
                message => {
                    if matches!(message, ShardMessage::Stop) && self.giving.is_in_round() {
                        self.take_back();
                    }
                    self.note_answered(&message);
                    self.mail.unread.push_back(message);
                }
            }
        }
    }

    /// JS has answered in time, even if the answer waits here for a while.
    fn note_answered(&mut self, message: &ShardMessage) {
        if let ShardMessage::Command(Command::Hold { id, .. }) = message
            && let Some(index) = self.asked(*id)
        {
            self.enter(index, State::Asked);
        }
    }

    /// A head with a cached decision waits behind what JS said before it came.
    pub(super) fn hold_cached(&mut self, id: Id, opening: Arc<Opening>) {
        if self.mail.unread.is_empty() {
            self.hold(id, &opening);
        } else {
            self.mail.unread.push_back(ShardMessage::HoldCached(id, opening));
        }
    }

    /// If a message causes a panic, the rest is read after the restart.
    pub(super) fn handle_mail(&mut self) {
        if self.mail.unread.is_empty() || self.mail.is_paused || self.giving.is_in_round() {
            return;
        }
        let cpu_before_ns = cpu_ns();
        let (mut slice, is_late) = (self.slice(), self.is_late());
        let mut deliveries = 0;
        while let Some(message) = self.mail.unread.pop_front() {
            deliveries += self.handle_message(message);
            // A stride of openings takes longer than the slice of a late shard.
            let is_over = if is_late { slice.is_over_now() } else { slice.is_over() };
            if is_over || self.mail.is_paused || self.giving.is_in_round() {
                break;
            }
        }
        self.share_cpu(cpu_ns() - cpu_before_ns, deliveries);
    }

    /// Divides the CPU of a slice of commands among its openings and deliveries, in equal parts.
    fn share_cpu(&mut self, spent_ns: u64, deliveries: u32) {
        let each_ns = spent_ns / u64::from(deliveries + self.door.opened_in_turn).max(1);
        self.door.cpu_ns += spent_ns - each_ns * u64::from(deliveries);
        self.record_opened();
        self.record_deliveries(each_ns, deliveries);
    }

    /// Returns how many messages were written because of it.
    fn handle_message(&mut self, message: ShardMessage) -> u32 {
        match message {
            ShardMessage::Command(command) => return self.apply(command),
            ShardMessage::HoldCached(id, opening) => self.hold(id, &opening),
            ShardMessage::Listen { address, is_tls, reply } => self.reply_listening(address, is_tls, &reply),
            ShardMessage::Unlisten => self.unlisten(),
            ShardMessage::Count { token, most } => self.census = Some(Census::new(token, most)),
            ShardMessage::Move { length_ms, wants_ids } => self.begin_round(u64::from(length_ms), wants_ids),
            ShardMessage::Go { quiet } => self.go(quiet.as_deref()),
            // Known since they were read.
            ShardMessage::Offer(_) | ShardMessage::TakeFrom { .. } | ShardMessage::UseTls(_) => {}
            ShardMessage::Release | ShardMessage::TakeBack | ShardMessage::Withdraw | ShardMessage::DropParked => {}
            ShardMessage::Fail => panic!("a test asked for it"),
            ShardMessage::Stop => self.stop(),
        }
        0
    }

    fn apply(&mut self, command: Command) -> u32 {
        match command {
            Command::Hold { id, opening } if self.asked(id).is_some() => self.hold(id, &opening),
            Command::Hold { id, .. } => self.miss(id),
            Command::Adopt => self.receive(),
            Command::Refuse { id, status } => self.refuse(id, status),
            Command::Respond { id, head, body } => self.respond(id, &head, &body),
            Command::Pass { id } => self.pass(id),
            // Known since it was read.
            Command::Remember { .. } => {}
            Command::Drain { period_ms } => self.begin_drain(u64::from(period_ms) * MS),
            Command::Publish { channels, queued, cursor } => self.publish(&channels, queued, cursor),
            Command::EndChannel { channel, reason } => self.end_channel(&channel, reason),
            Command::EndLabelled { kind, value, reason } => self.end_labelled(kind, value, reason),
            Command::EndUpdates { reason } => self.end_updates(reason),
            Command::Label { id, label } => self.label(id, label),
            Command::Tag { id, tag } => self.tag(id, tag),
            Command::Send { id, queued } => return self.held_row(id).map_or(0, |index| self.send(index, &queued)),
            Command::Write { id, queued, is_exempt } => {
                return self.held_row(id).map_or(0, |index| self.write_raw(index, &queued, is_exempt));
            }
            Command::End { id } => return self.held_row(id).map_or(0, |index| self.finish(index, Reason::Drain)),
            Command::Subscribe { id, channel } => return self.held_row(id).map_or(0, |index| self.subscribe(index, channel)),
            Command::Unsubscribe { id, channel } => {
                return self.held_row(id).map_or(0, |index| self.unsubscribe(index, &channel));
            }
        }
        0
    }
}
