//! Requests that wait for what is published, and are then answered.

mod common;

use std::io::Write;
use std::net::TcpStream;

use common::by_hand::{ByHand, read_now};
use common::pair::*;
use common::*;
use holdfast_core::id::Id;
use holdfast_core::telemetry::Reason;

const POLL: u8 = 0x33;
const POLL_OF_UPDATES: u8 = 0x34;
const LINES: &[u8] = b"Cache-Control: no-store\r\n";
const LONG_MS: u32 = 60_000;

fn get(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes()
}

fn poll(id: Id, format: u8, channels: &[&str], wait_ms: u32) -> Vec<u8> {
    [opening(format, LINES, &[], channels), wait_ms.to_le_bytes().into(), hold_so(id)].concat()
}

/// A poll that waits.
fn polling(held: &mut Held, format: u8, channels: &[&str], wait_ms: u32) -> (TcpStream, Id) {
    let client = ask(held.address, &get("/"));
    let id = held.asked().0;
    held.command(&poll(id, format, channels, wait_ms));
    (client, id)
}

fn answer_with(body: &str, cursor: &str) -> String {
    let position = if cursor.is_empty() { String::new() } else { format!("Last-Event-ID: {cursor}\r\n") };
    let lines = String::from_utf8_lossy(LINES);
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{position}{lines}", body.len())
}

fn expect_answer(client: &mut TcpStream, body: &str, cursor: &str) {
    assert_eq!(String::from_utf8(read_head(client)).unwrap(), answer_with(body, cursor));
    expect(client, body.as_bytes());
}

#[test]
fn a_poll_is_answered_with_what_is_published_and_the_connection_goes_on() {
    let mut held = Held::start(options());
    let (mut client, id) = polling(&mut held, POLL, &["news"], LONG_MS);
    held.command(&publish_event("news", "7", "score", b"1\n2"));
    let body = "{\"messages\":[{\"id\":\"7\",\"type\":\"score\",\"data\":\"1\\n2\"}],\"cursor\":\"7\"}\n";
    expect_answer(&mut client, body, "7");
    assert_eq!(held.closed(id), Reason::Answered);
    client.write_all(&get("/next")).unwrap();
    let next = held.asked_for("/next");
    assert_ne!(next, id, "another request has another id");
    held.command(&poll(next, POLL, &["news", "all"], LONG_MS));
    held.command(&send(id, b"to nobody"));
    held.command(&publish("news", b"x"));
    expect_answer(&mut client, "{\"messages\":[{\"data\":\"x\"}]}\n", "");
    assert_eq!(held.closed(next), Reason::Answered);
}

#[test]
fn what_was_published_together_is_in_one_answer() {
    let mut held = Held::start(options());
    let (mut client, id) = polling(&mut held, POLL, &["news"], LONG_MS);
    held.command(&[publish_event("news", "1", "a", b"x"), publish_event("news", "2", "b", b"y")].concat());
    let [one, two] =
        [("1", "a", "x"), ("2", "b", "y")].map(|(id, kind, data)| format!("{{\"id\":\"{id}\",\"type\":\"{kind}\",\"data\":\"{data}\"}}"));
    expect_answer(&mut client, &format!("{{\"messages\":[{one},{two}],\"cursor\":\"2\"}}\n"), "2");
    held.closed(id);
    assert_eq!(held.deliveries(), 2);
}

#[test]
fn a_poll_for_which_nothing_comes_is_answered_in_time() {
    let mut held = Held::start(options());
    let (mut client, id) = polling(&mut held, POLL, &["news"], 20);
    assert_eq!(read_head(&mut client), [b"HTTP/1.1 204 No Content\r\n", LINES].concat());
    assert_eq!(held.closed(id), Reason::Answered);
    client.write_all(&get("/next")).unwrap();
    let next = held.asked_for("/next");
    held.command(&[set_cursor("#17"), poll(next, POLL_OF_UPDATES, &["news"], 20)].concat());
    assert_eq!(read_head(&mut client), [b"HTTP/1.1 204 No Content\r\nLast-Event-ID: #17\r\n", LINES].concat());
}

#[test]
fn a_poll_that_ends_says_that_the_connection_ends_too() {
    for (records, reason) in [(drain(0), Reason::Drain), (end_channel("news", Reason::Revoked), Reason::Revoked)] {
        let mut held = Held::start(options());
        let (mut client, id) = polling(&mut held, POLL, &["news"], LONG_MS);
        held.command(&records);
        assert_eq!(read_head(&mut client), [b"HTTP/1.1 204 No Content\r\n", LINES, CLOSE].concat());
        expect_end(&mut client, b"");
        assert_eq!(held.closed(id), reason);
    }
}

