//! Heads that come in pieces, and connections that never send one.

mod common;

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;

use common::by_hand::{ByHand, read_now};
use common::*;
use holdfast_core::Range;
use holdfast_core::id::Id;
use holdfast_core::telemetry::Reason;

const GRACE_MS: u64 = 250;

/// Waits until the shard has read what a client has sent so far: what it answers to another one shows that.
fn until_read(held: &mut Held) {
    let mut other = ask(held.address, &request("/other"));
    let id = held.asked_for("/other");
    held.command(&refuse(id, 404));
    expect_refusal(&mut other, 404);
}

/// A client whose head came in these pieces, and its id.
fn in_pieces(held: &mut Held, pieces: &[&[u8]]) -> (TcpStream, Id) {
    let mut client = connect(held.address);
    for (i, piece) in pieces.iter().enumerate() {
        if i > 0 {
            until_read(held);
        }
        client.write_all(piece).unwrap();
    }
    (client, held.asked().0)
}

#[test]
fn a_head_in_pieces_is_passed_on_with_what_was_read_of_it_and_what_follows() {
    let large = format!("Cookie: {}\r\n", "x".repeat(1_048_000));
    for (most, middle) in [(8192, ""), (1 << 20, &large[..])] {
        let mut held = Held::start(options_with(|options| options.max_head_bytes = most));
        let pieces = ["POST /x HTTP/1.1\r\nHo", "st: a\r\nContent-Length: 8\r\n", middle, "\r\nbo"];
        let pieces = pieces.map(str::as_bytes);
        let (mut client, id) = in_pieces(&mut held, &pieces);
        client.write_all(b"dy, allGET /y HTTP/1.1\r\n").unwrap();
        held.command(&pass(id));
        let passed = held.until("a connection passed on", |held| held.rest.passed.pop());
        let mut connection = TcpStream::from(held.hold.take_passed(passed.id).unwrap());
        drop(client);
        connection.set_nonblocking(false).unwrap();
        let mut all = passed.read;
        assert!(!all.is_empty());
        connection.read_to_end(&mut all).unwrap();
        assert!(all == [&pieces.concat()[..], b"dy, allGET /y HTTP/1.1\r\n"].concat(), "everything in order");
    }
}

#[test]
fn a_head_in_pieces_is_held_like_a_whole_one() {
    let mut held = Held::start(options());
    let (mut client, id) = in_pieces(&mut held, &[b"\r\nGET /x HTTP/1.", b"1\r\nHost: a\r\n", b"\r\n\r\n"]);
    held.command(&[hold(id, TEXT, &["news"]), send(id, b"one")].concat());
    assert_eq!(read_head(&mut client), HEAD);
    expect(&mut client, b"one");
    client.write_all(b"\r\n").unwrap();
    held.command(&publish("news", b"two"));
    expect(&mut client, b"two");
}

#[test]
fn what_was_read_after_a_head_ends_the_stream() {
    let mut held = Held::start(options());
    let (mut client, id) = in_pieces(&mut held, &[b"GET /x HTTP/1.1\r\n", b"Host: a\r\n\r\nmore"]);
    held.command(&hold(id, TEXT, &[]));
    assert_eq!(read_head(&mut client), HEAD);
    assert_eq!(held.closed(id), Reason::BadRequest);
    expect_end(&mut client, b"");
}

#[test]
fn a_head_in_pieces_is_refused_like_a_whole_one() {
    let mut held = Held::start(options_with(|options| options.max_head_bytes = 100));
    let long = [b'x'; 60];
    for (pieces, status) in
        [([&b"GET / HTTP/1.1\r\nHost: a\r\nX: "[..], &long], 431), ([b"GET / HTTP/1.1\r\nHost: a\r\n", b"bad header\r\n\r\n"], 400)]
    {
        let mut client = connect(held.address);
        client.write_all(pieces[0]).unwrap();
        until_read(&mut held);
        client.write_all(pieces[1]).unwrap();
        client.write_all(&long).unwrap();
        expect_refusal(&mut client, status);
    }
    let mut client = ask(held.address, b"GET / HTTP/1.1\r\nHost:");
    until_read(&mut held);
    client.shutdown(std::net::Shutdown::Write).unwrap();
    expect_end(&mut client, b"");
    held.until_connections(0);
}

