//! The options of a Hold: one row each, in the order of the native rows in `transport/options.js`.

use crate::address::Range;
use crate::framing::ENCODINGS;

/// How a number from JS becomes a value. JS has checked the range.
trait FromNumber {
    fn from_number(number: f64) -> Self;
}

macro_rules! from_number {
    ($($type:ty),*) => {
        $(impl FromNumber for $type {
            fn from_number(number: f64) -> Self {
                number as $type
            }
        })*
    };
}

from_number!(u8, u32, u64, usize);

impl FromNumber for bool {
    fn from_number(number: f64) -> Self {
        number != 0.0
    }
}

macro_rules! options {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        #[derive(Clone, Debug)]
        pub struct Options {
            $($(#[$doc])* pub $name: $type,)*
            /// Request headers that JS wants to see, in lower case.
            pub headers: Vec<String>,
            /// What is written to a stream each interval, by encoding.
            pub pings: [Box<[u8]>; ENCODINGS],
            /// Addresses to which `max_heads_per_address` does not apply.
            pub proxies: Vec<Range>,
        }

        impl Options {
            /// The names of the numbers, in order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// None unless there is a number for each name and a ping for each encoding, and the proxies are ranges.
            pub fn new(numbers: &[f64], headers: Vec<String>, pings: Vec<Box<[u8]>>, proxies: &[String]) -> Option<Self> {
                if numbers.len() != Self::NAMES.len() {
                    return None;
                }
                let mut numbers = numbers.iter();
                Some(Options {
                    $($name: <$type>::from_number(*numbers.next()?),)*
                    headers,
                    pings: pings.try_into().ok()?,
                    proxies: proxies.iter().map(|range| Range::parse(range)).collect::<Option<_>>()?,
                })
            }
        }
    };
}

options! {
    /// Threads.
    shards: u8,
    /// Position of the first shard among all shards of the machine, so that they don't wake up together.
    phase: u64,
    /// How many shards the machine has.
    phases: u64,
    /// Whether each shard gets a descriptor table of its own.
    own_tables: bool,
    /// Streams that a shard holds; beyond that 503.
    capacity: usize,
    /// Connections of a shard, streams and others; beyond that it stops accepting.
    connection_limit: usize,
    ping_interval_ms: u64,
    /// No ping for a stream that has got a message since the last one.
    idle_pings: bool,
    nagle: bool,
    max_head_bytes: usize,
    /// A request head that takes longer is answered with 408.
    head_timeout_ms: u32,
    /// A connection that was answered and sends no other request for so long is closed.
    keep_alive_timeout_ms: u32,
    /// Incomplete heads of one address (IPv6: of a /64); beyond that the oldest is cut.
    max_heads_per_address: usize,
    /// A connection that waits longer for JS to decide is answered with 503.
    answer_timeout_ms: u32,
    /// A stream with a larger backlog is closed as slow.
    max_backlog_bytes: usize,
    /// Memory that channels may take in a shard; a stream that would need more is refused.
    max_channel_bytes: usize,
    /// A peer that leaves data unacknowledged for longer is dead.
    user_timeout_ms: u32,
    /// Whether JS wants to know the addresses of clients.
    reports_addresses: bool,
    /// The longest message that the client of a WebSocket may send.
    max_message_bytes: usize,
    /// Whether JS takes such messages.
    takes_messages: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_from_numbers_in_the_order_of_their_names() {
        let numbers: Vec<f64> = (0..Options::NAMES.len()).map(|i| i as f64).collect();
        let pings = || vec![Box::default(); ENCODINGS];
        let options = Options::new(&numbers, Vec::new(), pings(), &["::1".into()]).unwrap();
        assert_eq!((options.shards, options.phases, options.reports_addresses, options.proxies.len()), (0, 2, true, 1));
        assert!(Options::new(&numbers[1..], Vec::new(), pings(), &[]).is_none(), "one is missing");
        assert!(Options::new(&numbers, Vec::new(), Vec::new(), &[]).is_none(), "no pings");
        assert!(Options::new(&numbers, Vec::new(), pings(), &["localhost".into()]).is_none(), "no range");
    }
}
