//! A client that does by hand what there is to do with records.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use holdfast_core::id::Id;
use holdfast_core::tls::{Content, Handshake, LONGEST_RECORD, Message, Progress, Session, TlsConfig, record_size};
use rustix::net::sockopt;
use rustls::ClientConfig;

use super::by_hand::{BUFFER_BYTES, ByHand};
use super::tls::{ALL, client_config, server_config};
use super::{HEAD, hold, request};

pub struct Client {
    pub session: Session,
    pub socket: UnixStream,
    pub unread: Vec<u8>,
    /// What came, apart from text.
    pub alerts: Vec<u8>,
    pub key_updates: usize,
    pub is_over: bool,
}

/// A connection of which nothing has been said.
pub fn connect_tls(by_hand: &mut ByHand, server: &TlsConfig) -> UnixStream {
    let (socket, its) = UnixStream::pair().unwrap();
    sockopt::set_socket_send_buffer_size(&its, BUFFER_BYTES).unwrap();
    its.set_nonblocking(true).unwrap();
    socket.set_nonblocking(true).unwrap();
    assert!(by_hand.shard.greet_by_hand(its.into(), server));
    socket
}

/// Everything that has come. True if it is the end.
pub fn read_all(socket: &mut UnixStream, bytes: &mut Vec<u8>) -> bool {
    socket.read_to_end(bytes).is_ok()
}

pub fn next_record(bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
    let size = record_size(bytes, LONGEST_RECORD).unwrap().filter(|size| *size <= bytes.len())?;
    Some(bytes.drain(..size).collect())
}

/// A connection whose handshake is over on its side.
pub fn shake_hands(by_hand: &mut ByHand, server: &TlsConfig, config: Arc<ClientConfig>) -> Client {
    shake_hands_and_say(by_hand, server, config, b"")
}

/// The same; the client says this together with the end of the handshake.
pub fn shake_hands_and_say(by_hand: &mut ByHand, server: &TlsConfig, config: Arc<ClientConfig>, text: &[u8]) -> Client {
    let mut socket = connect_tls(by_hand, server);
    let mut handshake = Handshake::client(config, "localhost".try_into().unwrap()).unwrap();
    let (mut out, mut unread) = (Vec::new(), Vec::new());
    handshake.take_output(&mut out);
    for _ in 0..100 {
        socket.write_all(&out).unwrap();
        out.clear();
        by_hand.turn(0);
        read_all(&mut socket, &mut unread);
        while let Some(record) = next_record(&mut unread) {
            if handshake.read(&record, &mut out) == Progress::Done {
                let mut session = handshake.finish().unwrap();
                session.seal(Content::Data, text, &mut out);
                socket.write_all(&out).unwrap();
                return Client { session, socket, unread, alerts: Vec::new(), key_updates: 0, is_over: false };
            }
        }
    }
    panic!("the handshake never ended");
}

impl Client {
    pub fn send(&mut self, content: Content, text: &[u8]) {
        let mut out = Vec::new();
        self.session.seal(content, text, &mut out);
        self.send_raw(&out);
    }

    pub fn send_raw(&mut self, records: &[u8]) {
        self.socket.write_all(records).unwrap();
    }

    /// The text that has come.
    pub fn read(&mut self) -> String {
        let mut text = Vec::new();
        self.is_over = read_all(&mut self.socket, &mut self.unread);
        while let Some(mut record) = next_record(&mut self.unread) {
            match self.session.open(&mut record).unwrap() {
                Message::Data(part) => text.extend_from_slice(part),
                Message::CloseNotify => self.alerts.push(0),
                Message::Failure(alert) => self.alerts.push(alert),
                Message::KeyUpdate(_) => self.key_updates += 1,
                Message::Handshake(_) => {} // a ticket
            }
        }
        String::from_utf8(text).unwrap()
    }
}

pub fn aes() -> Arc<ClientConfig> {
    client_config(ALL[0].0, ALL[0].1)
}

/// A connection whose request JS is asked about.
pub fn ask_over_tls(by_hand: &mut ByHand, server: &TlsConfig, config: Arc<ClientConfig>, text: &[u8]) -> (Client, Id) {
    let mut client = shake_hands(by_hand, server, config);
    client.send(Content::Data, text);
    let [(id, _)] = by_hand.asked().try_into().unwrap();
    (client, id)
}

/// An open stream.
pub fn stream_of(by_hand: &mut ByHand, server: &TlsConfig, config: Arc<ClientConfig>, format: u8) -> (Client, Id) {
    let (mut client, id) = ask_over_tls(by_hand, server, config, &request("/"));
    by_hand.say(&hold(id, format, &["news"]));
    let head = client.read();
    assert!(head.as_bytes().starts_with(HEAD) && head.ends_with("\r\n\r\n"), "{head}");
    (client, id)
}

pub fn stream(by_hand: &mut ByHand, format: u8) -> (Client, Id) {
    stream_of(by_hand, &server_config(), aes(), format)
}

impl Client {
    /// Sends a record that was changed on its way.
    pub fn spoil(&mut self, change: impl Fn(&mut Vec<u8>)) {
        let mut out = Vec::new();
        self.session.seal(Content::Data, b"\r\n", &mut out);
        change(&mut out);
        self.send_raw(&out);
    }

    pub fn read_bytes(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        read_all(&mut self.socket, &mut self.unread);
        while let Some(mut record) = next_record(&mut self.unread) {
            if let Message::Data(part) = self.session.open(&mut record).unwrap() {
                text.extend_from_slice(part);
            }
        }
        text
    }
}
