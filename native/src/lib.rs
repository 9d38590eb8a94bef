//! What Node.js sees of `holdfast-core`: flat names, numbers and buffers. `native/types.js` describes it;
//! `transport/hold.js` uses it, `fleet/drone/dial.native.js` the part that dials (`dialer`), and `primary/notify.js` the part
//! that notifies a service manager (`notifier`).

mod dialer;
mod notifier;

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, IntoRawFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use holdfast_core::framing::{ENCODING_NAMES, FRAMING_NAMES, Format};
use holdfast_core::id::Id;
use holdfast_core::labels::Kind;
use holdfast_core::mail::{self, Events};
use holdfast_core::parcel::Adoption;
use holdfast_core::protocol::{OPS, PROTOCOL};
use holdfast_core::response::{REFUSALS, Refusal};
use holdfast_core::telemetry::{Histogram, Merged, REASONS, Reason, Telemetry};
use holdfast_core::tls::{self, TlsConfig};
use holdfast_core::{Claim, Hold, Options, dial};
use napi::bindgen_prelude::{Buffer, Float64Array, Uint8Array};
use napi::{Error, Result, Status};
use napi_derive::napi;

/// Every number and name that JS and the core agree on, from the tables of the core.
#[napi(object)]
pub struct Protocol {
    pub number: u32,
    pub ops: Vec<Op>,
    pub encodings: Vec<String>,
    pub framings: Vec<String>,
    pub reasons: Vec<String>,
    /// What streams can be ended by.
    pub labels: Vec<String>,
    pub refusals: Vec<u32>,
    /// The body that each refusal has by default.
    pub refusal_bodies: Vec<String>,
    pub causes: Vec<String>,
    pub options: Vec<String>,
    pub counts: Vec<String>,
    /// A name and its unit: `openCpu ns`.
    pub histograms: Vec<String>,
    pub dial_counts: Vec<String>,
    pub dial_histograms: Vec<String>,
}

#[napi(object)]
pub struct Op {
    pub name: String,
    pub code: u8,
}

#[napi]
pub fn protocol() -> Protocol {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
    Protocol {
        number: PROTOCOL,
        ops: OPS.iter().map(|(name, code)| Op { name: camel(name), code: *code }).collect(),
        encodings: texts(&ENCODING_NAMES),
        framings: texts(&FRAMING_NAMES),
        reasons: texts(Reason::NAMES),
        labels: texts(Kind::NAMES),
        refusals: Refusal::STATUSES.iter().map(|status| u32::from(*status)).collect(),
        refusal_bodies: Refusal::STATUSES.iter().filter_map(|status| Refusal::of(*status)).map(|refusal| refusal.body().into()).collect(),
        causes: texts(dial::Cause::NAMES),
        options: camels(Options::NAMES),
        counts: camels(Telemetry::COUNTS),
        histograms: with_units(Telemetry::HISTOGRAMS),
        dial_counts: camels(dial::COUNTS),
        dial_histograms: with_units(dial::HISTOGRAMS),
    }
}

fn camels(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| camel(name)).collect()
}

fn with_units(histograms: &[(&str, &str)]) -> Vec<String> {
    histograms.iter().map(|(name, unit)| format!("{} {unit}", camel(name))).collect()
}

/// `bytes_written` becomes `bytesWritten`.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_string();
    words.fold(first, |whole, word| whole + &word[..1].to_uppercase() + &word[1..])
}

#[napi(object)]
pub struct Settings {
    /// In the order of `Protocol::options`.
    pub options: Float64Array,
    /// Request headers that JS wants to see, in lower case.
    pub headers: Vec<String>,
    /// The payload of a ping, by encoding.
    pub pings: Vec<Buffer>,
    /// Ranges of addresses, such as 10.0.0.0/8.
    pub proxies: Vec<String>,
}

