//! Streams over TLS, from the handshake to the end. The shard is turned by hand. What clients do with records is done by hand too;
//! `sessions` shows that rustls understands them.

mod common;

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;

use common::by_hand::ByHand;
use common::tls::*;
use common::tls_client::*;
use common::*;
use holdfast_core::command::Command;
use holdfast_core::mail::ShardMessage;
use holdfast_core::parcel::Adoption;
use holdfast_core::telemetry::Reason;
use holdfast_core::tls::{Alert, Content, Handshake, MOST_RECORDS, Progress};

const HOUR_MS: u64 = 3_600_000;

fn closed(by_hand: &mut ByHand) -> Vec<Reason> {
    let closed = (0..10).find_map(|_| {
        by_hand.turn(5);
        Some(by_hand.outbox.take(0).0.closed).filter(|closed| !closed.is_empty())
    });
    closed.unwrap_or_default().into_iter().map(|(_, reason)| reason).collect()
}

#[test]
fn a_stream_gets_its_messages_pings_and_a_proper_end_whatever_the_version_and_the_cipher() {
    let server = server_config();
    for (is_tls12, cipher) in ALL {
        let mut by_hand = ByHand::new(options());
        let (mut client, id) = stream_of(&mut by_hand, &server, client_config(is_tls12, cipher), CHUNKED);
        by_hand.say(&publish("news", b"hello"));
        assert_eq!(client.read(), "5\r\nhello\r\n");
        by_hand.turn(HOUR_MS + 20);
        assert_eq!(client.read(), "1\r\n\n\r\n");
        by_hand.say(&end(id));
        assert_eq!((client.read(), client.is_over, &client.alerts[..]), ("0\r\n\r\n".into(), true, &[0][..]), "{cipher:?}");
        assert_eq!(closed(&mut by_hand), [Reason::Drain]);
        assert_eq!(by_hand.telemetry.handshakes.load(Relaxed), 1);
    }
}

#[test]
fn a_slow_client_gets_everything_in_order_and_too_much_ends_its_stream() {
    let mut by_hand = ByHand::new(options());
    let (mut client, _) = stream(&mut by_hand, TEXT);
    let texts: Vec<String> = (0..40).map(|number| format!("{number:0>1000}")).collect();
    for text in &texts {
        by_hand.say(&publish("news", text.as_bytes()));
    }
    assert!(by_hand.telemetry.backlog_bytes.load(Relaxed) > 10_000);
    let mut read = String::new();
    while read.len() < 40_000 {
        read += &client.read();
        by_hand.turn(0);
    }
    assert_eq!(read, texts.concat());
    assert_eq!(by_hand.telemetry.backlog_bytes.load(Relaxed), 0);
    by_hand.say(&publish("news", &vec![b'x'; 2_000_000]));
    assert_eq!(closed(&mut by_hand), [Reason::Slow]);
}

#[test]
fn a_head_and_a_handshake_may_come_a_byte_at_a_time() {
    let mut by_hand = ByHand::new(options());
    let mut socket = connect_tls(&mut by_hand, &server_config());
    let mut handshake = Handshake::client(aes(), "localhost".try_into().unwrap()).unwrap();
    let (mut out, mut unread) = (Vec::new(), Vec::new());
    handshake.take_output(&mut out);
    let send = |by_hand: &mut ByHand, socket: &mut UnixStream, bytes: &[u8]| {
        for byte in bytes {
            socket.write_all(&[*byte]).unwrap();
            by_hand.turn(0);
        }
    };
    let session = 'handshake: loop {
        send(&mut by_hand, &mut socket, &std::mem::take(&mut out));
        read_all(&mut socket, &mut unread);
        while let Some(record) = next_record(&mut unread) {
            if handshake.read(&record, &mut out) == Progress::Done {
                send(&mut by_hand, &mut socket, &out);
                break 'handshake handshake.finish().unwrap();
            }
        }
    };
    let mut client = Client { session, socket, unread, alerts: Vec::new(), key_updates: 0, is_over: false };
    let mut records = Vec::new();
    for part in request("/").chunks(7) {
        client.session.seal(Content::Data, part, &mut records);
    }
    send(&mut by_hand, &mut client.socket, &records);
    let [(id, _)] = by_hand.asked().try_into().unwrap();
    // So may what it says later.
    let mut update = Vec::new();
    client.session.seal_key_update(&mut update);
    let (first, rest) = update.split_at(9);
    client.send_raw(first);
    by_hand.turn(0);
    by_hand.say(&hold(id, TEXT, &["news"]));
    client.read();
    send(&mut by_hand, &mut client.socket, rest);
    client.send(Content::Data, b"\r\n");
    by_hand.say(&publish("news", b"hello"));
    assert_eq!((client.read(), closed(&mut by_hand)), ("hello".into(), vec![]));
}

