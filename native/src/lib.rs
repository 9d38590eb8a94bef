//! The face of `holdfast-core` to Node.js: flat names, numbers and buffers. `transport/hold.js` is its only user;
//! of what dials, in `dialer`, it is `fleet/drone/dial.native.js`.

mod dialer;

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, IntoRawFd};
use std::sync::atomic::Ordering::Relaxed;

use holdfast_core::framing::{Format, Payload};
use holdfast_core::telemetry::{Histogram, Merged, Telemetry};
use holdfast_core::{Adoption, Hold, HoldOptions, Options};
use napi::bindgen_prelude::{Buffer, Float64Array, Uint8Array};
use napi::{Error, Result, Status};
use napi_derive::napi;

/// See `Options` of the core for what each means.
#[napi(object)]
pub struct Settings {
    pub shards: u8,
    pub seat: u32,
    pub seats: u32,
    pub unshare: bool,
    pub capacity: u32,
    pub connections: u32,
    pub ping_interval_ms: u32,
    pub ping_text: String,
    pub ping_events: String,
    pub nodelay: bool,
    pub max_head_bytes: u32,
    pub head_timeout_ms: u32,
    pub max_backlog_bytes: u32,
    pub user_timeout_ms: u32,
    pub headers: Vec<String>,
    pub reports_closes: bool,
}

/// What happened since the last time.
#[napi(object)]
pub struct Happenings {
    /// Ids of the heads that came, in the order of their lines.
    pub heads: Float64Array,
    /// Latin-1; for each head a line for its method, target, version and each header asked for; nothing where all
    /// that is as of the head before.
    pub lines: Buffer,
    /// Id, reason, id, reason…
    pub closed: Float64Array,
    /// Token, id, token, id…; an id of -1 where there was no room.
    pub adopted: Float64Array,
    /// Descriptors of connections that are node's now.
    pub passed: Vec<i32>,
    /// How many shards have come to the end of their drain.
    pub drained: u32,
    /// Whether other heads wait.
    pub has_more: bool,
}

/// As `EncodedHistogram` in `lib/histogram.js`, in the unit it was recorded in.
#[napi(object)]
pub struct Encoded {
    pub count: f64,
    pub sum: f64,
    pub min: u32,
    pub max: u32,
    pub buckets: Vec<u32>,
}

/// Sums over the shards. Counts are since the beginning, histograms since the last time.
#[napi(object)]
pub struct Counters {
    pub streams: f64,
    pub connections: f64,
    pub opened: f64,
    pub closed: Vec<f64>,
    pub pings: f64,
    pub deliveries: f64,
    pub bytes_written: f64,
    pub backlog_bytes: f64,
    pub lateness_us: Encoded,
    pub open_cpu_ns: Encoded,
    pub ping_cpu_ns: Encoded,
    pub delivery_cpu_ns: Encoded,
}

#[napi]
pub struct Core {
    hold: Hold,
    capacity: usize,
}

#[napi]
impl Core {
    /// Starts the threads.
    #[napi(constructor)]
    pub fn new(settings: Settings) -> Result<Self> {
        let capacity = settings.capacity as usize;
        Ok(Core { hold: Hold::new(settings.into()).map_err(error_of)?, capacity })
    }

    /// The descriptor of a pipe, which is the caller's from then on: a byte comes when there are events to take,
    /// and no other until they were. A threadsafe function can't do it: it writes to a descriptor of the event
    /// loop, which a shard does not have in its table. -1 the second time.
    #[napi]
    pub fn take_bell(&mut self) -> i32 {
        self.hold.take_bell().map_or(-1, IntoRawFd::into_raw_fd)
    }

    #[napi(getter)]
    pub fn is_unshared(&self) -> bool {
        self.hold.is_unshared()
    }

    /// All shards listen on `port` of an address; returns the port.
    #[napi]
    pub fn listen(&self, address: String, port: u16) -> Result<u16> {
        let address: IpAddr = address.parse().map_err(|_| Error::new(Status::InvalidArg, format!("'{address}' is no IP address")))?;
        self.hold.listen(SocketAddr::new(address, port)).map_err(error_of)
    }

    /// Does what the records say; see `command.rs`.
    #[napi]
    pub fn command(&self, records: Uint8Array) -> Result<()> {
        self.hold.command(&records).map_err(|_| Error::new(Status::InvalidArg, "a record is malformed"))
    }

