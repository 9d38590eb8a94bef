//! A shard that panics: its streams are lost and reported, the process lives, and the shard starts again.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use common::*;
use holdfast_core::parcel::Adoption;
use holdfast_core::telemetry::Reason;
use holdfast_core::{Hold, Options};

fn fail(held: &mut Held, shard: u8) {
    let before = held.rest.failed.len();
    held.hold.fail(shard);
    held.until("the report of the failure", |held| (held.rest.failed.len() > before).then_some(()));
    assert_eq!(held.rest.failed.last(), Some(&shard));
}

/// Waits until the shard listens again. A client may still find the old listener, which resets its connection.
fn until_listening_again(held: &mut Held) {
    let mut client = None;
    let (id, _) = held.until("listening again", |held| {
        let asked = client.get_or_insert_with(|| try_to_ask(held.address));
        let is_lost = asked.as_ref().is_none_or(|asked| match asked.peek(&mut [0]) {
            Ok(_) => true,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        });
        if is_lost {
            client = None;
        }
        held.heads.pop()
    });
    held.command(&refuse(id, 404));
    drop(client);
    held.until_connections(0);
}

fn try_to_ask(address: SocketAddr) -> Option<TcpStream> {
    let mut client = TcpStream::connect(address).ok()?;
    client.set_nonblocking(true).ok()?;
    client.write_all(&request("/again")).ok()?;
    Some(client)
}

fn assert_gauges_are_0(held: &Held) {
    for telemetry in held.hold.telemetry() {
        let gauges = [&telemetry.streams, &telemetry.connections, &telemetry.backlog_bytes];
        assert_eq!(gauges.map(|gauge| gauge.load(Relaxed)), [0; 3]);
    }
}

#[test]
fn a_shard_that_panics_in_a_round_of_a_handover_listens_again() {
    let mut held = Held::start(options());
    let (_client, id) = held.stream(TEXT, &[]);
    let taker = Hold::new(options()).unwrap();
    for name in held.hold.offer().unwrap() {
        taker.take_from(0, name, 1.0).unwrap();
    }
    held.hold.begin_move(60_000, false);
    held.until("the report", |held| held.rest.moves.pop());
    held.hold.fail(0);
    held.hold.take_back();
    held.until("the report of the failure", |held| held.rest.failed.pop());
    taker.drop_parked();
    assert_eq!(held.closed(id), Reason::Failed);
    until_listening_again(&mut held);
}

/// Streams, one of them with a backlog, and a connection that JS decides about; then the shard panics.
fn loses_streams_and_starts_again(options: Options) {
    let mut held = Held::start(options);
    let mut streams: Vec<_> = (0..3).map(|_| held.stream(TEXT, &["news"])).collect();
    let asked = ask(held.address, &request("/x"));
    let undecided = held.asked_for("/x");
    held.until("a backlog", |held| {
        held.command(&send(streams[2].1, &[b'x'; 100_000]));
        (held.backlog() > 0).then_some(())
    });
    fail(&mut held, 0);
    assert_eq!(held.closed_for(Reason::Failed), 3);
    assert_eq!(held.total(|figures| figures.shard_failures.load(Relaxed)), 1);
    assert_gauges_are_0(&held);
    for (client, _) in &mut streams {
        let _ = client.read_to_end(&mut Vec::new());
    }
    let mut closed: Vec<_> = held.rest.closed.iter().map(|(id, reason)| (id.bits(), *reason)).collect();
    let mut expected: Vec<_> = streams.iter().map(|(_, id)| (id.bits(), Reason::Failed)).collect();
    closed.sort_unstable_by_key(|(id, _)| *id);
    expected.sort_unstable_by_key(|(id, _)| *id);
    assert_eq!(closed, expected, "each once");
    // It listens on the same port, and old ids reach nobody although their rows are used again.
    until_listening_again(&mut held);
    let (mut client, id) = held.stream(TEXT, &["news"]);
    assert!(streams.iter().all(|(_, old)| *old != id));
    for (_, old) in &streams {
        held.command(&[send(*old, b"x"), end(*old), subscribe(*old, "news")].concat());
    }
    held.command(&[hold(undecided, TEXT, &["news"]), publish("news", b"hello")].concat());
    expect(&mut client, b"hello");
    assert_eq!(held.connections(), 1);
    drop(asked);
}

#[test]
fn a_shard_with_a_table_of_its_own_loses_its_streams_and_starts_again() {
    loses_streams_and_starts_again(options());
}

#[test]
fn a_shard_in_the_table_of_the_process_loses_its_streams_and_starts_again() {
    loses_streams_and_starts_again(options_with(|options| options.own_tables = false));
}

#[test]
fn a_shard_can_fail_several_times() {
    let mut held = Held::start(options());
    for round in 1..=4 {
        let (_client, id) = held.stream(TEXT, &[]);
        fail(&mut held, 0);
        assert_eq!(held.closed(id), Reason::Failed);
        assert_eq!(held.closed_for(Reason::Failed), round);
        assert_gauges_are_0(&held);
        until_listening_again(&mut held);
    }
    assert_eq!(held.rest.closed.len(), 4, "each once");
}

