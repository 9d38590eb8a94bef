//! How the streams of a target speak TLS: whose certificates are accepted, and which tickets there are.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::Cause;
use super::tickets::Tickets;
use crate::tls::{Capture, Handshake, PROTOCOL, provider, versions};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Security {
    /// The certificates that may have signed that of a server, in PEM. None: every certificate is accepted.
    pub roots: Option<Box<[u8]>>,
    /// Whether streams come back with a ticket of an earlier one.
    pub resumes: bool,
}

/// What handshakes with one server begin with. All of its streams share it.
pub struct Secured {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Security {
    /// What handshakes with each of these hosts begin with, which are names or IP addresses; or what is wrong.
    pub fn secure(&self, hosts: &[&str]) -> Result<Vec<Arc<Secured>>, String> {
        let config = self.config()?;
        hosts.iter().map(|host| self.secure_one(&config, host)).collect()
    }

    fn secure_one(&self, config: &ClientConfig, host: &str) -> Result<Arc<Secured>, String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| format!("'{host}' can't be the name of a TLS server"))?;
        let mut config = config.clone();
        // Tickets of one server are of no use to another.
        config.resumption = if self.resumes { Resumption::store(Arc::new(Tickets::default())) } else { Resumption::disabled() };
        Ok(Arc::new(Secured { config: Arc::new(config), name }))
    }

    fn config(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(provider());
        let verifier = Arc::new(Verifier::new(self.roots.as_deref(), &provider)?);
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions(true));
        let builder = builder.map_err(|error| error.to_string())?;
        let mut config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.enable_secret_extraction = true;
        config.key_log = Arc::new(Capture);
        Ok(config)
    }
}

impl Secured {
    /// None if memory or randomness is short.
    pub fn begin(&self) -> Option<Handshake> {
        Handshake::client(self.config.clone(), self.name.clone())
    }
}

impl fmt::Debug for Secured {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "TLS with {:?}", self.name)
    }
}

impl From<&Error> for Cause {
    fn from(error: &Error) -> Self {
        match error {
            Error::InvalidCertificate(_) => Cause::Certificate,
            Error::AlertReceived(_) => Cause::Alert,
            Error::DecryptError => Cause::BadRecord,
            _ => Cause::Handshake,
        }
    }
}

/// Checks certificates, or accepts all of them. Either way, the server must prove that it has the key of its certificate, so that
/// a handshake costs as much CPU as that of other clients.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    trusted: Option<Trusted>,
}

#[derive(Debug)]
struct Trusted {
    certificates: Vec<CertificateDer<'static>>,
    chains: Arc<WebPkiServerVerifier>,
}

impl Verifier {
    fn new(roots: Option<&[u8]>, provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        let trusted = roots.map(|pem| Trusted::new(pem, provider)).transpose()?;
        Ok(Verifier { provider: provider.clone(), trusted })
    }
}

impl Trusted {
    fn new(pem: &[u8], provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|_| "the certificates to trust are not valid PEM")?;
        let mut roots = RootCertStore::empty();
        // The system's file may contain some that rustls doesn't understand.
        let (added, _) = roots.add_parsable_certificates(certificates.iter().cloned());
        if added == 0 {
            return Err("the file with the certificates to trust contains none (-----BEGIN CERTIFICATE-----)".into());
        }
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
        Ok(Trusted { certificates, chains: chains.map_err(|error| error.to_string())? })
    }

    /// A server may also have one of the trusted certificates itself. `openssl req -x509` makes such certificates: they are signed by
    /// themselves, and marked as an authority's, which rustls does not accept from a server.
    fn contains(&self, certificate: &CertificateDer, name: &ServerName) -> bool {
        let is_for = |name| ParsedCertificate::try_from(certificate).is_ok_and(|parsed| verify_server_name(&parsed, name).is_ok());
        self.certificates.iter().any(|one| one == certificate) && is_for(name)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer,
        others: &[CertificateDer],
        name: &ServerName,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.trusted {
            Some(trusted) if !trusted.contains(certificate, name) => {
                trusted.chains.verify_server_cert(certificate, others, name, ocsp, now)
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};

    fn security(roots: Option<&str>) -> Security {
        Security { roots: roots.map(|pem| pem.as_bytes().into()), resumes: true }
    }

    fn self_signed(name: &str) -> rcgen::Certificate {
        CertificateParams::new([name.to_owned()]).unwrap().self_signed(&KeyPair::generate().unwrap()).unwrap()
    }

    fn verdict(verifier: &Verifier, certificate: &rcgen::Certificate, name: &str) -> Option<Cause> {
        let name = ServerName::try_from(name).unwrap();
        let found = verifier.verify_server_cert(certificate.der(), &[], &name, &[], UnixTime::now());
        found.err().map(|error| Cause::from(&error))
    }

    #[test]
    fn roots_have_to_contain_a_certificate() {
        let error = |roots| security(Some(roots)).secure(&["a"]).unwrap_err();
        assert!(error("").contains("contains none"), "{}", error(""));
        assert!(error("-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n").contains("not valid PEM"));
    }

    #[test]
    fn a_host_is_a_name_or_an_address() {
        assert_eq!(security(None).secure(&["localhost", "127.0.0.1", "::1"]).unwrap().len(), 3);
        assert!(security(None).secure(&["a b"]).unwrap_err().contains("'a b'"));
    }

    #[test]
    fn a_trusted_certificate_is_accepted_from_the_server_that_it_names() {
        let (trusted, other) = (self_signed("a.example"), self_signed("a.example"));
        let verifier = Verifier::new(Some(trusted.pem().as_bytes()), &Arc::new(provider())).unwrap();
        assert_eq!(verdict(&verifier, &trusted, "a.example"), None);
        assert_eq!(verdict(&verifier, &trusted, "b.example"), Some(Cause::Certificate));
        assert_eq!(verdict(&verifier, &other, "a.example"), Some(Cause::Certificate));
    }

    #[test]
    fn every_certificate_is_accepted_if_none_is_to_be_checked() {
        let verifier = Verifier::new(None, &Arc::new(provider())).unwrap();
        assert_eq!(verdict(&verifier, &self_signed("a.example"), "b.example"), None);
    }
}
