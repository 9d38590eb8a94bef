//! A Hold as JS sees it, and its clients over loopback.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use common::*;
use holdfast_core::Adoption;
use holdfast_core::command::Malformed;
use holdfast_core::framing::Format;
use holdfast_core::id::Id;
use holdfast_core::telemetry::Reason;

const RESPONSE: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Bytes that tell their place.
fn pattern(from: usize, size: usize) -> Vec<u8> {
    (from..from + size).map(|at| (at % 251) as u8 ^ (at >> 13) as u8).collect()
}

/// The next bytes go on with the pattern, up to `end`.
fn expect_pattern(client: &mut TcpStream, mut from: usize, end: usize) {
    let mut bytes = vec![0; 65_536];
    while from < end {
        let most = bytes.len().min(end - from);
        let count = client.read(&mut bytes[..most]).unwrap();
        assert!(count > 0, "ended at {from} of {end}");
        assert!(bytes[..count] == pattern(from, count), "differs between {from} and {}", from + count);
        from += count;
    }
}

/// Sends pieces of the pattern to a client that doesn't read, until some wait. Returns how much it was.
fn send_until_some_waits(held: &mut Held, id: Id) -> usize {
    const PIECE: usize = 65_536;
    let mut sent = 0;
    while held.backlog() == 0 {
        held.command(&send(id, &pattern(sent, PIECE)));
        sent += PIECE;
        let delivered = (sent / PIECE) as u64;
        held.until("a delivery", |held| (held.total(|figures| figures.deliveries.load(Relaxed)) >= delivered).then_some(()));
    }
    sent
}

fn opens_speaks_and_ends(unshare: bool) {
    let mut held = Held::start(options_with(|options| options.unshare = unshare));
    let (mut client, id) = held.stream(TEXT, &["news"]);
    held.command(&publish("news", b"hello", b""));
    expect(&mut client, b"hello");
    held.command(&close(id));
    expect_end(&mut client, b"");
    assert_eq!(held.closed(id), Reason::Drain);
    held.until_connections(0);
}

#[test]
fn a_head_is_asked_about_with_the_headers_that_were_asked_for() {
    let mut held = Held::start(options_with(|options| options.shard.headers = ["accept", "host", "cookie"].map(Into::into).into()));
    let mut client = ask(held.address, b"HEAD /a?b=c HTTP/1.0\r\nHost: x\r\nAccept: one\r\nX-Other: y\r\naccept: two\r\n\r\n");
    let (id, lines) = held.asked();
    assert_eq!(lines, "HEAD\n/a?b=c\n1.0\none, two\nx\n\r");
    held.command(&hold(id, TEXT, b"HTTP/1.0 200 OK\r\n\r\n", &[]));
    expect(&mut client, b"HTTP/1.0 200 OK\r\n\r\n");
    assert_eq!(held.total(|figures| figures.streams.load(Relaxed)), 1);
}

#[test]
fn a_stream_opens_speaks_and_ends_with_a_table_of_its_own() {
    opens_speaks_and_ends(true);
}

#[test]
fn a_stream_opens_speaks_and_ends_in_the_table_of_the_process() {
    assert!(!Held::start(options_with(|options| options.unshare = false)).hold.is_unshared());
    opens_speaks_and_ends(false);
}

#[test]
fn a_head_sent_a_byte_at_a_time_is_asked_about_once() {
    let mut held = Held::start(options());
    let mut client = connect(held.address);
    for byte in b"GET /slowly HTTP/1.1\r\nHost: a\r\n\r\n" {
        assert!(held.heads.is_empty());
        client.write_all(&[*byte]).unwrap();
    }
    let id = held.asked_for("/slowly");
    held.command(&[hold(id, TEXT, b"opening", &[]), send(id, b" and more")].concat());
    expect(&mut client, b"opening and more");
    assert!(held.heads.is_empty());
}

#[test]
fn a_head_that_is_none_or_comes_too_late_is_asked_about_as_the_status_to_refuse_with() {
    let mut held = Held::start(options_with(|options| options.shard.head_timeout_ms = 50));
    for (bytes, status) in
        [(&b"nonsense\r\n\r\n"[..], "400"), (b"GET / HTTP/3.0\r\n\r\n", "505"), (b"GET / HT", "408"), (&[b'x'; 9000], "431")]
    {
        let mut client = ask(held.address, bytes);
        let (id, lines) = held.asked();
        assert_eq!(lines, format!("\n{status}"));
        held.command(&refuse(id, RESPONSE));
        expect_end(&mut client, RESPONSE);
    }
}

