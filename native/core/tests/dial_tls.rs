//! The dialer against a TLS server in the test, which behaves well or badly.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use common::until;
use holdfast_core::dial::{self, COUNTS, Cause, Counters, Dialer, HISTOGRAMS, Options, Security, Target};
use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{AlertDescription, CipherSuite, Error, ServerConfig, ServerConnection, SupportedProtocolVersion};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
const WELCOME: &str = "8\r\nWelcome!\r\n";
const PING: &str = "4\r\nping\r\n";
const END: &str = "0\r\n\r\n";
const EVERY_VERSION: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];

/// A server for `localhost` that gives its connections to the test once it has read their request.
struct Server {
    address: SocketAddr,
    accepted: Receiver<Stream>,
    certificate: String,
}

/// One of them.
struct Stream {
    socket: TcpStream,
    tls: ServerConnection,
}

impl Server {
    fn start() -> Self {
        Server::with(EVERY_VERSION, None)
    }

    fn with(versions: &[&'static SupportedProtocolVersion], suite: Option<CipherSuite>) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        let pem = certificate.pem();
        let config = Arc::new(config_of(certificate.der(), &key, versions, suite));
        let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (give, accepted) = channel();
        thread::spawn(move || {
            // It ends with the test, which closes the channel.
            while let Ok((socket, _)) = listener.accept() {
                socket.set_nodelay(true).unwrap();
                let mut stream = Stream { socket, tls: ServerConnection::new(config.clone()).unwrap() };
                if stream.takes_request() && give.send(stream).is_err() {
                    return;
                }
            }
        });
        Server { address, accepted, certificate: pem }
    }

    fn next(&self) -> Stream {
        self.accepted.recv_timeout(common::PATIENCE).unwrap()
    }

    fn dialer(&self, change: impl FnOnce(&mut Target)) -> Dialer {
        let mut dialer = Dialer::new(Options { connections: 100, unshare: true });
        dialer.aim(self.target(change)).unwrap();
        dialer
    }

    fn target(&self, change: impl FnOnce(&mut Target)) -> Target {
        let mut target = target_of(self.address.port());
        change(&mut target);
        target
    }

    /// A dialer with one open stream, and the other end of it.
    fn with_stream(&self) -> (Dialer, Stream) {
        let mut dialer = self.dialer(|_| ());
        let stream = self.open(&mut dialer);
        (dialer, stream)
    }

    fn open(&self, dialer: &mut Dialer) -> Stream {
        let before = dialer.take().count("opened");
        dialer.open(1);
        let mut stream = self.next();
        stream.say(&format!("{HEAD}{WELCOME}"));
        until_count("an open stream", dialer, |counters| counters.count("opened") == before + 1);
        stream
    }
}

fn config_of(
    certificate: &CertificateDer<'static>,
    key: &KeyPair,
    versions: &[&'static SupportedProtocolVersion],
    suite: Option<CipherSuite>,
) -> ServerConfig {
    let mut provider = default_provider();
    provider.cipher_suites.retain(|one| suite.is_none_or(|suite| one.suite() == suite));
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let builder = ServerConfig::builder_with_provider(Arc::new(provider)).with_protocol_versions(versions).unwrap();
    let mut config = builder.with_no_client_auth().with_single_cert(vec![certificate.clone()], key).unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.ignore_client_order = true;
    config
}

fn target_of(port: u16) -> Target {
    let server = dial::Server {
        name: port.to_string().into(),
        host: "localhost".into(),
        addresses: vec![LOOPBACK],
        ports: vec![port],
        tally: Arc::default(),
        secured: None,
    };
    Target {
        servers: vec![server],
        sources: Vec::new(),
        format: dial::Format::Http,
        request: REQUEST.into(),
        subscription: None,
        ping_interval_ms: 0,
        idle_pings: false,
        timeout_ms: 3_600_000,
        is_strict: true,
        allows_messages: true,
        security: Some(Security { roots: None, resumes: true }),
    }
}

impl Stream {
    fn takes_request(&mut self) -> bool {
        let mut request = [0; REQUEST.len()];
        let read = rustls::Stream::new(&mut self.tls, &mut self.socket).read_exact(&mut request);
        assert!(read.is_err() || request == REQUEST);
        read.is_ok() && self.tls.alpn_protocol() == Some(b"http/1.1")
    }

    fn say(&mut self, text: &str) {
        let records = self.records(text);
        self.socket.write_all(&records).unwrap();
    }

    /// The text as it would be sent.
    fn records(&mut self, text: &str) -> Vec<u8> {
        self.tls.writer().write_all(text.as_bytes()).unwrap();
        self.output()
    }

    /// What rustls wants to send.
    fn output(&mut self) -> Vec<u8> {
        let mut output = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut output).unwrap();
        }
        output
    }

