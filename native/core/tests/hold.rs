//! A Hold as JS sees it, and its clients over loopback.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use common::*;
use holdfast_core::framing::Format;
use holdfast_core::id::Id;
use holdfast_core::parcel::Adoption;
use holdfast_core::telemetry::Reason;
use holdfast_core::wire::Malformed;

const FORMATS: [u8; 4] = [TEXT, EVENTS, CHUNKED, CHUNKED_EVENTS];

/// Bytes that show their position.
fn pattern(from: usize, size: usize) -> Vec<u8> {
    (from..from + size).map(|at| (at % 251) as u8 ^ (at >> 13) as u8).collect()
}

/// The next bytes continue the pattern, up to `end`.
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

/// Sends pieces of the pattern to a client that doesn't read, until some have to wait. Returns the size of all.
fn send_until_some_waits(held: &mut Held, id: Id) -> usize {
    const PIECE: usize = 65_536;
    let before = held.deliveries();
    let mut sent = 0;
    while held.backlog() == 0 {
        held.command(&send(id, &pattern(sent, PIECE)));
        sent += PIECE;
        let delivered = before + (sent / PIECE) as u64;
        held.until("a delivery", |held| (held.deliveries() >= delivered).then_some(()));
    }
    sent
}

fn opens_speaks_and_ends(own_tables: bool) {
    let mut held = Held::start(options_with(|options| options.own_tables = own_tables));
    let (mut client, id) = held.stream(TEXT, &["news"]);
    held.command(&publish("news", b"hello"));
    expect(&mut client, b"hello");
    held.command(&end(id));
    expect_end(&mut client, b"");
    assert_eq!(held.closed(id), Reason::Drain);
    held.until_connections(0);
}

#[test]
fn a_head_is_asked_about_with_the_headers_that_were_asked_for() {
    let mut held = Held::start(options_with(|options| options.headers = ["accept", "host", "cookie"].map(Into::into).into()));
    let mut client = ask(held.address, b"HEAD /a?b=c HTTP/1.0\r\nHost: x\r\nAccept: one\r\nX-Other: y\r\naccept: two\r\n\r\n");
    let (id, lines) = held.asked();
    assert_eq!(lines, "HEAD\n/a?b=c\n1.0\none, two\nx\n\r");
    held.command(&hold(id, TEXT, &[]));
    assert_eq!(read_head(&mut client), HEAD);
    assert_eq!(held.total(|figures| figures.streams.load(Relaxed)), 1);
}

#[test]
fn a_stream_opens_speaks_and_ends_with_a_table_of_its_own() {
    opens_speaks_and_ends(true);
}

#[test]
fn a_stream_opens_speaks_and_ends_in_the_table_of_the_process() {
    assert!(!Held::start(options_with(|options| options.own_tables = false)).hold.has_own_tables());
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
    held.command(&[hold(id, TEXT, &[]), send(id, b"hello")].concat());
    assert_eq!(read_head(&mut client), HEAD);
    expect(&mut client, b"hello");
    assert!(held.heads.is_empty());
}

#[test]
fn a_client_that_leaves_before_its_head_is_complete_is_forgotten() {
    let mut held = Held::start(options());
    let client = ask(held.address, b"GET / HT");
    held.until_connections(1);
    drop(client);
    held.until_connections(0);
    assert!(held.heads.is_empty());
}

#[test]
fn streams_are_pinged_each_in_its_format() {
    let mut held = Held::start(options_with(|options| options.ping_interval_ms = 50));
    let mut clients = FORMATS.map(|format| held.stream(format, &[]).0);
    for (client, ping) in clients.iter_mut().zip(["\n", ":\n\n", "1\r\n\n\r\n", "3\r\n:\n\n\r\n"]) {
        expect(client, ping.repeat(3).as_bytes());
    }
    held.until("the count of pings", |held| (held.total(|figures| figures.pings.load(Relaxed)) >= 12).then_some(()));
}

