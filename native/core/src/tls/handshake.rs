//! A handshake under way. rustls gets one record at a time, so that whatever follows the last one is still ours to read.

use std::cell::RefCell;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ConnectionTrafficSecrets, HandshakeKind, KeyLog, ServerConnection};
use zeroize::Zeroizing;

use super::config::TlsConfig;
use super::session::{Secrets, Session};

type Secret = Zeroizing<[u8; 32]>;

thread_local! {
    /// What the handshake that this thread is working on has made: the traffic secrets of the client, and of the server.
    static CAPTURED: RefCell<[Option<Secret>; 2]> = const { RefCell::new([None, None]) };
}

/// Where traffic secrets become known: rustls keeps them to itself otherwise, and a key update needs them.
#[derive(Debug)]
pub struct Capture;

impl KeyLog for Capture {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        let place = usize::from(label != CLIENT_SECRET);
        if let Ok(secret) = secret.try_into() {
            CAPTURED.with_borrow_mut(|captured| captured[place] = Some(Zeroizing::new(secret)));
        }
    }

    fn will_log(&self, label: &str) -> bool {
        label == CLIENT_SECRET || label == SERVER_SECRET
    }
}

const CLIENT_SECRET: &str = "CLIENT_TRAFFIC_SECRET_0";
const SERVER_SECRET: &str = "SERVER_TRAFFIC_SECRET_0";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The other side has to say more.
    Waiting,
    /// Both sides have what they need.
    Done,
    /// The connection has to end.
    Failed,
}

#[derive(Debug)]
pub struct Handshake {
    connection: Connection,
    secrets: [Option<Secret>; 2],
}

impl Handshake {
    /// None if memory or randomness is short.
    pub fn server(config: TlsConfig) -> Option<Self> {
        let mut connection = ServerConnection::new(config).ok()?;
        connection.set_buffer_limit(None);
        Some(Handshake { connection: connection.into(), secrets: [None, None] })
    }

    /// A client speaks first: see `take_output`.
    pub fn client(config: Arc<ClientConfig>, name: ServerName<'static>) -> Option<Self> {
        let connection = ClientConnection::new(config, name).ok()?;
        Some(Handshake { connection: connection.into(), secrets: [None, None] })
    }

    /// Reads one whole record. What is to be sent because of it, the alert of a failure too, is appended to `out`.
    pub fn read(&mut self, mut record: &[u8], out: &mut Vec<u8>) -> Progress {
        CAPTURED.with_borrow_mut(|captured| *captured = [None, None]);
        while !record.is_empty() {
            if !matches!(self.connection.read_tls(&mut record), Ok(1..)) {
                return Progress::Failed;
            }
        }
        let result = self.connection.process_new_packets();
        let captured = CAPTURED.with_borrow_mut(std::mem::take);
        for (secret, new) in self.secrets.iter_mut().zip(captured) {
            *secret = new.or(secret.take());
        }
        self.take_output(out);
        match result {
            Err(_) => Progress::Failed,
            Ok(state) if state.peer_has_closed() => Progress::Failed,
            Ok(_) if self.connection.is_handshaking() => Progress::Waiting,
            Ok(_) => Progress::Done,
        }
    }

    /// Appends what is to be sent.
    pub fn take_output(&mut self, out: &mut Vec<u8>) {
        while self.connection.wants_write() {
            // Writing to a vector can't fail.
            let _ = self.connection.write_tls(out);
        }
    }

    /// Whether the client has shown a ticket that was accepted.
    pub fn is_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// What rustls has read after the handshake, such as tickets and data that came with a client's first records.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Takes it apart, once it is over. None if rustls does not give its secrets away.
    pub fn finish(self) -> Option<Session> {
        let is_client = matches!(self.connection, Connection::Client(_));
        let extracted = self.connection.dangerous_extract_secrets().ok()?;
        let ((written, to), (read, from)) = (extracted.tx, extracted.rx);
        let (written, read) = (u32::try_from(written).ok()?, u32::try_from(read).ok()?);
        let is_aes = matches!(to, ConnectionTrafficSecrets::Aes128Gcm { .. });
        let [client, server] = &self.secrets;
        if let (Some(client), Some(server)) = (client, server) {
            let (to, from) = if is_client { (client, server) } else { (server, client) };
            return Some(Session::new(&Secrets::Tls13 { is_aes, to, from }, written, read));
        }
        let (to, from) = (key_of(&to)?, key_of(&from)?);
        Some(Session::new(&Secrets::Tls12 { is_aes, to, from }, written, read))
    }
}

fn key_of(secrets: &ConnectionTrafficSecrets) -> Option<(&[u8], &[u8; 12])> {
    match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
            Some((key.as_ref(), iv.as_ref().try_into().ok()?))
        }
        _ => None,
    }
}
