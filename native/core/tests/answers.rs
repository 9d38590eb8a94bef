//! Answers to request heads: refusals, whole responses, openings, and decisions that are remembered.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use common::*;
use holdfast_core::response::Refusal;
use holdfast_core::telemetry::Reason;

const MORE_THAN_THE_KERNEL_TAKES: usize = 16 << 20;

/// A client that JS was asked about.
fn asked_about(held: &mut Held, request: &[u8]) -> (TcpStream, holdfast_core::id::Id) {
    let client = ask(held.address, request);
    (client, held.asked().0)
}

/// The welcome that a new client of this target gets, whose head must be remembered.
fn welcome_of(address: SocketAddr, target: &str, size: usize) -> String {
    let mut client = ask(address, &request(target));
    assert_eq!(read_head(&mut client), HEAD);
    let mut welcome = vec![0; size];
    client.read_exact(&mut welcome).unwrap();
    String::from_utf8(welcome).unwrap()
}

#[test]
fn bad_heads_are_refused_without_asking_js() {
    let mut held = Held::start(options_with(|options| options.head_timeout_ms = 50));
    for (bytes, status) in [
        (&b"nonsense\r\n\r\n"[..], 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
        (b"GET / HTTP/3.0\r\n\r\n", 505),
        (b"GET / HT", 408),
        (&[b'x'; 9000], 431),
    ] {
        let before = held.refused_with(status);
        let mut client = ask(held.address, bytes);
        expect_refusal(&mut client, status);
        assert_eq!(held.refused_with(status), before + 1, "{status}");
    }
    held.until_connections(0);
    assert!(held.heads.is_empty() && held.rest.closed.is_empty());
}

#[test]
fn each_status_is_refused_with_its_headers() {
    let mut held = Held::start(options());
    for (status, line) in [(404, ""), (405, "Allow: GET, HEAD\r\n"), (503, "Retry-After: 5\r\n")] {
        let (mut client, id) = asked_about(&mut held, &request("/"));
        held.command(&refuse(id, status));
        let head = String::from_utf8(read_head(&mut client)).unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")) && head.ends_with(&format!("{line}Connection: close\r\n")), "{head}");
        assert_eq!(held.refused_with(status), 1);
    }
}

#[test]
fn a_status_that_nothing_is_refused_with_is_ignored() {
    let mut held = Held::start(options());
    let (mut client, id) = asked_about(&mut held, &request("/"));
    held.command(&[refuse(id, 200), refuse(id, 404)].concat());
    expect_refusal(&mut client, 404);
}

#[test]
fn a_refusal_of_a_head_request_has_no_body() {
    let mut held = Held::start(options());
    let (mut client, id) = asked_about(&mut held, b"HEAD /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    held.command(&refuse(id, 404));
    let head = String::from_utf8(read_head(&mut client)).unwrap();
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", Refusal::NotFound.body().len())), "that of the body to GET: {head}");
    expect_end(&mut client, b"");
}

#[test]
fn a_stream_over_capacity_is_refused_and_reported_but_not_counted_as_closed() {
    for (request, body) in [("GET / HTTP/1.1\r\n\r\n", Refusal::ServiceUnavailable.body()), ("HEAD / HTTP/1.1\r\n\r\n", "")] {
        let mut held = Held::start(options_with(|options| options.capacity = 1));
        let (_stream, _) = held.stream(TEXT, &[]);
        let (mut client, id) = asked_about(&mut held, request.as_bytes());
        held.command(&hold(id, TEXT, &[]));
        assert!(read_head(&mut client).starts_with(b"HTTP/1.1 503 "));
        expect_end(&mut client, body.as_bytes());
        assert_eq!(held.closed(id), Reason::OverCapacity);
        assert_eq!((held.closed_for(Reason::OverCapacity), held.refused_with(503)), (0, 1));
        assert_eq!(held.total(|figures| figures.opened.load(Relaxed)), 1);
    }
}

#[test]
fn when_js_takes_too_long_to_decide_the_client_gets_503_and_a_late_answer_changes_nothing() {
    let mut held = Held::start(options_with(|options| options.answer_timeout_ms = 100));
    let mut held_late = None;
    for (late, method) in [("hold", "GET"), ("refuse", "GET"), ("respond", "HEAD"), ("pass", "GET")] {
        let (mut client, id) = asked_about(&mut held, format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        assert!(read_head(&mut client).starts_with(b"HTTP/1.1 503 "), "{late}");
        held.command(&match late {
            "hold" => {
                held_late = Some(id);
                hold(id, TEXT, &["news"])
            }
            "refuse" => refuse(id, 404),
            "respond" => respond(id, NOT_FOUND, b"late"),
            _ => pass(id),
        });
        held.command(&publish("news", b"late"));
        let body = if method == "HEAD" { "" } else { Refusal::ServiceUnavailable.body() };
        expect_end(&mut client, body.as_bytes());
    }
    held.until_connections(0);
    assert_eq!((held.refused_with(503), held.refused_with(404)), (4, 0));
    assert!(held.rest.passed.is_empty());
    assert_eq!(held.rest.closed, [(held_late.unwrap(), Reason::ClientGone)], "JS believes that it is held");
}

#[test]
fn a_client_is_not_refused_while_js_still_has_time_to_decide() {
    let mut held = Held::start(options_with(|options| (options.answer_timeout_ms, options.head_timeout_ms) = (20_000, 20)));
    let (mut client, id) = asked_about(&mut held, &request("/"));
    thread::sleep(Duration::from_millis(300));
    held.command(&hold(id, TEXT, &[]));
    assert_eq!(read_head(&mut client), HEAD);
}

#[test]
fn a_refused_client_reads_the_whole_answer_even_if_much_of_what_it_sent_was_never_read() {
    let mut held = Held::start(options());
    let mut client = connect(held.address);
    let body = vec![b'x'; 200_000];
    client.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n").unwrap();
    let (id, _) = held.asked();
    held.command(&refuse(id, 405));
    client.write_all(&body).unwrap();
    expect_refusal(&mut client, 405);
    drop(client);
    held.until_connections(0);
    assert!(held.rest.closed.is_empty(), "it was not a stream");
}

#[test]
fn a_refused_client_that_does_not_close_is_closed_after_a_while() {
    let mut held = Held::start(options());
    let (mut client, id) = asked_about(&mut held, &request("/x"));
    held.command(&refuse(id, 404));
    expect_refusal(&mut client, 404);
    assert_eq!(held.connections(), 1, "it lingers");
    held.until_connections(0);
}

#[test]
fn a_whole_response_gets_a_date_and_is_the_end_of_the_connection() {
    let mut held = Held::start(options());
    for body in [&b"hello"[..], b""] {
        let (mut client, id) = asked_about(&mut held, &request("/x"));
        held.command(&respond(id, NOT_FOUND, body));
        assert_eq!(read_head(&mut client), [NOT_FOUND, CLOSE].concat());
        expect_end(&mut client, body);
    }
    held.until_connections(0);
    assert!(held.rest.closed.is_empty());
    assert_eq!((held.refused_with(404), held.total(|figures| figures.opened.load(Relaxed))), (0, 0), "it is neither");
}

#[test]
fn a_response_that_the_kernel_takes_only_in_part_arrives_whole() {
    let mut held = Held::start(options());
    let body = vec![b'x'; MORE_THAN_THE_KERNEL_TAKES];
    for with_body in [false, true] {
        let (mut client, id) = asked_about(&mut held, b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
        held.command(&respond(id, NOT_FOUND, &body));
        held.until("that some of it waits", |held| (held.backlog() > 0).then_some(()));
        if with_body {
            // What the client sends in the meantime is discarded.
            client.write_all(&[b'y'; 100_000]).unwrap();
        }
        // A request is often followed by this.
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(read_head(&mut client), [NOT_FOUND, CLOSE].concat());
        let mut found = Vec::new();
        client.read_to_end(&mut found).unwrap();
        assert!(found == body, "{} of {} bytes", found.len(), body.len());
        held.until_connections(0);
    }
    assert!(held.rest.closed.is_empty() && held.backlog() == 0);
}

#[test]
fn a_client_that_does_not_read_its_response_is_closed_after_a_while() {
    let mut held = Held::start(options());
    let (_client, id) = asked_about(&mut held, &request("/x"));
    held.command(&respond(id, NOT_FOUND, &vec![b'x'; MORE_THAN_THE_KERNEL_TAKES]));
    held.until("that some of it waits", |held| (held.backlog() > 0).then_some(()));
    held.until_connections(0);
    assert_eq!(held.backlog(), 0);
}

#[test]
fn each_stream_has_the_head_and_the_channels_of_its_opening() {
    let mut held = Held::start(options());
    let heads: [&[u8]; 2] = [b"HTTP/1.1 200 OK\r\nX-Name: one\r\n", b"HTTP/1.1 200 OK\r\nX-Name: two\r\nSet-Cookie: a\r\n"];
    let mut clients: Vec<_> = heads.iter().map(|_| asked_about(&mut held, &request("/"))).collect();
    let records = [
        opening(TEXT, heads[0], &[b"hello "], &["one"]),
        hold_so(clients[0].1),
        opening(CHUNKED, heads[1], &[b"replay"], &["two"]),
        hold_so(clients[1].1),
        publish("one", b"1"),
        publish("two", b"2"),
    ];
    held.command(&records.concat());
    for ((client, _), (head, rest)) in clients.iter_mut().zip(heads.into_iter().zip(["hello 1", "6\r\nreplay\r\n1\r\n2\r\n"])) {
        assert_eq!(read_head(client), head);
        expect(client, rest.as_bytes());
    }
}

#[test]
fn welcomes_take_turns() {
    let mut held = Held::start(options());
    let clients: Vec<_> = (0..9).map(|_| asked_about(&mut held, &request("/"))).collect();
    let holds = clients.iter().flat_map(|(_, id)| hold_so(*id));
    held.command(&opening(TEXT, HEAD, &[b"a", b"b", b"c"], &[]).into_iter().chain(holds).collect::<Vec<u8>>());
    let mut welcomes = Vec::new();
    for (mut client, _) in clients {
        assert_eq!(read_head(&mut client), HEAD);
        let mut welcome = [0];
        client.read_exact(&mut welcome).unwrap();
        welcomes.push(char::from(welcome[0]));
    }
    for welcome in ['a', 'b', 'c'] {
        assert_eq!(welcomes.iter().filter(|found| **found == welcome).count(), 3, "{welcomes:?}");
    }
}

#[test]
fn each_of_two_kinds_of_streams_that_alternate_gets_all_its_welcomes() {
    let mut held = Held::start(options());
    let mut seen = String::new();
    for round in 0..8 {
        let variants: [&[u8]; 2] = if round % 2 == 0 { [b"a", b"b"] } else { [b"c", b"d"] };
        let (mut client, id) = asked_about(&mut held, &request("/"));
        held.command(&[opening(TEXT, HEAD, &variants, &[]), hold_so(id)].concat());
        assert_eq!(read_head(&mut client), HEAD);
        let mut welcome = [0];
        client.read_exact(&mut welcome).unwrap();
        seen.push(char::from(welcome[0]));
    }
    assert!("abcd".chars().all(|welcome| seen.contains(welcome)), "{seen}");
}

#[test]
fn a_remembered_head_is_held_without_asking_js() {
    let mut held = Held::start(options());
    held.remember(opening(CHUNKED, HEAD, &[b"a", b"b"], &["news"]), "/cached");
    let mut clients: Vec<TcpStream> = (0..20).map(|_| ask(held.address, &request("/cached"))).collect();
    for client in &mut clients {
        assert_eq!(read_head(client), HEAD);
        let mut welcome = [0; 6];
        client.read_exact(&mut welcome).unwrap();
        assert!(matches!(&welcome, b"1\r\na\r\n" | b"1\r\nb\r\n"));
    }
    held.command(&publish("news", b"hi"));
    clients.iter_mut().for_each(|client| expect(client, b"2\r\nhi\r\n"));
    // Another head is asked about, and what it was asked with is not disturbed by those that were not.
    let _other = ask(held.address, &request("/cached?"));
    let mut cached = ask(held.address, &request("/cached"));
    assert_eq!(read_head(&mut cached), HEAD);
    held.asked_for("/cached?");
    assert!(held.heads.is_empty());
    assert_eq!(held.total(|figures| figures.streams.load(Relaxed)), 21);
}

#[test]
fn a_remembered_head_that_is_followed_by_more_is_held_and_what_follows_ends_it() {
    let mut held = Held::start(options());
    held.remember(opening(TEXT, HEAD, &[], &[]), "/cached");
    let mut client = ask(held.address, &[&request("/cached")[..], b"more"].concat());
    assert_eq!(read_head(&mut client), HEAD);
    held.until("its end", |held| (held.closed_for(Reason::BadRequest) == 1).then_some(()));
}

#[test]
fn a_remembered_head_over_capacity_is_refused() {
    let mut held = Held::start(options_with(|options| options.capacity = 1));
    held.remember(opening(TEXT, HEAD, &[], &[]), "/cached");
    let mut first = ask(held.address, &request("/cached"));
    assert_eq!(read_head(&mut first), HEAD);
    expect_refusal(&mut ask(held.address, &request("/cached")), 503);
    held.until("the report", |held| (held.rest.closed.len() == 1).then_some(()));
    assert_eq!(held.rest.closed[0].1, Reason::OverCapacity);
}

#[test]
fn the_oldest_remembered_head_is_forgotten_for_the_seventeenth() {
    let mut held = Held::start(options());
    for n in 0..17 {
        let welcome = format!("{n:02}");
        held.remember(opening(TEXT, HEAD, &[welcome.as_bytes()], &[]), &format!("/{n}"));
    }
    for n in 1..17 {
        assert_eq!(welcome_of(held.address, &format!("/{n}"), 2), format!("{n:02}"));
    }
    let _client = ask(held.address, &request("/0"));
    held.asked_for("/0");
}

#[test]
fn the_newest_decision_about_a_head_counts() {
    let mut held = Held::start(options());
    for welcome in ["old", "new"] {
        held.remember(opening(TEXT, HEAD, &[welcome.as_bytes()], &[]), "/x");
        assert_eq!(welcome_of(held.address, "/x", 3), welcome);
    }
    assert!(held.heads.is_empty());
}