#[test]
fn keys_change_when_the_client_wants_it_before_and_after_its_stream_was_opened() {
    let mut by_hand = ByHand::new(options());
    let mut client = shake_hands(&mut by_hand, &server_config(), aes());
    let update = |client: &mut Client, wants_answer: u8| {
        // As a whole client does it: its own secret changes with what it sends.
        let mut out = Vec::new();
        client.session.seal_key_update_with(wants_answer, &mut out);
        client.send_raw(&out);
    };
    update(&mut client, 1);
    client.send(Content::Data, &request("/"));
    let [(id, _)] = by_hand.asked().try_into().unwrap();
    update(&mut client, 1);
    update(&mut client, 0);
    by_hand.say(&hold(id, TEXT, &["news"]));
    assert!(client.read().ends_with("\r\n\r\n"));
    for round in 0..5 {
        update(&mut client, 1);
        by_hand.turn(0);
        by_hand.say(&publish("news", b"hello"));
        assert_eq!((client.read(), client.key_updates), ("hello".into(), round + 3));
    }
}

#[test]
fn whatever_is_no_record_ends_the_stream_with_an_alert() {
    let server = server_config();
    type Spoil = fn(&mut Client);
    let spoiled: [(&str, Spoil, Alert, Reason); 9] = [
        ("changed", |client| client.spoil(|record| record[7] ^= 1), Alert::BadRecordMac, Reason::BadRecord),
        ("shorter than a tag", |client| client.send_raw(&[23, 3, 3, 0, 2, 1, 1]), Alert::BadRecordMac, Reason::BadRecord),
        (
            "cut",
            |client| {
                client.spoil(|record| {
                    record.pop();
                    record[4] -= 1;
                })
            },
            Alert::BadRecordMac,
            Reason::BadRecord,
        ),
        (
            "repeated",
            |client| {
                let mut out = Vec::new();
                client.session.seal(Content::Data, b"\n", &mut out);
                client.send_raw(&[&out[..], &out].concat());
            },
            Alert::BadRecordMac,
            Reason::BadRecord,
        ),
        (
            "in another order",
            |client| {
                let (mut first, mut second) = (Vec::new(), Vec::new());
                client.session.seal(Content::Data, b"\n", &mut first);
                client.session.seal(Content::Data, b"\n", &mut second);
                client.send_raw(&[second, first].concat());
            },
            Alert::BadRecordMac,
            Reason::BadRecord,
        ),
        ("too long", |client| client.send_raw(&[23, 3, 3, 0xff, 0xff]), Alert::RecordOverflow, Reason::BadRecord),
        ("no record", |client| client.send_raw(b"hello, world"), Alert::UnexpectedMessage, Reason::BadRecord),
        ("not encrypted", |client| client.send_raw(&[21, 3, 3, 0, 2, 1, 0]), Alert::UnexpectedMessage, Reason::BadRecord),
        ("a handshake", |client| client.send(Content::Handshake, &[1, 0, 0, 0]), Alert::UnexpectedMessage, Reason::BadRecord),
    ];
    for (what, spoil, alert, reason) in spoiled {
        let mut by_hand = ByHand::new(options());
        let (mut client, _) = stream_of(&mut by_hand, &server, aes(), CHUNKED);
        spoil(&mut client);
        assert_eq!(closed(&mut by_hand), [reason], "{what}");
        assert_eq!((client.read(), client.is_over, &client.alerts[..]), (String::new(), true, &[alert as u8][..]), "{what}");
    }
}

