//! Opens HTTP streams and keeps them open, for the fleet's drones: the client side of a `Hold`. A `Dialer` starts threads
//! when it needs them. Each has a reactor, a table of rows and, if the kernel allows it, a descriptor table of its own.
//!
//! In reading order: `dialer` (all threads), `client` (one thread), `opening` (from connecting to the request sent),
//! `greeting` (the handshake, if it speaks TLS), `reading` (what arrives on a stream), `records` (the same with TLS), `ending` (how
//! it ends). `secrets` is what is kept of TLS, `security` and `tickets` are what handshakes begin with. `servers` says which of several servers a stream goes to.
//! `subscriber` has what is kept of a stream that subscribes to topics of a hub, also while it is not connected. Below them:
//! `format`, `answer`, `block`, `json`, `frames`, `pieces`, `position`, `publication`, `template` and `schedule` (pure), `attempt`, `streams`, `targets`,
//! `tokens`, `tally`.

pub mod answer;
mod attempt;
pub mod block;
mod client;
mod dialer;
mod ending;
pub mod format;
mod frames;
mod greeting;
mod json;
mod opening;
mod pieces;
mod position;
mod publication;
mod reading;
mod records;
mod schedule;
mod secrets;
pub mod security;
mod servers;
mod streams;
mod subscriber;
mod tally;
mod targets;
mod template;
mod tickets;
mod tokens;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rustix::io::Errno;

use crate::socket::Stop;
use crate::telemetry::named;

pub use dialer::{Counters, Dialer, Options};
pub use format::Format;
pub use security::Security;
pub use servers::{Server, ServerCounts};
pub use subscriber::Subscription;
pub use tally::Sample;
use tally::Tally;
pub use template::{Piece, Template};

named! {
    /// Every way a stream fails to open or is lost. The order is that of `fleet/drone/causes.js`.
    pub enum Cause {
        Refused = "refused",
        Unreachable = "unreachable",
        Timeout = "timeout",
        NoPort = "no-port",
        Descriptors = "descriptors",
        Reset = "reset",
        Closed = "closed",
        Close1001 = "close-1001",
        Close1008 = "close-1008",
        Close1012 = "close-1012",
        Close1013 = "close-1013",
        CloseOther = "close-other",
        Unauthorized = "unauthorized",
        Forbidden = "forbidden",
        TooMany = "too-many",
        Unavailable = "unavailable",
        Status = "status",
        Unexpected = "unexpected",
        Certificate = "certificate",
        Handshake = "handshake",
        Alert = "tls-alert",
        BadRecord = "bad-record",
        Truncated = "truncated",
        Other = "other",
    }
}

pub const CAUSES: usize = Cause::NAMES.len();
/// The names of the counters, in the order in which JS gets them.
pub const COUNTS: &[&str] = Tally::COUNTS;
/// The names of the histograms, each with its unit, in the order in which JS gets them.
pub const HISTOGRAMS: &[(&str, &str)] = Tally::HISTOGRAMS;

impl Cause {
    /// The cause for a status other than 200, in three digits.
    fn of_status(digits: &[u8]) -> Cause {
        match digits {
            b"401" => Cause::Unauthorized,
            b"403" => Cause::Forbidden,
            b"429" => Cause::TooMany,
            b"503" => Cause::Unavailable,
            _ => Cause::Status,
        }
    }
}

impl Cause {
    /// The cause for the close frame of a WebSocket, and a sample if it is not a usual one.
    fn of_close(payload: &[u8]) -> (Cause, &[u8]) {
        let Some((code, why)) = payload.split_first_chunk() else { return (Cause::Closed, b"") };
        match u16::from_be_bytes(*code) {
            1000 => (Cause::Closed, b""),
            1001 => (Cause::Close1001, b""),
            1008 => (Cause::Close1008, b""),
            1012 => (Cause::Close1012, b""),
            1013 => (Cause::Close1013, b""),
            _ => (Cause::CloseOther, why),
        }
    }
}

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

impl From<Stop> for Cause {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Later => Cause::Other,
            Stop::Broken(error) => error.into(),
        }
    }
}

