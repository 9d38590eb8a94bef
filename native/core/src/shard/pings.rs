//! Pings: when the wheel says that rows are due, a slice at a time. A publication on its way to a row that is due goes with the
//! ping, or instead of it: a write is nearly all that either costs.

use std::borrow::Cow;
use std::sync::Arc;

use super::Shard;
use crate::channels::joined;
use crate::clock::{MS, Slice, cpu_ns};
use crate::framing::{ENCODINGS, FORMATS, Format};
use crate::queue::Queued;
use crate::rows::State;
use crate::telemetry::add;

/// A ping for each format, from the payload of each encoding.
pub(super) fn framed(payloads: &[Box<[u8]>; ENCODINGS]) -> [Box<[u8]>; FORMATS] {
    let mut pings: [Box<[u8]>; FORMATS] = Default::default();
    for format in Format::all() {
        pings[format.slot()] = format.ping(&payloads[format.encoding()]).into();
    }
    pings
}

/// Pings that are this late are overdue: the shard has more to do than it gets done. Then pings come first, because what they take is
/// bounded, and everything else in a turn has only this part of its slice.
const LATE_NS: u64 = 10 * MS;
const LATE_PART: u64 = 8;

impl Shard {
    /// Whether pings are overdue.
    pub(super) fn is_late(&self) -> bool {
        self.held > 0 && self.pinger.wheel.due_ns() + LATE_NS < self.now_ns
    }

    /// Whether pings are overdue, or the last ones were.
    pub(super) fn has_been_late(&self) -> bool {
        self.is_late() || (self.held > 0 && self.pinger.was_late)
    }

    /// For work other than pings.
    pub(super) fn slice(&self) -> Slice {
        Slice::of(if self.is_late() { self.slice_ns / LATE_PART } else { self.slice_ns })
    }

    /// Pings what is due. Pings that don't fit into the slice stay due for the next turn.
    pub(super) fn send_pings(&mut self) {
        if self.held == 0 || self.pinger.wheel.due_ns() > self.now_ns {
            return;
        }
        let cpu_before_ns = cpu_ns();
        let mut slice = Slice::of(self.slice_ns);
        let (mut pings, mut deliveries) = (0, 0);
        while let Some((row, due_ns)) = self.pinger.wheel.next(self.now_ns, self.rows.len()) {
            let index = row as u32;
            self.pinger.was_late = due_ns + LATE_NS < self.now_ns;
            if self.rows.state(index) != State::Held || self.rows.format(index).is_poll() || self.needs_no_ping(index) {
                continue;
            }
            self.telemetry.lateness.record(slice.now_ns.saturating_sub(due_ns) / 1000, 1);
            let waiting = self.take_waiting(index);
            deliveries += waiting.len() as u32;
            if self.options.idle_pings && !waiting.is_empty() {
                self.write_after(index, &waiting, b"");
            } else {
                self.send_ping_after(index, &waiting);
                pings += 1;
            }
            if slice.is_over() {
                break;
            }
        }
        if pings + deliveries > 0 {
            let each_ns = (cpu_ns() - cpu_before_ns) / u64::from(pings + deliveries);
            add(&self.telemetry.pings, pings.into());
            if pings > 0 {
                self.telemetry.ping_cpu.record(each_ns, pings);
            }
            self.record_deliveries(each_ns, deliveries);
        }
    }

    /// Whether a message has taken its place. WebSockets always get theirs, which find dead peers.
    fn needs_no_ping(&mut self, index: u32) -> bool {
        let was_told = self.options.idle_pings && self.rows.row(index).take_told();
        was_told && !self.rows.format(index).is_websocket()
    }

    /// What was published and is still on its way to a row. Nothing for a WebSocket, whose pings are counted: fan-outs reach it.
    fn take_waiting(&mut self, index: u32) -> Vec<Arc<Queued>> {
        if !self.channels.is_fanning_out() || self.rows.format(index).is_websocket() {
            return Vec::new();
        }
        self.channels.take_due(index)
    }

    /// The ping of a row that nothing is on its way to.
    pub(super) fn send_ping(&mut self, index: u32) {
        self.send_ping_after(index, &[]);
    }

    /// The ping of a stream of updates is the cursor, if it is certain that the stream has got everything up to it.
    ///
    /// The cursor is that of the last publication that was read from JS. What was published before waits in a channel of the
    /// stream, or the stream has got it, or it was not for this stream. What was published before the stream was opened, or
    /// before it subscribed, was written to it by JS if it was to get it. So if nothing waits for the stream, the cursor is
    /// never ahead of it, and never behind an earlier one: it only moves forward. A stream without channels is not following
    /// anything yet, for example because JS is still writing to it what it has missed: it gets the other ping.
    fn send_ping_after(&mut self, index: u32, waiting: &[Arc<Queued>]) {
        let format = self.rows.format(index);
        if format.is_websocket() {
            return self.send_heartbeat(index);
        }
        if format.has_cursor() && self.channels.has(index) && !self.channels.is_due(index) {
            // Taken, because sharing it would cost every shard a write to the same cache line.
            if let Some(cursor) = self.pinger.cursor.take() {
                self.write_after(index, waiting, cursor.frame(format));
                self.pinger.cursor = Some(cursor);
                return;
            }
        }
        let slot = format.slot();
        let ping = std::mem::take(&mut self.pinger.pings[slot]);
        self.write_after(index, waiting, &ping);
        self.pinger.pings[slot] = ping;
    }

    /// Writes what waits for a row, and a frame after it.
    fn write_after(&mut self, index: u32, waiting: &[Arc<Queued>], frame: &[u8]) {
        let format = self.rows.format(index);
        let bytes = match waiting {
            [] => Cow::Borrowed(frame),
            [one] if frame.is_empty() => Cow::Borrowed(one.message.frame(format)),
            all => Cow::Owned([&joined(all, format), frame].concat()),
        };
        self.write(index, &bytes);
    }
}