#[test]
fn a_message_reaches_its_subscribers_each_in_its_format_and_nobody_else() {
    let mut held = Held::start(options());
    let mut listeners = FORMATS.map(|format| held.stream(format, &["news", "all"]).0);
    let (mut other, _) = held.stream(TEXT, &["weather", "all"]);
    held.command(&[publish("news", b"hi"), publish("nobody", b"x"), publish("all", b"end")].concat());
    let frames = ["hiend", "data: hi\n\ndata: end\n\n", "2\r\nhi\r\n3\r\nend\r\n", "a\r\ndata: hi\n\n\r\nb\r\ndata: end\n\n\r\n"];
    for (client, frame) in listeners.iter_mut().zip(frames) {
        expect(client, frame.as_bytes());
    }
    expect(&mut other, b"end");
    held.until("the count of deliveries", |held| (held.deliveries() == 9).then_some(()));
}

#[test]
fn an_event_has_its_id_and_type_and_a_text_does_not() {
    let mut held = Held::start(options());
    let mut listeners = FORMATS.map(|format| held.stream(format, &["news"]).0);
    held.command(&publish_event("news", "7", "score", b"1\n2"));
    let event = "event: score\nid: 7\ndata: 1\ndata: 2\n\n";
    let frames = ["1\n2".into(), event.to_string(), "3\r\n1\n2\r\n".into(), format!("{:x}\r\n{event}\r\n", event.len())];
    for (client, frame) in listeners.iter_mut().zip(frames) {
        expect(client, frame.as_bytes());
    }
}

#[test]
fn an_empty_message_does_not_end_a_chunked_stream() {
    let mut held = Held::start(options());
    let (mut client, id) = held.stream(CHUNKED, &[]);
    held.command(&[send(id, b""), send(id, b"x"), end(id)].concat());
    expect_end(&mut client, b"1\r\nx\r\n0\r\n\r\n");
}