/// What to connect to, and how.
#[derive(Clone, Debug)]
pub struct Target {
    /// At least one. They share the streams.
    pub servers: Vec<Server>,
    /// Local addresses, which take turns. If there are none, the kernel chooses.
    pub sources: Vec<IpAddr>,
    pub format: Format,
    /// The complete request head, if there is no subscription. That of a WebSocket has no key yet.
    pub request: Box<[u8]>,
    /// The topics that the streams subscribe to, and the request for it, which differs from stream to stream.
    pub subscription: Option<Arc<Subscription>>,
    /// 0 if unknown: lateness is not measured then.
    pub ping_interval_ms: u32,
    /// Whether a message takes the place of the next ping.
    pub idle_pings: bool,
    /// For connecting and getting the welcome.
    pub timeout_ms: u32,
    /// Whether everything that arrives must be what a Holdfast server sends.
    pub is_strict: bool,
    /// Whether anything other than pings may arrive. Always if there is a subscription.
    pub allows_messages: bool,
    /// None: plain HTTP.
    pub security: Option<Security>,
}

impl Target {
    /// The source and the destination of the stream with this number, at one of the servers. Every pair is used equally often.
    fn pair(&self, server: usize, number: u64) -> (Option<IpAddr>, SocketAddr) {
        let Server { addresses, ports, .. } = &self.servers[server];
        let number = number / self.servers.len() as u64;
        let sources = self.sources.len().max(1) as u64;
        let source = self.sources.get((number % sources) as usize).copied();
        let (number, count) = (number / sources, ports.len() as u64);
        let address = addresses[(number / count % addresses.len() as u64) as usize];
        (source, SocketAddr::new(address, ports[(number % count) as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(ports: &[u16]) -> Server {
        let addresses = vec!["127.0.0.1".parse().unwrap()];
        Server { name: Box::default(), host: Box::default(), addresses, ports: ports.to_vec(), tally: Arc::default(), secured: None }
    }

    fn target(sources: &[&str], ports: &[u16]) -> Target {
        Target {
            servers: vec![server(ports)],
            sources: sources.iter().map(|source| source.parse().unwrap()).collect(),
            format: Format::Http,
            request: Box::default(),
            subscription: None,
            ping_interval_ms: 0,
            idle_pings: false,
            timeout_ms: 1000,
            is_strict: true,
            allows_messages: false,
            security: None,
        }
    }

    fn distinct_pairs(target: &Target, streams: u64) -> usize {
        let mut pairs: Vec<_> = (0..streams).map(|number| target.pair(0, number)).collect();
        pairs.sort();
        pairs.dedup();
        pairs.len()
    }

    #[test]
    fn every_pair_of_a_source_and_a_port_is_used_equally_often() {
        let target = target(&["127.0.0.2", "127.0.0.3"], &[1, 2, 3, 4]);
        assert_eq!(distinct_pairs(&target, 8), 8);
        assert_eq!(target.pair(0, 8), target.pair(0, 0));
    }

    #[test]
    fn every_address_of_the_server_is_used() {
        let mut target = target(&["127.0.0.2", "127.0.0.3"], &[1, 2]);
        target.servers[0].addresses.push("127.0.0.4".parse().unwrap());
        assert_eq!(distinct_pairs(&target, 8), 8);
    }

    #[test]
    fn without_sources_the_ports_take_turns() {
        let target = target(&[], &[1, 2]);
        let ports: Vec<u16> = (0..4).map(|number| target.pair(0, number).1.port()).collect();
        assert_eq!((ports, target.pair(0, 0).0), (vec![1, 2, 1, 2], None));
    }

    #[test]
    fn streams_that_take_turns_at_two_servers_use_all_ports_of_both() {
        let mut target = target(&["127.0.0.2", "127.0.0.3"], &[1, 2]);
        target.servers.push(server(&[3, 4]));
        let mut pairs: Vec<_> = (0..8).map(|number| target.pair(number as usize % 2, number)).collect();
        pairs.sort();
        pairs.dedup();
        assert_eq!(pairs.len(), 8);
    }

    #[test]
    fn counters_have_the_names_and_the_order_that_js_expects() {
        let of_streams = ["in_flight", "open", "overdue", "opened", "closed", "churned", "moved", "resumed", "restarted", "gaps"];
        let of_publications = ["delivered", "missed", "discarded", "duplicated", "out_of_order", "recovered", "strayed"];
        let of_tls = ["handshakes", "resumptions"];
        assert_eq!(COUNTS, [&of_streams[..], &["pings", "messages", "bytes"], &of_publications[..], &of_tls[..]].concat());
        assert_eq!(HISTOGRAMS, [("connect", "µs"), ("handshake", "µs"), ("first_byte", "µs"), ("lateness", "µs"), ("delivery", "µs")]);
    }
}