    #[napi]
    pub fn take_events(&self, most_heads: u32) -> Happenings {
        let (events, has_more) = self.hold.take_events(most_heads as usize);
        let passed = events.passed.iter().filter_map(|shard| self.hold.take_passed(*shard));
        let passed = passed.map(IntoRawFd::into_raw_fd).collect();
        let mut heads = Vec::new();
        let mut lines = Vec::new();
        for batch in &events.heads {
            heads.extend(batch.ids.iter().map(|id| id.number()));
            lines.extend_from_slice(&batch.lines);
        }
        Happenings {
            heads: heads.into(),
            lines: lines.into(),
            closed: events.closed.iter().flat_map(|(id, reason)| [id.number(), f64::from(*reason as u8)]).collect::<Vec<f64>>().into(),
            adopted: events
                .adopted
                .iter()
                .flat_map(|(token, id)| [f64::from(*token), id.map_or(-1.0, |id| id.number())])
                .collect::<Vec<f64>>()
                .into(),
            passed,
            drained: events.drained.len() as u32,
            has_more,
        }
    }

    /// Takes the connection that node has open as `fd`; the caller closes node's. Its outcome comes as an event
    /// with `token`. Returns '' or why it can't be: 'full', or 'busy' where it should be tried again in a moment.
    #[napi]
    pub fn adopt(&self, fd: i32, token: u32, format: u8, channels: Vec<String>) -> Result<String> {
        let format = Format::from_bits(format).ok_or_else(|| Error::new(Status::InvalidArg, "there is no such format"))?;
        let channels: Vec<Vec<u8>> = channels.into_iter().map(String::into_bytes).collect();
        let copy = holdfast_core::duplicate(fd).map_err(error_of)?;
        match self.hold.adopt(copy.as_fd(), &Adoption { token, format, channels: &channels }, self.capacity) {
            Ok(()) => Ok(String::new()),
            Err(error) => match error.kind() {
                std::io::ErrorKind::OutOfMemory => Ok("full".into()),
                std::io::ErrorKind::WouldBlock => Ok("busy".into()),
                _ if error.raw_os_error() == Some(libc::ETOOMANYREFS) => Ok("busy".into()),
                _ => Err(error_of(error)),
            },
        }
    }

    #[napi]
    pub fn take_counters(&self) -> Counters {
        let all: Vec<&Telemetry> = self.hold.telemetry().collect();
        let sum = |counter: fn(&Telemetry) -> u64| all.iter().map(|one| counter(one) as f64).sum();
        let merge = |histogram: fn(&Telemetry) -> &Histogram| {
            let mut merged = Merged::default();
            for one in &all {
                merged.take(histogram(one));
            }
            Encoded::from(merged)
        };
        Counters {
            streams: sum(|one| one.streams.load(Relaxed)),
            connections: sum(|one| one.connections.load(Relaxed)),
            opened: sum(|one| one.opened.load(Relaxed)),
            closed: (0..holdfast_core::telemetry::REASONS)
                .map(|reason| all.iter().map(|one| one.closed[reason].load(Relaxed) as f64).sum())
                .collect(),
            pings: sum(|one| one.pings.load(Relaxed)),
            deliveries: sum(|one| one.deliveries.load(Relaxed)),
            bytes_written: sum(|one| one.bytes_written.load(Relaxed)),
            backlog_bytes: sum(|one| one.backlog_bytes.load(Relaxed)),
            lateness_us: merge(|one| &one.lateness),
            open_cpu_ns: merge(|one| &one.open_cpu),
            ping_cpu_ns: merge(|one| &one.ping_cpu),
            delivery_cpu_ns: merge(|one| &one.delivery_cpu),
        }
    }

    /// Ends the threads, and closes what they held.
    #[napi]
    pub fn stop(&mut self) {
        self.hold.stop();
    }
}

/// Whether a thread may have a descriptor table of its own here.
#[napi]
pub fn can_unshare() -> bool {
    holdfast_core::can_unshare()
}

impl From<Settings> for HoldOptions {
    fn from(settings: Settings) -> Self {
        let bytes = |text: String| text.into_bytes().into_boxed_slice();
        HoldOptions {
            shards: settings.shards,
            seat: settings.seat.into(),
            seats: settings.seats.into(),
            unshare: settings.unshare,
            shard: Options {
                capacity: settings.capacity as usize,
                connections: settings.connections as usize,
                ping_interval_ms: settings.ping_interval_ms,
                ping: Payload { text: bytes(settings.ping_text), events: bytes(settings.ping_events) },
                nodelay: settings.nodelay,
                max_head_bytes: settings.max_head_bytes as usize,
                head_timeout_ms: settings.head_timeout_ms,
                max_backlog_bytes: settings.max_backlog_bytes as usize,
                user_timeout_ms: settings.user_timeout_ms,
                headers: settings.headers,
                reports_closes: settings.reports_closes,
            },
        }
    }
}

impl From<Merged> for Encoded {
    fn from(merged: Merged) -> Self {
        Encoded { count: merged.count as f64, sum: merged.sum as f64, min: merged.min, max: merged.max, buckets: merged.sparse() }
    }
}

/// A system error keeps its number, which JS turns into its name.
fn error_of(error: std::io::Error) -> Error {
    match error.raw_os_error() {
        Some(number) => Error::new(Status::GenericFailure, format!("errno {number}")),
        None => Error::new(Status::GenericFailure, error.to_string()),
    }
}
