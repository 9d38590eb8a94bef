//! What Node.js sees of `holdfast_core::dial`. Only `fleet/drone/dial.native.js` uses it.

use std::net::IpAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use holdfast_core::dial;
use napi::bindgen_prelude::{AsyncTask, Buffer, Float64Array};
use napi::{Env, Error, Result, Status, Task};
use napi_derive::napi;

use crate::{Encoded, error_of};

#[napi(object)]
pub struct DialSettings {
    /// The number of streams per thread.
    pub connections: u32,
    /// Whether each thread gets a descriptor table of its own.
    pub unshare: bool,
}

/// Described at `Target` in the core.
#[napi(object)]
pub struct DialTarget {
    pub servers: Vec<DialServer>,
    pub sources: Vec<String>,
    pub format: String,
    pub request: Buffer,
    pub subscription: Option<DialSubscription>,
    pub ping_interval_ms: u32,
    pub idle_pings: bool,
    pub timeout_ms: u32,
    pub is_strict: bool,
    pub allows_messages: bool,
    pub security: Option<DialSecurity>,
}

/// Described at `Security` in the core.
#[napi(object)]
pub struct DialSecurity {
    pub roots: Option<Buffer>,
    pub resumes: bool,
}

/// Described at `Server` in the core.
#[napi(object)]
pub struct DialServer {
    pub name: String,
    pub host: String,
    pub addresses: Vec<String>,
    pub ports: Vec<u16>,
}

/// Described at `Subscription` in the core.
#[napi(object)]
pub struct DialSubscription {
    pub request: Vec<DialPiece>,
    pub topics: Vec<Vec<DialPiece>>,
    pub first: u32,
    pub step: u32,
    pub is_token_shared: bool,
}

/// A piece of a template.
#[napi(object)]
pub struct DialPiece {
    /// As in `fleet/drone/template.js`.
    pub kind: String,
    pub text: String,
    pub by: u32,
}

#[napi(object)]
pub struct DialSample {
    /// The index of its cause in `Protocol::causes`.
    pub cause: u8,
    /// Latin-1.
    pub text: String,
}

/// What became of the streams of one server.
#[napi(object)]
pub struct DialServerCounts {
    pub open: f64,
    pub opened: f64,
    pub failed: f64,
    pub lost: f64,
}

/// Sums over the threads. Counts are since the beginning, histograms and samples since the last time.
#[napi(object)]
pub struct DialCounters {
    /// In the order of `Protocol::dial_counts`.
    pub counts: Float64Array,
    /// In the order of `Protocol::causes`.
    pub failed: Float64Array,
    /// Likewise.
    pub lost: Float64Array,
    pub samples: Vec<DialSample>,
    /// In the order of the target's servers; empty if there is only one.
    pub servers: Vec<DialServerCounts>,
    /// In the order of `Protocol::dial_histograms`.
    pub histograms: Vec<Encoded>,
}

#[napi]
pub struct Dialer {
    dialer: dial::Dialer,
}

#[napi]
impl Dialer {
    #[napi(constructor)]
    pub fn new(settings: DialSettings) -> Self {
        let options = dial::Options { connections: settings.connections as usize, unshare: settings.unshare };
        Dialer { dialer: dial::Dialer::new(options) }
    }

    /// The number of streams that it has room for.
    #[napi(getter)]
    pub fn most(&self) -> f64 {
        self.dialer.most() as f64
    }

    #[napi]
    pub fn aim(&mut self, target: DialTarget) -> Result<()> {
        self.dialer.aim(target.try_into()?).map_err(error_of)
    }

    #[napi]
    pub fn open(&mut self, count: u32) {
        self.dialer.open(count.into());
    }

    #[napi]
    pub fn close(&mut self, count: u32) {
        self.dialer.close(count.into());
    }

    /// Cuts so many open streams off, with a reset. They keep their cursors.
    #[napi]
    pub fn cut(&mut self, count: u32) {
        self.dialer.cut(count.into());
    }

    /// Closes so many open streams at random, and opens them again.
    #[napi]
    pub fn churn(&mut self, count: u32) {
        self.dialer.churn(count.into());
    }

    /// Sets the tokens of the streams from this place on.
    #[napi]
    pub fn set_tokens(&mut self, from: u32, tokens: Vec<String>) {
        self.dialer.set_tokens(from as usize, tokens.into_iter().map(|token| token.into_bytes().into_boxed_slice()).collect());
    }

    #[napi]
    pub fn take(&mut self) -> DialCounters {
        self.dialer.take().into()
    }

    /// Closes everything. The promise resolves when the threads have ended.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn stop(&mut self) -> AsyncTask<Stopping> {
        AsyncTask::new(Stopping(self.dialer.begin_stop()))
    }
}

/// Threads that were told to stop. Closing thousands of sockets takes longer than the event loop may wait.
pub struct Stopping(Vec<JoinHandle<()>>);

