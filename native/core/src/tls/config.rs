//! How handshakes are done: certificates, versions, ciphers, tickets.

use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::crypto::aws_lc_rs::kx_group::{SECP256R1, SECP384R1, X25519};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, NoServerSessionStorage, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, Error, InconsistentKeys, ServerConfig, SupportedProtocolVersion};

use super::handshake::Capture;
use super::ticket::{SECRET_BYTES, Tickets};

/// What the port speaks above TLS. HTTP/2 is the job of a proxy.
pub const PROTOCOL: &[u8] = b"http/1.1";
/// In the order of preference. AES-256 is left out, because its secrets are 16 bytes longer (SHA-384). Clients of TLS 1.3 must implement
/// AES-128, unless an application profile standard says otherwise (RFC 8446, section 9.1).
const CIPHERS: [CipherSuite; 6] = [
    CipherSuite::TLS13_AES_128_GCM_SHA256,
    CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
];

/// What handshakes of a server begin with. Cheap to copy.
pub type TlsConfig = Arc<ServerConfig>;

/// A certificate with its key, both PEM.
#[derive(Debug)]
pub struct Certificate {
    /// The certificate of the server first, then those that lead to the root.
    pub chain: Vec<u8>,
    pub key: Vec<u8>,
}

#[derive(Debug)]
pub struct Config {
    /// The first one is also for clients that name no server, or an unknown one.
    pub certificates: Vec<Certificate>,
    pub allows_tls12: bool,
    /// Random. Servers with the same secret accept each other's tickets.
    pub ticket_secret: [u8; SECRET_BYTES],
}

impl Config {
    /// Returns what handshakes begin with, or what is wrong.
    pub fn build(&self) -> Result<TlsConfig, String> {
        let provider = Arc::new(provider());
        let keys = self.certificates.iter().zip(1..);
        let keys: Vec<_> = keys
            .map(|(one, number)| read(one, &provider).map_err(|error| format!("certificate {number}: {error}")))
            .collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err("there is no certificate".into());
        }
        let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(versions(self.allows_tls12));
        let builder = builder.map_err(|error| error.to_string())?;
        let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::new(Names(keys)));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.ignore_client_order = true;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = Arc::new(Tickets::new(self.ticket_secret));
        config.send_tls13_tickets = 1;
        config.enable_secret_extraction = true;
        config.key_log = Arc::new(Capture);
        Ok(Arc::new(config))
    }
}

/// The cryptography of AWS-LC, with the ciphers that a `Session` can have.
pub fn provider() -> CryptoProvider {
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = vec![X25519, SECP256R1, SECP384R1];
    provider.cipher_suites.retain(|suite| CIPHERS.contains(&suite.suite()));
    provider.cipher_suites.sort_by_key(|suite| CIPHERS.iter().position(|one| *one == suite.suite()));
    provider
}

pub fn versions(allows_tls12: bool) -> &'static [&'static SupportedProtocolVersion] {
    static BOTH: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
    if allows_tls12 { &BOTH } else { &BOTH[..1] }
}

fn read(certificate: &Certificate, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, String> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&certificate.chain).collect::<Result<_, _>>().map_err(|_| "it is not valid PEM")?;
    if chain.is_empty() {
        return Err("the file contains no certificate (-----BEGIN CERTIFICATE-----)".into());
    }
    let key = PrivateKeyDer::from_pem_slice(&certificate.key);
    let key = key.map_err(|_| "the key is not a private key in PEM without a passphrase (-----BEGIN PRIVATE KEY-----)")?;
    let key = CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => "the key does not belong to the certificate".into(),
        Error::General(problem) => format!("the key can't be used: {problem}"),
        error => error.to_string(),
    })?;
    ParsedCertificate::try_from(&key.cert[0]).map_err(|error| format!("it can't be read: {error}"))?;
    Ok(Arc::new(key))
}

/// Chooses the certificate for the name that a client asks for.
#[derive(Debug)]
struct Names(Vec<Arc<CertifiedKey>>);

impl ResolvesServerCert for Names {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if self.0.len() == 1 {
            return self.0.first().cloned();
        }
        let fits = |key: &&Arc<CertifiedKey>| key.key.choose_scheme(hello.signature_schemes()).is_some();
        let name = hello.server_name().and_then(|name| ServerName::try_from(name).ok());
        let named = self.0.iter().filter(|key| name.as_ref().is_some_and(|name| is_for(key, name)));
        named.chain(&self.0).find(fits).or(self.0.first()).cloned()
    }
}

fn is_for(key: &CertifiedKey, name: &ServerName) -> bool {
    ParsedCertificate::try_from(&key.cert[0]).is_ok_and(|certificate| verify_server_name(&certificate, name).is_ok())
}
