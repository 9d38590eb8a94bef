//! The tickets of one server: what it sent to streams that were open before, so that handshakes of later ones are cheaper.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// Every handshake uses one and gets one, so there have to be as many as there are handshakes at a time, in all threads. With the
/// certificate that rustls keeps in each, a ticket takes about 1 KB.
const MOST_TICKETS: usize = 4096;

#[derive(Debug)]
pub struct Tickets(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    group: Option<NamedGroup>,
    /// One of TLS 1.2 can be used any number of times.
    tls12: Option<Tls12ClientSessionValue>,
    /// Those of TLS 1.3, each of which is used once. The last one is the newest.
    tls13: Newest<Tls13ClientSessionValue>,
}

impl Default for Tickets {
    fn default() -> Self {
        Tickets(Mutex::new(Kept { group: None, tls12: None, tls13: Newest { all: VecDeque::new(), most: MOST_TICKETS } }))
    }
}

impl Tickets {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All of a store's streams go to the same server, so it doesn't matter how they name it.
impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.kept().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName) -> Option<NamedGroup> {
        self.kept().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.kept().tls12 = Some(value);
    }

    fn tls12_session(&self, _: &ServerName) -> Option<Tls12ClientSessionValue> {
        self.kept().tls12.clone()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.kept().tls12 = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        let oldest = self.kept().tls13.add(value);
        drop(oldest); // not while others wait for the lock
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.kept().tls13.take()
    }
}

/// The newest of what was added.
#[derive(Debug)]
struct Newest<T> {
    all: VecDeque<T>,
    most: usize,
}

impl<T> Newest<T> {
    /// Returns the oldest one if there are too many.
    fn add(&mut self, one: T) -> Option<T> {
        let oldest = if self.all.len() < self.most { None } else { self.all.pop_front() };
        self.all.push_back(one);
        oldest
    }

    fn take(&mut self) -> Option<T> {
        self.all.pop_back()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_each_is_taken_once() {
        let mut newest = Newest { all: VecDeque::new(), most: 2 };
        assert_eq!([1, 2, 3].map(|ticket| newest.add(ticket)), [None, None, Some(1)]);
        assert_eq!([(); 3].map(|()| newest.take()), [Some(3), Some(2), None]);
    }
}
