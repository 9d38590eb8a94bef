//! Connections that go to node:http, with everything their clients have sent. Of those with TLS, it gets one end of a relay.

use std::os::fd::AsFd;

use super::Shard;
use crate::id::Id;
use crate::mail::Passed;
use crate::parcel;
use crate::rows::Input;
use crate::shard::tls::relay_pair;

impl Shard {
    /// Hands a connection to node:http, with what was read of it.
    pub(super) fn pass(&mut self, id: Id) {
        if !self.try_to_pass(id) {
            self.door.passing.push_back(id);
        }
    }

    /// False if the kernel has no room for it.
    fn try_to_pass(&mut self, id: Id) -> bool {
        let Some(index) = self.asked(id) else { return true };
        if self.tls.session(index).is_some() {
            return self.try_to_relay(index, id);
        }
        let is_watched = self.rows.row(index).input != Input::Unwatched;
        let Some(socket) = self.rows.socket(index) else { return true };
        match parcel::send(&self.transfer, &id.bits().to_le_bytes(), socket.as_fd()) {
            Ok(()) => {
                if is_watched {
                    self.reactor.forget(socket);
                }
                let read = self.door.arriving.take(index).unwrap_or_default();
                self.mail.events.passed.push(Passed { id, read, from: None });
            }
            Err(error) if parcel::is_full(error) => return false,
            Err(_) => {}
        }
        self.free(index);
        true
    }

    fn try_to_relay(&mut self, index: u32, id: Id) -> bool {
        let Ok((inner, outer)) = relay_pair() else { return false };
        match parcel::send(&self.transfer, &id.bits().to_le_bytes(), outer.as_fd()) {
            Ok(()) => {
                let read = self.door.arriving.take(index).unwrap_or_default();
                let from = self.begin_relay(index, inner);
                self.mail.events.passed.push(Passed { id, read, from: Some(from) });
                self.continue_relay(id);
            }
            Err(error) if parcel::is_full(error) => return false,
            Err(_) => self.free(index),
        }
        true
    }

    /// If the kernel has no room for one, it has none for those behind it.
    pub(super) fn retry_passing(&mut self) {
        while let Some(id) = self.door.passing.front().copied()
            && self.try_to_pass(id)
        {
            self.door.passing.pop_front();
        }
    }
}