    /// Reads until the client has closed. Returns its last words: Ok after a close_notify, else the alert.
    fn last_words(&mut self) -> Result<(), Error> {
        loop {
            match self.tls.read_tls(&mut self.socket) {
                Ok(0) => panic!("it closed without a word"),
                Ok(_) => match self.tls.process_new_packets() {
                    Ok(state) if state.peer_has_closed() => return Ok(()),
                    Ok(_) => (),
                    Err(error) => return Err(error),
                },
                Err(error) => assert_eq!(error.kind(), ErrorKind::Interrupted),
            }
        }
    }
}

fn until_count(what: &str, dialer: &mut Dialer, look: impl Fn(&Counters) -> bool) -> Counters {
    until(what, || Some(dialer.take()).filter(&look))
}

trait ByName {
    fn count(&self, name: &str) -> u64;
}

impl ByName for Counters {
    fn count(&self, name: &str) -> u64 {
        self.counts[COUNTS.iter().position(|one| *one == name).unwrap()]
    }
}

/// The sample of the only stream, which fails or is lost with this cause.
fn sample_of(what: &str, dialer: &mut Dialer, cause: Cause) -> String {
    let mut samples = Vec::new();
    until(what, || {
        let counters = dialer.take();
        samples.extend(counters.samples);
        (counters.failed[cause as usize] + counters.lost[cause as usize] == 1).then_some(())
    });
    samples.extend(dialer.take().samples);
    assert_eq!((samples.len(), samples[0].cause), (1, cause));
    String::from_utf8_lossy(&samples[0].bytes).into_owned()
}

