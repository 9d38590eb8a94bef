//! What comes before a handshake is over: any bytes, in any pieces, to a shard that expects TLS. Nobody gets in without a key, and the
//! books of the shard agree after each turn.
#![no_main]

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};

use holdfast_core::mail::{Inbox, Outbox};
use holdfast_core::telemetry::Telemetry;
use holdfast_core::tls::{Certificate, Config, TlsConfig};
use holdfast_core::{Fds, Options, Phase, Shard, Shared, parcel};
use libfuzzer_sys::fuzz_target;
use rustix::event::{EventfdFlags, eventfd};
use rustix::pipe::{PipeFlags, pipe_with};

static CONFIG: LazyLock<TlsConfig> = LazyLock::new(|| {
    let own = rcgen::generate_simple_self_signed(["localhost".to_string()]).unwrap();
    let certificate = Certificate { chain: own.cert.pem().into(), key: own.signing_key.serialize_pem().into() };
    Config { certificates: vec![certificate], allows_tls12: true, ticket_secret: [3; 32] }.build().unwrap()
});

struct World {
    shard: Shard,
    telemetry: Arc<Telemetry>,
    outbox: Arc<Outbox>,
    _bell_of_js: OwnedFd,
    _transfer: OwnedFd,
}

impl World {
    fn new() -> Self {
        let options = Options {
            shards: 1,
            phase: 0,
            phases: 1,
            own_tables: false,
            capacity: 4,
            connection_limit: 4,
            ping_interval_ms: 3_600_000,
            idle_pings: false,
            nagle: false,
            max_head_bytes: 1000,
            head_timeout_ms: 300,
            max_heads_per_address: 2,
            answer_timeout_ms: 400,
            max_backlog_bytes: 1000,
            max_channel_bytes: 1000,
            user_timeout_ms: 1000,
            reports_addresses: false,
            max_message_bytes: 1000,
            takes_messages: false,
            keep_alive_timeout_ms: 20_000,
            headers: Vec::new(),
            pings: [b"\n"[..].into(), b":\n\n"[..].into(), b":\n\n"[..].into(), b"\n"[..].into(), b"\n"[..].into()],
            proxies: Vec::new(),
        };
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let (bell_of_js, to_ring) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        let (transfer, its_transfer) = parcel::pair().unwrap();
        let fds = Fds { bell: bell.try_clone().unwrap(), bell_of_js: to_ring, transfer: its_transfer };
        let (outbox, telemetry) = (Arc::new(Outbox::default()), Arc::new(Telemetry::default()));
        let shared = Shared { inbox: Arc::new(Inbox::new(bell)), outbox: outbox.clone(), telemetry: telemetry.clone() };
        let shard = Shard::new(0, 0, Phase { number: 0, of: 1 }, Arc::new(options), shared, fds).unwrap();
        World { shard, telemetry, outbox, _bell_of_js: bell_of_js, _transfer: transfer }
    }

    fn turn(&mut self, ahead_ns: u64) {
        self.shard.turn_by_hand(ahead_ns);
        self.shard.check();
    }
}

fuzz_target!(|bytes: &[u8]| {
    // The first byte says in how many pieces the others come.
    let Some((pieces, hello)) = bytes.split_first() else { return };
    let mut world = World::new();
    let (mut client, its) = UnixStream::pair().unwrap();
    client.set_nonblocking(true).unwrap();
    its.set_nonblocking(true).unwrap();
    assert!(world.shard.greet_by_hand(its.into(), &CONFIG));
    let size = hello.len().div_ceil(usize::from(pieces % 8) + 1).max(1);
    for piece in hello.chunks(size) {
        let _ = client.write_all(piece);
        world.turn(0);
    }
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    let is_http = hello.first().is_some_and(u8::is_ascii_uppercase);
    assert_eq!(answer.starts_with(b"HTTP/1.1 400 "), is_http);
    // Anything else that it says are records: part of a handshake, a change of ciphers, or an alert.
    assert!(answer.is_empty() || is_http || matches!(answer[0], 20..=22));
    assert_eq!(world.telemetry.handshakes.load(Relaxed), 0);
    assert!(world.outbox.take(usize::MAX).0.heads.is_empty());
    for _ in 0..3 {
        world.turn(10_000_000_000);
    }
    drop(client);
    world.turn(20_000_000_000);
    assert_eq!(world.telemetry.connections.load(Relaxed), 0, "nothing is left");
});
