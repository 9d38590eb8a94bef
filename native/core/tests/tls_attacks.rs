//! What an attacker may try with TLS. The shard is turned by hand.

mod common;

use std::io::Write;
use std::net::Shutdown;
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
use holdfast_core::tls::{Content, Handshake};

/// The end that node:http has.
fn taken(by_hand: &mut ByHand) -> UnixStream {
    let (_, fd) = holdfast_core::parcel::receive(&by_hand.transfer, &mut [0; 8]).unwrap();
    let inner = UnixStream::from(fd.unwrap());
    inner.set_nonblocking(true).unwrap();
    inner
}

#[test]
fn a_hello_in_very_many_records_is_refused() {
    let mut by_hand = ByHand::new(options());
    let mut socket = connect_tls(&mut by_hand, &server_config());
    // A hello of 253 bytes, one in each record.
    let hello = [&[1, 0, 0, 249][..], &[0; 249]].concat();
    let records: Vec<u8> = hello.iter().flat_map(|byte| [22, 3, 1, 0, 1, *byte]).collect();
    socket.write_all(&records).unwrap();
    by_hand.turn(0);
    // Rather than an alert about the hello.
    let mut answer = Vec::new();
    read_all(&mut socket, &mut answer);
    assert!(answer.is_empty(), "{answer:?}");
    assert_eq!(by_hand.telemetry.connections.load(Relaxed), 0);
    assert_eq!(by_hand.telemetry.handshake_failures.load(Relaxed), 1);
}

#[test]
fn records_that_say_nothing_before_the_head_are_limited_however_they_come() {
    for at_once in [true, false] {
        let mut by_hand = ByHand::new(options());
        let mut client = shake_hands(&mut by_hand, &server_config(), aes());
        by_hand.turn(0);
        let mut out = Vec::new();
        for _ in 0..40 {
            client.session.seal_key_update_with(u8::from(!at_once), &mut out);
            if !at_once {
                let _ = client.socket.write(&std::mem::take(&mut out));
                by_hand.turn(0);
                client.read();
            }
        }
        let _ = client.socket.write(&out);
        by_hand.turn(0);
        client.read();
        let answered = if at_once { 0 } else { 32 };
        assert_eq!((client.key_updates, &client.alerts[..], client.is_over), (answered, &[10][..], true), "at once: {at_once}");
    }
}

#[test]
fn what_is_not_decrypted_counts_with_the_heads_that_come_in_pieces() {
    const MOST: usize = 16 << 20;
    const EACH: usize = 16_000;
    let mut by_hand = ByHand::new(options_with(|options| options.connection_limit = 3000));
    let server = server_config();
    let part = [&[22, 3, 1, 0x40, 0][..], &[0; EACH - 5]].concat();
    let sockets: Vec<UnixStream> = (0..MOST / EACH + 100)
        .map(|_| {
            let mut socket = connect_tls(&mut by_hand, &server);
            socket.write_all(&part).unwrap();
            by_hand.shard.turn_by_hand(0);
            socket
        })
        .collect();
    by_hand.turn(0);
    let left = by_hand.telemetry.connections.load(Relaxed) as usize;
    assert!(left * EACH <= MOST && left > sockets.len() - 200, "{left} of {}", sockets.len());
}

#[test]
fn too_many_handshakes_cut_the_oldest_one_and_nobody_else() {
    const MOST: usize = 4096;
    let change = |options: &mut holdfast_core::Options| (options.connection_limit, options.max_heads_per_address) = (6000, 6000);
    let mut by_hand = ByHand::new(options_with(change));
    let server = server_config();
    let honest = shake_hands(&mut by_hand, &server, aes());
    by_hand.turn(0);
    let mut sockets: Vec<UnixStream> = (0..MOST).map(|_| connect_tls(&mut by_hand, &server)).collect();
    by_hand.turn(1000);
    sockets.extend((0..50).map(|_| connect_tls(&mut by_hand, &server)));
    by_hand.turn(0);
    assert_eq!(by_hand.telemetry.connections.load(Relaxed) as usize, MOST + 1);
    assert!(read_all(&mut sockets[49], &mut Vec::new()) && !read_all(&mut sockets[50], &mut Vec::new()));
    assert!(!read_all(&mut { honest.socket }, &mut Vec::new()), "it is no handshake any more");
}

#[test]
fn a_relay_whose_node_has_closed_does_not_wait_forever_for_a_client_that_does_not_read() {
    let mut by_hand = ByHand::new(options());
    let (mut client, id) = ask_over_tls(&mut by_hand, &server_config(), aes(), &request("/"));
    by_hand.say(&pass(id));
    let mut inner = taken(&mut by_hand);
    inner.write_all(&[b'x'; 50_000]).unwrap();
    drop(inner);
    by_hand.turn(0);
    by_hand.turn(15_000);
    // It reads a little, and that is enough for once.
    read_all(&mut client.socket, &mut Vec::new());
    by_hand.turn(0);
    by_hand.turn(15_000);
    assert_eq!(by_hand.telemetry.connections.load(Relaxed), 1);
    by_hand.turn(10_000);
    assert_eq!(by_hand.telemetry.connections.load(Relaxed), 0);
}

#[test]
fn a_client_that_has_closed_before_its_response_was_adopted_is_gone() {
    let mut by_hand = ByHand::new(options());
    let (mut client, id) = ask_over_tls(&mut by_hand, &server_config(), aes(), &request("/"));
    by_hand.say(&pass(id));
    let mut inner = taken(&mut by_hand);
    client.send(Content::Alert, &[1, 0]);
    by_hand.turn(0);
    inner.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let adoption =
        Adoption { token: 3, relayed: Some(id), format: Default::default(), channels: vec![b"news"[..].into()], opening: Box::default() };
    let (_unused, end) = UnixStream::pair().unwrap();
    holdfast_core::parcel::send(&by_hand.transfer, &adoption.encode(), end.as_fd()).unwrap();
    by_hand.inbox.post([ShardMessage::Command(Command::Adopt)]);
    by_hand.turn(5);
    by_hand.turn(5);
    let events = by_hand.outbox.take(0).0;
    assert_eq!((events.adopted, events.closed), (vec![(3, Some(id))], vec![(id, Reason::ClientGone)]), "what has ended has begun");
    assert_eq!(client.read(), "HTTP/1.1 200 OK\r\n\r\n");
}

#[test]
fn a_client_that_has_left_before_its_hello_was_read_costs_no_handshake() {
    for leaves in [false, true] {
        let mut by_hand = ByHand::new(options());
        let mut socket = connect_tls(&mut by_hand, &server_config());
        let mut handshake = Handshake::client(aes(), "localhost".try_into().unwrap()).unwrap();
        let mut hello = Vec::new();
        handshake.take_output(&mut hello);
        socket.write_all(&hello).unwrap();
        if leaves {
            socket.shutdown(Shutdown::Write).unwrap();
        }
        by_hand.turn(0);
        let mut answer = Vec::new();
        read_all(&mut socket, &mut answer);
        assert_eq!(answer.is_empty(), leaves);
        assert_eq!(by_hand.telemetry.handshake_failures.load(Relaxed), u64::from(leaves));
    }
}