/// What has happened since the last time.
#[napi(object)]
pub struct Happenings {
    /// Ids of the heads that came, in the order of their lines.
    pub heads: Float64Array,
    /// Latin-1; for each head a line for its method, target, version, each header asked for, and the client's address if
    /// that was asked for; nothing if it equals the head before.
    pub lines: Buffer,
    /// Id, reason, id, reason…
    pub closed: Float64Array,
    /// Id, bytes of its message, id…: what the clients of WebSockets have said.
    pub said: Float64Array,
    /// Their messages, one after the other.
    pub said_text: Buffer,
    /// Token, id, token, id…; the id is -1 if there was no room.
    pub adopted: Float64Array,
    /// Token, number of streams, token…: publications that have reached everyone.
    pub published: Float64Array,
    /// The largest channels of a shard, once it was asked for them.
    pub counted: Vec<Counted>,
    /// Descriptors of connections that belong to node from now on.
    pub passed: Vec<i32>,
    /// For each of them what was read from it already.
    pub passed_read: Vec<Buffer>,
    /// For each of them the address and port of its client, if it has TLS: '::1 4711'. '' for the others. With TLS, the descriptor is an end
    /// of a relay.
    pub passed_from: Vec<String>,
    /// For each of them its id, for `adopt`, if it has TLS. 0 for the others.
    pub passed_ids: Vec<f64>,
    /// Rounds of a handover in which nothing is on its way any more.
    pub moves: Vec<Move>,
    /// Shards that have released what moved.
    pub released: Vec<Released>,
    /// Streams that were taken over, if JS wanted to know.
    pub taken: Vec<Taken>,
    /// Shards in which everything that was parked is used; they have reported its streams before.
    pub went: Vec<Went>,
    /// Shards that panicked, and are about to restart.
    pub failed: Vec<u32>,
    /// How many shards have completed their drain.
    pub drained: u32,
    /// Whether more heads are waiting.
    pub has_more: bool,
}

/// The channels of a shard that most streams are on, the largest first.
#[napi(object)]
pub struct Counted {
    pub token: u32,
    /// Streams of the largest that is not listed; 0 if all are.
    pub left_out: u32,
    pub names: Vec<String>,
    pub streams: Vec<u32>,
}

/// A round of a handover in a shard.
#[napi(object)]
pub struct Move {
    pub shard: u32,
    /// Connections that have their receipt.
    pub prepared: u32,
    /// Those that may still move in a later round.
    pub left: u32,
    /// Whether a taker is gone, or there is none: the round can't be released.
    pub is_broken: bool,
}

#[napi(object)]
pub struct Released {
    pub shard: u32,
    /// Before, after, before…: ids of streams; empty unless they were wanted.
    pub ids: Float64Array,
}

/// A stream that was taken over.
#[napi(object)]
pub struct Taken {
    pub id: f64,
    pub channels: Vec<String>,
    /// '' for none.
    pub tag: String,
    pub subject: u32,
    pub token: u32,
    /// '' if it is unknown.
    pub address: String,
}

#[napi(object)]
pub struct Went {
    pub shard: u32,
    pub streams: u32,
}

/// A histogram. Its unit stands in the table of names.
#[napi(object)]
pub struct Encoded {
    pub count: f64,
    pub sum: f64,
    pub min: u32,
    pub max: u32,
    /// Index, count, index, count…
    pub buckets: Vec<u32>,
}

/// Sums over the shards. Counts are since the beginning, histograms since the last time.
#[napi(object)]
pub struct Counters {
    /// In the order of `Protocol::counts`.
    pub counts: Float64Array,
    /// By reason.
    pub closed: Float64Array,
    /// By status.
    pub refused: Float64Array,
    /// In the order of `Protocol::histograms`.
    pub histograms: Vec<Encoded>,
}

#[napi]
pub struct Core {
    hold: Hold,
}

#[napi]
impl Core {
    /// Starts the threads.
    #[napi(constructor)]
    pub fn new(settings: Settings) -> Result<Self> {
        let pings = settings.pings.iter().map(|ping| ping.to_vec().into_boxed_slice()).collect();
        let options = Options::new(&settings.options, settings.headers, pings, &settings.proxies);
        let problem = "options and pings are not as many as `protocol()` says, or a proxy is not a range of addresses";
        let options = options.ok_or_else(|| Error::new(Status::InvalidArg, problem))?;
        Ok(Core { hold: Hold::new(options).map_err(error_of)? })
    }

    /// The descriptor of a pipe, which belongs to the caller from then on: a byte comes when there are events to take, and
    /// no other until they were taken. -1 the second time. (A threadsafe function can't do this: it writes to a
    /// descriptor of the event loop, which a shard doesn't have in its table.)
    #[napi]
    pub fn take_bell(&mut self) -> i32 {
        self.hold.take_bell().map_or(-1, IntoRawFd::into_raw_fd)
    }

    #[napi(getter)]
    pub fn has_own_tables(&self) -> bool {
        self.hold.has_own_tables()
    }

    /// All shards listen on `port` of an address, or none does; returns the port. For TLS, `useTls` comes first.
    #[napi]
    pub fn listen(&self, address: String, port: u16, is_tls: bool) -> Result<u16> {
        self.hold.listen(socket_address(&address, port)?, is_tls).map_err(error_of)
    }

