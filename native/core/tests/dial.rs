//! The dialer against a server in the test, which behaves well or badly.

mod common;

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use common::until;
use holdfast_core::dial::{self, CAUSES, COUNTS, Cause, Counters, Dialer, HISTOGRAMS, Options, Piece, Subscription, Target, Template};
use holdfast_core::telemetry::Merged;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
const WELCOME: &str = "8\r\nWelcome!\r\n";
const PING: &str = "4\r\nping\r\n";

fn opening() -> String {
    format!("{HEAD}{WELCOME}")
}

/// A server that gives its connections to the test once it has read their request.
struct Server {
    address: SocketAddr,
    accepted: Receiver<TcpStream>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (give, accepted) = channel();
        thread::spawn(move || {
            // It ends with the test, which closes the channel.
            while let Ok((mut socket, _)) = listener.accept() {
                let mut request = [0; REQUEST.len()];
                if socket.read_exact(&mut request).is_ok() {
                    assert_eq!(request, REQUEST);
                    socket.set_nodelay(true).unwrap();
                    if give.send(socket).is_err() {
                        return;
                    }
                }
            }
        });
        Server { address, accepted }
    }

    fn next(&self) -> TcpStream {
        self.accepted.recv_timeout(std::time::Duration::from_secs(20)).unwrap()
    }

    /// A dialer with one open stream, and the other end of it.
    fn with_stream(&self, change: impl FnOnce(&mut Target)) -> (Dialer, TcpStream) {
        let mut dialer = self.dialer(change);
        dialer.open(1);
        let mut socket = self.next();
        socket.write_all(opening().as_bytes()).unwrap();
        until_count("an open stream", &mut dialer, |counters| counters.count("open") == 1);
        (dialer, socket)
    }

    fn dialer(&self, change: impl FnOnce(&mut Target)) -> Dialer {
        dialer_of(&[self.address.port()], change)
    }
}

fn dialer_of(ports: &[u16], change: impl FnOnce(&mut Target)) -> Dialer {
    let mut dialer = Dialer::new(Options { connections: 100, unshare: true });
    let mut target = target_of(ports);
    change(&mut target);
    dialer.aim(target).unwrap();
    dialer
}

fn dial_server(ports: &[u16]) -> dial::Server {
    dial::Server {
        name: format!("{ports:?}").into(),
        host: "localhost".into(),
        addresses: vec![LOOPBACK],
        ports: ports.to_vec(),
        tally: Arc::default(),
        secured: None,
    }
}

fn target_of(ports: &[u16]) -> Target {
    Target {
        servers: vec![dial_server(ports)],
        sources: Vec::new(),
        format: dial::Format::Http,
        request: REQUEST.into(),
        subscription: None,
        ping_interval_ms: 0,
        idle_pings: false,
        timeout_ms: 3_600_000,
        is_strict: true,
        allows_messages: false,
        security: None,
    }
}

/// Takes counters until they are as expected, and returns the last ones. Histograms and samples before that are gone.
fn until_count(what: &str, dialer: &mut Dialer, look: impl Fn(&Counters) -> bool) -> Counters {
    until(what, || Some(dialer.take()).filter(&look))
}

/// Counters by name.
trait ByName {
    fn count(&self, name: &str) -> u64;
    fn histogram(&self, name: &str) -> &Merged;
}

impl ByName for Counters {
    fn count(&self, name: &str) -> u64 {
        self.counts[COUNTS.iter().position(|one| *one == name).unwrap()]
    }

    fn histogram(&self, name: &str) -> &Merged {
        &self.histograms[HISTOGRAMS.iter().position(|(one, _)| *one == name).unwrap()]
    }
}

fn lost(counters: &Counters, cause: Cause) -> u64 {
    counters.lost[cause as usize]
}

fn failed(counters: &Counters, cause: Cause) -> u64 {
    counters.failed[cause as usize]
}

