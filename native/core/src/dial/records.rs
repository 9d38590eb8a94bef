//! The records of TLS that arrive on a stream, and the few that are sent on one that is open.

use super::Cause;
use super::client::Client;
use super::secrets::Secrets;
use super::streams::State;
use crate::tls::{Alert, Content, LONGEST_RECORD, Message, record_size};

impl Client {
    /// Handles the records that `bytes` begin with. What follows them is kept until the next read.
    pub(super) fn handle_records(&mut self, index: u32, bytes: &mut [u8]) {
        let mut plain = std::mem::take(&mut self.secrets.plain);
        plain.clear();
        let outcome = self.read_records(index, bytes, &mut plain);
        if !plain.is_empty() {
            self.handle_bytes(index, &plain);
        }
        self.secrets.plain = plain;
        // What came before may have ended it.
        if self.streams.row(index).state == State::Free {
            return;
        }
        match outcome {
            Ok(used) => self.secrets.set_cut(index, &bytes[used..]),
            Err(cause) => self.end(index, cause),
        }
    }

    /// Returns the size of all complete records, and appends their plaintext.
    fn read_records(&mut self, index: u32, bytes: &mut [u8], plain: &mut Vec<u8>) -> Result<usize, Cause> {
        let mut used = 0;
        loop {
            let rest = &mut bytes[used..];
            match record_size(rest, LONGEST_RECORD) {
                Ok(Some(size)) if size <= rest.len() => {
                    self.read_record(index, &mut rest[..size], plain)?;
                    used += size;
                }
                Ok(_) => return Ok(used),
                Err(alert) => return Err(self.refuse(index, alert, rest)),
            }
        }
    }

    fn read_record(&mut self, index: u32, record: &mut [u8], plain: &mut Vec<u8>) -> Result<(), Cause> {
        let Some(session) = self.secrets.sessions.get_mut(index) else { return self.read_greeting(index, record, plain) };
        match session.open(record) {
            Ok(Message::Data(bytes)) => plain.extend_from_slice(bytes),
            Ok(Message::CloseNotify) => return Err(Cause::Closed),
            Ok(Message::Failure(what)) => {
                self.tally.keep_sample(Cause::Alert, format!("alert {what}").as_bytes());
                return Err(Cause::Alert);
            }
            Ok(Message::KeyUpdate(true)) => return self.update_key(index),
            // Tickets that come this late are of no use: what rustls needs for them is gone.
            Ok(Message::KeyUpdate(false) | Message::Handshake(_)) => (),
            Err(alert) => return Err(self.refuse(index, alert, record)),
        }
        Ok(())
    }

    /// The server wants a key update of ours too.
    fn update_key(&mut self, index: u32) -> Result<(), Cause> {
        let Secrets { sessions, out, .. } = &mut self.secrets;
        out.clear();
        if let Some(session) = sessions.get_mut(index) {
            session.seal_key_update(out);
        }
        self.send_out(index)
    }

    /// Tells the server that what it has sent is not a valid record.
    fn refuse(&mut self, index: u32, alert: Alert, bytes: &[u8]) -> Cause {
        let is_greeting = self.secrets.sessions.get(index).is_none();
        let cause = if is_greeting { Cause::Handshake } else { Cause::BadRecord };
        self.tally.keep_sample(cause, &bytes[..bytes.len().min(SAMPLE_BYTES)]);
        self.say(index, alert);
        cause
    }

    /// Sends something on a stream that is open: little, which fits into the buffer of its socket.
    pub(super) fn send(&mut self, index: u32, bytes: &[u8]) -> Result<(), Cause> {
        if !self.is_secured(index) {
            let socket = self.streams.row(index).socket.as_ref().ok_or(Cause::Other)?;
            return if socket.write(bytes)? == bytes.len() { Ok(()) } else { Err(Cause::Other) };
        }
        let Secrets { sessions, out, .. } = &mut self.secrets;
        out.clear();
        sessions.get_mut(index).ok_or(Cause::Other)?.seal(Content::Data, bytes, out);
        self.send_out(index)
    }

    /// Sends an alert as the last thing, if the stream has a session.
    pub(super) fn say(&mut self, index: u32, alert: Alert) {
        let Secrets { sessions, out, .. } = &mut self.secrets;
        out.clear();
        if let Some(session) = sessions.get_mut(index) {
            session.seal_alert(alert, out);
        }
        // The server may be gone already.
        let _ = self.send_out(index);
    }
}

/// The size of a sample of wrong bytes.
const SAMPLE_BYTES: usize = 80;