    /// TLS handshakes that begin from now on are done in this way.
    #[napi]
    pub fn use_tls(&self, tls: &Tls) {
        self.hold.use_tls(&tls.config);
    }

    /// Does what the records say; see `command.rs`.
    #[napi]
    pub fn command(&self, records: Uint8Array, wakes_all: bool) -> Result<()> {
        self.hold.command(&records, wakes_all).map_err(|_| Error::new(Status::InvalidArg, "a record is malformed"))
    }

    #[napi]
    pub fn take_events(&self, most_heads: u32) -> Happenings {
        let (mut events, has_more) = self.hold.take_events(most_heads as usize);
        let passed = std::mem::take(&mut events.passed).into_iter();
        let mut happenings = Happenings { has_more, ..happenings_of(&events) };
        for one in passed {
            let Some(fd) = self.hold.take_passed(one.id) else { continue };
            happenings.passed.push(fd.into_raw_fd());
            happenings.passed_read.push(one.read.into());
            happenings.passed_ids.push(one.from.map_or(0.0, |_| one.id.number()));
            happenings.passed_from.push(text_of(one.from));
        }
        happenings
    }

    /// Takes the connection that node has open as `fd`; the caller closes node's. `relayed` is its id if it was passed on with TLS, or 0.
    /// `opening` is written first.
    /// The outcome comes as an event with `token`. Returns '' or why it is impossible: 'full', or 'busy' if it should be tried again in
    /// a moment.
    #[napi]
    pub fn adopt(&self, fd: i32, token: u32, format: u8, channels: Vec<String>, relayed: f64, opening: Option<String>) -> Result<String> {
        let format = Format::from_byte(format).ok_or_else(|| Error::new(Status::InvalidArg, "there is no such format"))?;
        let channels = channels.into_iter().map(|channel| channel.into_bytes().into_boxed_slice()).collect();
        // Header lines are Latin-1.
        let opening = opening.unwrap_or_default().chars().map(|c| c as u8).collect();
        let relayed = Id::from_number(relayed).filter(|id| id.bits() != 0);
        let copy = holdfast_core::duplicate(fd).map_err(error_of)?;
        match self.hold.adopt(copy.as_fd(), &Adoption { token, relayed, format, channels, opening }) {
            Ok(()) => Ok(String::new()),
            Err(error) => match error.kind() {
                std::io::ErrorKind::OutOfMemory => Ok("full".into()),
                std::io::ErrorKind::WouldBlock => Ok("busy".into()),
                _ => Err(error_of(error)),
            },
        }
    }

    /// Handover, the giver: lets takers connect. Returns the names under which they can, by shard.
    #[napi]
    pub fn offer(&self) -> Result<Vec<String>> {
        self.hold.offer().map_err(error_of)
    }

    /// The giver: connections move for so long, after everything that was said before. What is said from now on waits until `release`
    /// or `takeBack`. Each shard reports the outcome in `moves`.
    #[napi]
    pub fn begin_move(&self, length_ms: u32, wants_ids: bool) {
        self.hold.begin_move(length_ms, wants_ids);
    }

    /// The giver: what has moved is not ours any more. Each shard reports it in `released`.
    #[napi]
    pub fn release(&self) {
        self.hold.release();
    }

    /// The giver: everything goes on here as before the round, and the offer ends.
    #[napi]
    pub fn take_back(&self) {
        self.hold.take_back();
    }

    /// The giver: the offer ends; what was released stays released.
    #[napi]
    pub fn withdraw(&self) {
        self.hold.withdraw();
    }

    /// The taker: a shard connects to a giver; the weight says how much it wants, compared with others.
    #[napi]
    pub fn take_from(&self, shard: u8, name: String, weight: f64) -> Result<()> {
        self.hold.take_from(shard, name, weight).map_err(error_of)
    }

    /// The taker: what is parked is ours from now on. Each shard reports it in `went`, and before that, in `taken`, streams that have a tag
    /// or a channel that begins with none of `quiet`; null reports no stream.
    #[napi]
    pub fn go(&self, quiet: Option<Vec<String>>) {
        let prefixes = |all: Vec<String>| all.into_iter().map(|one| one.into_bytes().into_boxed_slice()).collect();
        self.hold.go(quiet.map(prefixes));
    }

    /// The taker: closes what is parked, which the giver still has, and the connections to givers.
    #[napi]
    pub fn drop_parked(&self) {
        self.hold.drop_parked();
    }