/// A server that sends this to every client, and then closes or waits until the client does.
fn fails_with(text: &str, ends: bool, cause: Cause) -> Counters {
    let server = Server::start();
    let mut dialer = server.dialer(|_| ());
    dialer.open(1);
    let mut socket = server.next();
    socket.write_all(text.as_bytes()).unwrap();
    if ends {
        drop(socket);
    } else {
        assert_eq!(socket.read(&mut [0]).unwrap(), 0, "the client closes");
    }
    let mut samples = Vec::new();
    let counters = until("a failure", || {
        let mut counters = dialer.take();
        samples.append(&mut counters.samples);
        (counters.failed.iter().sum::<u64>() > 0).then_some(counters)
    });
    assert_eq!(
        (failed(&counters, cause), counters.count("opened"), counters.count("in_flight"), counters.count("open")),
        (1, 0, 0, 0),
        "{counters:?}"
    );
    Counters { samples, ..counters }
}

#[test]
fn streams_are_opened_and_pings_are_counted() {
    let server = Server::start();
    let (mut dialer, mut socket) = server.with_stream(|_| ());
    socket.write_all(PING.repeat(3).as_bytes()).unwrap();
    let counters = until_count("pings", &mut dialer, |counters| counters.count("pings") == 3);
    assert_eq!(counters.count("bytes") as usize, opening().len() + 3 * PING.len());
    assert_eq!((counters.count("opened"), counters.count("in_flight"), counters.count("overdue")), (1, 0, 0));
}

#[test]
fn the_time_to_connect_and_to_the_first_byte_is_measured_once_per_stream() {
    let server = Server::start();
    let mut dialer = server.dialer(|_| ());
    dialer.open(1);
    let mut socket = server.next();
    let (mut connects, mut first_bytes) = (0, 0);
    for piece in opening().as_bytes().chunks(7) {
        socket.write_all(piece).unwrap();
    }
    until("an open stream", || {
        let counters = dialer.take();
        connects += counters.histogram("connect").count;
        first_bytes += counters.histogram("first_byte").count;
        (counters.count("open") == 1).then_some(())
    });
    assert_eq!((connects, first_bytes), (1, 1));
}

#[test]
fn exactly_as_many_streams_are_opened_as_requested() {
    let server = Server::start();
    let mut dialer = server.dialer(|_| ());
    dialer.open(5);
    dialer.open(2);
    let sockets: Vec<TcpStream> = (0..7).map(|_| server.next()).collect();
    assert_eq!(dialer.take().count("in_flight"), 7);
    for mut socket in &sockets {
        socket.write_all(opening().as_bytes()).unwrap();
    }
    let counters = until_count("7 streams", &mut dialer, |counters| counters.count("open") == 7);
    assert_eq!((counters.count("opened"), counters.count("in_flight")), (7, 0));
    assert!(server.accepted.try_recv().is_err());
}

#[test]
fn streams_closed_by_us_are_neither_failed_nor_lost_and_the_server_reads_an_end() {
    let server = Server::start();
    let mut dialer = server.dialer(|_| ());
    dialer.open(5);
    let sockets: Vec<TcpStream> = (0..5)
        .map(|_| {
            let mut socket = server.next();
            socket.write_all(opening().as_bytes()).unwrap();
            socket
        })
        .collect();
    until_count("5 streams", &mut dialer, |counters| counters.count("open") == 5);
    dialer.close(3);
    assert_eq!(dialer.take().count("open"), 2, "a requested close counts at once");
    let counters = until_count("3 closed", &mut dialer, |counters| counters.count("closed") == 3);
    assert_eq!((counters.count("open"), counters.failed, counters.lost), (2, [0; CAUSES], [0; CAUSES]));
    dialer.close(100);
    until_count("all closed", &mut dialer, |counters| counters.count("closed") == 5 && counters.count("open") == 0);
    for mut socket in sockets {
        assert_eq!(socket.read(&mut [0]).unwrap(), 0);
    }
}

#[test]
fn a_port_without_a_listener_refuses() {
    let port = TcpListener::bind((LOOPBACK, 0)).unwrap().local_addr().unwrap().port();
    let mut dialer = dialer_of(&[port], |_| ());
    dialer.open(3);
    let counters = until_count("refusals", &mut dialer, |counters| failed(counters, Cause::Refused) == 3);
    assert_eq!((counters.count("in_flight"), counters.histogram("connect").count), (0, 0));
}

