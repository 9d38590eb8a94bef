//! A shard turned by hand, to see what a Hold doesn't show.

mod common;

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::available_parallelism;

use common::by_hand::{BUFFER_BYTES, ByHand, read_now};
use common::{TEXT, ask, options, options_with, pass, refuse, request, send};

#[test]
fn a_stream_that_is_always_behind_does_not_keep_everything_it_was_ever_sent() {
    let mut by_hand = ByHand::new(options());
    let (mut client, id) = by_hand.stream(TEXT, &[]);
    client.set_nonblocking(true).unwrap();
    by_hand.say(&send(id, &[b'x'; 20 * BUFFER_BYTES]));
    for _ in 0..1000 {
        // What is kept is checked after each turn. The client has read what was there, which is not everything.
        by_hand.say(&send(id, &[b'x'; BUFFER_BYTES / 4]));
        let _ = client.read(&mut [0; BUFFER_BYTES / 4]);
        assert!(by_hand.telemetry.backlog_bytes.load(Relaxed) > 0, "it is behind");
    }
    assert!(by_hand.telemetry.bytes_written.load(Relaxed) > 50 * BUFFER_BYTES as u64, "it goes on all the same");
}

#[test]
fn when_there_is_no_room_to_pass_on_the_first_connection_those_behind_it_wait_too() {
    const COUNT: usize = 60;
    let mut by_hand = ByHand::new(options());
    let _clients: Vec<UnixStream> = (0..COUNT).map(|_| by_hand.connect(&request("/"))).collect();
    let asked = by_hand.asked();
    assert_eq!(asked.len(), COUNT);
    by_hand.say(&asked.iter().flat_map(|(id, _)| pass(*id)).collect::<Vec<u8>>());
    let waiting = by_hand.shard.passing();
    assert!(waiting > 1, "{waiting} of {COUNT} found no room");
    // Looking at the last one would show that it is not to be passed on any more.
    by_hand.say(&refuse(asked[COUNT - 1].0, 503));
    assert_eq!(by_hand.shard.passing(), waiting);
    by_hand.transfer.set_nonblocking(true).unwrap();
    let mut fetched = 0;
    for _ in 0..COUNT {
        fetched += std::iter::from_fn(|| by_hand.transfer.read(&mut [0; 8]).ok()).count();
        by_hand.say(&[]);
    }
    assert_eq!((fetched, by_hand.shard.passing()), (COUNT - 1, 0));
}

#[test]
fn while_pings_are_late_connections_are_accepted_one_at_a_time_with_a_rest_after_each() {
    const COUNT: u64 = 3;
    const PING_INTERVAL_MS: u64 = 10_000;
    // So many threads on each core that a rest takes 900 ms.
    let cores = available_parallelism().unwrap().get() as u64;
    let mut by_hand = ByHand::one_of(
        4500 * cores,
        options_with(|options| {
            options.ping_interval_ms = PING_INTERVAL_MS;
            options.answer_timeout_ms = 3_600_000;
        }),
    );
    let address = by_hand.listen();
    let (mut client, _id) = by_hand.stream(TEXT, &[]);
    by_hand.turn(0);
    read_now(&mut client);
    let accepted = |by_hand: &ByHand| by_hand.telemetry.connections.load(Relaxed) - 1;
    let _clients: Vec<_> = (0..COUNT).map(|_| ask(address, &request("/"))).collect();
    by_hand.turn(PING_INTERVAL_MS + 1000);
    assert_ne!(read_now(&mut client), "", "the ping does not wait");
    for count in 1..=COUNT {
        assert_eq!(accepted(&by_hand), count);
        by_hand.turn(0);
        assert_eq!(accepted(&by_hand), count, "the next one waits");
        // The rest is over at the end of a turn.
        by_hand.turn(1000);
        by_hand.turn(0);
    }
    let mut others = Vec::new();
    let mut come_at_once = || {
        while read_now(&mut client).is_empty() {
            by_hand.turn(5);
        }
        let before = accepted(&by_hand);
        others.extend((0..COUNT).map(|_| ask(address, &request("/"))));
        by_hand.turn(0);
        let count = accepted(&by_hand) - before;
        for _ in count..COUNT {
            by_hand.turn(1000);
            by_hand.turn(0);
        }
        count == COUNT
    };
    assert!((0..100).any(|_| come_at_once()), "as many as come, once a ping was in time: on a busy machine that is not each time");
}
