//! What clients send on a stream. They have nothing to say there, but TLS has: that they close, that something went wrong, that they
//! use another key.

use std::ops::Range;

use crate::rows::State;
use crate::shard::Shard;
use crate::shard::stream::{EMPTY_READS, is_empty_lines, reason_of};
use crate::socket::{SCRATCH_BYTES, Stop};
use crate::telemetry::Reason;
use crate::tls::{Alert, LONGEST_RECORD, Message, record_size};

/// The longest record that is read on a stream: nothing that a client may say takes more, padding included.
const MOST_BYTES: usize = 1024;
/// Records that a client may send at once. More count as nonsense.
const MOST_RECORDS: usize = 32;

impl Shard {
    /// Reads everything that has come, beginning with what came with its head.
    pub(in crate::shard) fn read_tls_stream(&mut self, index: u32) {
        let mut records = 0..MOST_RECORDS;
        for _ in 0..EMPTY_READS {
            if !self.read_stream_records(index, &mut records) {
                return self.hear_later(index);
            }
            let Some(socket) = self.rows.socket(index).filter(|_| self.rows.state(index) == State::Held) else { return };
            match socket.read(&mut self.scratch[..SCRATCH_BYTES]) {
                Ok(0) => return self.close(index, Reason::ClientGone),
                Ok(count) => self.tls.add_unread(index, &self.scratch[..count]),
                Err(Stop::Later) => return,
                Err(Stop::Broken(error)) => return self.close(index, reason_of(error)),
            }
        }
        if self.rows.format(index).is_websocket() {
            return self.hear_later(index);
        }
        self.fail_stream(index, Alert::UnexpectedMessage, Reason::BadRequest);
    }

    /// Reads whole records, no more than are left. False if a WebSocket has to wait before its next one is read.
    fn read_stream_records(&mut self, index: u32, records: &mut Range<usize>) -> bool {
        let is_websocket = self.rows.format(index).is_websocket();
        while self.rows.state(index) == State::Held {
            if is_websocket && (records.start == records.end || self.mail.outbox.is_full()) {
                return false;
            }
            let is_too_long = !is_websocket && matches!(record_size(self.tls.unread(index), LONGEST_RECORD), Ok(Some(MOST_BYTES..)));
            match self.tls.next_record(index) {
                Ok(None) if !is_too_long => return true,
                Ok(Some(mut record)) if !is_too_long && records.next().is_some() => self.read_stream_record(index, &mut record),
                Ok(_) => self.fail_stream(index, Alert::UnexpectedMessage, Reason::BadRequest),
                Err(alert) => self.fail_stream(index, alert, Reason::BadRecord),
            }
        }
        true
    }

    fn read_stream_record(&mut self, index: u32, record: &mut [u8]) {
        let Some(session) = self.tls.session_mut(index) else { return };
        match session.open(record) {
            Ok(Message::Data(text)) if self.rows.format(index).is_websocket() => self.hear(index, text),
            Ok(Message::Data(text)) if is_empty_lines(text) => {}
            Ok(Message::Data(_)) => self.fail_stream(index, Alert::CloseNotify, Reason::BadRequest),
            Ok(Message::KeyUpdate(is_requested)) => self.update_key(index, is_requested),
            Ok(Message::CloseNotify) => {
                self.send_alert(index, Alert::CloseNotify);
                self.close(index, Reason::ClientGone);
            }
            Ok(Message::Failure(_)) => self.close(index, Reason::TlsAlert),
            Ok(Message::Handshake(_)) => self.fail_stream(index, Alert::UnexpectedMessage, Reason::BadRecord),
            Err(alert) => self.fail_stream(index, alert, Reason::BadRecord),
        }
    }

    /// Ends a stream at once, but says why.
    fn fail_stream(&mut self, index: u32, alert: Alert, reason: Reason) {
        self.send_alert(index, alert);
        self.release(index, reason);
        self.forget_backlog(index);
        self.linger(index);
    }
}