#[test]
fn a_source_that_is_not_an_address_of_this_machine_has_no_port() {
    let server = Server::start();
    let mut dialer = server.dialer(|target| target.sources = vec!["192.0.2.1".parse().unwrap()]);
    dialer.open(2);
    until_count("failures", &mut dialer, |counters| failed(counters, Cause::NoPort) == 2);
}

#[test]
fn streams_are_spread_over_the_servers_of_a_target_and_come_back_to_the_next_one() {
    let servers = [Server::start(), Server::start()];
    let ports = servers.each_ref().map(|server| server.address.port());
    let mut dialer = dialer_of(&ports[..1], |target| target.servers.push(dial_server(&ports[1..])));
    dialer.open(4);
    let streams: Vec<TcpStream> = servers.iter().flat_map(|server| [server.next(), server.next()]).collect();
    for mut stream in &streams {
        stream.write_all(opening().as_bytes()).unwrap();
    }
    until_count("open", &mut dialer, |counters| counters.count("open") == 4);
    drop(streams);
    let counters = until_count("lost", &mut dialer, |counters| lost(counters, Cause::Closed) == 4);
    let counts = dial::ServerCounts { open: 0, opened: 2, failed: 0, lost: 2 };
    assert_eq!(counters.servers, [counts, counts]);
    // A new aim at the same servers continues to count. One that is left out gets nothing.
    let mut target = target_of(&ports[..1]);
    target.servers[0].addresses.clear();
    target.servers.push(dial_server(&ports[1..]));
    dialer.aim(target).unwrap();
    dialer.open(4);
    let streams = [(); 4].map(|()| servers[1].next());
    for mut stream in &streams {
        stream.write_all(opening().as_bytes()).unwrap();
    }
    let counters = until_count("open again", &mut dialer, |counters| counters.count("open") == 4);
    assert_eq!(counters.servers, [counts, dial::ServerCounts { open: 4, opened: 6, ..counts }]);
    assert_eq!(counters.count("moved"), 2);
}

#[test]
fn a_target_whose_servers_are_all_left_out_is_refused() {
    let mut dialer = dialer_of(&[1], |_| {});
    let mut target = target_of(&[1]);
    target.servers[0].addresses.clear();
    assert!(dialer.aim(target).is_err());
}

#[test]
fn sources_and_ports_take_turns() {
    let servers = [Server::start(), Server::start()];
    let sources = ["127.0.0.2", "127.0.0.3"].map(|source| source.parse::<IpAddr>().unwrap());
    let mut dialer = dialer_of(&servers.each_ref().map(|server| server.address.port()), |target| target.sources = sources.to_vec());
    dialer.open(3);
    dialer.open(5);
    for server in &servers {
        let mut found: Vec<IpAddr> = (0..4).map(|_| server.next().peer_addr().unwrap().ip()).collect();
        found.sort();
        assert_eq!(found, [sources[0], sources[0], sources[1], sources[1]]);
    }
}

#[test]
fn a_stream_that_ends_before_the_welcome_has_failed_with_its_cause() {
    let status = "HTTP/1.1 404 Not Found\r\nContent-Length: 0";
    let counters = fails_with(&format!("{status}\r\n\r\n"), false, Cause::Status);
    assert_eq!(&*counters.samples[0].bytes, status.as_bytes());
    let counters = fails_with(&format!("{HEAD}4\r\nping\r\n"), false, Cause::Unexpected);
    assert_eq!((&*counters.samples[0].bytes, counters.samples[0].cause), (&b"ping"[..], Cause::Unexpected));
    fails_with("SSH-2.0", false, Cause::Unexpected);
    fails_with(&format!("{HEAD}0\r\n\r\n"), false, Cause::Closed);
    fails_with("", true, Cause::Closed);
    fails_with("HTTP/1.1 200 OK\r\n", true, Cause::Closed);
}

