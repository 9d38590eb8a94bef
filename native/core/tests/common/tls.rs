//! Certificates, and clients that trust everybody.

use std::io::Read;
use std::sync::Arc;

use holdfast_core::tls::{Capture, Certificate, Config, PROTOCOL, TlsConfig, provider, versions};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CipherSuite, ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};

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

    fn verify_tls12_signature(&self, _: &[u8], _: &CertificateDer, _: &DigitallySignedStruct) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(&self, _: &[u8], _: &CertificateDer, _: &DigitallySignedStruct) -> Result<HandshakeSignatureValid, Error> {
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

pub fn client_config(allows_tls12: bool, cipher: CipherSuite) -> Arc<ClientConfig> {
    let mut provider = provider();
    provider.cipher_suites.retain(|suite| suite.suite() == cipher);
    let versions = if allows_tls12 { &versions(true)[1..] } else { versions(false) };
    let builder = ClientConfig::builder_with_provider(provider.into()).with_protocol_versions(versions).unwrap();
    let mut config = builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody)).with_no_client_auth();
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.enable_secret_extraction = true;
    config.key_log = Arc::new(Capture);
    config.into()
}

/// Versions and ciphers; true for TLS 1.2.
pub const ALL: [(bool, CipherSuite); 4] = [
    (false, CipherSuite::TLS13_AES_128_GCM_SHA256),
    (false, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
    (true, CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    (true, CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// What a client reads of these records.
pub fn receive(client: &mut ClientConnection, records: &mut Vec<u8>) -> Vec<u8> {
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

/// The records that a client wants to send.
pub fn records_of(client: &mut ClientConnection) -> Vec<u8> {
    let mut records = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut records).unwrap();
    }
    records
}
