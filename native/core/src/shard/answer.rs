//! Requests that get a complete response instead of a stream, and what follows: another request (next_request.rs), or the client reads
//! it, and closes.

use super::Shard;
use crate::id::Id;
use crate::response::{self, Refusal};
use crate::rows::{Input, State};
use crate::socket::{SCRATCH_BYTES, Stop};
use crate::telemetry::add;

/// Reads of a client that has been answered, before everything else gets its turn.
const DISCARDS_A_TURN: usize = 16;

impl Shard {
    pub(super) fn refuse(&mut self, id: Id, status: u16) {
        if let (Some(index), Some(refusal)) = (self.asked(id), Refusal::of(status)) {
            self.refuse_row(index, refusal);
        }
    }

    pub(super) fn refuse_row(&mut self, index: u32, refusal: Refusal) {
        add(&self.telemetry.refused[refusal as usize], 1);
        let goes_on = matches!(refusal, Refusal::NotFound | Refusal::MethodNotAllowed) && self.may_go_on(index);
        let connection = self.connection_line(index, goes_on);
        let is_head_request = self.rows.row(index).is_head_request();
        let bytes = response::refusal(refusal, &[connection, self.door.date.bytes()], is_head_request);
        if goes_on { self.answer_and_go_on(index, &bytes) } else { self.answer(index, &bytes) }
    }

    /// Sends a whole response. Its head is complete but for Connection and Date.
    pub(super) fn respond(&mut self, id: Id, head: &[u8], body: &[u8]) {
        let Some(index) = self.asked(id) else { return };
        let goes_on = self.may_go_on(index);
        let connection = self.connection_line(index, goes_on);
        let bytes = [head, connection, self.door.date.bytes(), b"\r\n", body].concat();
        if goes_on { self.answer_and_go_on(index, &bytes) } else { self.answer(index, &bytes) }
    }

    /// Writes the last bytes of a connection, and closes it once the client has.
    pub(super) fn answer(&mut self, index: u32, bytes: &[u8]) {
        self.door.arriving.take(index);
        let wire = self.last_on_wire(index, bytes);
        self.answer_on_wire(index, &wire);
        self.reuse(wire);
    }

    fn answer_on_wire(&mut self, index: u32, bytes: &[u8]) {
        let Some(socket) = self.rows.socket(index) else { return };
        // A part of a handshake may still wait.
        let written = if self.rows.is_backlogged(index) { Err(Stop::Later) } else { socket.write(bytes) };
        let count = match written {
            Ok(count) => count,
            Err(Stop::Later) => 0,
            Err(Stop::Broken(_)) => return self.free(index),
        };
        if count == bytes.len() {
            return self.linger(index);
        }
        self.enter(index, State::Ending);
        self.wait(index, &bytes[count..], true);
        self.discard_or_watch(index);
    }

    /// Everything was written: says so to the client, and closes the connection once the client has.
    pub(super) fn linger(&mut self, index: u32) {
        if self.rows.socket(index).is_none_or(|socket| socket.close_write().is_err()) {
            return self.free(index);
        }
        self.enter(index, State::Lingering);
        self.note_lingering(index);
        self.discard_or_watch(index);
    }

    fn discard_or_watch(&mut self, index: u32) {
        if self.rows.row(index).input == Input::Unwatched { self.watch(index) } else { self.discard(index) }
    }

    /// Reads and forgets, up to the end.
    pub(super) fn discard(&mut self, index: u32) {
        for _ in 0..DISCARDS_A_TURN {
            let Some(socket) = self.rows.socket(index) else { return };
            match socket.skip(&mut self.scratch[..SCRATCH_BYTES]) {
                Ok(1..) => {}
                Err(Stop::Later) => return,
                // It may have closed one direction only, and still read.
                Ok(0) if self.rows.state(index) == State::Ending => return,
                _ => return self.end_row(index),
            }
        }
        let is_backlogged = self.rows.is_backlogged(index);
        self.watch_again(index, is_backlogged);
    }
}