#[test]
fn an_attempt_ends_when_the_server_stays_silent() {
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let mut dialer = dialer_of(&[listener.local_addr().unwrap().port()], |target| target.timeout_ms = 1);
    dialer.open(2);
    until_count("timeouts", &mut dialer, |counters| failed(counters, Cause::Timeout) == 2 && counters.count("in_flight") == 0);
}

#[test]
fn an_attempt_ends_when_the_server_is_too_slow_even_if_it_keeps_sending() {
    let server = Server::start();
    let mut dialer = server.dialer(|target| target.timeout_ms = 1000);
    dialer.open(1);
    let mut socket = server.next();
    socket.write_all(b"HTTP/1.1 200 OK\r\nA: ").unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_millis(5))).unwrap();
    let slow = thread::spawn(move || while socket.read(&mut [0]).is_err() && socket.write_all(b"x").is_ok() {});
    until_count("a timeout", &mut dialer, |counters| failed(counters, Cause::Timeout) == 1 && counters.count("in_flight") == 0);
    slow.join().unwrap();
}

#[test]
fn a_stream_that_ends_is_lost_with_its_cause() {
    let server = Server::start();
    let end = |text: &str, cause: Cause| {
        let (mut dialer, mut socket) = server.with_stream(|_| ());
        socket.write_all(text.as_bytes()).unwrap();
        if text.is_empty() {
            drop(socket);
        }
        let counters = until_count("the loss", &mut dialer, |counters| lost(counters, cause) == 1);
        assert_eq!((counters.count("open"), counters.count("opened"), counters.count("closed")), (0, 1, 0));
    };
    end("", Cause::Closed);
    end("0\r\n\r\n", Cause::Closed);
    end("5\r\npings\r\n", Cause::Unexpected);
    end("7\r\nmessage\r\n", Cause::Unexpected);
}

#[test]
fn a_stream_that_is_reset_is_lost_with_that_cause() {
    let server = Server::start();
    let (mut dialer, socket) = server.with_stream(|_| ());
    rustix::net::sockopt::set_socket_linger(&socket, Some(std::time::Duration::ZERO)).unwrap();
    drop(socket);
    until_count("the loss", &mut dialer, |counters| lost(counters, Cause::Reset) == 1);
}

#[test]
fn everything_sent_before_the_end_is_read() {
    let server = Server::start();
    let (mut dialer, mut socket) = server.with_stream(|_| ());
    socket.write_all(PING.repeat(20_000).as_bytes()).unwrap();
    drop(socket);
    let counters = until_count("the loss", &mut dialer, |counters| lost(counters, Cause::Closed) == 1);
    assert_eq!(counters.count("pings"), 20_000);
}

#[test]
fn units_may_be_divided_at_every_byte() {
    let server = Server::start();
    let text = format!("{}{}", opening(), PING.repeat(3));
    let mut dialer = server.dialer(|_| ());
    for cut in 1..text.len() {
        dialer.open(1);
        let mut socket = server.next();
        let before = dialer.take().count("bytes");
        socket.write_all(&text.as_bytes()[..cut]).unwrap();
        until_count("the first part", &mut dialer, |counters| counters.count("bytes") == before + cut as u64);
        socket.write_all(&text.as_bytes()[cut..]).unwrap();
        let counters = until_count("pings", &mut dialer, |counters| counters.count("pings") == 3 * cut as u64);
        assert_eq!((counters.count("opened"), counters.failed, counters.lost), (cut as u64, [0; CAUSES], [0; CAUSES]), "cut at {cut}");
        dialer.close(1);
        assert_eq!(socket.read(&mut [0]).unwrap(), 0);
    }
}

#[test]
fn the_delivery_time_of_messages_that_contain_their_time_is_measured() {
    let server = Server::start();
    let (mut dialer, mut socket) = server.with_stream(|target| target.allows_messages = true);
    let sent_us = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64 - 3_000_000;
    let message = format!("@{sent_us} news");
    write!(socket, "{:x}\r\n{message}\r\n4\r\nnews\r\n{PING}", message.len()).unwrap();
    let mut latencies = (0, 0, 0);
    until("messages", || {
        let counters = dialer.take();
        latencies = (
            latencies.0 + counters.histogram("delivery").count,
            latencies.1 + counters.histogram("delivery").sum,
            counters.count("messages"),
        );
        (counters.count("pings") == 1).then_some(())
    });
    assert_eq!((latencies.0, latencies.2), (1, 2));
    assert!((3_000_000..63_000_000).contains(&latencies.1), "{latencies:?}");
}

