//! Datagrams to a service manager (sd_notify(3)), because Node has no unix datagram sockets. What they say is up to JS.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use napi::{Error, Result};
use napi_derive::napi;

/// Its socket is opened once, so it works when the process has no descriptor left.
#[napi]
pub struct Notifier {
    socket: UnixDatagram,
    address: SocketAddr,
}

#[napi]
impl Notifier {
    /// `path` as in NOTIFY_SOCKET: a file, or @ and an abstract name.
    #[napi(constructor)]
    pub fn new(path: String) -> Result<Self> {
        let socket = UnixDatagram::unbound().map_err(|error| problem_of(&error))?;
        socket.set_nonblocking(true).map_err(|error| problem_of(&error))?;
        let address = match path.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name),
            None => SocketAddr::from_pathname(path),
        };
        Ok(Notifier { socket, address: address.map_err(|error| problem_of(&error))? })
    }

    /// False if the other side has not read the last ones yet. It never waits.
    #[napi]
    pub fn tell(&self, text: String) -> Result<bool> {
        match self.socket.send_to_addr(text.as_bytes(), &self.address) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(problem_of(&error)),
        }
    }
}

fn problem_of(error: &std::io::Error) -> Error {
    Error::from_reason(error.to_string())
}