    /// Every shard reports the channels with most streams as an event with `token`.
    #[napi]
    pub fn count_channels(&self, token: u32, most: u32) {
        self.hold.count_channels(token, most as usize);
    }

    /// What takes memory until it was delivered or written.
    #[napi]
    pub fn queued_bytes(&self) -> f64 {
        self.hold.queued_bytes() as f64
    }

    /// The part of it that consists of messages.
    #[napi]
    pub fn queued_message_bytes(&self) -> f64 {
        self.hold.queued_message_bytes() as f64
    }

    #[napi]
    pub fn take_counters(&self) -> Counters {
        let all: Vec<&Telemetry> = self.hold.telemetry().collect();
        Counters {
            counts: sums(all.iter().map(|one| one.counts().to_vec()), Telemetry::COUNTS.len()),
            closed: sums(all.iter().map(|one| one.closed.iter().collect()), REASONS),
            refused: sums(all.iter().map(|one| one.refused.iter().collect()), REFUSALS),
            histograms: (0..Telemetry::HISTOGRAMS.len()).map(|row| merged(all.iter().map(|one| one.histograms()[row]))).collect(),
        }
    }

    /// Makes a shard panic: for tests of what follows.
    #[napi]
    pub fn fail_shard(&self, shard: u8) {
        self.hold.fail(shard);
    }

    /// Ends the threads, and closes everything they hold.
    #[napi]
    pub fn stop(&mut self) {
        self.hold.stop();
    }
}

/// '' for a connection without TLS.
fn text_of(from: Option<SocketAddr>) -> String {
    from.map_or(String::new(), |from| format!("{} {}", from.ip(), from.port()))
}

#[napi(object)]
pub struct Certificate {
    /// PEM: the certificate of the server first, then those that lead to the root.
    pub chain: Buffer,
    /// PEM, without a passphrase.
    pub key: Buffer,
}

#[napi(object)]
pub struct TlsSettings {
    /// The first one is also for clients that name no server, or an unknown one.
    pub certificates: Vec<Certificate>,
    /// 12 or 13.
    pub min_version: u8,
    /// 32 random bytes. Servers with the same secret accept each other's tickets.
    pub ticket_secret: Buffer,
}

/// How TLS handshakes are done.
#[napi]
pub struct Tls {
    config: TlsConfig,
}

#[napi]
impl Tls {
    /// Throws if something is wrong, and says what.
    #[napi(constructor)]
    pub fn new(settings: TlsSettings) -> Result<Self> {
        let invalid = |problem: String| Error::new(Status::InvalidArg, problem);
        let certificates = settings.certificates.iter();
        let certificates = certificates.map(|one| tls::Certificate { chain: one.chain.to_vec(), key: one.key.to_vec() });
        let ticket_secret =
            settings.ticket_secret.to_vec().try_into().map_err(|_| invalid("the secret for tickets must have 32 bytes".into()))?;
        let config = tls::Config { certificates: certificates.collect(), allows_tls12: settings.min_version == 12, ticket_secret };
        Ok(Tls { config: config.build().map_err(invalid)? })
    }
}

/// Keeps a port from other servers until it is released; see `claim.rs`.
#[napi]
pub struct PortClaim {
    claim: Option<Claim>,
}

#[napi]
impl PortClaim {
    /// Shares the claim of another process, which may then release its own: a server that takes over from it. Fails if nobody lets this
    /// process have the port too.
    #[napi(factory)]
    pub fn join(address: String, port: u16) -> Result<Self> {
        let claim = Claim::join(socket_address(&address, port)?).map_err(error_of)?;
        Ok(PortClaim { claim: Some(claim) })
    }

    /// Fails if anybody else has the port; 0 takes a free one.
    #[napi(constructor)]
    pub fn new(address: String, port: u16) -> Result<Self> {
        let claim = Claim::open(socket_address(&address, port)?).map_err(error_of)?;
        Ok(PortClaim { claim: Some(claim) })
    }

    /// 0 once it is released.
    #[napi(getter)]
    pub fn port(&self) -> u16 {
        self.claim.as_ref().map_or(0, Claim::port)
    }

    #[napi]
    pub fn release(&mut self) {
        self.claim = None;
    }
}

/// Whether a thread may have a descriptor table of its own here.
#[napi]
pub fn can_unshare() -> bool {
    holdfast_core::can_unshare()
}