#[test]
fn lateness_is_measured_from_the_first_ping_on() {
    let server = Server::start();
    let (mut dialer, mut socket) = server.with_stream(|target| target.ping_interval_ms = 50);
    socket.write_all(PING.as_bytes()).unwrap();
    let first = until_count("a ping", &mut dialer, |counters| counters.count("pings") == 1);
    assert_eq!(first.histogram("lateness").count, 0, "no ping was due before");
    until_count("an overdue ping", &mut dialer, |counters| counters.count("overdue") == 1);
    socket.write_all(PING.as_bytes()).unwrap();
    let mut late = (0, 0);
    until("the second ping", || {
        let counters = dialer.take();
        late = (late.0 + counters.histogram("lateness").count, late.1.max(counters.histogram("lateness").max));
        (counters.count("pings") == 2).then_some(())
    });
    assert!(late.1 > 50_000, "{late:?}");
    assert!(late.0 >= 2, "missed pings are recorded too: {late:?}");
}

#[test]
fn with_idle_pings_a_message_takes_the_place_of_a_ping() {
    let server = Server::start();
    let (mut dialer, mut socket) = server.with_stream(|target| {
        (target.ping_interval_ms, target.allows_messages, target.idle_pings) = (200, true, true);
    });
    socket.write_all(PING.as_bytes()).unwrap();
    until_count("a ping", &mut dialer, |counters| counters.count("pings") == 1);
    for messages in 1..=5 {
        socket.write_all(b"2\r\nhi\r\n").unwrap();
        until_count("a message", &mut dialer, |counters| counters.count("messages") == messages);
    }
    let begun = Instant::now();
    until_count("an overdue ping", &mut dialer, |counters| counters.count("overdue") == 1);
    // An overdue ping is one that is more than an interval late, and five messages stand for one ping.
    assert!(begun.elapsed() > Duration::from_millis(500), "{:?}", begun.elapsed());
}

#[test]
fn with_idle_pings_a_message_in_place_of_an_overdue_ping_is_late() {
    let server = Server::start();
    let (mut dialer, mut socket) = server.with_stream(|target| {
        (target.ping_interval_ms, target.allows_messages, target.idle_pings) = (50, true, true);
    });
    socket.write_all(PING.as_bytes()).unwrap();
    until_count("an overdue ping", &mut dialer, |counters| counters.count("overdue") == 1);
    socket.write_all(b"2\r\nhi\r\n").unwrap();
    let mut late_us = 0;
    until("a message", || {
        let counters = dialer.take();
        late_us = late_us.max(counters.histogram("lateness").max);
        (counters.count("messages") == 1).then_some(())
    });
    assert!(late_us > 50_000, "{late_us}");
}

#[test]
fn the_lateness_of_an_overdue_stream_is_recorded_when_it_ends() {
    let server = Server::start();
    let (mut dialer, mut socket) = server.with_stream(|target| target.ping_interval_ms = 10);
    socket.write_all(PING.as_bytes()).unwrap();
    until_count("an overdue ping", &mut dialer, |counters| counters.count("overdue") == 1);
    dialer.close(1);
    let mut late = 0;
    until("the end", || {
        let counters = dialer.take();
        late = late.max(counters.histogram("lateness").max);
        (counters.count("closed") == 1).then_some(())
    });
    assert!(late > 10_000, "{late}");
    until_count("no overdue ping", &mut dialer, |counters| counters.count("overdue") == 0);
}

#[test]
fn without_strictness_every_200_is_a_stream() {
    let server = Server::start();
    let mut dialer = server.dialer(|target| target.is_strict = false);
    dialer.open(1);
    let mut socket = server.next();
    socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").unwrap();
    until_count("an open stream", &mut dialer, |counters| counters.count("open") == 1);
    socket.write_all(b"anything!").unwrap();
    until_count("a read", &mut dialer, |counters| counters.count("pings") > 0);
}

