//! The arguments. The fleet's command line has checked them, so a bad one is a mistake of ours.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::protocol::Protocol;

#[derive(Clone)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

#[derive(Clone, Copy, PartialEq)]
pub enum Operations {
    Get,
    Set,
    /// Nine gets to one set, as memcslap does it.
    Mixed,
}

#[derive(Clone)]
pub struct Options {
    pub address: Address,
    pub protocol: Protocol,
    pub operations: Operations,
    pub connections: usize,
    /// 0 for no limit, as with the duration.
    pub requests: u64,
    pub duration_ms: u64,
    pub timeout_ms: u64,
    /// Requests that a connection sends at once.
    pub pipeline: usize,
    pub keys: usize,
    pub value_size: usize,
    /// Whether all keys have been set before.
    pub is_filled: bool,
}

impl Options {
    /// Reads `--name value` pairs.
    pub fn read(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            address: Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 11_211))),
            protocol: Protocol::Memcached,
            operations: Operations::Get,
            connections: 1,
            requests: 0,
            duration_ms: 0,
            timeout_ms: 10_000,
            pipeline: 1,
            keys: 10_000,
            value_size: 100,
            is_filled: false,
        };
        while let Some(name) = args.next() {
            let text = args.next().ok_or(format!("{name} has no value"))?;
            options.set(&name, &text)?;
        }
        if options.connections == 0 || options.pipeline == 0 || options.keys == 0 {
            return Err("connections, pipeline and keys must be at least 1".into());
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let bad = || format!("{name} got '{text}'");
        let number = || text.parse::<u64>().map_err(|_| bad());
        match name {
            "--tcp" => self.address = Address::Tcp(text.parse().map_err(|_| bad())?),
            "--unix" => self.address = Address::Unix(text.into()),
            "--protocol" => self.protocol = Protocol::named(text).ok_or_else(bad)?,
            "--op" => self.operations = operations(text).ok_or_else(bad)?,
            "--connections" => self.connections = number()? as usize,
            "--requests" => self.requests = number()?,
            "--duration-ms" => self.duration_ms = number()?,
            "--timeout-ms" => self.timeout_ms = number()?,
            "--pipeline" => self.pipeline = number()? as usize,
            "--keys" => self.keys = number()? as usize,
            "--is-filled" => self.is_filled = text == "yes",
            "--value-size" => self.value_size = number()? as usize,
            _ => return Err(format!("unknown option {name}")),
        }
        Ok(())
    }
}

fn operations(text: &str) -> Option<Operations> {
    match text {
        "get" => Some(Operations::Get),
        "set" => Some(Operations::Set),
        "mixed" => Some(Operations::Mixed),
        _ => None,
    }
}