#[test]
fn streams_are_opened_with_every_cipher_that_a_session_can_have() {
    for (version, suite) in [
        (&TLS13, CipherSuite::TLS13_AES_128_GCM_SHA256),
        (&TLS13, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
        (&TLS12, CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
        (&TLS12, CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ] {
        let server = Server::with(&[version], Some(suite));
        let (mut dialer, mut stream) = server.with_stream();
        for _ in 0..3 {
            stream.say(PING);
        }
        let counters = until_count("pings", &mut dialer, |counters| counters.count("pings") == 3);
        assert_eq!(counters.count("bytes") as usize, HEAD.len() + WELCOME.len() + 3 * PING.len(), "{suite:?}");
        dialer.close(1);
        assert_eq!(stream.last_words(), Ok(()), "{suite:?}");
        assert_eq!(until_count("a close", &mut dialer, |counters| counters.count("closed") == 1).count("handshakes"), 1);
    }
}

#[test]
fn a_server_without_any_of_these_ciphers_is_not_understood() {
    let server = Server::with(&[&TLS13], Some(CipherSuite::TLS13_AES_256_GCM_SHA384));
    let mut dialer = server.dialer(|_| ());
    dialer.open(1);
    assert!(sample_of("a failure", &mut dialer, Cause::Alert).contains("HandshakeFailure"));
}

#[test]
fn records_may_have_several_chunks_and_chunks_and_records_may_come_in_pieces() {
    let server = Server::start();
    let (mut dialer, mut stream) = server.with_stream();
    let chunk = format!("{:x}\r\n{}\r\n", 40_000, "x".repeat(40_000));
    stream.say(&format!("{PING}{PING}{chunk}{PING}"));
    stream.say("4\r\npi");
    stream.say("ng\r\n");
    for byte in stream.records(PING) {
        stream.socket.write_all(&[byte]).unwrap();
    }
    let several = [stream.records(PING), stream.records(&chunk), stream.records(PING)].concat();
    for piece in several.chunks(several.len() / 3 - 7) {
        stream.socket.write_all(piece).unwrap();
    }
    until_count("all of it", &mut dialer, |counters| counters.count("pings") == 7 && counters.count("messages") == 2);
}

#[test]
fn a_head_that_comes_in_several_records_is_understood() {
    let server = Server::start();
    let mut dialer = server.dialer(|_| ());
    dialer.open(1);
    let mut stream = server.next();
    let opening = format!("{HEAD}{WELCOME}{PING}");
    let records: Vec<u8> = opening.as_bytes().chunks(9).flat_map(|part| stream.records(std::str::from_utf8(part).unwrap())).collect();
    for piece in records.chunks(100) {
        stream.socket.write_all(piece).unwrap();
    }
    until_count("a ping", &mut dialer, |counters| counters.count("pings") == 1);
}

#[test]
fn a_key_update_is_honoured_and_answered() {
    let server = Server::start();
    let (mut dialer, mut stream) = server.with_stream();
    for round in 1..4 {
        stream.tls.refresh_traffic_keys().unwrap();
        stream.say(PING);
        until_count("a ping", &mut dialer, |counters| counters.count("pings") == round);
    }
    dialer.close(1);
    assert_eq!(stream.last_words(), Ok(()), "it is written with the key after three updates");
}

#[test]
fn a_stream_that_ends_is_lost_with_its_cause() {
    let server = Server::start();
    let end = |act: &dyn Fn(&mut Stream), cause: Cause| {
        let (mut dialer, mut stream) = server.with_stream();
        act(&mut stream);
        drop(stream);
        until_count("a loss", &mut dialer, |counters| counters.lost[cause as usize] == 1);
    };
    let close = |stream: &mut Stream| {
        stream.tls.send_close_notify();
        let output = stream.output();
        stream.socket.write_all(&output).unwrap();
    };
    end(&close, Cause::Closed);
    end(&|stream| stream.say(END), Cause::Closed);
    end(&|_| (), Cause::Truncated);
    end(
        &|stream| {
            let records = stream.records(PING);
            stream.socket.write_all(&records[..10]).unwrap();
        },
        Cause::Truncated,
    );
}

#[test]
fn the_server_is_told_that_a_record_is_wrong() {
    type Change<'a> = &'a dyn Fn(&mut Stream) -> Vec<u8>;
    let server = Server::start();
    let changes: [(Change, AlertDescription); 4] = [
        (
            &|stream| {
                let mut record = stream.records(PING);
                *record.last_mut().unwrap() ^= 1;
                record
            },
            AlertDescription::BadRecordMac,
        ),
        (&|stream| stream.records(PING).repeat(2), AlertDescription::BadRecordMac),
        (
            &|stream| {
                let first = stream.records(PING);
                [stream.records(PING), first].concat()
            },
            AlertDescription::BadRecordMac,
        ),
        (&|_| b"HTTP/1.1 500 Oops\r\n\r\n".to_vec(), AlertDescription::UnexpectedMessage),
    ];
    for (change, alert) in changes {
        let (mut dialer, mut stream) = server.with_stream();
        let bytes = change(&mut stream);
        stream.socket.write_all(&bytes).unwrap();
        assert_eq!(stream.last_words(), Err(Error::AlertReceived(alert)));
        sample_of("a loss", &mut dialer, Cause::BadRecord);
    }
}

#[test]
fn an_alert_of_the_server_is_a_cause_of_its_own() {
    let server = Server::start();
    let (mut dialer, mut stream) = server.with_stream();
    stream.socket.write_all(b"\x17\x03\x03\x00\x02??").unwrap();
    assert!(stream.last_words().is_err());
    sample_of("a loss", &mut dialer, Cause::BadRecord);
    let mut stream = server.open(&mut dialer);
    // What comes from the client is wrong too: rustls answers with an alert.
    assert!(stream.tls.read_tls(&mut &b"\x17\x03\x03\x00\x02??"[..]).is_ok() && stream.tls.process_new_packets().is_err());
    let output = stream.output();
    stream.socket.write_all(&output).unwrap();
    assert_eq!(sample_of("a loss", &mut dialer, Cause::Alert), "alert 20");
}

#[test]
fn a_certificate_that_is_not_trusted_is_not_accepted() {
    let (server, other) = (Server::start(), Server::start());
    let trusting = |pem: &str| Security { roots: Some(pem.as_bytes().into()), resumes: true };
    let mut dialer = server.dialer(|target| target.security = Some(trusting(&server.certificate)));
    drop(server.open(&mut dialer));
    for (pem, host) in [(&other.certificate, "localhost"), (&server.certificate, "127.0.0.1")] {
        let mut dialer = server.dialer(|target| {
            target.security = Some(trusting(pem));
            target.servers[0].host = host.into();
        });
        dialer.open(1);
        assert!(sample_of("a failure", &mut dialer, Cause::Certificate).contains("certificate"));
    }
}

#[test]
fn a_server_without_tls_is_noticed() {
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let mut dialer = Dialer::new(Options { connections: 100, unshare: true });
    dialer.aim(target_of(listener.local_addr().unwrap().port())).unwrap();
    dialer.open(1);
    let (mut socket, _) = listener.accept().unwrap();
    socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    assert!(sample_of("a failure", &mut dialer, Cause::Handshake).contains("400 Bad Request"));
    dialer.open(1);
    drop(listener.accept().unwrap());
    until_count("a failure", &mut dialer, |counters| counters.failed.iter().sum::<u64>() == 2);
}

#[test]
fn streams_come_back_with_a_ticket_also_after_the_target_was_set_again() {
    for versions in [&[&TLS13][..], &[&TLS12]] {
        let server = Server::with(versions, None);
        let (mut dialer, stream) = server.with_stream();
        drop(stream);
        drop(server.open(&mut dialer));
        dialer.aim(server.target(|target| target.timeout_ms = 1_000_000)).unwrap();
        drop(server.open(&mut dialer));
        let counters = dialer.take();
        assert_eq!((counters.count("handshakes"), counters.count("resumptions")), (3, 2));
        // Other rules, other handshakes.
        let trusting = Security { roots: Some(server.certificate.as_bytes().into()), resumes: true };
        dialer.aim(server.target(|target| target.security = Some(trusting))).unwrap();
        drop(server.open(&mut dialer));
        assert_eq!(dialer.take().count("resumptions"), 2);
    }
}

#[test]
fn no_ticket_is_used_if_that_is_asked_for() {
    let server = Server::start();
    let mut dialer = server.dialer(|target| target.security = Some(Security { roots: None, resumes: false }));
    for _ in 0..2 {
        drop(server.open(&mut dialer));
    }
    assert_eq!((dialer.take().count("handshakes"), dialer.take().count("resumptions")), (2, 0));
}

#[test]
fn the_time_of_a_handshake_is_measured() {
    let server = Server::start();
    let mut dialer = server.dialer(|_| ());
    dialer.open(1);
    let _stream = server.next();
    let counters = until_count("a handshake", &mut dialer, |counters| counters.count("handshakes") == 1);
    let place = HISTOGRAMS.iter().position(|(name, _)| *name == "handshake").unwrap();
    assert_eq!(counters.histograms[place].count, 1);
    assert_eq!((counters.count("in_flight"), counters.count("opened")), (1, 0));
}

#[test]
fn only_so_many_handshakes_are_under_way_and_others_wait_for_them() {
    const MOST: usize = 1024;
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut dialer = Dialer::new(Options { connections: 4000, unshare: true });
    dialer.aim(target_of(listener.local_addr().unwrap().port())).unwrap();
    dialer.open(2000);
    let mut accepted = Vec::new();
    for _ in 0..50 {
        until("connections", || {
            accepted.extend(std::iter::from_fn(|| listener.accept().ok()));
            assert!(accepted.len() <= MOST);
            (accepted.len() == MOST).then_some(())
        });
        // It fails, and so makes room for another one.
        drop(accepted.pop());
    }
    let counters = until_count("failures", &mut dialer, |counters| counters.failed.iter().sum::<u64>() == 50);
    assert_eq!(counters.count("in_flight"), 1950);
}

#[test]
fn security_that_is_no_good_is_refused() {
    let mut dialer = Dialer::new(Options { connections: 100, unshare: true });
    let aim = |dialer: &mut Dialer, change: &dyn Fn(&mut Target)| {
        let mut target = target_of(1);
        change(&mut target);
        dialer.aim(target).unwrap_err().to_string()
    };
    let roots = aim(&mut dialer, &|target| target.security = Some(Security { roots: Some(b"?"[..].into()), resumes: true }));
    assert!(roots.contains("contains none"), "{roots}");
    let host = aim(&mut dialer, &|target| target.servers[0].host = "a b".into());
    assert!(host.contains("'a b'"), "{host}");
}