#[test]
fn threads_are_started_when_needed_and_rows_are_used_again() {
    let server = Server::start();
    let mut dialer = server.dialer(|_| ());
    let can_unshare = dialer.most() > 100;
    dialer.open(250);
    let reached = if can_unshare { 250 } else { 100 };
    let mut sockets: Vec<TcpStream> = (0..reached).map(|_| server.next()).collect();
    for socket in &mut sockets {
        socket.write_all(opening().as_bytes()).unwrap();
    }
    let counters = until_count("streams", &mut dialer, |counters| counters.count("open") == reached);
    assert_eq!(failed(&counters, Cause::Descriptors), 250 - reached);
    sockets.truncate(10);
    until_count("losses", &mut dialer, |counters| counters.count("open") == 10 && lost(counters, Cause::Closed) == reached - 10);
    dialer.open(90);
    for _ in 0..90 {
        let mut socket = server.next();
        socket.write_all(opening().as_bytes()).unwrap();
        sockets.push(socket);
    }
    let counters = until_count("streams", &mut dialer, |counters| counters.count("open") == 100);
    assert_eq!((counters.count("opened"), failed(&counters, Cause::Descriptors)), (reached + 90, 250 - reached));
}

#[test]
fn without_own_descriptor_tables_there_is_one_thread_and_streams_beyond_its_room_fail() {
    let server = Server::start();
    let mut dialer = Dialer::new(Options { connections: 3, unshare: false });
    assert_eq!(dialer.most(), 3);
    dialer.aim(target_of(&[server.address.port()])).unwrap();
    dialer.open(5);
    let counters = dialer.take();
    assert_eq!((counters.count("in_flight"), failed(&counters, Cause::Descriptors)), (3, 2));
}

#[test]
fn a_new_target_is_used_for_all_streams_opened_from_then_on() {
    let (first, second) = (Server::start(), Server::start());
    let (mut dialer, _socket) = first.with_stream(|target| target.allows_messages = true);
    dialer.aim(target_of(&[second.address.port()])).unwrap();
    dialer.open(1);
    let mut strict = second.next();
    strict.write_all(format!("{}3\r\nnew\r\n", opening()).as_bytes()).unwrap();
    let counters = until_count("a loss", &mut dialer, |counters| lost(counters, Cause::Unexpected) == 1);
    assert_eq!(counters.count("open"), 1);
    assert!(first.accepted.try_recv().is_err());
}

#[test]
fn a_stopped_dialer_closes_everything_and_opens_nothing() {
    let server = Server::start();
    let (mut dialer, mut socket) = server.with_stream(|_| ());
    dialer.open(1);
    let mut asked = server.next();
    dialer.stop();
    dialer.stop();
    dialer.open(1);
    let counters = dialer.take();
    assert_eq!((counters.count("open"), counters.count("in_flight"), counters.count("closed"), counters.failed), (0, 0, 1, [0; CAUSES]));
    for socket in [&mut socket, &mut asked] {
        assert_eq!(socket.read(&mut [0]).unwrap(), 0);
    }
}

#[test]
fn a_dialer_without_a_target_opens_nothing() {
    let mut dialer = Dialer::new(Options { connections: 3, unshare: true });
    dialer.open(1);
    assert!(dialer.aim(target_of(&[])).is_err());
    assert_eq!(dialer.take().count("in_flight"), 0);
}

#[test]
fn a_million_pings_at_once_are_all_counted() {
    let server = Server::start();
    let mut dialer = server.dialer(|_| ());
    dialer.open(100);
    let mut sockets: Vec<TcpStream> = (0..100).map(|_| server.next()).collect();
    let written = Arc::new(AtomicUsize::new(0));
    for socket in &mut sockets {
        socket.write_all(opening().as_bytes()).unwrap();
    }
    for mut socket in sockets.iter().map(|socket| socket.try_clone().unwrap()) {
        let written = written.clone();
        thread::spawn(move || {
            socket.write_all(PING.repeat(10_000).as_bytes()).unwrap();
            written.fetch_add(1, SeqCst);
        });
    }
    let counters = until_count("all pings", &mut dialer, |counters| counters.count("pings") == 1_000_000);
    until("the end of writing", || (written.load(SeqCst) == 100).then_some(()));
    assert_eq!((counters.count("open"), counters.lost), (100, [0; CAUSES]));
}