#[test]
fn a_client_that_says_something_is_refused_and_one_that_closes_or_fails_is_gone() {
    let server = server_config();
    type Say = fn(&mut Client);
    let said: [(&str, Say, &[u8], Reason); 5] = [
        ("another request", |client| client.send(Content::Data, b"GET / HTTP/1.1\r\n\r\n"), &[0], Reason::BadRequest),
        ("a long record", |client| client.send(Content::Data, &[b'\n'; 5000]), &[10], Reason::BadRequest),
        ("close_notify", |client| client.send(Content::Alert, &[1, 0]), &[0], Reason::ClientGone),
        ("a failure", |client| client.send(Content::Alert, &[2, 48]), &[], Reason::TlsAlert),
        ("the end", |client| client.socket.shutdown(std::net::Shutdown::Write).unwrap(), &[], Reason::ClientGone),
    ];
    for (what, say, alerts, reason) in said {
        let mut by_hand = ByHand::new(options());
        let (mut client, _) = stream_of(&mut by_hand, &server, aes(), CHUNKED);
        client.send(Content::Data, b"\r\n");
        client.send(Content::Data, b"");
        assert_eq!(closed(&mut by_hand), [], "empty lines and records are nothing");
        say(&mut client);
        assert_eq!(closed(&mut by_hand), [reason], "{what}");
        client.read();
        assert_eq!((&client.alerts[..], client.is_over), (alerts, true), "{what}");
    }
}

#[test]
fn a_flood_of_key_updates_is_nonsense() {
    let mut by_hand = ByHand::new(options());
    let (mut client, _) = stream(&mut by_hand, CHUNKED);
    let mut out = Vec::new();
    for _ in 0..100 {
        client.session.seal_key_update(&mut out);
    }
    client.send_raw(&out);
    assert_eq!(closed(&mut by_hand), [Reason::BadRequest]);
}

#[test]
fn http_without_tls_gets_an_answer_that_says_so_and_anything_else_an_alert() {
    let mut by_hand = ByHand::new(options());
    let mut socket = connect_tls(&mut by_hand, &server_config());
    socket.write_all(&request("/")).unwrap();
    by_hand.turn(0);
    let mut answer = Vec::new();
    assert!(read_all(&mut socket, &mut answer));
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("plain HTTP request to a TLS port"), "{answer}");
    for noise in [&b"\x80\x2e\x01\x03\x01"[..], b"ssh", &[22, 3, 1, 0, 4, 9, 9, 9, 9], b"\x16\x03\x01\x00\x01\x00SSH"] {
        let mut socket = connect_tls(&mut by_hand, &server_config());
        let (first, rest) = noise.split_at(noise.len().min(6));
        socket.write_all(first).unwrap();
        by_hand.turn(0);
        let _ = socket.write_all(rest);
        by_hand.turn(0);
        let mut answer = Vec::new();
        assert!(read_all(&mut socket, &mut answer) && !answer.starts_with(b"HTTP"), "{noise:?}");
    }
    assert_eq!(by_hand.telemetry.handshake_failures.load(Relaxed), 5);
}

#[test]
fn a_handshake_that_takes_too_long_or_too_many_bytes_is_cut() {
    let mut by_hand = ByHand::new(options());
    let mut silent = connect_tls(&mut by_hand, &server_config());
    by_hand.turn(0);
    by_hand.turn(60_000);
    by_hand.turn(1000);
    assert!(read_all(&mut silent, &mut Vec::new()));
    let mut endless = connect_tls(&mut by_hand, &server_config());
    // The first parts of a hello that would be very long.
    let first = [&[22, 3, 1, 0x40, 0, 1, 0, 0xff, 0][..], &[0; 16_380]].concat();
    for _ in 0..4 {
        let _ = endless.write_all(&first);
        by_hand.turn(0);
    }
    assert!(read_all(&mut endless, &mut Vec::new()));
    assert_eq!(by_hand.telemetry.connections.load(Relaxed), 0);
}