#[test]
fn a_message_reaches_listeners_in_every_shard() {
    let mut held = Held::start(options_with(|options| options.shards = 3));
    let mut shards = Vec::new();
    let mut clients = Vec::new();
    // The kernel distributes connections as it likes: go on until each shard has one.
    while (0..3).any(|shard| !shards.contains(&shard)) {
        let (client, id) = held.stream(TEXT, &["news"]);
        shards.push(id.shard());
        clients.push(client);
        assert!(clients.len() < 100, "only shards {shards:?} get connections");
    }
    held.command(&publish("news", b"hello"));
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
fn a_stream_gets_what_is_published_while_it_subscribes() {
    let mut held = Held::start(options());
    let (mut client, id) = held.stream(TEXT, &[]);
    let say = |data: &[u8]| publish("news", data);
    held.command(
        &[say(b"1"), subscribe(id, "news"), say(b"2"), unsubscribe(id, "news"), say(b"3"), subscribe(id, "news"), say(b"4")].concat(),
    );
    expect(&mut client, b"24");
}

#[test]
fn an_id_of_a_connection_that_is_gone_reaches_nobody_even_when_its_row_is_used_again() {
    let mut held = Held::start(options());
    let (client, old) = held.stream(TEXT, &[]);
    drop(client);
    held.closed(old);
    let mut client = ask(held.address, &request("/new"));
    let new = held.asked_for("/new");
    assert_eq!((new.shard(), new.index()), (old.shard(), old.index()), "the row is used again");
    // Neither while it is asked about, nor as a stream.
    let to_old = [
        send(old, b"x"),
        subscribe(old, "news"),
        publish("news", b"x"),
        end(old),
        refuse(old, 404),
        respond(old, NOT_FOUND, b"x"),
        pass(old),
        hold(old, TEXT, &[]),
    ]
    .concat();
    held.command(&[&to_old[..], &hold(new, TEXT, &[])].concat());
    held.command(&[to_old, send(Id::new(9, 0, 0), b"x"), send(Id::new(0, 77, 0), b"x"), send(new, b"right")].concat());
    assert_eq!(read_head(&mut client), HEAD);
    expect(&mut client, b"right");
}

#[test]
fn a_second_answer_to_a_head_does_nothing() {
    let mut held = Held::start(options());
    let (mut client, id) = held.stream(TEXT, &[]);
    held.command(&[hold(id, TEXT, &[]), refuse(id, 404), respond(id, NOT_FOUND, b"x"), pass(id), send(id, b"once")].concat());
    expect(&mut client, b"once");
    assert_eq!(held.refused_with(404), 0);
}

#[test]
fn a_connection_is_passed_on_with_everything_its_client_sent() {
    for request in [&b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"[..], b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"] {
        let mut held = Held::start(options());
        let mut client = ask(held.address, request);
        let (id, _) = held.asked();
        held.command(&pass(id));
        let passed = held.until("a connection passed on", |held| held.rest.passed.pop());
        assert_eq!((passed.id, passed.read.len()), (id, 0), "it was only peeked at");
        let mut connection = TcpStream::from(held.hold.take_passed(id).unwrap());
        connection.set_nonblocking(false).unwrap();
        expect(&mut connection, request);
        held.until_connections(0);
        connection.write_all(b"answer").unwrap();
        drop(connection);
        expect_end(&mut client, b"answer");
        assert!(held.hold.take_passed(id).is_none() && held.hold.take_passed(Id::new(200, 0, 1)).is_none());
    }
}

#[test]
fn many_connections_are_passed_on_before_the_first_is_fetched() {
    const COUNT: usize = 150;
    let mut held = Held::start(options());
    let clients: Vec<TcpStream> = (0..COUNT).map(|_| ask(held.address, &request("/x"))).collect();
    for _ in &clients {
        let id = held.asked_for("/x");
        held.command(&pass(id));
    }
    let fetched: Vec<TcpStream> = clients
        .iter()
        .map(|_| {
            let passed = held.until("a connection passed on", |held| (!held.rest.passed.is_empty()).then(|| held.rest.passed.remove(0)));
            held.hold.take_passed(passed.id).unwrap().into()
        })
        .collect();
    held.until_connections(0);
    let mut of_fetched: Vec<_> = fetched.iter().map(|connection| connection.peer_addr().unwrap().port()).collect();
    let mut of_clients: Vec<_> = clients.iter().map(|client| client.local_addr().unwrap().port()).collect();
    of_fetched.sort_unstable();
    of_clients.sort_unstable();
    assert_eq!(of_fetched, of_clients);
}

fn adoption(token: u32, format: u8, channels: &[&str]) -> Adoption {
    let channels = channels.iter().map(|channel| channel.as_bytes().into()).collect();
    Adoption { token, relayed: None, format: Format::from_byte(format).unwrap(), channels, opening: Box::default() }
}

#[test]
fn an_adopted_connection_is_a_stream_like_others_in_each_format() {
    let mut held = Held::start(options());
    let frames =
        ["hiyou", "data: hi\n\ndata: you\n\n", "2\r\nhi\r\n3\r\nyou\r\n0\r\n\r\n", "a\r\ndata: hi\n\n\r\nb\r\ndata: you\n\n\r\n0\r\n\r\n"];
    for (token, (format, frames)) in FORMATS.into_iter().zip(frames).enumerate() {
        let (mut client, server) = accepted();
        held.hold.adopt(server.as_fd(), &adoption(token as u32, format, &["news", "other"])).unwrap();
        drop(server);
        let (adopted, id) = held.until("the adoption", |held| held.rest.adopted.pop());
        let id = id.unwrap();
        held.command(&[publish("news", b"hi"), send(id, b"you"), end(id)].concat());
        expect_end(&mut client, frames.as_bytes());
        assert_eq!((adopted, held.closed(id)), (token as u32, Reason::Drain));
    }
}

#[test]
fn an_adopted_connection_gets_what_is_published_after_its_adoption_was_reported() {
    let mut held = Held::start(options());
    let (mut client, server) = accepted();
    held.command(&publish("news", b"before"));
    held.hold.adopt(server.as_fd(), &adoption(1, TEXT, &["news"])).unwrap();
    held.until("the adoption", |held| held.rest.adopted.pop());
    held.command(&publish("news", b"after"));
    let mut heard = String::new();
    while !heard.ends_with("after") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        heard.push(char::from(byte[0]));
    }
}

