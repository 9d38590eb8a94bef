//! TLS handshakes, from the connection to the request. They take turns of a slice, because each costs 100 times as much as
//! anything else that happens to a stream.

use std::io::{Read, Write};

use super::Cause;
use super::client::Client;
use super::secrets::Greeting;
use super::streams::State;
use super::tally::count;
use crate::clock::{Slice, now_ns};
use crate::tls::Progress;

/// Streams with TLS that a thread may be opening at the same time: each takes about 10 KB until it is open.
const MOST_GREETINGS: usize = 1024;

impl Client {
    /// Whether a stream of this target has to wait until others are open.
    pub(super) fn must_wait(&self, target: u32) -> bool {
        self.attempts.len() >= MOST_GREETINGS && self.targets.get(target).security.is_some()
    }

    pub(super) fn is_secured(&self, index: u32) -> bool {
        self.targets.get(self.streams.row(index).target).security.is_some()
    }

    /// Its connection is there, or something has come: its handshake goes on when it is its turn.
    pub(super) fn queue_greeting(&mut self, index: u32) {
        self.secrets.ready.push_back(self.streams.id_of(index));
    }

    /// Goes on with handshakes for a slice.
    pub(super) fn continue_greetings(&mut self) {
        if self.secrets.ready.is_empty() {
            return;
        }
        let mut slice = Slice::begin();
        while let Some(id) = self.secrets.ready.pop_front() {
            if let Some(index) = self.streams.find(id) {
                self.greet(index);
            }
            if slice.is_over_now() {
                break;
            }
        }
    }

    fn greet(&mut self, index: u32) {
        let is_new = !self.secrets.greetings.contains_key(&index);
        if is_new
            && self.streams.row(index).state == State::Greeting
            && let Err(cause) = self.begin_greeting(index)
        {
            return self.end(index, cause);
        }
        // Up to the end: epoll has reported it already.
        self.read(index, true);
    }

    fn begin_greeting(&mut self, index: u32) -> Result<(), Cause> {
        let target = self.targets.get(self.streams.row(index).target);
        let server = &target.servers[self.visits.at(index)];
        let handshake = server.secured.as_ref().and_then(|secured| secured.begin()).ok_or(Cause::Other)?;
        let since_ns = self.attempts.get(&index).map_or_else(now_ns, |attempt| attempt.connected_ns);
        let mut greeting = Box::new(Greeting { handshake, since_ns });
        self.secrets.out.clear();
        greeting.handshake.take_output(&mut self.secrets.out);
        self.secrets.greetings.insert(index, greeting);
        self.send_out(index)
    }

    /// Reads a record of a stream whose response has not begun, and appends its plaintext.
    pub(super) fn read_greeting(&mut self, index: u32, record: &[u8], plain: &mut Vec<u8>) -> Result<(), Cause> {
        let secrets = &mut self.secrets;
        let Some(greeting) = secrets.greetings.get_mut(&index) else { return Err(Cause::Other) };
        secrets.out.clear();
        match greeting.handshake.read(record, &mut secrets.out) {
            Progress::Waiting => self.send_out(index),
            Progress::Done if self.streams.row(index).state == State::Greeting => self.finish_greeting(index),
            Progress::Done => self.read_first(index, plain),
            Progress::Failed => Err(self.failure_of(index)),
        }
    }

    /// The handshake is over: sends its last part together with the request.
    fn finish_greeting(&mut self, index: u32) -> Result<(), Cause> {
        let mut out = std::mem::take(&mut self.secrets.out);
        let request = self.request_for(index);
        let Some(greeting) = self.secrets.greetings.get_mut(&index) else { return Err(Cause::Other) };
        // It fits into the buffer of rustls, which is much larger than a request can be.
        let written = greeting.handshake.connection().writer().write(&request).unwrap_or(0);
        greeting.handshake.take_output(&mut out);
        let (is_resumed, since_ns) = (greeting.handshake.is_resumed(), greeting.since_ns);
        let is_whole = written == request.len();
        (self.request, self.secrets.out) = (request, out);
        count(&self.tally.handshakes, 1);
        count(&self.tally.resumptions, u64::from(is_resumed));
        self.tally.handshake.record((now_ns() - since_ns) / 1000, 1);
        self.streams.row_mut(index).state = State::Asked;
        if !is_whole {
            return Err(Cause::Other);
        }
        self.send_out(index)?;
        self.begin_poll(index);
        Ok(())
    }

    /// A record after the handshake: a ticket, or the first bytes of the response. Tickets come before those, so then nothing of
    /// the handshake is needed any more.
    fn read_first(&mut self, index: u32, plain: &mut Vec<u8>) -> Result<(), Cause> {
        let Some(mut greeting) = self.secrets.greetings.remove(&index) else { return Err(Cause::Other) };
        // For rustls it is an error that nothing more is there.
        let _ = greeting.handshake.connection().reader().read_to_end(plain);
        if plain.is_empty() {
            self.secrets.greetings.insert(index, greeting);
            return self.send_out(index);
        }
        self.send_out(index)?;
        let session = greeting.handshake.finish().ok_or(Cause::Other)?;
        self.secrets.sessions.insert(index, session, self.streams.most());
        Ok(())
    }

    /// Why the handshake failed. The server gets the alert, if it is still there.
    fn failure_of(&mut self, index: u32) -> Cause {
        let _ = self.send_out(index);
        let greeting = self.secrets.greetings.get_mut(&index);
        // It returns the same error again.
        let Some(Err(error)) = greeting.map(|greeting| greeting.handshake.connection().process_new_packets()) else {
            return Cause::Closed;
        };
        let cause = Cause::from(&error);
        self.tally.keep_sample(cause, error.to_string().as_bytes());
        cause
    }

    /// Sends what is in `out`: a few hundred bytes, which always fit into the buffer of a socket that has sent little.
    pub(super) fn send_out(&mut self, index: u32) -> Result<(), Cause> {
        let out = &self.secrets.out;
        if out.is_empty() {
            return Ok(());
        }
        let socket = self.streams.row(index).socket.as_ref().ok_or(Cause::Other)?;
        if socket.write(out)? == out.len() { Ok(()) } else { Err(Cause::Other) }
    }
}
