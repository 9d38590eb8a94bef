//! Over TLS: several requests on one connection, polls, and WebSockets.

mod common;

use common::by_hand::ByHand;
use common::pair::*;
use common::tls::*;
use common::tls_client::*;
use common::*;
use holdfast_core::id::Id;
use holdfast_core::telemetry::Reason;
use holdfast_core::tls::Content;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n";
const POLL: u8 = 0x33;
const WEBSOCKET: u8 = 0x20;
const SWITCH: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\n";
const UPGRADE: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

fn get(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes()
}

fn asked_one(by_hand: &mut ByHand) -> (Id, String) {
    for _ in 0..10 {
        if let [one] = &by_hand.asked()[..] {
            return one.clone();
        }
    }
    panic!("nobody asks");
}

fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    [&[first, 0x80 | payload.len() as u8, 0, 0, 0, 0][..], payload].concat()
}

fn poll(id: Id, wait_ms: u32) -> Vec<u8> {
    [opening(POLL, b"", &[], &["news"]), wait_ms.to_le_bytes().into(), hold_so(id)].concat()
}

#[test]
fn a_connection_is_kept_whatever_the_version_and_however_requests_are_divided_into_records() {
    for (is_tls12, cipher) in ALL {
        let mut by_hand = ByHand::new(options());
        let config = client_config(is_tls12, cipher);
        let (mut client, mut id) = ask_over_tls(&mut by_hand, &server_config(), config, &get("/0"));
        for number in 1..10 {
            by_hand.say(&respond(id, OK, b"hi"));
            let answer = client.read();
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nhi") && !answer.contains("close"), "{answer}");
            for part in get(&format!("/{number}")).chunks([1, 7, 1000][number % 3]) {
                client.send(Content::Data, part);
            }
            let (next, lines) = asked_one(&mut by_hand);
            assert!(lines.starts_with(&format!("GET\n/{number}\n")), "{lines}");
            id = next;
        }
        assert!(client.alerts.is_empty());
    }
}

#[test]
fn requests_that_come_together_are_answered_one_after_the_other() {
    for records in [1, 3] {
        let mut by_hand = ByHand::new(options());
        let all = [get("/0"), get("/1"), get("/2")];
        let mut client = shake_hands(&mut by_hand, &server_config(), aes());
        if records == 1 {
            client.send(Content::Data, &all.concat());
        } else {
            all.iter().for_each(|request| client.send(Content::Data, request));
        }
        for number in 0..3 {
            let (id, lines) = asked_one(&mut by_hand);
            assert!(lines.starts_with(&format!("GET\n/{number}\n")), "{lines}");
            by_hand.say(&respond(id, OK, b"hi"));
            assert!(client.read().ends_with("hi"));
        }
    }
}

#[test]
fn an_idle_connection_ends_with_close_notify() {
    let mut by_hand = ByHand::new(options());
    let (mut client, id) = ask_over_tls(&mut by_hand, &server_config(), aes(), &get("/"));
    by_hand.say(&respond(id, OK, b"hi"));
    client.read();
    by_hand.turn(30_000);
    client.read();
    assert_eq!((&client.alerts[..], client.is_over), (&[0][..], true));
}

#[test]
fn a_poll_is_answered_and_the_connection_goes_on() {
    let mut by_hand = ByHand::new(options());
    let (mut client, id) = ask_over_tls(&mut by_hand, &server_config(), aes(), &get("/"));
    by_hand.say(&poll(id, 60_000));
    by_hand.say(&publish("news", b"x"));
    by_hand.finish();
    assert!(client.read().ends_with("\r\n\r\n{\"messages\":[{\"data\":\"x\"}]}\n"));
    client.send(Content::Data, &get("/next"));
    let (next, _) = asked_one(&mut by_hand);
    assert_ne!(next, id);
    by_hand.say(&poll(next, 1000));
    by_hand.turn(2000);
    assert!(client.read().starts_with("HTTP/1.1 204 "));
}

#[test]
fn a_websocket_hears_and_says_and_ends_properly() {
    let mut by_hand = ByHand::new(options_with(|options| options.takes_messages = true));
    let (mut client, id) = ask_over_tls(&mut by_hand, &server_config(), aes(), UPGRADE);
    by_hand.say(&[opening(WEBSOCKET, SWITCH, &[], &["news"]), hold_so(id)].concat());
    assert!(client.read().contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    // In records of any size, several at once: more than are read in one turn.
    for number in 0..100 {
        let frame = masked(0x81, format!("{number}").as_bytes());
        frame.chunks(1 + number % 5).for_each(|part| client.send(Content::Data, part));
        if number % 20 == 19 {
            by_hand.turn(0);
        }
    }
    client.send(Content::Data, &masked(0x81, &[b'x'; 100]).repeat(5));
    let mut said = Vec::new();
    for _ in 0..1000 {
        by_hand.turn(5);
        said.extend(by_hand.outbox.take(0).0.said.into_iter().map(|(_, text)| String::from_utf8(text).unwrap()));
    }
    let expected: Vec<String> = (0..100).map(|number| number.to_string()).chain((0..5).map(|_| "x".repeat(100))).collect();
    assert_eq!(said, expected);
    by_hand.say(&publish("news", b"hello"));
    by_hand.finish();
    assert_eq!(client.read_bytes(), b"\x81\x05hello");
    client.send(Content::Data, &masked(0x88, b"\x03\xe8"));
    by_hand.turn(5);
    assert_eq!(client.read_bytes(), b"\x88\x02\x03\xe8");
    assert_eq!(by_hand.outbox.take(0).0.closed, [(id, Reason::ClientGone)]);
}

#[test]
fn a_websocket_a_poll_and_an_idle_connection_move_in_a_handover() {
    let mut pair = Pair::usual();
    let server = server_config();
    let (mut websocket, id) = ask_over_tls(&mut pair.giver, &server, aes(), UPGRADE);
    pair.giver.say(&[opening(WEBSOCKET, SWITCH, &[], &["news"]), hold_so(id)].concat());
    let (mut polling, id) = ask_over_tls(&mut pair.giver, &server, aes(), &get("/"));
    pair.giver.say(&poll(id, 60_000));
    let (mut idle, id) = ask_over_tls(&mut pair.giver, &server, aes(), &get("/"));
    pair.giver.say(&respond(id, OK, b"hi"));
    for client in [&mut websocket, &mut polling, &mut idle] {
        client.read();
    }
    pair.connect();
    assert_eq!(pair.prepare().prepared, 3);
    pair.complete();
    pair.taker.say(&publish("news", b"x"));
    pair.taker.finish();
    assert_eq!(websocket.read_bytes(), b"\x81\x01x");
    assert!(polling.read().ends_with("{\"messages\":[{\"data\":\"x\"}]}\n"));
    idle.send(Content::Data, &get("/next"));
    let (id, _) = asked_one(&mut pair.taker);
    pair.taker.say(&respond(id, OK, b"hi"));
    assert!(idle.read().ends_with("hi"));
}
