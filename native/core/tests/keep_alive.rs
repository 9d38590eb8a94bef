//! Several requests on one connection.

mod common;

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::Ordering::Relaxed;

use common::by_hand::{ByHand, read_now};
use common::pair::*;
use common::*;
use holdfast_core::id::Id;
use holdfast_core::telemetry::Reason;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n";
const MORE_THAN_THE_KERNEL_TAKES: usize = 32 << 20;

/// A request after which another one may follow.
fn get(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes()
}

/// Answers the request for a target, and reads the answer.
fn answer(held: &mut Held, client: &mut TcpStream, target: &str) -> Id {
    let id = held.asked_for(target);
    held.command(&respond(id, OK, b"hi"));
    assert_eq!(read_head(client), OK, "{target}");
    expect(client, b"hi");
    id
}

#[test]
fn a_connection_is_kept_and_its_requests_are_answered_one_after_the_other() {
    let mut held = Held::start(options());
    let mut client = ask(held.address, &get("/1"));
    let first = answer(&mut held, &mut client, "/1");
    client.write_all(&get("/2")).unwrap();
    assert_eq!(answer(&mut held, &mut client, "/2"), first, "it is the same connection");
    for piece in get("/3").chunks(7) {
        client.write_all(piece).unwrap();
    }
    answer(&mut held, &mut client, "/3");
    client.write_all(b"\r\n").unwrap(); // as some old clients send
    client.write_all(&get("/4")).unwrap();
    answer(&mut held, &mut client, "/4");
    drop(client);
    held.until_connections(0);
    assert!(held.rest.closed.is_empty() && held.heads.is_empty());
}

#[test]
fn requests_that_come_together_are_asked_about_one_at_a_time() {
    let mut held = Held::start(options());
    let targets: Vec<String> = (0..20).map(|number| format!("/{number}")).collect();
    let all: Vec<u8> = targets.iter().flat_map(|target| get(target)).collect();
    for split in [all.len(), 30, 31, 60, 100] {
        let mut client = ask(held.address, &all[..split]);
        client.write_all(&all[split..]).unwrap();
        for target in &targets {
            answer(&mut held, &mut client, target);
            assert!(held.heads.len() <= 1, "only the next one");
        }
    }
}

#[test]
fn refusals_that_are_about_the_address_keep_the_connection_and_others_end_it() {
    let mut held = Held::start(options());
    let mut client = ask(held.address, &get("/1"));
    for (status, next) in [(404, "/2"), (405, "/3")] {
        let id = held.asked().0;
        held.command(&refuse(id, status));
        assert!(!contains(&read_head(&mut client), CLOSE), "{status}");
        let body = if status == 404 { 48 } else { 59 };
        expect(&mut client, held_body(status, body).as_slice());
        client.write_all(&get(next)).unwrap();
    }
    let id = held.asked().0;
    held.command(&refuse(id, 503));
    expect_refusal(&mut client, 503);
    for (bytes, status) in [(&b"GET / HTTP/9.9\r\n\r\n"[..], 505), (b"nonsense\r\n\r\n", 400)] {
        let mut client = ask(held.address, &get("/1"));
        answer(&mut held, &mut client, "/1");
        client.write_all(bytes).unwrap();
        expect_refusal(&mut client, status);
    }
}

/// What a client gets that is refused with this status.
fn held_body(status: u16, size: usize) -> Vec<u8> {
    let body = holdfast_core::response::Refusal::of(status).unwrap().body();
    assert_eq!(body.len(), size);
    body.as_bytes().to_vec()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn the_connection_ends_if_the_client_wants_that_or_there_is_a_body() {
    let mut held = Held::start(options());
    let old = [OK, b"Connection: keep-alive\r\n"].concat();
    let close = [OK, CLOSE].concat();
    for (head, expected, is_kept) in [
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", &close, false),
        ("GET / HTTP/1.0\r\n\r\n", &close, false),
        ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", &old, true),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody", &close, false),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", &close, false),
    ] {
        let mut client = ask(held.address, head.as_bytes());
        let id = held.asked().0;
        held.command(&respond(id, OK, b"hi"));
        assert_eq!(&read_head(&mut client), expected, "{head}");
        if is_kept {
            expect(&mut client, b"hi");
            client.write_all(head.as_bytes()).unwrap();
            held.asked();
        } else {
            expect_end(&mut client, b"hi");
        }
    }
}

#[test]
fn a_stream_or_a_request_of_node_http_may_follow_an_answer() {
    let mut held = Held::start(options());
    for pieces in [1, 5] {
        let mut client = ask(held.address, &get("/1"));
        answer(&mut held, &mut client, "/1");
        let request = get("/stream");
        for piece in request.chunks(request.len().div_ceil(pieces)) {
            client.write_all(piece).unwrap();
        }
        let id = held.asked_for("/stream");
        held.command(&[hold(id, TEXT, &["news"]), publish("news", b"one")].concat());
        assert_eq!(read_head(&mut client), HEAD);
        expect(&mut client, b"one");
        drop(client);
        assert_eq!(held.closed(id), Reason::ClientGone);
        let mut client = ask(held.address, &get("/1"));
        answer(&mut held, &mut client, "/1");
        client.write_all(&get("/pass")).unwrap();
        let id = held.asked_for("/pass");
        held.command(&pass(id));
        held.until("a connection passed on", |held| held.rest.passed.pop());
        held.hold.take_passed(id).unwrap();
    }
}