#[test]
fn the_memory_for_heads_in_pieces_is_limited_and_the_largest_and_oldest_are_cut() {
    const SIZE: usize = 1 << 20;
    let mut by_hand = ByHand::new(options_with(|options| options.max_head_bytes = SIZE));
    let mut small = by_hand.connect(b"GET / HTTP/1.1\r\n");
    let mut clients: Vec<UnixStream> = (0..40).map(|_| by_hand.connect(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")).collect();
    for client in &mut clients {
        client.set_nonblocking(true).unwrap();
        let mut left = SIZE / 2;
        // Whoever is cut can't write any more. What is kept is checked after each turn.
        while left > 0
            && let Ok(count) = client.write(&vec![b'x'; left.min(65_536)])
        {
            left -= count;
            by_hand.turn(0);
        }
    }
    let cut = by_hand.telemetry.cut.load(Relaxed);
    assert!((1..35).contains(&cut), "{cut} of 40 were cut");
    let newest = clients.last_mut().unwrap();
    newest.write_all(b"\r\n\r\n").unwrap();
    small.write_all(b"Host: a\r\n\r\n").unwrap();
    // The newest is read over several turns.
    let asked: usize = (0..5).map(|_| by_hand.asked().len()).sum();
    assert_eq!(asked, 2, "the newest, and the small one that is older than all others");
    assert_eq!(clients[0].write(b"x").unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
}

#[test]
fn events_of_connections_are_handled_in_slices() {
    let mut by_hand = ByHand::new(options()).step_by_step();
    let mut clients: Vec<UnixStream> = (0..5).map(|_| by_hand.connect(b"GET / HTTP/1.1\r\n")).collect();
    for client in &mut clients {
        client.write_all(b"Host: a\r\n\r\n").unwrap();
    }
    by_hand.turn(0);
    assert!(by_hand.shard.is_busy(), "one turn handles one of them");
    assert_eq!(by_hand.finish(), 4);
    assert_eq!(by_hand.asked().len(), 5);
}

#[test]
fn when_every_place_is_taken_the_oldest_connection_without_a_head_makes_room() {
    let mut held = Held::start(options_with(|options| {
        options.connection_limit = 3;
        options.proxies = vec![Range::parse("127.0.0.1").unwrap()];
    }));
    let (mut stream, id) = held.stream(TEXT, &[]);
    let mut older = ask(held.address, b"G");
    held.until_connections(2);
    let mut newer = ask(held.address, b"G");
    held.until_connections(3);
    let mut client = ask(held.address, &request("/new"));
    held.asked_for("/new");
    expect_end(&mut older, b"");
    held.command(&send(id, b"still here"));
    expect(&mut stream, b"still here");
    newer.write_all(b"ET /newer HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    held.asked_for("/newer");
    assert_eq!(held.total(|telemetry| telemetry.cut.load(Relaxed)), 1);
    // Those that have sent a head stay, whoever waits.
    let _waiting = ask(held.address, &request("/waiting"));
    until_nobody_is_accepted(&mut held, id, &mut stream);
    drop(client.take_error());
    client.set_nonblocking(true).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

fn until_nobody_is_accepted(held: &mut Held, id: Id, stream: &mut TcpStream) {
    for _ in 0..10 {
        held.command(&send(id, b"another turn"));
        expect(stream, b"another turn");
        assert!(held.heads.is_empty() && held.connections() == 3);
    }
}

#[test]
fn a_connection_has_a_moment_for_its_head_before_it_makes_room() {
    let mut by_hand = ByHand::new(options_with(|options| options.connection_limit = 1));
    let mut first = by_hand.connect(b"GET ");
    let (_, its) = UnixStream::pair().unwrap();
    by_hand.turn(GRACE_MS - 50);
    assert!(!by_hand.shard.admit_by_hand(its.into(), None));
    by_hand.turn(100);
    let _second = by_hand.connect(b"GET ");
    assert_eq!(first.read(&mut [0]).unwrap(), 0, "it was cut");
}

#[test]
fn connections_that_were_answered_make_room_before_those_without_a_head() {
    let mut by_hand = ByHand::new(options_with(|options| options.connection_limit = 3));
    let mut without_head = by_hand.connect(b"GET ");
    let mut answered = [by_hand.connect(b"nonsense\r\n\r\n"), by_hand.connect(b"nonsense\r\n\r\n")];
    by_hand.turn(GRACE_MS);
    let _newer = by_hand.connect(b"GET ");
    assert!(answered[0].write_all(b"x").is_err(), "the first one that was answered was cut");
    assert!(answered[1].write_all(b"x").is_ok());
    let _newest = by_hand.connect(b"GET ");
    assert!(answered[1].write_all(b"x").is_err());
    without_head.write_all(b"/ HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!((by_hand.asked().len(), by_hand.telemetry.cut.load(Relaxed)), (1, 2));
}

#[test]
fn one_that_was_just_answered_has_a_moment_to_read_before_it_makes_room() {
    let mut by_hand = ByHand::new(options_with(|options| options.connection_limit = 1));
    let mut answered = by_hand.connect(b"nonsense\r\n\r\n");
    let (_, its) = UnixStream::pair().unwrap();
    by_hand.turn(GRACE_MS - 50);
    assert!(!by_hand.shard.admit_by_hand(its.into(), None));
    assert!(read_now(&mut answered).starts_with("HTTP/1.1 400 "));
}

#[test]
fn in_one_turn_several_connections_make_room() {
    const LIMIT: usize = 10;
    let mut by_hand = ByHand::new(options_with(|options| options.connection_limit = LIMIT));
    let address = by_hand.listen();
    let _older: Vec<TcpStream> = (0..LIMIT).map(|_| ask(address, b"G")).collect();
    until("no room", || {
        by_hand.turn(0);
        (by_hand.telemetry.connections.load(Relaxed) == LIMIT as u64).then_some(())
    });
    by_hand.turn(GRACE_MS);
    let _newer: Vec<TcpStream> = (0..LIMIT).map(|_| ask(address, b"G")).collect();
    let mut most_in_a_turn = 0;
    until("all were replaced", || {
        let before = by_hand.telemetry.cut.load(Relaxed);
        by_hand.turn(0);
        let cut = by_hand.telemetry.cut.load(Relaxed);
        most_in_a_turn = most_in_a_turn.max(cut - before);
        (cut == LIMIT as u64).then_some(())
    });
    assert!(most_in_a_turn > 1);
    by_hand.turn(GRACE_MS);
    assert_eq!(by_hand.telemetry.cut.load(Relaxed), LIMIT as u64, "nobody is cut when nobody waits");
}

#[test]
fn an_address_may_have_a_limited_number_of_incomplete_heads_and_its_oldest_is_cut() {
    let mut by_hand = ByHand::new(options_with(|options| {
        options.max_heads_per_address = 2;
        options.proxies = vec![Range::parse("10.0.0.0/8").unwrap()];
    }));
    let mut from = |address: &str| {
        let address: IpAddr = address.parse().unwrap();
        by_hand.connect_from(Some(address), b"GET /")
    };
    let mut first = from("2001:db8::1");
    let mut others = vec![from("2001:db8:0:1::1"), from("1.2.3.4"), from("1.2.3.4"), from("2001:db8::2")];
    others.extend((0..5).map(|_| from("10.1.1.1")));
    others.push(from("2001:db8::3"));
    assert_eq!(first.read(&mut [0]).unwrap(), 0, "it was cut");
    for other in &mut others {
        assert_eq!(read_now(other), "");
        other.write_all(b" HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    }
    by_hand.turn(0);
    assert_eq!((by_hand.asked().len(), by_hand.telemetry.cut.load(Relaxed)), (others.len(), 1));
}

#[test]
fn complete_heads_do_not_count_for_their_address() {
    let mut by_hand = ByHand::new(options_with(|options| options.max_heads_per_address = 1));
    let address = Some([1, 2, 3, 4].into());
    let _clients: Vec<UnixStream> = (0..5).map(|_| by_hand.connect_from(address, &request("/"))).collect();
    let _late: Vec<UnixStream> = (0..5)
        .map(|_| {
            let mut client = by_hand.connect_from(address, b"GET / HTTP/1.1\r\nHost: a\r\n");
            client.write_all(b"\r\n").unwrap();
            by_hand.turn(0);
            client
        })
        .collect();
    assert_eq!((by_hand.asked().len(), by_hand.telemetry.cut.load(Relaxed)), (10, 0));
}

#[test]
fn js_gets_the_address_of_a_client_if_it_wants_to_and_cached_decisions_do_not_depend_on_it() {
    let mut held = Held::start(options_with(|options| options.reports_addresses = true));
    let _whole = ask(held.address, &request("/whole"));
    let (id, lines) = held.asked();
    assert_eq!(lines, lines_of("/whole") + "\n127.0.0.1");
    let mut pieces = ask(held.address, b"GET /pieces");
    held.until_connections(2);
    pieces.write_all(b" HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!(held.asked().1, lines_of("/pieces") + "\n127.0.0.1");
    held.command(&[opening(TEXT, HEAD, &[], &[]), remember(&lines_of("/cached")), refuse(id, 404)].concat());
    held.until_connections(1);
    let mut cached = ask(held.address, &request("/cached"));
    assert_eq!(read_head(&mut cached), HEAD);
    assert!(held.heads.is_empty());
}
