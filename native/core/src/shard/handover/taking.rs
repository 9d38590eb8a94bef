//! The side that takes: rows are made, and wait until they may be used.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use super::GIVERS;
use crate::handover::{Gone, Head, Hello, More, Parcel, Peer, Receipt, Record, Stream, Tls, VERSION};
use crate::head::Whole;
use crate::listener::Listener;
use crate::mail::Taken;
use crate::rows::State;
use crate::shard::Shard;
use crate::socket::Socket;
use crate::telemetry::add;

/// How many slots earlier a row may be due. If there is no place, it is pinged at once.
const MOST_SLOTS: u64 = 256;
/// In a receipt, for a listener.
const ACCEPTED: u64 = 1;
const REFUSED: u64 = 0;

#[derive(Default)]
pub struct Taking {
    /// None for those that are gone.
    givers: Vec<Option<Peer>>,
    /// Rows of streams, and when they are due for a ping.
    parked: Vec<(u32, u64)>,
    heads: Vec<(u32, Head)>,
    listeners: Vec<Listener>,
    /// Where rows can be that are due at the same time, by the first of those places.
    places: HashMap<u32, Box<dyn Iterator<Item = u32> + Send>>,
}

impl Shard {
    /// Connects to a shard that offers its rows; `weight` is how many this one wants, compared with others.
    pub(in crate::shard) fn take_from(&mut self, name: &str, weight: f64) -> io::Result<()> {
        let mut peer = Peer::connect(name)?;
        let hello = Hello { version: VERSION, weight };
        if peer.send(&hello.encode(), &[]) != Ok(true) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.watch_peer(&peer, GIVERS + self.taking.givers.len() as u64)?;
        self.taking.givers.push(Some(peer));
        Ok(())
    }

    pub(super) fn handle_giver(&mut self, number: usize) {
        let Some(mut peer) = self.taking.givers.get_mut(number).and_then(Option::take) else { return };
        match self.take_parcels(&mut peer) {
            Ok(()) => self.taking.givers[number] = Some(peer),
            Err(Gone) => self.reactor.forget(&peer),
        }
    }

    fn take_parcels(&mut self, peer: &mut Peer) -> Result<(), Gone> {
        let read = peer.read();
        while let Some((frame, fds)) = peer.next_frame()? {
            let parcel = Parcel::decode(&frame).map_err(|_| Gone)?;
            let receipt = self.take_parcel(parcel, fds);
            if peer.send(&receipt.encode(), &[]) != Ok(true) {
                return Err(Gone);
            }
        }
        read
    }

    /// What JS has said so far comes first: the rows have got all of it elsewhere.
    fn take_parcel(&mut self, Parcel { number, records }: Parcel, mut fds: VecDeque<OwnedFd>) -> Receipt {
        self.read_mail();
        while !self.mail.unread.is_empty() && !self.mail.is_paused {
            self.handle_mail();
        }
        let mut is_tuned = None;
        let ids = records.into_iter().map(|record| fds.pop_front().map_or(REFUSED, |fd| self.take(record, fd, &mut is_tuned)));
        Receipt { number, ids: ids.collect() }
    }

    /// Returns its id. What can't be taken is closed here. `is_tuned`: whether streams of this parcel have our socket options already,
    /// once that is known. Those of one giver are alike.
    fn take(&mut self, record: Record, fd: OwnedFd, is_tuned: &mut Option<bool>) -> u64 {
        match record {
            Record::Stream(stream) => self.park(stream, fd.into(), is_tuned),
            Record::Head(head) => self.park_head(head, fd.into()),
            // Like a head of which nothing has come.
            Record::Idle { tls } => self.park_head(Head { age_ms: 0, read: Box::default(), tls }, fd.into()),
            Record::Listener { is_tls } => self.park_listener(fd, is_tls),
            Record::Unknown => REFUSED,
        }
    }

