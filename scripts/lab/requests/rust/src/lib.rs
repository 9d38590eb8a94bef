//! What both servers have in common: their arguments, their runtime, and the answer.

use std::error::Error;
use std::io::Write;
use std::net::Ipv4Addr;

use serde::Serialize;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// Node writes the last two by itself.
pub const HEADERS: [(&str, &str); 4] = [
    ("x-powered-by", "benchmark"),
    ("content-type", "application/json; charset=utf-8"),
    ("connection", "keep-alive"),
    ("keep-alive", "timeout=5"),
];

#[derive(Serialize)]
pub struct Answer<'a> {
    pub name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
}

impl Answer<'_> {
    pub fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings can be serialized")
    }
}

pub struct Start {
    pub port: u16,
    /// Threads that serve.
    pub cores: usize,
}

impl Start {
    /// Reads the arguments: the port and how many threads.
    pub fn from_args() -> Result<Self, Box<dyn Error>> {
        let mut args = std::env::args().skip(1);
        let port = args.next().ok_or("the port is missing")?.parse()?;
        let cores = args.next().ok_or("the number of threads is missing")?.parse()?;
        Ok(Self { port, cores })
    }

    /// One thread serves by itself, without the queues of several.
    pub fn runtime(&self) -> std::io::Result<Runtime> {
        match self.cores {
            1 => Builder::new_current_thread().enable_io().enable_time().build(),
            cores => Builder::new_multi_thread().worker_threads(cores).enable_io().enable_time().build(),
        }
    }

    /// Says 'listening' when it does.
    pub async fn listen(&self) -> std::io::Result<TcpListener> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).await?;
        println!("listening");
        std::io::stdout().flush()?;
        Ok(listener)
    }
}