#[test]
fn a_client_that_comes_back_with_its_ticket_resumes() {
    let (server, config) = (server_config(), aes());
    let mut by_hand = ByHand::new(options());
    for resumed in [0, 1] {
        let mut socket = connect_tls(&mut by_hand, &server);
        let mut tls = rustls::ClientConnection::new(config.clone(), "localhost".try_into().unwrap()).unwrap();
        for _ in 0..5 {
            socket.write_all(&records_of(&mut tls)).unwrap();
            by_hand.turn(0);
            let mut bytes = Vec::new();
            read_all(&mut socket, &mut bytes);
            receive(&mut tls, &mut bytes);
        }
        assert_eq!(by_hand.telemetry.resumed.load(Relaxed), resumed);
    }
}

#[test]
fn a_request_that_is_passed_on_goes_through_a_relay_in_both_directions() {
    let mut by_hand = ByHand::new(options());
    let (mut client, id) = ask_over_tls(&mut by_hand, &server_config(), aes(), b"POST / HTTP/1.1\r\nHost: a\r\n\r\nbody");
    client.send(Content::Data, b" and more");
    by_hand.say(&pass(id));
    by_hand.turn(5);
    let [passed] = by_hand.outbox.take(0).0.passed.try_into().unwrap();
    assert!(passed.read.ends_with(b"\r\n\r\nbody") && passed.from.is_some());
    let mut inner = taken(&mut by_hand);
    let mut read = Vec::new();
    read_all(&mut inner, &mut read);
    assert_eq!(read, b" and more");
    // More than the buffers in between hold, both ways.
    let large: Vec<u8> = (0..3_000_000u32).map(|number| number as u8).collect();
    let (mut there, mut back) = (Vec::new(), Vec::new());
    let (mut to_send, mut to_answer) = (Vec::new(), &large[..]);
    client.session.seal(Content::Data, &large, &mut to_send);
    let mut to_send = &to_send[..];
    while there.len() < large.len() || back.len() < large.len() {
        to_send = &to_send[client.socket.write(to_send).unwrap_or(0)..];
        to_answer = &to_answer[inner.write(to_answer).unwrap_or(0)..];
        by_hand.turn(0);
        read_all(&mut inner, &mut there);
        back.extend(client.read_bytes());
    }
    assert!(there == large && back == large);
    client.send(Content::Alert, &[1, 0]);
    by_hand.turn(0);
    assert!(read_all(&mut inner, &mut Vec::new()), "the client says nothing more");
    inner.write_all(b"the end").unwrap();
    drop(inner);
    by_hand.turn(0);
    assert_eq!((client.read(), client.is_over, &client.alerts[..]), ("the end".into(), true, &[0][..]));
    drop(client);
    by_hand.turn(5);
    assert_eq!(by_hand.telemetry.connections.load(Relaxed), 0);
}

/// The descriptor that was passed on.
fn taken(by_hand: &mut ByHand) -> UnixStream {
    let (_, fd) = holdfast_core::parcel::receive(&by_hand.transfer, &mut [0; 8]).unwrap();
    let inner = UnixStream::from(fd.unwrap());
    inner.set_nonblocking(true).unwrap();
    inner
}

#[test]
fn a_relay_ends_with_either_side_and_what_is_no_record_ends_it() {
    let server = server_config();
    for who in 0..3 {
        let mut by_hand = ByHand::new(options());
        let (mut client, id) = ask_over_tls(&mut by_hand, &server, aes(), &request("/"));
        by_hand.say(&pass(id));
        let inner = taken(&mut by_hand);
        match who {
            0 => drop(inner),
            1 => drop(std::mem::replace(&mut client.socket, UnixStream::pair().unwrap().0)),
            _ => client.spoil(|record| record[9] ^= 1),
        }
        for _ in 0..3 {
            by_hand.turn(5);
        }
        by_hand.turn(2000);
        assert_eq!(by_hand.telemetry.connections.load(Relaxed), 0, "{who}");
    }
}