#[test]
fn the_streams_of_a_thread_that_panics_are_lost_and_the_thread_starts_again() {
    let server = Server::start();
    let (mut dialer, mut open) = server.with_stream(|_| ());
    dialer.open(1);
    let mut asked = server.next();
    dialer.fail(0);
    let counters = until_count("the loss", &mut dialer, |counters| lost(counters, Cause::Other) == 1);
    assert_eq!((failed(&counters, Cause::Other), counters.count("open"), counters.count("in_flight")), (1, 0, 0));
    for socket in [&mut open, &mut asked] {
        assert_eq!(socket.read(&mut [0]).unwrap(), 0, "its sockets are closed");
    }
    dialer.open(100);
    for _ in 0..100 {
        server.next().write_all(opening().as_bytes()).unwrap();
    }
    let counters = until_count("new streams", &mut dialer, |counters| counters.count("opened") == 101);
    assert_eq!(counters.failed.iter().sum::<u64>(), 1, "it has room for as many as before");
}

#[test]
fn a_panic_in_one_thread_does_not_affect_the_others() {
    let server = Server::start();
    let mut dialer = Dialer::new(Options { connections: 1, unshare: true });
    if dialer.most() == 1 {
        return; // there is only one thread here
    }
    dialer.aim(target_of(&[server.address.port()])).unwrap();
    dialer.open(2);
    let mut sockets = [server.next(), server.next()];
    for socket in &mut sockets {
        socket.write_all(opening().as_bytes()).unwrap();
    }
    until_count("2 streams", &mut dialer, |counters| counters.count("open") == 2);
    dialer.fail(0);
    until_count("the loss", &mut dialer, |counters| lost(counters, Cause::Other) == 1);
    for socket in &mut sockets {
        // One of them is closed.
        let _ = socket.write_all(PING.as_bytes());
    }
    until_count("a ping", &mut dialer, |counters| counters.count("pings") == 1 && counters.count("open") == 1);
}

#[test]
fn streams_requested_while_a_thread_panics_are_opened_or_have_failed() {
    let server = Server::start();
    let (mut dialer, _socket) = server.with_stream(|_| ());
    dialer.fail(0);
    for _ in 0..50 {
        dialer.open(1);
    }
    let mut sockets = Vec::new();
    let counters = until("the end of all attempts", || {
        while let Ok(mut socket) = server.accepted.try_recv() {
            socket.write_all(opening().as_bytes()).unwrap();
            sockets.push(socket);
        }
        Some(dialer.take()).filter(|counters| counters.count("in_flight") == 0 && lost(counters, Cause::Other) == 1)
    });
    let opened = sockets.len() as u64;
    assert_eq!((counters.count("open"), counters.count("opened")), (opened, 1 + opened));
    assert_eq!(counters.failed.iter().sum::<u64>(), 50 - opened);
}

/// The head of the answer of a hub.
const HUB_HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

fn text(text: &str) -> Piece {
    Piece::Text(text.as_bytes().into())
}

/// `GET /room/{n%10}` with a token and a cursor.
fn subscription() -> Option<Arc<Subscription>> {
    let request =
        [text("GET /room/"), Piece::Remainder(10), text(" HTTP/1.1\r\nToken: "), Piece::Token, text("\r\n"), Piece::Cursor, text("\r\n")];
    let topics = [Template([text("room/"), Piece::Remainder(10)].into())];
    Some(Arc::new(Subscription { request: Template(request.into()), topics: topics.into(), first: 8, step: 3, is_token_shared: false }))
}

/// A publication of the fleet in an event with this id.
fn event(id: u32, number: u32, topic: &str) -> String {
    format!("id: #{id}\ndata: {{\"p\":1,\"n\":{number},\"t\":1,\"topic\":\"{topic}\"}}\n\n")
}

