//! The servers of a target, which share its streams: nodes of one hub. A stream that comes back takes the next one.
//! Usually there is one server, and then nothing is kept or counted here.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::security::Secured;

#[derive(Clone, Debug)]
pub struct Server {
    /// What it is recognized by in the next target.
    pub name: Box<str>,
    /// The name or the address that its certificate must be for.
    pub host: Box<str>,
    /// They take turns, and the same local port can reach each of them. A server without any is left out for now.
    pub addresses: Vec<IpAddr>,
    /// At least one; they take turns.
    pub ports: Vec<u16>,
    /// What became of its streams, if there are several servers.
    pub tally: Arc<ServerTally>,
    /// How handshakes with it begin, if the target has a `security`: from `Dialer::aim` on.
    pub secured: Option<Arc<Secured>>,
}

/// Totals of all threads since the server was first aimed at. What a thread has when it panics is not counted as lost.
#[derive(Debug, Default)]
pub struct ServerTally {
    pub opened: AtomicU64,
    pub closed: AtomicU64,
    pub failed: AtomicU64,
    pub lost: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    pub open: u64,
    pub opened: u64,
    pub failed: u64,
    pub lost: u64,
}

impl ServerTally {
    pub fn counts(&self) -> ServerCounts {
        let (closed, lost) = (self.closed.load(SeqCst), self.lost.load(SeqCst));
        let opened = self.opened.load(SeqCst);
        ServerCounts { open: opened.saturating_sub(closed + lost), opened, failed: self.failed.load(SeqCst), lost }
    }
}

/// Where each stream is, by row.
#[derive(Debug, Default)]
pub struct Visits {
    rows: Vec<Visit>,
}

/// Indexes of servers: 2 bytes per row.
#[derive(Clone, Copy, Debug)]
struct Visit {
    /// Where it was opened last, or failed to.
    at: u8,
    /// Where it was open last.
    open: u8,
}

const NONE: u8 = u8::MAX;
const NOWHERE: Visit = Visit { at: NONE, open: NONE };
pub const MOST_SERVERS: usize = NONE as usize;

impl Visits {
    /// The server for the stream of a row that is about to be opened. `number` is that of the stream.
    pub fn next(&mut self, row: u32, servers: &[Server], number: u64) -> usize {
        if servers.len() == 1 {
            self.forget(row);
            return 0;
        }
        if row as usize >= self.rows.len() {
            self.rows.resize(row as usize + 1, NOWHERE);
        }
        let visit = &mut self.rows[row as usize];
        let count = servers.len();
        let first = if visit.at == NONE { first_of(number, count) } else { usize::from(visit.at) + 1 };
        let mut indexes = (first..first + count).map(|index| index % count);
        // A target has at least one server that is not left out.
        let found = indexes.find(|index| !servers[*index].addresses.is_empty()).unwrap_or(0);
        visit.at = found as u8;
        found
    }

    /// The server of a stream that is being opened, or is open.
    pub fn at(&self, row: u32) -> usize {
        self.rows.get(row as usize).filter(|visit| visit.at != NONE).map_or(0, |visit| usize::from(visit.at))
    }

    /// The stream is open. Returns whether it was open at another server before.
    pub fn arrive(&mut self, row: u32) -> bool {
        let Some(visit) = self.rows.get_mut(row as usize) else { return false };
        let before = std::mem::replace(&mut visit.open, visit.at);
        before != NONE && before != visit.at
    }

    /// The stream was closed for good.
    pub fn forget(&mut self, row: u32) {
        if let Some(visit) = self.rows.get_mut(row as usize) {
            *visit = NOWHERE;
        }
    }
}

/// The first server of a stream. Of `count` streams in a row each gets another one. Where the row begins is mixed up, so that
/// those of a topic like `{n%20}`, which have every 20th number, are not all at the same server.
fn first_of(number: u64, count: usize) -> usize {
    let count = count as u64;
    ((number + u64::from(mixed((number / count) as u32))) % count) as usize
}

/// The finalizer of MurmurHash3.
fn mixed(number: u32) -> u32 {
    let number = (number ^ number >> 16).wrapping_mul(0x85eb_ca6b);
    let number = (number ^ number >> 13).wrapping_mul(0xc2b2_ae35);
    number ^ number >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(count: usize) -> Vec<Server> {
        let addresses = vec!["127.0.0.1".parse().unwrap()];
        let server = |port| Server {
            name: Box::default(),
            host: Box::default(),
            addresses: addresses.clone(),
            ports: vec![port],
            tally: Arc::default(),
            secured: None,
        };
        (1..=count as u16).map(server).collect()
    }

    /// How many of the streams with these numbers begin at each server.
    fn shares(numbers: impl Iterator<Item = u64>, count: usize) -> Vec<usize> {
        let mut shares = vec![0; count];
        for number in numbers {
            shares[Visits::default().next(0, &servers(count), number)] += 1;
        }
        shares
    }

    #[test]
    fn streams_begin_at_all_servers_equally_often() {
        assert_eq!(shares(0..12, 2), [6, 6]);
        assert_eq!(shares(0..12, 3), [4, 4, 4]);
        assert_eq!(shares(3..6, 3), [1, 1, 1]);
    }

    #[test]
    fn so_do_the_streams_of_one_topic_roughly() {
        for by in [2, 3, 10, 20] {
            for count in [2, 3, 5] {
                let found = shares((0..600).map(|n| 1 + by * n), count);
                let least = found.iter().min().unwrap();
                assert!(*least > 600 / count * 7 / 10, "{found:?} of every {by}th stream");
            }
        }
    }

    #[test]
    fn a_stream_that_comes_back_takes_the_next_server_and_those_left_out_are_skipped() {
        let mut servers = servers(3);
        let mut visits = Visits::default();
        let next = |visits: &mut Visits, servers: &[Server]| (visits.next(5, servers, 0), visits.arrive(5));
        assert_eq!([(); 4].map(|()| next(&mut visits, &servers)), [(0, false), (1, true), (2, true), (0, true)]);
        servers[1].addresses.clear();
        assert_eq!(next(&mut visits, &servers), (2, true));
        assert_eq!(visits.at(5), 2);
        visits.forget(5);
        assert_eq!(next(&mut visits, &servers), (0, false));
    }

    #[test]
    fn a_stream_that_failed_elsewhere_and_is_back_has_not_moved() {
        let servers = servers(2);
        let mut visits = Visits::default();
        visits.next(0, &servers, 0);
        assert!(!visits.arrive(0));
        visits.next(0, &servers, 0);
        visits.next(0, &servers, 0);
        assert!(!visits.arrive(0));
    }

    #[test]
    fn nothing_is_kept_if_there_is_one_server() {
        let mut visits = Visits::default();
        assert_eq!((visits.next(7, &servers(1), 3), visits.at(7), visits.arrive(7)), (0, 0, false));
        assert!(visits.rows.is_empty());
    }
}