#[test]
fn a_client_that_goes_before_its_head_is_whole_is_forgotten() {
    let mut held = Held::start(options());
    let client = ask(held.address, b"GET / HT");
    held.until_connections(1);
    drop(client);
    held.until_connections(0);
    assert!(held.heads.is_empty());
}

#[test]
fn streams_are_pinged_each_as_its_format_has_it() {
    let mut held = Held::start(options_with(|options| options.shard.ping_interval_ms = 50));
    let mut clients: Vec<TcpStream> = (0..4).map(|format| held.stream(format, &[]).0).collect();
    for (client, ping) in clients.iter_mut().zip(["\n", ":\n\n", "1\r\n\n\r\n", "3\r\n:\n\n\r\n"]) {
        expect(client, ping.repeat(3).as_bytes());
    }
    held.until("the count of pings", |held| (held.total(|figures| figures.pings.load(Relaxed)) >= 12).then_some(()));
}

#[test]
fn a_message_reaches_those_who_listen_each_as_its_format_has_it_and_nobody_else() {
    let mut held = Held::start(options());
    let mut listeners: Vec<TcpStream> = (0..4).map(|format| held.stream(format, &["news", "all"]).0).collect();
    let (mut other, _) = held.stream(TEXT, &["weather", "all"]);
    held.command(&[publish("news", b"hi", b"data: hi\n\n"), publish("nobody", b"x", b"x"), publish("all", b"end", b"end")].concat());
    let frames = ["hiend", "data: hi\n\nend", "2\r\nhi\r\n3\r\nend\r\n", "a\r\ndata: hi\n\n\r\n3\r\nend\r\n"];
    for (client, frame) in listeners.iter_mut().zip(frames) {
        expect(client, frame.as_bytes());
    }
    expect(&mut other, b"end");
    held.until("the count of deliveries", |held| (held.total(|figures| figures.deliveries.load(Relaxed)) == 9).then_some(()));
}

#[test]
fn a_message_reaches_listeners_in_every_shard() {
    let mut held = Held::start(options_with(|options| options.shards = 3));
    let mut shards = Vec::new();
    let mut clients = Vec::new();
    // The kernel shares connections out as it likes; go on until each shard has one.
    while (0..3).any(|shard| !shards.contains(&shard)) {
        let (client, id) = held.stream(TEXT, &["news"]);
        shards.push(id.shard());
        clients.push(client);
        assert!(clients.len() < 100, "only shards {shards:?} are given connections");
    }
    held.command(&publish("news", b"hello", b""));
    clients.iter_mut().for_each(|client| expect(client, b"hello"));
    held.command(&drain(0));
    clients.iter_mut().for_each(|client| expect_end(client, b""));
    held.until("the end of all three drains", |held| (held.rest.drained.len() == 3).then_some(()));
}

#[test]
fn a_message_to_an_id_reaches_that_stream_alone() {
    let mut held = Held::start(options());
    let (mut one, first) = held.stream(TEXT, &[]);
    let (mut two, second) = held.stream(CHUNKED, &[]);
    held.command(&[send(first, b"to one"), send(second, b"to two"), send(first, b"!")].concat());
    expect(&mut one, b"to one!");
    expect(&mut two, b"6\r\nto two\r\n");
}

#[test]
fn a_stream_hears_what_is_said_after_it_came_and_before_it_left() {
    let mut held = Held::start(options());
    let (mut client, id) = held.stream(TEXT, &[]);
    let say = |payload: &[u8]| publish("news", payload, b"");
    held.command(
        &[say(b"1"), subscribe(id, "news"), say(b"2"), unsubscribe(id, "news"), say(b"3"), subscribe(id, "news"), say(b"4")].concat(),
    );
    expect(&mut client, b"24");
}

#[test]
fn an_id_of_a_connection_that_has_gone_reaches_nobody_even_when_its_row_is_used_again() {
    let mut held = Held::start(options());
    let (client, old) = held.stream(TEXT, &[]);
    drop(client);
    held.closed(old);
    let mut client = ask(held.address, b"GET /new HTTP/1.1\r\nHost: a\r\n\r\n");
    let new = held.asked_for("/new");
    assert_eq!((new.shard(), new.index()), (old.shard(), old.index()), "the row is used again");
    // Neither while it is asked about, nor as a stream.
    let to_old = [send(old, b"x"), subscribe(old, "news"), publish("news", b"x", b"x"), close(old), refuse(old, b"x"), pass(old)].concat();
    held.command(&[to_old.clone(), hold(old, TEXT, b"x", &[]), hold(new, TEXT, b"opening", &[])].concat());
    held.command(&[to_old, send(Id::new(9, 0, 0), b"x"), send(Id::new(0, 77, 0), b"x"), send(new, b" and right")].concat());
    expect(&mut client, b"opening and right");
}

