//! The face of `holdfast_core::dial`. `fleet/drone/dial.native.js` is its only user.

use std::net::IpAddr;
use std::thread::JoinHandle;

use holdfast_core::dial;
use napi::bindgen_prelude::{AsyncTask, Buffer};
use napi::{Env, Error, Result, Status, Task};
use napi_derive::napi;

use crate::{Encoded, error_of};

#[napi(object)]
pub struct DialSettings {
    /// Streams of one thread.
    pub connections: u32,
    pub unshare: bool,
}

/// See `Target` of the core for what each means.
#[napi(object)]
pub struct DialTarget {
    pub addresses: Vec<String>,
    pub ports: Vec<u16>,
    pub sources: Vec<String>,
    pub request: Buffer,
    pub ping_interval_ms: u32,
    pub timeout_ms: u32,
    pub is_strict: bool,
    pub allows_messages: bool,
}

#[napi(object)]
pub struct DialSample {
    /// The place of its cause.
    pub cause: u8,
    /// Latin-1.
    pub text: String,
}

/// See `Counters` of the core's `dial`.
#[napi(object)]
pub struct DialCounters {
    pub in_flight: f64,
    pub open: f64,
    pub overdue: f64,
    pub opened: f64,
    pub closed: f64,
    pub pings: f64,
    pub messages: f64,
    pub bytes: f64,
    pub failed: Vec<f64>,
    pub lost: Vec<f64>,
    pub samples: Vec<DialSample>,
    pub connect_us: Encoded,
    pub first_byte_us: Encoded,
    pub lateness_us: Encoded,
    pub delivery_us: Encoded,
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

    /// Streams that it can hold.
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

    #[napi]
    pub fn take(&self) -> DialCounters {
        self.dialer.take().into()
    }

    /// Closes all; the promise is kept when the threads have ended.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn stop(&mut self) -> AsyncTask<Ending> {
        AsyncTask::new(Ending(self.dialer.begin_stop()))
    }
}

/// Threads that are told to end: to close thousands of sockets takes longer than the event loop may wait.
pub struct Ending(Vec<JoinHandle<()>>);

impl Task for Ending {
    type Output = ();
    type JsValue = ();

    fn compute(&mut self) -> Result<()> {
        for thread in self.0.drain(..) {
            // One that panicked has said so on stderr.
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
            addresses: addresses_of(&target.addresses)?,
            ports: target.ports,
            sources: addresses_of(&target.sources)?,
            request: target.request.to_vec().into_boxed_slice(),
            ping_interval_ms: target.ping_interval_ms,
            timeout_ms: target.timeout_ms,
            is_strict: target.is_strict,
            allows_messages: target.allows_messages,
        })
    }
}

fn addresses_of(texts: &[String]) -> Result<Vec<IpAddr>> {
    let parse = |text: &String| text.parse().map_err(|_| Error::new(Status::InvalidArg, format!("'{text}' is no IP address")));
    texts.iter().map(parse).collect()
}

impl From<dial::Counters> for DialCounters {
    fn from(counters: dial::Counters) -> Self {
        let numbers = |counts: &[u64]| counts.iter().map(|count| *count as f64).collect();
        DialCounters {
            in_flight: counters.in_flight as f64,
            open: counters.open as f64,
            overdue: counters.overdue as f64,
            opened: counters.opened as f64,
            closed: counters.closed as f64,
            pings: counters.pings as f64,
            messages: counters.messages as f64,
            bytes: counters.bytes as f64,
            failed: numbers(&counters.failed),
            lost: numbers(&counters.lost),
            samples: counters.samples.iter().map(DialSample::from).collect(),
            connect_us: counters.connect.into(),
            first_byte_us: counters.first_byte.into(),
            lateness_us: counters.lateness.into(),
            delivery_us: counters.delivery.into(),
        }
    }
}

impl From<&dial::Sample> for DialSample {
    fn from(sample: &dial::Sample) -> Self {
        DialSample { cause: sample.cause as u8, text: sample.bytes.iter().map(|byte| char::from(*byte)).collect() }
    }
}