#[test]
fn the_next_request_waits_until_an_answer_is_read() {
    let mut held = Held::start(options());
    let body = vec![b'x'; MORE_THAN_THE_KERNEL_TAKES];
    for request in [[get("/large"), get("/next")].concat(), get("/large")] {
        let is_pipelined = request.len() > get("/large").len();
        let mut client = ask(held.address, &request[..10]);
        client.write_all(&request[10..]).unwrap();
        let id = held.asked_for("/large");
        held.command(&respond(id, OK, &body));
        until("a backlog", || (held.backlog() > 0).then_some(()));
        if !is_pipelined {
            client.write_all(&get("/next")).unwrap();
        }
        assert_eq!(read_head(&mut client), OK);
        expect(&mut client, &body);
        answer(&mut held, &mut client, "/next");
    }
}

#[test]
fn a_client_that_does_not_read_an_answer_is_cut() {
    let mut held = Held::start(options());
    let _client = ask(held.address, &get("/large"));
    let id = held.asked().0;
    held.command(&respond(id, OK, &vec![b'x'; MORE_THAN_THE_KERNEL_TAKES]));
    held.until_connections(0);
    assert_eq!(held.backlog(), 0);
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    let mut held = Held::start(options_with(|options| options.keep_alive_timeout_ms = 50));
    let mut client = ask(held.address, &get("/1"));
    answer(&mut held, &mut client, "/1");
    expect_end(&mut client, b"");
    held.until_connections(0);
}

#[test]
fn a_request_that_does_not_come_whole_is_refused_in_time_as_the_first_one_is() {
    let mut held = Held::start(options_with(|options| options.head_timeout_ms = 50));
    let mut client = ask(held.address, &get("/1"));
    answer(&mut held, &mut client, "/1");
    client.write_all(b"GET / HT").unwrap();
    expect_refusal(&mut client, 408);
}

#[test]
fn a_drain_closes_idle_connections_and_answers_the_last_requests() {
    let mut held = Held::start(options());
    let mut idle = ask(held.address, &get("/1"));
    answer(&mut held, &mut idle, "/1");
    let mut asking = ask(held.address, &get("/2"));
    let id = held.asked().0;
    held.command(&drain(0));
    expect_end(&mut idle, b"");
    held.command(&respond(id, OK, b"hi"));
    assert_eq!(read_head(&mut asking), [OK, CLOSE].concat());
    expect_end(&mut asking, b"hi");
    held.until_connections(0);
}

#[test]
fn who_is_idle_makes_room_for_others() {
    let mut held = Held::start(options_with(|options| options.connection_limit = 3));
    let mut clients: Vec<TcpStream> = (0..3).map(|_| ask(held.address, &get("/1"))).collect();
    for _ in 0..3 {
        let id = held.asked().0;
        held.command(&respond(id, OK, b"hi"));
    }
    for client in &mut clients {
        assert_eq!(read_head(client), OK);
        expect(client, b"hi");
    }
    let mut other = ask(held.address, &get("/2"));
    answer(&mut held, &mut other, "/2");
    assert_eq!((held.connections(), held.total(|figures| figures.cut.load(Relaxed))), (3, 1));
}

#[test]
fn the_list_of_idle_connections_does_not_grow_with_their_requests() {
    let mut by_hand = ByHand::new(options());
    let mut clients = [by_hand.connect(&get("/")), by_hand.connect(&get("/"))];
    for turn in 0..1000 {
        let records: Vec<u8> = by_hand.asked().iter().flat_map(|(id, _)| respond(*id, OK, b"hi")).collect();
        by_hand.say(&records);
        by_hand.turn(1);
        let client = &mut clients[if turn == 0 { 0 } else { 1 }];
        assert!(read_now(client).ends_with("hi"));
        client.write_all(&get("/")).unwrap();
        by_hand.turn(0);
    }
    assert!(by_hand.shard.idle_listed() < 200, "{}", by_hand.shard.idle_listed());
}

#[test]
fn an_idle_connection_moves_in_a_handover() {
    let mut pair = Pair::usual();
    let mut client = pair.giver.connect(&get("/1"));
    let [(id, _)] = pair.giver.asked().try_into().unwrap();
    pair.giver.say(&respond(id, OK, b"hi"));
    assert!(read_now(&mut client).ends_with("hi"));
    pair.connect();
    assert_eq!(pair.prepare().prepared, 1);
    pair.complete();
    client.write_all(&get("/2")).unwrap();
    let [(id, lines)] = pair.taker.asked().try_into().unwrap();
    assert!(lines.starts_with("GET\n/2\n"), "{lines}");
    pair.taker.say(&respond(id, OK, b"hi"));
    assert!(read_now(&mut client).ends_with("hi"));
}

#[test]
fn js_hears_of_the_next_request_at_once() {
    let mut by_hand = ByHand::new(options());
    let mut client = by_hand.connect(&get("/1"));
    let [(id, _)] = by_hand.asked().try_into().unwrap();
    by_hand.say(&respond(id, OK, b"hi"));
    read_now(&mut client);
    client.write_all(&get("/2")).unwrap();
    by_hand.turn(0);
    assert_eq!(by_hand.outbox.take(usize::MAX).0.heads.len(), 1);
    let _other = by_hand.connect(&get("/3"));
    by_hand.turn(0);
    assert_eq!(by_hand.outbox.take(usize::MAX).0.heads.len(), 0, "the first one on a connection waits for others");
}