/// Without what has to be fetched.
fn happenings_of(events: &Events) -> Happenings {
    let mut heads = Vec::new();
    let mut lines = Vec::new();
    for batch in &events.heads {
        heads.extend(batch.ids.iter().map(|id| id.number()));
        lines.extend_from_slice(&batch.lines);
    }
    let closed = events.closed.iter().flat_map(|(id, reason)| [id.number(), f64::from(*reason as u8)]);
    let said = events.said.iter().flat_map(|(id, text)| [id.number(), text.len() as f64]);
    let said_text: Vec<u8> = events.said.iter().flat_map(|(_, text)| text).copied().collect();
    let adopted = events.adopted.iter().flat_map(|(token, id)| [f64::from(*token), id.map_or(-1.0, |id| id.number())]);
    let published = events.published.iter().flat_map(|(token, listeners)| [f64::from(*token), f64::from(*listeners)]);
    Happenings {
        heads: heads.into(),
        lines: lines.into(),
        closed: closed.collect::<Vec<f64>>().into(),
        said: said.collect::<Vec<f64>>().into(),
        said_text: said_text.into(),
        adopted: adopted.collect::<Vec<f64>>().into(),
        published: published.collect::<Vec<f64>>().into(),
        counted: events.counted.iter().map(Counted::from).collect(),
        passed: Vec::new(),
        passed_read: Vec::new(),
        passed_from: Vec::new(),
        passed_ids: Vec::new(),
        moves: events.moves.iter().map(Move::from).collect(),
        released: events.released.iter().map(Released::from).collect(),
        taken: events.taken.iter().map(Taken::from).collect(),
        went: events.went.iter().map(|(shard, streams)| Went { shard: u32::from(*shard), streams: *streams }).collect(),
        failed: events.failed.iter().map(|shard| u32::from(*shard)).collect(),
        drained: events.drained.len() as u32,
        has_more: false,
    }
}

/// Adds up a row of counters of each shard, column by column.
fn sums<'a>(rows: impl Iterator<Item = Vec<&'a AtomicU64>>, columns: usize) -> Float64Array {
    let mut sums = vec![0.0; columns];
    for row in rows {
        for (sum, counter) in sums.iter_mut().zip(row) {
            *sum += counter.load(Relaxed) as f64;
        }
    }
    sums.into()
}

fn merged<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Encoded {
    let mut merged = Merged::default();
    histograms.for_each(|histogram| merged.take(histogram));
    merged.into()
}

impl From<&holdfast_core::Counted> for Counted {
    fn from(counted: &holdfast_core::Counted) -> Self {
        let holdfast_core::Counted { token, left_out, channels } = counted;
        let names = channels.iter().map(|(_, name)| String::from_utf8_lossy(name).into());
        Counted { token: *token, left_out: *left_out, names: names.collect(), streams: channels.iter().map(|(rows, _)| *rows).collect() }
    }
}

impl From<&mail::MoveReport> for Move {
    fn from(report: &mail::MoveReport) -> Self {
        let mail::MoveReport { shard, prepared, left, is_broken } = *report;
        Move { shard: u32::from(shard), prepared, left, is_broken }
    }
}

impl From<&(u8, Vec<(Id, Id)>)> for Released {
    fn from((shard, ids): &(u8, Vec<(Id, Id)>)) -> Self {
        let ids = ids.iter().flat_map(|(before, after)| [before.number(), after.number()]);
        Released { shard: u32::from(*shard), ids: ids.collect::<Vec<f64>>().into() }
    }
}

impl From<&mail::Taken> for Taken {
    fn from(taken: &mail::Taken) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Taken {
            id: taken.id.number(),
            channels: taken.channels.iter().map(|channel| text(channel)).collect(),
            tag: text(&taken.tag),
            subject: taken.label.subject,
            token: taken.label.token,
            address: taken.address.map(|address| address.to_string()).unwrap_or_default(),
        }
    }
}

impl From<Merged> for Encoded {
    fn from(merged: Merged) -> Self {
        Encoded { count: merged.count as f64, sum: merged.sum as f64, min: merged.min, max: merged.max, buckets: merged.sparse() }
    }
}

fn socket_address(address: &str, port: u16) -> Result<SocketAddr> {
    let address: IpAddr = address.parse().map_err(|_| Error::new(Status::InvalidArg, format!("'{address}' is not an IP address")))?;
    Ok(SocketAddr::new(address, port))
}

/// A system error keeps its number, which JS turns into its name.
fn error_of(error: std::io::Error) -> Error {
    match error.raw_os_error() {
        Some(number) => Error::new(Status::GenericFailure, format!("errno {number}")),
        None => Error::new(Status::GenericFailure, error.to_string()),
    }
}