impl Task for Stopping {
    type Output = ();
    type JsValue = ();

    fn compute(&mut self) -> Result<()> {
        for thread in self.0.drain(..) {
            // If it panicked, it has said so on stderr.
            let _ = thread.join();
        }
        Ok(())
    }

    fn resolve(&mut self, _env: Env, (): ()) -> Result<()> {
        Ok(())
    }
}

impl TryFrom<DialTarget> for dial::Target {
    type Error = Error;

    fn try_from(target: DialTarget) -> Result<Self> {
        Ok(dial::Target {
            servers: target.servers.into_iter().map(dial::Server::try_from).collect::<Result<_>>()?,
            sources: addresses_of(&target.sources)?,
            format: format_of(&target.format)?,
            request: target.request.to_vec().into_boxed_slice(),
            subscription: target.subscription.map(dial::Subscription::try_from).transpose()?.map(Arc::new),
            ping_interval_ms: target.ping_interval_ms,
            idle_pings: target.idle_pings,
            timeout_ms: target.timeout_ms,
            is_strict: target.is_strict,
            allows_messages: target.allows_messages,
            security: target.security.map(dial::Security::from),
        })
    }
}

impl From<DialSecurity> for dial::Security {
    fn from(security: DialSecurity) -> Self {
        dial::Security { roots: security.roots.map(|roots| roots.to_vec().into_boxed_slice()), resumes: security.resumes }
    }
}

impl TryFrom<DialServer> for dial::Server {
    type Error = Error;

    fn try_from(server: DialServer) -> Result<Self> {
        let DialServer { name, host, addresses, ports } = server;
        let addresses = addresses_of(&addresses)?;
        Ok(dial::Server { name: name.into(), host: host.into(), addresses, ports, tally: Arc::default(), secured: None })
    }
}

impl TryFrom<DialSubscription> for dial::Subscription {
    type Error = Error;

    fn try_from(given: DialSubscription) -> Result<Self> {
        Ok(dial::Subscription {
            request: template_of(given.request)?,
            topics: given.topics.into_iter().map(template_of).collect::<Result<_>>()?,
            first: given.first.into(),
            step: given.step.into(),
            is_token_shared: given.is_token_shared,
        })
    }
}

fn format_of(name: &str) -> Result<dial::Format> {
    dial::Format::of_name(name).ok_or_else(|| Error::new(Status::InvalidArg, format!("'{name}' is not a format")))
}

fn template_of(pieces: Vec<DialPiece>) -> Result<dial::Template> {
    Ok(dial::Template(pieces.into_iter().map(piece_of).collect::<Result<_>>()?))
}

fn piece_of(DialPiece { kind, text, by }: DialPiece) -> Result<dial::Piece> {
    match (kind.as_str(), by) {
        ("text", _) => Ok(dial::Piece::Text(text.into_bytes().into())),
        ("number", _) => Ok(dial::Piece::Number),
        ("remainder", 1..) => Ok(dial::Piece::Remainder(by.into())),
        ("quotient", 1..) => Ok(dial::Piece::Quotient(by.into())),
        ("token", _) => Ok(dial::Piece::Token),
        ("cursor", _) => Ok(dial::Piece::Cursor),
        ("wait", by) => Ok(dial::Piece::Wait(by.into())),
        _ => Err(Error::new(Status::InvalidArg, format!("'{kind}' by {by} is not a piece of a template"))),
    }
}

fn addresses_of(texts: &[String]) -> Result<Vec<IpAddr>> {
    let parse = |text: &String| text.parse().map_err(|_| Error::new(Status::InvalidArg, format!("'{text}' is not an IP address")));
    texts.iter().map(parse).collect()
}

impl From<dial::Counters> for DialCounters {
    fn from(counters: dial::Counters) -> Self {
        DialCounters {
            counts: numbers(&counters.counts),
            failed: numbers(&counters.failed),
            lost: numbers(&counters.lost),
            samples: counters.samples.iter().map(DialSample::from).collect(),
            servers: counters.servers.into_iter().map(DialServerCounts::from).collect(),
            histograms: counters.histograms.into_iter().map(Encoded::from).collect(),
        }
    }
}

fn numbers(counts: &[u64]) -> Float64Array {
    counts.iter().map(|count| *count as f64).collect::<Vec<f64>>().into()
}

impl From<dial::ServerCounts> for DialServerCounts {
    fn from(counts: dial::ServerCounts) -> Self {
        let [open, opened, failed, lost] = [counts.open, counts.opened, counts.failed, counts.lost].map(|count| count as f64);
        DialServerCounts { open, opened, failed, lost }
    }
}

impl From<&dial::Sample> for DialSample {
    fn from(sample: &dial::Sample) -> Self {
        DialSample { cause: sample.cause as u8, text: sample.bytes.iter().map(|byte| char::from(*byte)).collect() }
    }
}
