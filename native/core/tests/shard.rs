//! A shard turned by hand, where a Hold would not show what it keeps.

mod common;

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use common::{hold, options, pass, refuse, send};
use holdfast_core::command::Records;
use holdfast_core::mail::{Inbox, Outbox, Word};
use holdfast_core::telemetry::Telemetry;
use holdfast_core::{Seat, Shard, Shared};
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::sockopt;
use rustix::pipe::{PipeFlags, pipe_with};

const SLICE: usize = 4000;

struct ByHand {
    shard: Shard,
    inbox: Arc<Inbox>,
    outbox: Arc<Outbox>,
    telemetry: Arc<Telemetry>,
    transfer: UnixStream,
    _bell_of_js: OwnedFd,
}

impl ByHand {
    fn new() -> Self {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let (bell_of_js, to_ring) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        let (transfer, its_transfer) = UnixStream::pair().unwrap();
        sockopt::set_socket_send_buffer_size(&its_transfer, SLICE).unwrap();
        let luggage = [bell.try_clone().unwrap(), to_ring, its_transfer.into()];
        let (inbox, outbox, telemetry) = (Arc::new(Inbox::new(bell)), Arc::new(Outbox::default()), Arc::new(Telemetry::default()));
        let shared = Shared { inbox: inbox.clone(), outbox: outbox.clone(), telemetry: telemetry.clone() };
        let shard = Shard::new(0, Seat { number: 0, of: 1 }, Arc::new(options().shard), shared, luggage).unwrap();
        ByHand { shard, inbox, outbox, telemetry, transfer, _bell_of_js: bell_of_js }
    }

    fn say(&mut self, records: &[u8]) {
        self.inbox.post(Records::new(records).map(|record| Word::Command(record.unwrap())));
        self.shard.turn_by_hand(0);
        self.shard.check();
    }
}

#[test]
fn a_stream_that_is_always_behind_does_not_keep_all_it_was_ever_sent() {
    let mut by_hand = ByHand::new();
    let (mut client, its) = UnixStream::pair().unwrap();
    sockopt::set_socket_send_buffer_size(&its, SLICE).unwrap();
    its.set_nonblocking(true).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(by_hand.shard.let_in_by_hand(its.into()));
    by_hand.shard.turn_by_hand(0);
    let id = by_hand.outbox.take(1).0.heads[0].ids[0];
    client.set_nonblocking(true).unwrap();
    by_hand.say(&[hold(id, common::TEXT, b"", &[]), send(id, &[b'x'; 20 * SLICE])].concat());
    for _ in 0..1000 {
        // What is kept is checked after each turn. The client has read what was there, which is not all.
        by_hand.say(&send(id, &[b'x'; SLICE / 4]));
        let _ = client.read(&mut [0; SLICE / 4]);
        assert!(by_hand.telemetry.backlog_bytes.load(Relaxed) > 0, "it is behind");
    }
    assert!(by_hand.telemetry.bytes_written.load(Relaxed) > 50 * SLICE as u64, "it goes on all the same");
}

#[test]
fn where_there_is_no_room_to_hand_the_first_over_those_behind_it_are_left_alone_until_there_is() {
    const COUNT: usize = 60;
    let mut by_hand = ByHand::new();
    let clients: Vec<UnixStream> = (0..COUNT)
        .map(|_| {
            let (mut client, its) = UnixStream::pair().unwrap();
            its.set_nonblocking(true).unwrap();
            client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            assert!(by_hand.shard.let_in_by_hand(its.into()));
            client
        })
        .collect();
    by_hand.shard.turn_by_hand(0);
    let ids = by_hand.outbox.take(COUNT).0.heads.pop_front().unwrap().ids;
    assert_eq!(ids.len(), clients.len());
    by_hand.say(&ids.iter().flat_map(|id| pass(*id)).collect::<Vec<u8>>());
    let waiting = by_hand.shard.passing();
    assert!(waiting > 1, "{waiting} of {COUNT} found no room");
    // Whoever looked at the last would see that it is not to be handed over any more.
    by_hand.say(&refuse(ids[COUNT - 1], b"HTTP/1.1 503 \r\n\r\n"));
    assert_eq!(by_hand.shard.passing(), waiting);
    by_hand.transfer.set_nonblocking(true).unwrap();
    let mut fetched = 0;
    for _ in 0..COUNT {
        fetched += std::iter::from_fn(|| by_hand.transfer.read(&mut [0]).ok()).count();
        by_hand.say(&[]);
    }
    assert_eq!((fetched, by_hand.shard.passing()), (COUNT - 1, 0));
}
