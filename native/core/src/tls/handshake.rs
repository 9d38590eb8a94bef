//! A handshake under way. Records are given to rustls one by one, so that when it is over, whatever follows is still ours to read.

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
    /// It is over: nothing of it is to be read any more.
    Done,
    /// It is over, and the connection too.
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

    /// A client has to speak first: `take_output`.
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

    /// Takes it apart, once it is over. None if rustls does not let go of it.
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

#[cfg(test)]
pub mod tests {
    use std::io::{Read, Write};

    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::pki_types::{CertificateDer, UnixTime};
    use rustls::{CipherSuite, DigitallySignedStruct, Error, SignatureScheme};

    use super::super::config::{Certificate, Config, PROTOCOL, provider, versions};
    use super::super::record::{Alert, Content, LONGEST_RECORD, record_size};
    use super::super::session::Message;
    use super::*;

    #[derive(Debug)]
    struct Anybody;

    impl ServerCertVerifier for Anybody {
        fn verify_server_cert(
            &self,
            _: &CertificateDer,
            _: &[CertificateDer],
            _: &ServerName,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ECDSA_NISTP256_SHA256]
        }
    }

    pub fn server_config() -> TlsConfig {
        let own = rcgen::generate_simple_self_signed(["localhost".to_string()]).unwrap();
        let certificate = Certificate { chain: own.cert.pem().into(), key: own.signing_key.serialize_pem().into() };
        Config { certificates: vec![certificate], allows_tls12: true, ticket_secret: [3; 32] }.build().unwrap()
    }

    fn client_config(allows_tls12: bool, cipher: CipherSuite) -> Arc<ClientConfig> {
        let mut provider = provider();
        provider.cipher_suites.retain(|suite| suite.suite() == cipher);
        let versions = if allows_tls12 { &versions(true)[1..] } else { versions(false) };
        let builder = ClientConfig::builder_with_provider(provider.into()).with_protocol_versions(versions).unwrap();
        let mut config = builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody)).with_no_client_auth();
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.into()
    }

    const ALL: [(bool, CipherSuite); 4] = [
        (false, CipherSuite::TLS13_AES_128_GCM_SHA256),
        (false, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
        (true, CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
        (true, CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ];

    /// A client of rustls, and what is left of the handshake here. True if it was resumed.
    fn connected(server: &TlsConfig, client: &Arc<ClientConfig>) -> (ClientConnection, Session, bool) {
        let mut client = ClientConnection::new(client.clone(), "localhost".try_into().unwrap()).unwrap();
        let mut handshake = Handshake::server(server.clone()).unwrap();
        let (mut input, mut output) = (Vec::new(), Vec::new());
        loop {
            while client.wants_write() {
                client.write_tls(&mut input).unwrap();
            }
            let mut done = false;
            while let Some(size) = record_size(&input, LONGEST_RECORD).unwrap().filter(|size| input.len() >= *size) {
                let record: Vec<u8> = input.drain(..size).collect();
                done = handshake.read(&record, &mut output) == Progress::Done;
            }
            receive(&mut client, &mut output);
            if done {
                let is_resumed = handshake.is_resumed();
                return (client, handshake.finish().unwrap(), is_resumed);
            }
        }
    }

    /// What a client reads of these records.
    fn receive(client: &mut ClientConnection, records: &mut Vec<u8>) -> Vec<u8> {
        let mut text = Vec::new();
        let mut rest = &records[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets().unwrap();
            let _ = client.reader().read_to_end(&mut text);
        }
        records.clear();
        text
    }

    /// The records that a client sends.
    fn sent(client: &mut ClientConnection, text: &[u8]) -> Vec<u8> {
        client.writer().write_all(text).unwrap();
        let mut records = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut records).unwrap();
        }
        records
    }

    #[test]
    fn what_is_written_after_a_handshake_is_read_by_rustls_and_the_other_way_round() {
        let server = server_config();
        for (allows_tls12, cipher) in ALL {
            let (mut client, session, _) = connected(&server, &client_config(allows_tls12, cipher));
            let mut session = Session::from_bytes(&session.bytes()).unwrap();
            let mut out = Vec::new();
            for text in [&b"a ping"[..], &[b'x'; 40_000], b"", b"the last"] {
                session.seal(Content::Data, text, &mut out);
                assert_eq!(receive(&mut client, &mut out), text, "{cipher:?}");
                if !text.is_empty() && text.len() < 10_000 {
                    assert_eq!(session.open(&mut sent(&mut client, text)), Ok(Message::Data(text)));
                }
            }
            client.send_close_notify();
            assert_eq!(session.open(&mut sent(&mut client, b"")), Ok(Message::CloseNotify));
            session.seal_alert(Alert::CloseNotify, &mut out);
            let mut rest = &out[..];
            client.read_tls(&mut rest).unwrap();
            assert!(client.process_new_packets().unwrap().peer_has_closed());
        }
    }

    #[test]
    fn keys_are_replaced_in_both_directions_as_often_as_either_side_wants() {
        for (_, cipher) in &ALL[..2] {
            let (mut client, mut session, _) = connected(&server_config(), &client_config(false, *cipher));
            let mut out = Vec::new();
            for round in 0..3 {
                client.refresh_traffic_keys().unwrap();
                let mut records = sent(&mut client, b"more");
                let update = record_size(&records, LONGEST_RECORD).unwrap().unwrap();
                assert_eq!(session.open(&mut records[..update]), Ok(Message::KeyUpdate(true)), "{round}");
                session.seal_key_update(&mut out);
                session.seal(Content::Data, b"hello", &mut out);
                assert_eq!(receive(&mut client, &mut out), b"hello");
                assert_eq!(session.open(&mut records[update..]), Ok(Message::Data(b"more")));
            }
        }
    }

    #[test]
    fn a_record_that_was_changed_repeated_cut_or_left_out_is_not_read() {
        for (allows_tls12, cipher) in ALL {
            let (mut client, session, _) = connected(&server_config(), &client_config(allows_tls12, cipher));
            let copy = || Session::from_bytes(&session.bytes()).unwrap();
            let first = sent(&mut client, b"first");
            let second = sent(&mut client, b"second");
            for place in 0..first.len() {
                for bit in 0..8 {
                    let mut changed = first.clone();
                    changed[place] ^= 1 << bit;
                    assert!(copy().open(&mut changed).is_err(), "{cipher:?}: bit {bit} of byte {place}");
                }
                assert!(copy().open(&mut first[..place].to_vec()).is_err());
            }
            assert_eq!(copy().open(&mut second.clone()), Err(Alert::BadRecordMac), "the first one is missing");
            let mut session = copy();
            assert_eq!(session.open(&mut first.clone()), Ok(Message::Data(b"first")));
            assert_eq!(session.open(&mut first.clone()), Err(Alert::BadRecordMac), "the same again");
            assert_eq!(session.open(&mut second.clone()), Ok(Message::Data(b"second")));
        }
    }

    #[test]
    fn a_client_with_a_ticket_resumes_also_with_another_server_that_has_the_secret() {
        for (allows_tls12, cipher) in ALL {
            let client = client_config(allows_tls12, cipher);
            assert!(!connected(&server_config(), &client).2);
            assert!(connected(&server_config(), &client).2, "{cipher:?}");
        }
    }
}
