//! Opens HTTP streams and keeps them, as a fleet's drone does: the other side of a `Hold`. A `Dialer` starts threads as
//! they are needed; each has an epoll, a table of rows and, where the kernel lets it, a descriptor table of its own.
//!
//! In reading order: `dialer` (all threads), `client` (the loop of one), `flight` (from dialled to asked), `hearing` (what
//! comes on a stream, and its end); below them `answer`, `pieces` and `schedule` (pure), `streams`, `targets`, `tally`.

pub mod answer;
mod client;
mod dialer;
mod flight;
mod hearing;
mod pieces;
mod schedule;
mod streams;
mod tally;
mod targets;

use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;

use crate::telemetry::named;

pub use dialer::{Counters, Dialer, Options};
pub use tally::Sample;

named! {
    /// Every way a stream fails to open or is lost.
    pub enum Cause {
        Refused = "refused",
        Unreachable = "unreachable",
        Timeout = "timeout",
        NoPort = "no-port",
        Descriptors = "descriptors",
        Reset = "reset",
        Closed = "closed",
        Status = "status",
        Unexpected = "unexpected",
        Other = "other",
    }
}

pub const CAUSES: usize = Cause::NAMES.len();
/// The counts that JS sees, in order.
pub const COUNTS: &[&str] = &["in_flight", "open", "overdue", "opened", "closed", "pings", "messages", "bytes"];
/// The histograms that JS sees, in order, each with its unit.
pub const HISTOGRAMS: &[(&str, &str)] = &[("connect", "µs"), ("first_byte", "µs"), ("lateness", "µs"), ("delivery", "µs")];

impl From<Errno> for Cause {
    fn from(error: Errno) -> Self {
        match error {
            Errno::CONNREFUSED => Cause::Refused,
            Errno::HOSTUNREACH | Errno::NETUNREACH => Cause::Unreachable,
            Errno::TIMEDOUT => Cause::Timeout,
            Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => Cause::NoPort,
            Errno::MFILE | Errno::NFILE => Cause::Descriptors,
            Errno::CONNRESET | Errno::PIPE => Cause::Reset,
            _ => Cause::Other,
        }
    }
}

/// Where and how streams are dialled.
#[derive(Clone, Debug)]
pub struct Target {
    /// Those of one server; they take turns, and there is one at least. The same local port can reach each of them.
    pub addresses: Vec<IpAddr>,
    /// Likewise.
    pub ports: Vec<u16>,
    /// Local addresses, which take turns; none lets the kernel choose.
    pub sources: Vec<IpAddr>,
    /// The whole head.
    pub request: Box<[u8]>,
    /// 0 where it is not known: then no lateness is measured.
    pub ping_interval_ms: u32,
    /// To connect and be welcomed.
    pub timeout_ms: u32,
    /// Whether what is said must be that of a Holdfast server.
    pub is_strict: bool,
    /// Whether anything but pings may come.
    pub allows_messages: bool,
}

impl Target {
    /// From where and to where the stream of this turn is dialled: each pair of a source and a destination is
    /// used evenly.
    fn pair(&self, turn: u64) -> (Option<IpAddr>, SocketAddr) {
        let sources = self.sources.len().max(1) as u64;
        let source = self.sources.get((turn % sources) as usize).copied();
        let (turn, ports) = (turn / sources, self.ports.len() as u64);
        let address = self.addresses[(turn / ports % self.addresses.len() as u64) as usize];
        (source, SocketAddr::new(address, self.ports[(turn % ports) as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(sources: &[&str], ports: &[u16]) -> Target {
        Target {
            addresses: vec!["127.0.0.1".parse().unwrap()],
            ports: ports.to_vec(),
            sources: sources.iter().map(|source| source.parse().unwrap()).collect(),
            request: Box::default(),
            ping_interval_ms: 0,
            timeout_ms: 1000,
            is_strict: true,
            allows_messages: false,
        }
    }

    #[test]
    fn each_pair_of_a_source_and_a_port_has_as_many_turns_as_any_other() {
        let target = target(&["127.0.0.2", "127.0.0.3"], &[1, 2, 3, 4]);
        let mut pairs: Vec<_> = (0..8).map(|turn| target.pair(turn)).collect();
        pairs.sort();
        pairs.dedup();
        assert_eq!(pairs.len(), 8);
        assert_eq!(target.pair(8), target.pair(0));
    }

    #[test]
    fn each_address_of_the_server_has_its_turns() {
        let mut target = target(&["127.0.0.2", "127.0.0.3"], &[1, 2]);
        target.addresses.push("127.0.0.4".parse().unwrap());
        let mut pairs: Vec<_> = (0..8).map(|turn| target.pair(turn)).collect();
        pairs.sort();
        pairs.dedup();
        assert_eq!(pairs.len(), 8);
    }

    #[test]
    fn without_sources_the_ports_take_turns() {
        let target = target(&[], &[1, 2]);
        let ports: Vec<u16> = (0..4).map(|turn| target.pair(turn).1.port()).collect();
        assert_eq!((ports, target.pair(0).0), (vec![1, 2, 1, 2], None));
    }
}