#[test]
fn a_second_answer_to_a_head_does_nothing() {
    let mut held = Held::start(options());
    let (mut client, id) = held.stream(TEXT, &[]);
    held.command(&[hold(id, TEXT, b"x", &[]), refuse(id, b"x"), pass(id), send(id, b"once")].concat());
    expect(&mut client, b"once");
}

#[test]
fn a_refused_client_reads_all_of_the_answer_though_much_it_sent_was_never_read() {
    let mut held = Held::start(options());
    let mut client = connect(held.address);
    let body = vec![b'x'; 200_000];
    client.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n").unwrap();
    let (id, _) = held.asked();
    held.command(&refuse(id, RESPONSE));
    client.write_all(&body).unwrap();
    expect_end(&mut client, RESPONSE);
    drop(client);
    held.until_connections(0);
    assert!(held.rest.closed.is_empty(), "it was no stream");
}

#[test]
fn a_refused_client_that_does_not_close_is_closed_after_a_while() {
    let mut held = Held::start(options());
    let mut client = ask(held.address, b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    let id = held.asked_for("/x");
    held.command(&refuse(id, RESPONSE));
    expect_end(&mut client, RESPONSE);
    assert_eq!(held.connections(), 1, "it lingers");
    held.until_connections(0);
}

#[test]
fn a_connection_is_handed_over_with_all_its_client_sent() {
    for request in [&b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"[..], b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"] {
        let mut held = Held::start(options());
        let mut client = ask(held.address, request);
        let (id, _) = held.asked();
        held.command(&pass(id));
        let shard = held.until("a connection passed on", |held| held.rest.passed.pop());
        let mut connection = TcpStream::from(held.hold.take_passed(shard).unwrap());
        connection.set_nonblocking(false).unwrap();
        expect(&mut connection, request);
        held.until_connections(0);
        connection.write_all(RESPONSE).unwrap();
        drop(connection);
        expect_end(&mut client, RESPONSE);
        assert!(held.hold.take_passed(shard).is_none() && held.hold.take_passed(200).is_none());
    }
}

#[test]
fn more_connections_are_handed_over_than_are_fetched_at_once() {
    const COUNT: usize = 150;
    let mut held = Held::start(options());
    let clients: Vec<TcpStream> = (0..COUNT).map(|_| ask(held.address, b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    for _ in &clients {
        let id = held.asked_for("/x");
        held.command(&pass(id));
    }
    let fetched: Vec<TcpStream> = clients
        .iter()
        .map(|_| {
            let shard = held.until("a connection passed on", |held| held.rest.passed.pop());
            held.hold.take_passed(shard).unwrap().into()
        })
        .collect();
    held.until_connections(0);
    let mut of_fetched: Vec<_> = fetched.iter().map(|connection| connection.peer_addr().unwrap().port()).collect();
    let mut of_clients: Vec<_> = clients.iter().map(|client| client.local_addr().unwrap().port()).collect();
    of_fetched.sort_unstable();
    of_clients.sort_unstable();
    assert_eq!(of_fetched, of_clients);
}

/// A connection that another server accepted, and its client.
fn accepted() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = connect(listener.local_addr().unwrap());
    let (server, _) = listener.accept().unwrap();
    server.set_nonblocking(true).unwrap();
    (client, server)
}

#[test]
fn an_adopted_connection_is_a_stream_like_others() {
    let mut held = Held::start(options());
    let (mut client, server) = accepted();
    let adoption = Adoption { token: 7, format: Format::from_bits(CHUNKED).unwrap(), channels: &[b"news".to_vec()] };
    held.hold.adopt(server.as_fd(), &adoption, 100).unwrap();
    drop(server);
    let (token, id) = held.until("the adoption", |held| held.rest.adopted.pop());
    let id = id.unwrap();
    held.command(&[publish("news", b"hi", b""), send(id, b"you"), close(id)].concat());
    expect_end(&mut client, b"2\r\nhi\r\n3\r\nyou\r\n0\r\n\r\n");
    assert_eq!((token, held.closed(id)), (7, Reason::Drain));
}

#[test]
fn an_adoption_for_which_there_is_no_room_is_said_to_be_none() {
    let mut held = Held::start(options_with(|options| options.shard.capacity = 1));
    let adoption = Adoption { token: 1, format: Format::default(), channels: &[] };
    let (_stream, _) = held.stream(TEXT, &[]);
    let (mut client, server) = accepted();
    assert_eq!(held.hold.adopt(server.as_fd(), &adoption, 1).unwrap_err().kind(), ErrorKind::OutOfMemory);
    let long = Adoption { token: 1, format: Format::default(), channels: &[vec![b'x'; 20_000]] };
    assert_eq!(held.hold.adopt(server.as_fd(), &long, 100).unwrap_err().kind(), ErrorKind::InvalidInput);
    held.hold.adopt(server.as_fd(), &adoption, 100).unwrap();
    drop(server);
    assert_eq!(held.until("the adoption", |held| held.rest.adopted.pop()), (1, None));
    expect_end(&mut client, b"");
}

#[test]
fn a_stream_past_capacity_is_asked_about_again_as_503() {
    let mut held = Held::start(options_with(|options| options.shard.capacity = 1));
    let (_stream, _) = held.stream(TEXT, &[]);
    let mut client = ask(held.address, b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    let id = held.asked_for("/x");
    held.command(&hold(id, TEXT, b"opening", &[]));
    assert_eq!(held.asked(), (id, "\n503".to_string()));
    held.command(&refuse(id, RESPONSE));
    expect_end(&mut client, RESPONSE);
}

#[test]
fn connections_past_the_most_wait_until_another_has_gone() {
    let mut held = Held::start(options_with(|options| options.shard.connections = 1));
    let (mut first, id) = held.stream(TEXT, &[]);
    let _second = ask(held.address, b"GET /second HTTP/1.1\r\nHost: a\r\n\r\n");
    for _ in 0..10 {
        held.command(&send(id, b"another turn"));
        expect(&mut first, b"another turn");
        assert!(held.heads.is_empty() && held.connections() == 1);
    }
    drop(first);
    held.asked_for("/second");
}

#[test]
fn what_a_slow_reader_was_not_sent_waits_and_is_complete_and_in_order_when_it_reads_again() {
    let mut held = Held::start(options());
    let (mut client, id) = held.stream(TEXT, &[]);
    for round in 0..2 {
        let before = held.total(|figures| figures.deliveries.load(Relaxed));
        let mut sent = 0;
        while held.backlog() == 0 {
            held.command(&send(id, &pattern(sent, 65_536)));
            sent += 65_536;
            let delivered = before + (sent / 65_536) as u64;
            held.until("a delivery", |held| (held.total(|figures| figures.deliveries.load(Relaxed)) >= delivered).then_some(()));
        }
        held.command(&send(id, &pattern(sent, 100_000)));
        expect_pattern(&mut client, 0, sent + 100_000);
        held.until("that nothing waits", |held| (held.backlog() == 0).then_some(()));
        held.command(&send(id, b"end"));
        expect(&mut client, b"end");
        assert!(held.rest.closed.is_empty(), "it is a stream still, after round {round}");
    }
}

#[test]
fn a_stream_with_more_waiting_than_it_may_have_is_closed_as_slow() {
    let mut held = Held::start(options_with(|options| options.shard.max_backlog_bytes = 300_000));
    let (mut client, id) = held.stream(TEXT, &[]);
    let (mut other, _) = held.stream(TEXT, &["news"]);
    let sent = send_until_some_waits(&mut held, id);
    assert!(held.rest.closed.is_empty());
    held.command(&[send(id, &pattern(sent, 300_000)), send(id, b"too much"), publish("news", b"hello", b"")].concat());
    assert_eq!(held.closed(id), Reason::Slow);
    expect(&mut other, b"hello");
    held.until("that nothing waits", |held| (held.backlog() == 0).then_some(()));
    held.until_connections(1);
    // It has what the kernel had taken, and no more.
    let mut bytes = Vec::new();
    let _ = client.read_to_end(&mut bytes);
    assert!(bytes.len() < sent && bytes == pattern(0, bytes.len()));
}

#[test]
fn an_opening_that_the_kernel_takes_only_in_part_is_complete_when_it_is_read() {
    let size = 16 << 20;
    let mut held = Held::start(options_with(|options| options.shard.max_backlog_bytes = size));
    // Once of a head that came with the first segment, and once of one that was waited for.
    for parts in [&["GET /x HTTP/1.1\r\nHost: a\r\n\r\n"][..], &["GET /x HTTP/1.1\r\n", "Host: a\r\n\r\n"]] {
        let mut client = connect(held.address);
        for part in parts {
            client.write_all(part.as_bytes()).unwrap();
            held.until_connections(1);
        }
        let id = held.asked_for("/x");
        held.command(&hold(id, TEXT, &pattern(0, size), &[]));
        held.until("that some of it waits", |held| (held.backlog() > 0).then_some(()));
        expect_pattern(&mut client, 0, size);
        held.command(&close(id));
        expect_end(&mut client, b"");
        held.until_connections(0);
    }
}

#[test]
fn a_stream_that_is_closed_with_some_waiting_still_sends_it_and_a_proper_end() {
    let mut held = Held::start(options());
    let (mut client, id) = held.stream(TEXT, &[]);
    let sent = send_until_some_waits(&mut held, id);
    held.command(&close(id));
    assert_eq!(held.closed(id), Reason::Drain);
    expect_pattern(&mut client, 0, sent);
    expect_end(&mut client, b"");
    held.until_connections(0);
    assert_eq!(held.backlog(), 0);
}

#[test]
fn the_end_of_a_stream_is_reported_with_its_reason() {
    let mut held = Held::start(options());
    let (client, gone) = held.stream(TEXT, &["news"]);
    drop(client);
    assert_eq!(held.closed(gone), Reason::ClientGone);
    let (mut client, nonsense) = held.stream(TEXT, &["news"]);
    client.write_all(b"\r\n").unwrap(); // an empty line is none yet
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(held.closed(nonsense), Reason::BadRequest);
    held.until_connections(0);
    assert_eq!(held.total(|figures| figures.streams.load(Relaxed)), 0);
    assert_eq!(held.total(|figures| figures.closed[Reason::ClientGone as usize].load(Relaxed)), 1);
    assert_eq!(held.rest.closed.len(), 2, "each once");
}

#[test]
fn ends_are_not_reported_where_nobody_asked() {
    let mut held = Held::start(options_with(|options| options.shard.reports_closes = false));
    let (client, _) = held.stream(TEXT, &[]);
    drop(client);
    held.until_connections(0);
    let (mut client, _) = held.stream(TEXT, &[]);
    held.command(&drain(0));
    expect_end(&mut client, b"");
    held.until("the end of the drain", |held| held.rest.drained.pop());
    assert!(held.rest.closed.is_empty());
}

#[test]
fn a_client_that_goes_while_it_is_asked_about_is_noticed_when_it_is_held() {
    let mut held = Held::start(options());
    let client = ask(held.address, b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    let id = held.asked_for("/x");
    drop(client);
    held.command(&hold(id, TEXT, b"opening", &["news"]));
    assert_eq!(held.closed(id), Reason::ClientGone);
    held.until_connections(0);
}

#[test]
fn a_drain_ends_streams_properly_accepts_no_more_and_says_when_it_is_over() {
    let mut held = Held::start(options());
    let (mut chunked, _) = held.stream(CHUNKED, &[]);
    let (mut plain, id) = held.stream(TEXT, &[]);
    let mut asked = ask(held.address, b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    let last = held.asked_for("/x");
    held.command(&drain(50));
    expect_end(&mut chunked, b"0\r\n\r\n");
    expect_end(&mut plain, b"");
    assert_eq!(held.closed(id), Reason::Drain);
    assert_eq!(TcpStream::connect(held.address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert!(held.rest.drained.is_empty(), "one is asked about still");
    held.command(&hold(last, TEXT, b"opening", &[]));
    assert_eq!(held.asked(), (last, "\n503".to_string()));
    held.command(&refuse(last, RESPONSE));
    expect_end(&mut asked, RESPONSE);
    drop(asked);
    assert_eq!(held.until("the end of the drain", |held| held.rest.drained.pop()), 0);
    held.until_connections(0);
}

#[test]
fn a_drain_of_nothing_is_over_at_once() {
    let mut held = Held::start(options_with(|options| options.shards = 2));
    held.command(&drain(60_000));
    held.until("the end of both drains", |held| (held.rest.drained.len() == 2).then_some(()));
}

#[test]
fn of_malformed_commands_those_before_take_effect_and_those_after_do_not() {
    let mut held = Held::start(options());
    let (mut client, id) = held.stream(TEXT, &[]);
    let records = [send(id, b"before"), vec![99], send(id, b"after")].concat();
    assert_eq!(held.hold.command(&records), Err(Malformed));
    let cut = send(id, b"cut off");
    assert_eq!(held.hold.command(&cut[..cut.len() - 1]), Err(Malformed));
    assert_eq!(held.hold.command(&[]), Ok(()));
    held.command(&send(id, b" and on"));
    expect(&mut client, b"before and on");
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let held = Held::start(options());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(held.hold.listen(taken.local_addr().unwrap()).unwrap_err().kind(), ErrorKind::AddrInUse);
}