    fn park(&mut self, stream: Stream, socket: Socket, is_tuned: &mut Option<bool>) -> u64 {
        let has_room = self.held + self.taking.parked.len() < self.options.capacity && !self.rows.is_full();
        if !has_room || self.is_closing() || !self.channels.has_room_for(&stream.channels) {
            return REFUSED;
        }
        let (nagle, user_timeout_ms) = (self.options.nagle, self.options.user_timeout_ms);
        if !*is_tuned.get_or_insert_with(|| socket.is_tuned(nagle, user_timeout_ms)) {
            socket.tune(nagle, user_timeout_ms);
        }
        let index = match self.place_for(stream.due_ns) {
            Some(index) => self.insert_at(index, socket),
            None => self.insert(socket),
        };
        let row = self.rows.row(index);
        (row.state, row.format) = (State::Parked, stream.format);
        for channel in &stream.channels {
            self.channels.subscribe(index, channel);
        }
        self.labels.set(index, stream.label);
        self.set_tag(index, stream.tag);
        self.park_backlog(index, &stream.backlog, stream.exempt as usize);
        self.park_more(index, stream.more);
        self.park_tls(index, stream.tls);
        self.taking.parked.push((index, stream.due_ns));
        self.rows.id_of(index).bits()
    }

    /// A free row whose ping is due at this time, or else before it: a table may be too small to have rows for every time.
    fn place_for(&mut self, due_ns: u64) -> Option<u32> {
        let (slots, slot_ns) = self.pinger.wheel.slots();
        (0..slots.min(MOST_SLOTS)).find_map(|slots| self.place_at(due_ns.saturating_sub(slots * slot_ns)))
    }

    fn place_at(&mut self, due_ns: u64) -> Option<u32> {
        let (wheel, most) = (&self.pinger.wheel, self.rows.most());
        let first = wheel.rows_due(due_ns).next()?;
        let new = || Box::new(wheel.rows_due(due_ns).take_while(move |row| (*row as usize) < most)) as Box<_>;
        let places = self.taking.places.entry(first).or_insert_with(new);
        places.find(|row| self.rows.may_insert_at(*row))
    }

    fn park_backlog(&mut self, index: u32, waiting: &[u8], exempt: usize) {
        if waiting.is_empty() {
            return;
        }
        let backlog = self.backlogs.entry(index).or_default();
        // It is in the order in which it was written, and what doesn't count leaves first.
        backlog.append(&waiting[..exempt], true);
        backlog.append(&waiting[exempt..], false);
        add(&self.telemetry.backlog_bytes, waiting.len() as u64);
        self.rows.row(index).set_backlogged(true);
    }

    fn park_more(&mut self, index: u32, more: More) {
        match more {
            More::Nothing => {}
            More::WebSocket { unread, message } => self.websockets.park(index, &unread, message.as_deref()),
            More::Poll(poll) => {
                let number = self.polls.add(&poll.lines);
                let until_ms = self.now_ms().wrapping_add(poll.left_ms);
                let row = self.rows.row(index);
                let request = Whole { size: 0, keeps_connection: poll.keeps_connection, is_http_1_0: poll.is_http_1_0 };
                row.set_request(request, false);
                row.set_aside(number);
                row.since_ms = until_ms;
                self.keep_for_later(index, &poll.rest);
            }
        }
    }

    fn park_tls(&mut self, index: u32, tls: Option<Tls>) {
        if let Some(Tls { session, unread }) = tls {
            self.tls.sessions.insert(index, session, self.rows.most());
            self.tls.add_unread(index, &unread);
        }
    }

    fn park_head(&mut self, mut head: Head, socket: Socket) -> u64 {
        if self.rows.is_full() || self.is_closing() {
            return REFUSED;
        }
        let index = self.insert(socket);
        let since_ms = self.now_ms().wrapping_sub(head.age_ms);
        let row = self.rows.row(index);
        (row.state, row.since_ms) = (State::Parked, since_ms);
        self.park_tls(index, head.tls.take());
        self.taking.heads.push((index, head));
        self.rows.id_of(index).bits()
    }

