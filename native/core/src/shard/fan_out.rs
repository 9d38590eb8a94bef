//! Publications on their way to their streams: channels take turns, and each stream gets everything in order.

use std::sync::Arc;

use super::Shard;
use crate::channels::{Due, joined};
use crate::clock::cpu_ns;
use crate::framing::Cursor;
use crate::queue::Queued;
use crate::rows::State;
use crate::sys;
use crate::telemetry::{Reason, add};
use crate::wire::Names;

/// Rows that a channel reaches before the next one has its turn.
const ROWS_A_TURN: usize = 64;

impl Shard {
    /// Delivers for a slice.
    pub(super) fn fan_out(&mut self) {
        if !self.channels.is_fanning_out() {
            return;
        }
        let cpu_before_ns = cpu_ns();
        let mut slice = self.slice();
        let mut deliveries = 0;
        while let Some(turn) = self.channels.begin_turn() {
            let mut is_over = false;
            for _ in 0..ROWS_A_TURN {
                let Some((index, due)) = self.channels.next_row(&turn) else { break };
                deliveries += match due {
                    Due::Batch if self.rows.format(index).is_poll() => self.deliver(index, turn.batch.messages()),
                    Due::Batch => {
                        self.tell(index, turn.batch.frame(self.rows.format(index)));
                        turn.batch.len() as u32
                    }
                    Due::Messages(messages) => self.deliver(index, &messages),
                };
                is_over = slice.is_over();
                if is_over {
                    break;
                }
            }
            self.channels.end_turn(turn);
            if is_over {
                break;
            }
        }
        if deliveries > 0 {
            self.record_deliveries((cpu_ns() - cpu_before_ns) / u64::from(deliveries), deliveries);
        }
    }

    /// Tells JS which publications have reached everyone.
    pub(super) fn report_published(&mut self) {
        for (queued, listeners) in self.channels.take_finished() {
            self.mail.events.published.extend(queued.finish(listeners));
        }
    }

    /// Writes to a stream everything that waits for it, so that something else can be said to it. Like the methods below,
    /// returns the number of messages.
    pub(super) fn catch_up(&mut self, index: u32) -> u32 {
        if !self.channels.is_fanning_out() {
            return 0;
        }
        let due = self.channels.take_due(index);
        self.deliver(index, &due)
    }

    pub(super) fn send(&mut self, index: u32, queued: &Arc<Queued>) -> u32 {
        let caught_up = self.catch_up(index);
        if self.rows.state(index) != State::Held {
            return caught_up;
        }
        caught_up + self.deliver(index, std::slice::from_ref(queued))
    }

    /// The order matters only to what follows a panic: the cursor must not be behind what streams that are opened after it have
    /// got from JS.
    pub(super) fn publish(&mut self, channels: &Names, queued: Option<Arc<Queued>>, cursor: Option<Arc<Cursor>>) {
        if cursor.is_some() {
            self.pinger.cursor = cursor;
        }
        if let Some(queued) = queued {
            self.channels.publish(channels.iter(), queued);
        }
    }

    /// Bytes as they are. A poll, which has one answer, gets none.
    pub(super) fn write_raw(&mut self, index: u32, queued: &Queued, is_exempt: bool) -> u32 {
        let caught_up = self.catch_up(index);
        if self.rows.state(index) == State::Held && !self.rows.format(index).is_poll() {
            let bytes = self.rows.format(index).frame(queued.message.data());
            self.write_all(index, &bytes, is_exempt);
        }
        caught_up
    }

    /// If there is no room for the subscription, the stream ends.
    pub(super) fn subscribe(&mut self, index: u32, channel: Box<[u8]>) -> u32 {
        let caught_up = self.catch_up(index);
        if self.rows.state(index) == State::Held {
            let channels = [channel];
            if self.channels.is_on(index, &channels[0]) {
                return caught_up;
            }
            if self.channels.has_room_for(&channels) {
                self.channels.subscribe(index, &channels[0]);
            } else {
                return caught_up + self.finish(index, Reason::OverCapacity);
            }
        }
        caught_up
    }

    pub(super) fn unsubscribe(&mut self, index: u32, channel: &[u8]) -> u32 {
        let caught_up = self.catch_up(index);
        self.channels.unsubscribe(index, channel);
        caught_up
    }

    fn deliver(&mut self, index: u32, messages: &[Arc<Queued>]) -> u32 {
        let format = self.rows.format(index);
        match messages {
            [] => {}
            all if format.is_poll() => self.answer_poll(index, all, Reason::Answered),
            [one] => drop(self.tell(index, one.message.frame(format))),
            all => drop(self.tell(index, &joined(all, format))),
        }
        messages.len() as u32
    }

    /// Writes messages.
    fn tell(&mut self, index: u32, frame: &[u8]) -> bool {
        self.rows.row(index).tell();
        self.write(index, frame)
    }

    pub(super) fn record_deliveries(&mut self, each_ns: u64, deliveries: u32) {
        if deliveries > 0 {
            add(&self.telemetry.deliveries, deliveries.into());
            self.telemetry.delivery_cpu.record(each_ns, deliveries);
        }
    }

    /// When many channels have gone, or many handshakes are over, their memory goes back to the system. Not while streams move away:
    /// the process or the worker is about to end, and it would take time from them.
    pub(super) fn give_back_memory(&mut self) {
        let has_channels_to_give = !self.giving.is_offering() && self.channels.has_memory_to_give_back();
        // Both are asked: each answers once.
        if has_channels_to_give | self.tls.has_memory_to_give_back(self.now_ns) {
            sys::give_back_memory();
        }
    }
}