#[test]
fn a_connection_that_node_has_answered_becomes_a_stream_like_any_other() {
    let mut by_hand = ByHand::new(options());
    let (mut client, id) = ask_over_tls(&mut by_hand, &server_config(), aes(), &request("/"));
    by_hand.say(&pass(id));
    let mut inner = taken(&mut by_hand);
    inner.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let adoption =
        Adoption { token: 3, relayed: Some(id), format: Default::default(), channels: vec![b"news"[..].into()], opening: Box::default() };
    let (_unused, end) = UnixStream::pair().unwrap();
    holdfast_core::parcel::send(&by_hand.transfer, &adoption.encode(), end.as_fd()).unwrap();
    by_hand.inbox.post([ShardMessage::Command(Command::Adopt)]);
    by_hand.turn(0);
    drop(inner);
    by_hand.turn(5);
    let adopted = by_hand.outbox.take(0).0.adopted;
    assert_eq!(adopted, [(3, Some(id))], "it has the same id");
    by_hand.say(&publish("news", b"hello"));
    assert_eq!((client.read(), client.is_over), ("HTTP/1.1 200 OK\r\n\r\nhello".into(), false));
    assert_eq!(by_hand.telemetry.connections.load(Relaxed), 1);
    client.send(Content::Alert, &[1, 0]);
    assert_eq!(closed(&mut by_hand), [Reason::ClientGone]);
}

#[test]
fn a_key_that_was_used_often_is_replaced_and_where_that_is_impossible_the_stream_ends() {
    let server = server_config();
    for (is_tls12, cipher) in ALL {
        let mut by_hand = ByHand::new(options());
        let (mut client, id) = stream_of(&mut by_hand, &server, client_config(is_tls12, cipher), CHUNKED);
        by_hand.shard.session_by_hand(id).unwrap().skip_to(MOST_RECORDS - 1, 0);
        client.session.skip_to(0, MOST_RECORDS - 1);
        by_hand.say(&publish("news", b"one"));
        by_hand.say(&publish("news", b"two"));
        if is_tls12 {
            assert_eq!((client.read(), &client.alerts[..]), ("3\r\none\r\n0\r\n\r\n".into(), &[0][..]));
            assert_eq!(closed(&mut by_hand), [Reason::Expired]);
        } else {
            assert_eq!((client.read(), client.key_updates), ("3\r\none\r\n3\r\ntwo\r\n".into(), 1));
        }
    }
}

#[test]
fn a_request_that_comes_with_the_end_of_the_handshake_is_answered_in_one_write_with_the_ticket() {
    let server = server_config();
    let asked = |by_hand: &mut ByHand| {
        let client = shake_hands_and_say(by_hand, &server, aes(), &request("/"));
        let [(id, _)] = by_hand.asked().try_into().unwrap();
        (client, id)
    };
    let nothing_came = |client: &mut Client| {
        read_all(&mut client.socket, &mut client.unread);
        client.unread.is_empty()
    };
    // A stream.
    let mut by_hand = ByHand::new(options());
    let (mut client, id) = asked(&mut by_hand);
    assert!(nothing_came(&mut client), "the ticket waits for the answer");
    by_hand.say(&hold(id, TEXT, &["news"]));
    by_hand.say(&publish("news", b"hello"));
    assert!(client.read().ends_with("\r\n\r\nhello"));
    // A refusal.
    let (mut client, id) = asked(&mut by_hand);
    by_hand.say(&refuse(id, 404));
    assert!(client.read().starts_with("HTTP/1.1 404") && client.alerts == [0]);
    // A relay.
    let (mut client, id) = asked(&mut by_hand);
    by_hand.say(&pass(id));
    taken(&mut by_hand).write_all(b"from node").unwrap();
    by_hand.turn(0);
    assert_eq!(client.read(), "from node");
    // A key update before the answer.
    let (mut client, id) = asked(&mut by_hand);
    let mut update = Vec::new();
    client.session.seal_key_update_with(1, &mut update);
    client.send_raw(&update);
    by_hand.say(&hold(id, TEXT, &["news"]));
    assert_eq!((client.read().len() > HEAD.len(), client.key_updates), (true, 1));
    // No request yet: the ticket is sent at once.
    let mut client = shake_hands_and_say(&mut by_hand, &server, aes(), b"GET / HT");
    by_hand.turn(0);
    assert!(!nothing_came(&mut client));
}