/// Accepts a connection, reads its request and answers.
fn accept(listener: &TcpListener, answer: &str) -> (TcpStream, String) {
    let (mut socket, _) = listener.accept().unwrap();
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        request.push(byte[0]);
    }
    socket.write_all(answer.as_bytes()).unwrap();
    (socket, String::from_utf8(request).unwrap())
}

#[test]
fn a_stream_that_is_lost_or_closed_on_purpose_comes_back_at_its_place_with_its_cursor() {
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let mut dialer = dialer_of(&[listener.local_addr().unwrap().port()], |target| target.subscription = subscription());
    dialer.set_tokens(0, vec![b"a"[..].into(), b"b"[..].into()]);
    dialer.open(2);
    let answer = |topic: &str| format!("{HUB_HEAD}id: #0\n\n{}", event(1, 7, topic));
    let (_first, request) = accept(&listener, &answer("room/8"));
    assert_eq!(request, "GET /room/8 HTTP/1.1\r\nToken: a\r\n\r\n");
    let (second, request) = accept(&listener, &answer("room/1"));
    assert_eq!(request, "GET /room/1 HTTP/1.1\r\nToken: b\r\n\r\n");
    until_count("publications", &mut dialer, |counters| counters.count("delivered") == 2);

    drop(second);
    until_count("the loss", &mut dialer, |counters| lost(counters, Cause::Closed) == 1);
    dialer.open(1);
    let (_second, request) = accept(&listener, &format!("{HUB_HEAD}{}{}", event(2, 8, "room/1"), event(3, 10, "room/1")));
    assert_eq!(request, "GET /room/1 HTTP/1.1\r\nToken: b\r\nLast-Event-ID: #1\r\n\r\n");
    let counters = until_count("more of them", &mut dialer, |counters| counters.count("delivered") == 4);
    assert_eq!((counters.count("missed"), counters.count("recovered"), counters.count("resumed")), (1, 2, 1));

    dialer.churn(2);
    let gauges = dialer.take();
    assert_eq!(gauges.count("open") + gauges.count("in_flight"), 2);
    // Which ones is left to chance, and one may be chosen twice.
    let (_sockets, again): (Vec<TcpStream>, Vec<String>) = (0..2).map(|_| accept(&listener, HUB_HEAD)).unzip();
    let expected =
        ["GET /room/8 HTTP/1.1\r\nToken: a\r\nLast-Event-ID: #1\r\n\r\n", "GET /room/1 HTTP/1.1\r\nToken: b\r\nLast-Event-ID: #3\r\n\r\n"];
    assert!(again.iter().all(|request| expected.contains(&request.as_str())), "{again:?}");
    let counters = until_count("both are back", &mut dialer, |counters| counters.count("open") == 2);
    assert_eq!((counters.count("churned"), counters.count("closed"), counters.count("resumed")), (2, 2, 3));
}

#[test]
fn churn_without_streams_and_churn_that_is_stopped_leave_nothing_behind() {
    let server = Server::start();
    let (mut dialer, _socket) = server.with_stream(|_| ());
    dialer.churn(100);
    dialer.stop();
    let counters = dialer.take();
    assert_eq!((counters.count("open"), counters.count("in_flight"), counters.count("overdue")), (0, 0, 0), "{counters:?}");
    let mut idle = server.dialer(|_| ());
    idle.churn(5);
    assert_eq!((idle.take().count("in_flight"), idle.take().count("churned")), (0, 0));
}

#[test]
fn churned_streams_of_a_thread_that_panics_are_counted_once() {
    let server = Server::start();
    let (mut dialer, _socket) = server.with_stream(|_| ());
    dialer.fail(0);
    dialer.churn(1);
    let counters = until_count("the loss", &mut dialer, |counters| counters.count("open") == 0 && counters.count("in_flight") == 0);
    assert_eq!(counters.lost.iter().sum::<u64>() + counters.count("closed") + counters.failed.iter().sum::<u64>(), 2, "{counters:?}");
}
