//! WebSockets: what their clients get, what they say, and how they end.

mod common;

use std::io::Write;
use std::net::TcpStream;

use common::by_hand::{ByHand, read_bytes_now, read_now};
use common::pair::*;
use common::*;
use holdfast_core::Options;
use holdfast_core::id::Id;
use holdfast_core::telemetry::Reason;

const WEBSOCKET: u8 = 0x20;
const WEBSOCKET_JSON: u8 = 0x23;
const SWITCH: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
const ACCEPT: &[u8] = b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
const TEXT_FRAME: u8 = 0x81;
const PONG: u8 = 0x8a;
const CLOSE_FRAME: u8 = 0x88;

fn upgrade(target: &str) -> Vec<u8> {
    format!(
        "GET {target} HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    .into_bytes()
}

fn switch(id: Id, format: u8, channels: &[&str]) -> Vec<u8> {
    [opening(format, SWITCH, &[], channels), hold_so(id)].concat()
}

/// One that takes messages of at most 1,000 bytes.
fn listening() -> Options {
    options_with(|options| options.takes_messages = true)
}

fn websocket(held: &mut Held, format: u8, channels: &[&str]) -> (TcpStream, Id) {
    let mut client = ask(held.address, &upgrade("/"));
    let id = held.asked().0;
    held.command(&switch(id, format, channels));
    assert_eq!(read_head(&mut client), [SWITCH, ACCEPT].concat());
    (client, id)
}

/// A frame of a client.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [9, 8, 7, 6];
    let mut frame = vec![first];
    match payload.len() {
        size @ ..126 => frame.push(0x80 | size as u8),
        size => frame.extend_from_slice(&[0xfe, (size >> 8) as u8, size as u8]),
    }
    frame.extend_from_slice(&MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// A short frame of the server.
fn framed(first: u8, payload: &[u8]) -> Vec<u8> {
    [&[first, payload.len() as u8], payload].concat()
}

fn closing(code: u16, why: &str) -> Vec<u8> {
    framed(CLOSE_FRAME, &[&code.to_be_bytes(), why.as_bytes()].concat())
}

fn said(held: &mut Held) -> (Id, String) {
    let (id, text) = held.until("a message", |held| (!held.rest.said.is_empty()).then(|| held.rest.said.remove(0)));
    (id, String::from_utf8(text).unwrap())
}

#[test]
fn a_websocket_gets_what_is_published_as_text_or_json() {
    let mut held = Held::start(options());
    let (mut text, id) = websocket(&mut held, WEBSOCKET, &["news"]);
    let (mut json, _) = websocket(&mut held, WEBSOCKET_JSON, &["news"]);
    held.command(&[publish_event("news", "7", "score", b"1"), send(id, b"")].concat());
    expect(&mut text, &[framed(TEXT_FRAME, b"1"), framed(TEXT_FRAME, b"")].concat());
    expect(&mut json, &framed(TEXT_FRAME, b"{\"id\":\"7\",\"type\":\"score\",\"data\":\"1\"}"));
}

#[test]
fn a_welcome_is_a_message() {
    let mut held = Held::start(options());
    let mut client = ask(held.address, &upgrade("/"));
    let id = held.asked().0;
    held.command(&[opening(WEBSOCKET, SWITCH, &[b"hello"], &[]), hold_so(id)].concat());
    read_head(&mut client);
    expect(&mut client, &framed(TEXT_FRAME, b"hello"));
}

#[test]
fn a_request_that_does_not_ask_in_the_right_way_is_refused() {
    let mut held = Held::start(options());
    let upgrade = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n";
    for (request, status) in [(request("/"), 426), (upgrade.to_vec(), 400)] {
        let mut client = ask(held.address, &request);
        let id = held.asked().0;
        held.command(&switch(id, WEBSOCKET, &[]));
        expect_refusal(&mut client, status);
        assert_eq!(held.closed(id), Reason::BadRequest);
    }
    assert_eq!(held.total(|figures| figures.opened.load(std::sync::atomic::Ordering::Relaxed)), 0);
}

#[test]
fn what_clients_say_is_reported_whole_and_in_order_whatever_pieces_it_comes_in() {
    let mut held = Held::start(listening());
    let frames = [
        masked(0x81, b"one"),
        masked(0x01, b"tw"),
        masked(0x89, b"?"),
        masked(0x80, "ö".as_bytes()),
        masked(0x8a, b"never asked for"),
        masked(0x81, &[b'x'; 900]),
    ]
    .concat();
    for piece in [frames.len(), 1, 7] {
        let (mut client, id) = websocket(&mut held, WEBSOCKET, &[]);
        for bytes in frames.chunks(piece) {
            client.write_all(bytes).unwrap();
        }
        assert_eq!([said(&mut held), said(&mut held)], [(id, "one".into()), (id, "twö".into())]);
        assert_eq!(said(&mut held), (id, "x".repeat(900)));
        expect(&mut client, &framed(PONG, b"?"));
    }
}

#[test]
fn frames_that_come_with_the_request_are_read() {
    let mut held = Held::start(listening());
    let all = [upgrade("/"), masked(0x81, b"early"), masked(0x01, b"la")].concat();
    for split in [all.len(), 20] {
        let mut client = ask(held.address, &all[..split]);
        client.write_all(&all[split..]).unwrap();
        let id = held.asked().0;
        held.command(&switch(id, WEBSOCKET, &[]));
        read_head(&mut client);
        assert_eq!(said(&mut held), (id, "early".into()));
        client.write_all(&masked(0x80, b"te")).unwrap();
        assert_eq!(said(&mut held), (id, "late".into()));
    }
}

#[test]
fn a_client_that_breaks_the_rules_is_told_how() {
    for (takes_messages, frame, code) in [
        (true, b"\x81\x01x".to_vec(), 1002),
        (true, masked(0xc1, b"x"), 1002),
        (true, masked(0x80, b"x"), 1002),
        (true, masked(0x82, b"x"), 1003),
        (false, masked(0x81, b"x"), 1003),
        (true, masked(0x81, b"\xff"), 1007),
        (true, masked(0x81, &[b'x'; 1001]), 1009),
    ] {
        let mut held = Held::start(options_with(|options| options.takes_messages = takes_messages));
        let (mut client, id) = websocket(&mut held, WEBSOCKET, &[]);
        client.write_all(&frame).unwrap();
        expect_end(&mut client, &closing(code, "bad-request"));
        assert_eq!(held.closed(id), Reason::BadRequest);
        assert!(held.rest.said.is_empty());
    }
}

#[test]
fn a_client_that_closes_gets_its_code_back() {
    let mut held = Held::start(options());
    for (payload, answer) in [(&b"\x03\xe9bye"[..], &b"\x03\xe9"[..]), (b"", b"")] {
        let (mut client, id) = websocket(&mut held, WEBSOCKET, &[]);
        client.write_all(&masked(CLOSE_FRAME, payload)).unwrap();
        expect_end(&mut client, &framed(CLOSE_FRAME, answer));
        assert_eq!(held.closed(id), Reason::ClientGone);
    }
    let (client, id) = websocket(&mut held, WEBSOCKET, &[]);
    drop(client);
    assert_eq!(held.closed(id), Reason::ClientGone);
    held.until_connections(0);
}

#[test]
fn the_end_of_one_is_nothing_to_the_others() {
    let mut held = Held::start(listening());
    let (mut stays, _) = websocket(&mut held, WEBSOCKET, &["news"]);
    for last in [masked(0x88, b""), masked(0x83, b""), b"".to_vec()] {
        let (mut leaves, id) = websocket(&mut held, WEBSOCKET, &[]);
        leaves.write_all(&[last, b"and more".to_vec()].concat()).unwrap();
        held.closed(id);
    }
    held.command(&publish("news", b"still here"));
    expect(&mut stays, &framed(TEXT_FRAME, b"still here"));
    assert_eq!(held.closed_for(Reason::Failed), 0);
}

#[test]
fn each_reason_has_its_code() {
    for (records, code, reason) in [
        (drain(0), 1001, Reason::Drain),
        (end_channel("news", Reason::Revoked), 1008, Reason::Revoked),
        (end_channel("news", Reason::Expired), 1008, Reason::Expired),
        (end_channel("news", Reason::Restarted), 1012, Reason::Restarted),
    ] {
        let mut held = Held::start(options());
        let (mut client, id) = websocket(&mut held, WEBSOCKET, &["news"]);
        held.command(&[publish("news", b"last"), records].concat());
        let name = reason.name();
        expect_end(&mut client, &[framed(TEXT_FRAME, b"last"), closing(code, name)].concat());
        assert_eq!(held.closed(id), reason);
    }
}

#[test]
fn a_client_is_asked_now_and_then_whether_it_is_there_and_is_dead_if_it_does_not_answer() {
    let mut by_hand = ByHand::new(options_with(|options| options.ping_interval_ms = 1000));
    let mut client = by_hand.connect(&upgrade("/"));
    let [(id, _)] = by_hand.asked().try_into().unwrap();
    by_hand.say(&switch(id, WEBSOCKET, &[]));
    read_now(&mut client);
    let heartbeats = |by_hand: &mut ByHand, count: usize, client: &mut _| {
        let mut all = String::new();
        for _ in 0..count {
            by_hand.turn(1000);
            for frame in read_bytes_now(client).chunks(2) {
                all.push(match frame {
                    [0x89, 0] => '?',
                    [PONG, 0] => '.',
                    _ => panic!("{frame:?}"),
                });
            }
        }
        all
    };
    let beats = heartbeats(&mut by_hand, 5, &mut client);
    assert!(beats.contains("...?"), "{beats}");
    client.write_all(&masked(PONG, b"")).unwrap();
    by_hand.turn(0);
    let beats = heartbeats(&mut by_hand, 5, &mut client);
    assert_eq!(&beats[..4], "...?");
    heartbeats(&mut by_hand, 4, &mut client);
    assert_eq!(by_hand.outbox.take(usize::MAX).0.closed, [(id, Reason::DeadPeer)]);
}

#[test]
fn nothing_is_read_while_js_has_enough_to_do() {
    let mut by_hand = ByHand::new(listening());
    let mut client = by_hand.connect(&upgrade("/"));
    let [(id, _)] = by_hand.asked().try_into().unwrap();
    by_hand.say(&switch(id, WEBSOCKET, &[]));
    read_now(&mut client);
    client.set_nonblocking(true).unwrap();
    let frame = masked(0x81, &[b'x'; 1000]);
    let mut sent = 0;
    let mut send = |by_hand: &mut ByHand| {
        for _ in 0..1000 {
            while let Ok(count) = client.write(&frame[sent % frame.len()..]) {
                sent += count;
            }
            by_hand.turn(5);
        }
        sent
    };
    let before = send(&mut by_hand);
    assert!(by_hand.outbox.is_full());
    assert_eq!(send(&mut by_hand), before, "nobody reads any more");
    let count = by_hand.outbox.take(usize::MAX).0.said.len();
    assert!((500..2000).contains(&count), "{count}");
    assert!(send(&mut by_hand) > before);
}

#[test]
fn those_that_take_longest_over_a_message_make_room_for_others() {
    const SIZE: usize = 1 << 20;
    let mut held = Held::start(options_with(|options| (options.takes_messages, options.max_message_bytes) = (true, SIZE)));
    let begin = [&[0x81, 0xff][..], &(SIZE as u64).to_be_bytes(), &[0; 4], &vec![b'x'; SIZE - 1]].concat();
    let mut clients: Vec<_> = (0..20).map(|_| websocket(&mut held, WEBSOCKET, &[])).collect();
    for (client, _) in &mut clients {
        client.write_all(&begin).unwrap();
    }
    let (_, oldest) = clients[0];
    assert_eq!(held.closed(oldest), Reason::OverCapacity);
    let (newest, id) = clients.last_mut().unwrap();
    newest.write_all(b"x").unwrap();
    let (by, text) = said(&mut held);
    assert_eq!((by, text.len()), (*id, SIZE));
}

#[test]
fn a_websocket_moves_in_a_handover_with_half_a_message() {
    let mut pair = Pair::new(ByHand::new(listening()), listening());
    let mut client = pair.giver.connect(&upgrade("/"));
    let [(id, _)] = pair.giver.asked().try_into().unwrap();
    pair.giver.say(&switch(id, WEBSOCKET, &["news"]));
    read_now(&mut client);
    let second = masked(0x80, b"two");
    client.write_all(&[masked(0x01, b"one, "), second[..4].to_vec()].concat()).unwrap();
    pair.giver.turn(0);
    pair.connect();
    assert_eq!(pair.prepare().prepared, 1);
    let [(_, after)] = pair.complete()[..] else { panic!() };
    client.write_all(&second[4..]).unwrap();
    pair.taker.turn(5);
    let said = pair.until("a message", |pair| pair.from_taker.said.pop());
    assert_eq!(said, (after, b"one, two".to_vec()));
    pair.taker.say(&publish("news", b"x"));
    pair.taker.finish();
    assert_eq!(read_bytes_now(&mut client), framed(TEXT_FRAME, b"x"));
}
