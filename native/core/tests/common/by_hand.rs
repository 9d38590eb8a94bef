//! A shard that is turned by hand, with clients over Unix sockets.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::channel;

use holdfast_core::command::Records;
use holdfast_core::id::Id;
use holdfast_core::mail::{Inbox, Outbox, ShardMessage};
use holdfast_core::queue::Queue;
use holdfast_core::telemetry::Telemetry;
use holdfast_core::{Fds, Options, Phase, Shard, Shared};
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::sockopt;
use rustix::pipe::{PipeFlags, pipe_with};

use super::{HEAD, PATIENCE, hold, read_head, read_heads, request};

/// What little fits between the shard and its clients, or the taker of its descriptors.
pub const BUFFER_BYTES: usize = 4000;

pub struct ByHand {
    pub shard: Shard,
    pub inbox: Arc<Inbox>,
    pub outbox: Arc<Outbox>,
    pub telemetry: Arc<Telemetry>,
    pub transfer: UnixStream,
    pub queue: Arc<Queue>,
    _bell_of_js: OwnedFd,
    /// How far its clock is ahead of the real one.
    ahead_ms: u64,
}

impl ByHand {
    pub fn new(options: Options) -> Self {
        ByHand::one_of(1, options)
    }

    /// The first of so many shards on this machine.
    pub fn one_of(shards: u64, options: Options) -> Self {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let (bell_of_js, to_ring) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        let (transfer, its_transfer) = UnixStream::pair().unwrap();
        sockopt::set_socket_send_buffer_size(&its_transfer, BUFFER_BYTES).unwrap();
        let fds = Fds { bell: bell.try_clone().unwrap(), bell_of_js: to_ring, transfer: its_transfer.into() };
        let (inbox, outbox, telemetry) = (Arc::new(Inbox::new(bell)), Arc::new(Outbox::default()), Arc::new(Telemetry::default()));
        let shared = Shared { inbox: inbox.clone(), outbox: outbox.clone(), telemetry: telemetry.clone() };
        let shard = Shard::new(0, 0, Phase { number: 0, of: shards }, Arc::new(options), shared, fds).unwrap();
        ByHand { shard, inbox, outbox, telemetry, transfer, queue: Arc::default(), _bell_of_js: bell_of_js, ahead_ms: 0 }
    }

    /// A slice is one step: a fan-out to n streams spans n turns.
    pub fn step_by_step(mut self) -> Self {
        self.shard.set_slice(0);
        self
    }

    /// A turn, so many ms later.
    pub fn turn(&mut self, ms: u64) {
        self.ahead_ms += ms;
        self.shard.turn_by_hand(self.ahead_ms * 1_000_000);
        self.shard.check();
    }

    /// Says it, and takes one turn.
    pub fn say(&mut self, records: &[u8]) {
        self.inbox.post(Records::new(records, &self.queue).map(|record| ShardMessage::Command(record.unwrap())));
        self.turn(0);
    }

    /// Takes turns until nothing is left to do; returns how many.
    pub fn finish(&mut self) -> usize {
        let mut turns = 0;
        while self.shard.is_busy() {
            self.turn(0);
            turns += 1;
            assert!(turns < 1_000_000, "it never ends");
        }
        turns
    }

    /// A connection that has sent a request, with little room to be written to.
    pub fn connect(&mut self, request: &[u8]) -> UnixStream {
        self.connect_from(None, request)
    }

    /// The same, as if it came from this address.
    pub fn connect_from(&mut self, address: Option<IpAddr>, request: &[u8]) -> UnixStream {
        let (mut client, its) = UnixStream::pair().unwrap();
        sockopt::set_socket_send_buffer_size(&its, BUFFER_BYTES).unwrap();
        its.set_nonblocking(true).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(request).unwrap();
        assert!(self.shard.admit_by_hand(its.into(), address));
        client
    }

    /// Has it listen, and returns the address.
    pub fn listen(&mut self) -> SocketAddr {
        let (reply, port) = channel();
        self.inbox.post([ShardMessage::Listen { address: ([127, 0, 0, 1], 0).into(), is_tls: false, reply }]);
        self.turn(0);
        ([127, 0, 0, 1], port.recv().unwrap().unwrap()).into()
    }

    /// The heads that JS is asked about.
    pub fn asked(&mut self) -> Vec<(Id, String)> {
        // JS is not told more often than every 4 ms.
        self.turn(5);
        self.outbox.take(usize::MAX).0.heads.into_iter().flat_map(read_heads).collect()
    }

    /// A connection that JS was asked about.
    pub fn connect_and_ask(&mut self) -> (UnixStream, Id) {
        let client = self.connect(&request("/"));
        let [(id, _)] = self.asked().try_into().unwrap();
        (client, id)
    }

    /// A client and its open stream.
    pub fn stream(&mut self, format: u8, channels: &[&str]) -> (UnixStream, Id) {
        let (mut client, id) = self.connect_and_ask();
        self.say(&hold(id, format, channels));
        assert_eq!(read_head(&mut client), HEAD);
        (client, id)
    }
}

/// Everything that a client can read now.
pub fn read_now(client: &mut UnixStream) -> String {
    String::from_utf8(read_bytes_now(client)).unwrap()
}

pub fn read_bytes_now(client: &mut UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    client.set_nonblocking(true).unwrap();
    let _ = client.read_to_end(&mut bytes);
    client.set_nonblocking(false).unwrap();
    bytes
}