#[test]
fn an_adoption_for_which_no_shard_has_room_is_an_error() {
    let mut held = Held::start(options_with(|options| options.capacity = 1));
    let (_stream, _) = held.stream(TEXT, &[]);
    let (_client, server) = accepted();
    assert_eq!(held.hold.adopt(server.as_fd(), &adoption(1, TEXT, &[])).unwrap_err().kind(), ErrorKind::OutOfMemory);
}

#[test]
fn an_adoption_with_a_record_that_is_too_long_is_an_error() {
    let held = Held::start(options());
    let (_client, server) = accepted();
    let long = adoption(1, TEXT, &[&"x".repeat(20_000)]);
    assert_eq!(held.hold.adopt(server.as_fd(), &long).unwrap_err().kind(), ErrorKind::InvalidInput);
    let many = adoption(1, TEXT, &["x"; 70_000]);
    assert_eq!(held.hold.adopt(server.as_fd(), &many).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn an_adoption_during_a_drain_is_reported_as_failed_and_its_client_sees_the_end() {
    let mut held = Held::start(options());
    let _asked = ask(held.address, &request("/x"));
    held.asked_for("/x");
    held.command(&drain(0));
    until("the end of listening", || TcpStream::connect(held.address).is_err().then_some(()));
    let (mut client, server) = accepted();
    held.hold.adopt(server.as_fd(), &adoption(1, TEXT, &[])).unwrap();
    drop(server);
    assert_eq!(held.until("the adoption", |held| held.rest.adopted.pop()), (1, None));
    expect_end(&mut client, b"");
}

#[test]
fn connections_over_the_limit_wait_until_another_is_gone() {
    let mut held = Held::start(options_with(|options| options.connection_limit = 1));
    let (mut first, id) = held.stream(TEXT, &[]);
    let _second = ask(held.address, &request("/second"));
    for _ in 0..10 {
        held.command(&send(id, b"another turn"));
        expect(&mut first, b"another turn");
        assert!(held.heads.is_empty() && held.connections() == 1);
    }
    drop(first);
    held.asked_for("/second");
}

#[test]
fn what_a_slow_reader_was_not_sent_waits_and_arrives_in_order_when_it_reads_again() {
    let mut held = Held::start(options());
    let (mut client, id) = held.stream(TEXT, &[]);
    for round in 0..2 {
        let sent = send_until_some_waits(&mut held, id);
        held.command(&send(id, &pattern(sent, 100_000)));
        expect_pattern(&mut client, 0, sent + 100_000);
        held.until("that nothing waits", |held| (held.backlog() == 0).then_some(()));
        held.command(&send(id, b"end"));
        expect(&mut client, b"end");
        assert!(held.rest.closed.is_empty(), "it is still a stream after round {round}");
    }
}

#[test]
fn a_stream_with_too_large_a_backlog_is_closed_as_slow() {
    let mut held = Held::start(options_with(|options| options.max_backlog_bytes = 300_000));
    let (mut client, id) = held.stream(TEXT, &[]);
    let (mut other, _) = held.stream(TEXT, &["news"]);
    let sent = send_until_some_waits(&mut held, id);
    assert!(held.rest.closed.is_empty());
    held.command(&[send(id, &pattern(sent, 300_000)), send(id, b"too much"), publish("news", b"hello")].concat());
    assert_eq!(held.closed(id), Reason::Slow);
    expect(&mut other, b"hello");
    held.until("that nothing waits", |held| (held.backlog() == 0).then_some(()));
    held.until_connections(1);
    // It got what the kernel had taken, and no more.
    let mut bytes = Vec::new();
    let _ = client.read_to_end(&mut bytes);
    assert!(bytes.len() < sent && bytes == pattern(0, bytes.len()));
}

#[test]
fn a_welcome_that_the_kernel_takes_only_in_part_arrives_whole() {
    let size = 16 << 20;
    let mut held = Held::start(options_with(|options| options.max_backlog_bytes = size));
    // Once for a head that came in the first segment, and once for one that came in two.
    for parts in [&["GET /x HTTP/1.1\r\nHost: a\r\n\r\n"][..], &["GET /x HTTP/1.1\r\n", "Host: a\r\n\r\n"]] {
        let mut client = connect(held.address);
        for part in parts {
            client.write_all(part.as_bytes()).unwrap();
            held.until_connections(1);
        }
        let id = held.asked_for("/x");
        held.command(&[opening(TEXT, HEAD, &[&pattern(0, size)], &[]), hold_so(id)].concat());
        held.until("that some of it waits", |held| (held.backlog() > 0).then_some(()));
        assert_eq!(read_head(&mut client), HEAD);
        expect_pattern(&mut client, 0, size);
        held.command(&end(id));
        expect_end(&mut client, b"");
        held.until_connections(0);
    }
}

#[test]
fn a_stream_that_ends_with_a_backlog_still_sends_it_and_a_proper_end() {
    let mut held = Held::start(options());
    let (mut client, id) = held.stream(TEXT, &[]);
    let sent = send_until_some_waits(&mut held, id);
    held.command(&end(id));
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
    client.write_all(b"\r\n").unwrap(); // an empty line is not a request
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(held.closed(nonsense), Reason::BadRequest);
    held.until_connections(0);
    assert_eq!(held.total(|figures| figures.streams.load(Relaxed)), 0);
    assert_eq!(held.closed_for(Reason::ClientGone), 1);
    assert_eq!(held.rest.closed.len(), 2, "each once");
}

#[test]
fn a_client_that_leaves_while_js_decides_is_noticed_when_it_is_held() {
    let mut held = Held::start(options());
    let client = ask(held.address, &request("/x"));
    let id = held.asked_for("/x");
    drop(client);
    held.command(&hold(id, TEXT, &["news"]));
    assert_eq!(held.closed(id), Reason::ClientGone);
    held.until_connections(0);
}

#[test]
fn a_drain_ends_streams_properly_accepts_no_more_and_reports_its_end() {
    let mut held = Held::start(options());
    let (mut chunked, _) = held.stream(CHUNKED, &[]);
    let (mut plain, id) = held.stream(TEXT, &[]);
    let mut asked = ask(held.address, &request("/x"));
    let last = held.asked_for("/x");
    held.command(&drain(50));
    expect_end(&mut chunked, b"0\r\n\r\n");
    expect_end(&mut plain, b"");
    assert_eq!(held.closed(id), Reason::Drain);
    assert_eq!(TcpStream::connect(held.address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert!(held.rest.drained.is_empty(), "JS still decides about one");
    held.command(&hold(last, TEXT, &[]));
    expect_refusal(&mut asked, 503);
    assert_eq!(held.closed(last), Reason::OverCapacity);
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
fn records_before_a_malformed_one_take_effect_and_those_after_it_do_not() {
    let mut held = Held::start(options());
    let (mut client, id) = held.stream(TEXT, &[]);
    let records = [send(id, b"before"), vec![99], send(id, b"after")].concat();
    assert_eq!(held.hold.command(&records, true), Err(Malformed));
    let cut = send(id, b"cut off");
    assert_eq!(held.hold.command(&cut[..cut.len() - 1], true), Err(Malformed));
    assert_eq!(held.hold.command(&[], true), Ok(()));
    held.command(&send(id, b" and on"));
    expect(&mut client, b"before and on");
}

#[test]
fn every_shard_reports_the_channels_that_most_streams_are_on() {
    let mut held = Held::start(options_with(|options| options.shards = 2));
    let clients: Vec<_> =
        (0..6).map(|number| held.stream(TEXT, if number < 4 { &["news", "rare"][..number % 2 + 1] } else { &["news"] })).collect();
    held.hold.count_channels(7, 1);
    held.until("both shards", |held| (held.rest.counted.len() == 2).then_some(()));
    let counted = &held.rest.counted;
    let sizes = counted.iter().flat_map(|one| one.channels.iter().map(|(streams, name)| (one.token, *streams, &name[..])));
    assert!(sizes.clone().all(|(token, _, name)| (token, name) == (7, b"news")), "{counted:?}");
    assert_eq!(sizes.map(|(_, streams, _)| streams).sum::<u32>(), clients.len() as u32);
}
