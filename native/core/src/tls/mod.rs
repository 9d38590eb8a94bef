//! TLS. rustls does the handshake (`handshake`, configured by `config` and `ticket`); what is left of it is a `Session` of 100
//! bytes, with which records are written and read (`session`, `record`), in a table (`sessions`).
//!
//! Sources: RFC 8446 (TLS 1.3), RFC 5246, 5288 and 7905 (TLS 1.2 and its ciphers).

mod config;
mod handshake;
mod record;
mod session;
mod sessions;
mod ticket;

pub use config::{Certificate, Config, PROTOCOL, TlsConfig, provider, versions};
pub use handshake::{Capture, Handshake, Progress};
pub use record::{Alert, Content, HEADER_BYTES, LONGEST_RECORD, record_size};
pub use session::{MOST_RECORDS, Message, Renewal, SESSION_BYTES, Secrets, Session};
pub use sessions::Sessions;
pub use ticket::SECRET_BYTES;