#[test]
fn a_shard_that_fails_again_before_it_has_restarted_restarts_all_the_same() {
    let mut held = Held::start(options());
    for _ in 0..3 {
        held.hold.fail(0);
    }
    held.until("three reports", |held| (held.rest.failed.len() == 3).then_some(()));
    until_listening_again(&mut held);
    let _ = held.stream(TEXT, &[]);
}

#[test]
fn other_shards_keep_their_streams() {
    let mut held = Held::start(options_with(|options| options.shards = 2));
    let mut streams: Vec<(TcpStream, _)> = Vec::new();
    // The kernel distributes connections as it likes: go on until each shard has one.
    while (0..2).any(|shard| streams.iter().all(|(_, id): &(_, holdfast_core::id::Id)| id.shard() != shard)) {
        streams.push(held.stream(TEXT, &["news"]));
        assert!(streams.len() < 100);
    }
    fail(&mut held, 1);
    held.command(&publish("news", b"hello"));
    let (lost, kept): (Vec<_>, Vec<_>) = streams.into_iter().partition(|(_, id)| id.shard() == 1);
    for (mut client, _) in kept {
        expect(&mut client, b"hello");
    }
    assert_eq!(held.closed_for(Reason::Failed), lost.len() as u64);
    // Both accept again.
    let (mut shards, mut clients) = (Vec::new(), Vec::new());
    while (0..2).any(|shard| !shards.contains(&shard)) {
        // One that the old listener had not accepted is gone.
        clients.extend(try_to_ask(held.address));
        std::thread::sleep(std::time::Duration::from_millis(5));
        shards.extend(held.until("a head or nothing", |held| Some(held.heads.pop().map(|(id, _)| id.shard()))));
        assert!(clients.len() < 150);
    }
}

#[test]
fn what_was_said_after_the_failure_is_done_after_the_restart() {
    let mut held = Held::start(options());
    held.hold.fail(0);
    held.command(&[opening(TEXT, HEAD, &[], &[]), remember(&lines_of("/cached"))].concat());
    let (mut client, server) = accepted();
    let adoption =
        Adoption { token: 5, relayed: None, format: Default::default(), channels: vec![b"news"[..].into()], opening: Box::default() };
    // It may be restarting just now.
    until("room for it", || held.hold.adopt(server.as_fd(), &adoption).ok());
    let (token, id) = held.until("the adoption", |held| held.rest.adopted.pop());
    assert!(token == 5 && id.is_some());
    held.command(&publish("news", b"hello"));
    expect(&mut client, b"hello");
    held.command(&end(id.unwrap()));
    until_listening_again(&mut held);
    let mut cached = ask(held.address, &request("/cached"));
    assert_eq!(read_head(&mut cached), HEAD);
    assert_eq!(held.rest.failed, [0]);
}

#[test]
fn a_shard_that_fails_while_it_drains_reports_the_end_of_the_drain_once() {
    let mut held = Held::start(options());
    let (_client, id) = held.stream(TEXT, &[]);
    held.command(&drain(3_600_000));
    until("the end of listening", || TcpStream::connect(held.address).is_err().then_some(()));
    fail(&mut held, 0);
    assert_eq!(held.closed(id), Reason::Failed);
    held.until("the end of the drain", |held| (held.rest.drained.len() == 1).then_some(()));
    assert!(TcpStream::connect(held.address).is_err(), "it does not listen again");
    fail(&mut held, 0);
    fail(&mut held, 0);
    // The next one is only read after a restart, in which the drain could have been reported again.
    fail(&mut held, 0);
    held.command(&drain(0));
    std::thread::sleep(std::time::Duration::from_millis(200));
    held.until("another look", |held| (!held.rest.drained.is_empty()).then_some(()));
    assert_eq!(held.rest.drained, [0]);
}

#[test]
fn a_drain_that_was_requested_together_with_the_failure_is_reported() {
    let mut held = Held::start(options());
    held.hold.fail(0);
    held.command(&drain(0));
    held.until("the end of the drain", |held| (held.rest.drained == [0]).then_some(()));
}

#[test]
fn a_hold_that_is_stopped_as_it_fails_ends() {
    for own_tables in [true, false] {
        for _ in 0..20 {
            let mut held = Held::start(options_with(|options| options.own_tables = own_tables));
            held.hold.fail(0);
            held.hold.stop();
        }
    }
}

#[test]
fn listening_works_after_a_failure_and_a_shard_that_does_not_exist_can_not_fail() {
    let hold = holdfast_core::Hold::new(options()).unwrap();
    hold.fail(7);
    hold.fail(0);
    let port = hold.listen(([127, 0, 0, 1], 0).into(), false).unwrap();
    TcpStream::connect(("127.0.0.1", port)).unwrap();
}