    /// Several givers may have the same socket.
    fn park_listener(&mut self, fd: OwnedFd, is_tls: bool) -> u64 {
        if is_tls && self.tls.config.is_none() {
            return REFUSED;
        }
        let Ok(listener) = Listener::taken(fd, is_tls, &self.options) else { return REFUSED };
        let mut known = self.taking.listeners.iter().chain(&self.door.listeners);
        if !known.any(|other| other.is_same(&listener)) {
            self.taking.listeners.push(listener);
        }
        ACCEPTED
    }

    /// What is parked belongs to this shard. Streams are reported unless all their channels begin with one of `quiet`; None
    /// reports none, and an empty list all, even those without channels.
    pub(in crate::shard) fn go(&mut self, quiet: Option<&[Box<[u8]>]>) {
        self.taking.places.clear();
        let parked = std::mem::take(&mut self.taking.parked);
        if self.held == 0 && !parked.is_empty() {
            self.pinger.wheel.skip_to(self.now_ns);
        }
        let count = parked.len() as u32;
        for (index, due_ns) in parked {
            self.begin_stream(index, due_ns, quiet);
        }
        for (index, head) in std::mem::take(&mut self.taking.heads) {
            let address = self.rows.socket(index).and_then(Socket::peer);
            self.resume_head(index, &head.read, address);
        }
        let listeners = std::mem::take(&mut self.taking.listeners);
        self.accept_from(listeners);
        self.mail.events.went.push((self.number, count));
    }

    fn begin_stream(&mut self, index: u32, due_ns: u64, quiet: Option<&[Box<[u8]>]>) {
        let row = self.rows.row(index);
        row.state = State::Held;
        let has_cursor = row.format.is_of_updates();
        self.held += 1;
        add(&self.telemetry.streams, 1);
        add(&self.telemetry.updates, u64::from(has_cursor));
        if let Some(quiet) = quiet {
            self.report_taken(index, quiet);
        }
        self.watch(index);
        // The wheel has passed it meanwhile.
        if self.pinger.wheel.due_of(index) > due_ns && self.rows.state(index) == State::Held {
            self.telemetry.lateness.record(self.now_ns.saturating_sub(due_ns) / 1000, 1);
            self.send_ping(index);
            add(&self.telemetry.pings, 1);
        }
    }

    fn report_taken(&mut self, index: u32, quiet: &[Box<[u8]>]) {
        let channels = self.channels.names_of(index);
        let tag = self.tags.get(&index).cloned().unwrap_or_default();
        let is_quiet = |channel: &[u8]| quiet.iter().any(|prefix| channel.starts_with(prefix));
        if !quiet.is_empty() && tag.is_empty() && channels.iter().all(|channel| is_quiet(channel)) {
            return;
        }
        let address = self.rows.socket(index).filter(|_| self.options.reports_addresses).and_then(Socket::peer);
        let label = self.labels.of(index);
        self.mail.events.taken.push(Taken { id: self.rows.id_of(index), channels, tag, label, address });
    }

    /// Goes on reading a head of which this much was read.
    pub(super) fn resume_head(&mut self, index: u32, read: &[u8], address: Option<IpAddr>) {
        if read.is_empty() && !self.tls.has_unread(index) {
            self.become_idle(index);
            return self.watch(index);
        }
        self.rows.row(index).state = State::Head;
        self.await_head(index, read, address);
    }

    /// Closes what is parked. The giver still has it.
    pub(in crate::shard) fn drop_parked(&mut self) {
        let Taking { parked, heads, .. } = std::mem::take(&mut self.taking);
        for (index, _) in parked {
            self.forget_details(index);
            self.free(index);
        }
        for (index, _) in heads {
            self.free(index);
        }
    }

    /// Streams and connections that wait to be used.
    pub(in crate::shard) fn parked(&self) -> usize {
        self.taking.parked.len() + self.taking.heads.len()
    }
}