#[test]
fn http_1_0_and_close_are_honoured() {
    let mut held = Held::start(options());
    for (request, line, is_kept) in [
        (&b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"[..], CLOSE, false),
        (b"GET / HTTP/1.0\r\n\r\n", CLOSE, false),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", b"Connection: keep-alive\r\n", true),
    ] {
        let mut client = ask(held.address, request);
        let id = held.asked().0;
        held.command(&[poll(id, POLL, &["news"], LONG_MS), publish("news", b"x")].concat());
        let body = "{\"messages\":[{\"data\":\"x\"}]}\n";
        assert_eq!(read_head(&mut client), [answer_with(body, "").as_bytes(), line].concat());
        if is_kept { expect(&mut client, body.as_bytes()) } else { expect_end(&mut client, body.as_bytes()) }
    }
}

#[test]
fn a_client_that_leaves_is_gone_and_one_that_sends_its_next_request_early_waits() {
    let mut held = Held::start(options());
    let (client, id) = polling(&mut held, POLL, &["news"], LONG_MS);
    drop(client);
    assert_eq!(held.closed(id), Reason::ClientGone);
    for is_in_pieces in [false, true] {
        let request = [get("/first"), get("/second")].concat();
        let split = if is_in_pieces { 10 } else { request.len() };
        let mut client = ask(held.address, &request[..split]);
        client.write_all(&request[split..]).unwrap();
        let id = held.asked_for("/first");
        held.command(&poll(id, POLL, &["news"], LONG_MS));
        held.command(&publish("news", b"x"));
        expect_answer(&mut client, "{\"messages\":[{\"data\":\"x\"}]}\n", "");
        held.asked_for("/second");
    }
}

#[test]
fn an_id_that_can_be_no_header_is_only_in_the_body() {
    for (id, in_body, in_head) in [("a\tb \u{e4}", "a\\tb \u{e4}", "a\tb \u{e4}"), ("a\u{1}b", "a\\u0001b", ""), ("a\u{7f}", "a\u{7f}", "")]
    {
        let mut held = Held::start(options());
        let (mut client, _) = polling(&mut held, POLL, &["news"], LONG_MS);
        held.command(&publish_event("news", id, "x", b"y"));
        let body = format!("{{\"messages\":[{{\"id\":\"{in_body}\",\"type\":\"x\",\"data\":\"y\"}}],\"cursor\":\"{in_body}\"}}\n");
        expect_answer(&mut client, &body, in_head);
    }
}

#[test]
fn what_comes_after_polls_leaves_room_for_heads_in_pieces() {
    const SIZE: usize = 100_000;
    let mut by_hand = ByHand::new(options_with(|options| {
        (options.max_head_bytes, options.capacity, options.connection_limit) = (1 << 20, 200, 300);
    }));
    let lines = [opening(POLL, LINES, &[], &["news"]), LONG_MS.to_le_bytes().into()].concat();
    let mut polls = Vec::new();
    for _ in 0..200 {
        let mut client = by_hand.connect(b"GET / HTTP/1.1\r\n");
        by_hand.turn(0);
        client.write_all(&[b"\r\n", &vec![b'x'; SIZE][..]].concat()).unwrap();
        let [(id, _)] = by_hand.asked().try_into().unwrap();
        by_hand.say(&[lines.clone(), hold_so(id)].concat());
        polls.push(client);
    }
    let mut slow = by_hand.connect(b"GET /slow HTTP/1.1\r\n");
    by_hand.turn(0);
    slow.write_all(b"\r\n").unwrap();
    assert_eq!(by_hand.asked().len(), 1, "it was not cut");
    by_hand.say(&publish("news", b"x"));
    by_hand.finish();
    let answers = polls.iter_mut().map(read_now);
    let ended = answers
        .inspect(|answer| assert!(answer.starts_with("HTTP/1.1 200 "), "{answer:?}"))
        .filter(|answer| answer.contains("Connection: close"));
    assert!((100..150).contains(&ended.count()), "those for which there was no room");
}

#[test]
fn many_polls_share_their_lines_and_leave_none_behind() {
    let mut by_hand = ByHand::new(options());
    let mut clients: Vec<_> = (0..10).map(|_| by_hand.connect(&get("/"))).collect();
    by_hand.turn(0);
    let ids: Vec<Id> = by_hand.asked().into_iter().map(|(id, _)| id).collect();
    let lines = |number: usize| format!("X: {}\r\n", number % 3);
    let records: Vec<u8> = ids
        .iter()
        .enumerate()
        .flat_map(|(number, id)| {
            [opening(POLL, lines(number).as_bytes(), &[], &["news"]), LONG_MS.to_le_bytes().into(), hold_so(*id)].concat()
        })
        .collect();
    by_hand.say(&records);
    by_hand.say(&publish("news", b"x"));
    by_hand.finish();
    for (number, client) in clients.iter_mut().enumerate() {
        assert!(read_now(client).contains(&lines(number)), "{number}");
    }
    by_hand.turn(10);
}

#[test]
fn a_poll_moves_in_a_handover_and_is_answered_where_it_is() {
    let mut pair = Pair::usual();
    let mut client = pair.giver.connect(&get("/"));
    let [(id, _)] = pair.giver.asked().try_into().unwrap();
    pair.giver.say(&poll(id, POLL, &["news"], LONG_MS));
    pair.connect();
    assert_eq!(pair.prepare().prepared, 1);
    let [(before, after)] = pair.complete()[..] else { panic!() };
    assert_eq!(before, id);
    pair.taker.say(&publish("news", b"x"));
    pair.taker.finish();
    assert!(read_now(&mut client).ends_with("{\"messages\":[{\"data\":\"x\"}]}\n"));
    assert_eq!(pair.until("its end", |pair| pair.from_taker.closed.pop()), (after, Reason::Answered));
    client.write_all(&get("/next")).unwrap();
    assert_eq!(pair.taker.asked().len(), 1);
}

#[test]
fn a_long_answer_reaches_a_client_that_reads_slowly() {
    let mut by_hand = ByHand::new(options());
    let mut client = by_hand.connect(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let [(id, _)] = by_hand.asked().try_into().unwrap();
    let lines = format!("X-Filler: {}\r\n", "x".repeat(20_000));
    by_hand.say(&[opening(POLL, lines.as_bytes(), &[], &["news"]), LONG_MS.to_le_bytes().into(), hold_so(id)].concat());
    by_hand.say(&drain(12));
    by_hand.turn(20);
    let mut read = String::new();
    for _ in 0..100 {
        read += &read_now(&mut client);
        by_hand.turn(1);
    }
    assert!(read.ends_with("\r\n\r\n"), "{} bytes", read.len());
}
