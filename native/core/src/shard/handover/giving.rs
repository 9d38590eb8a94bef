//! The side that gives: what a row becomes on its way, and how it comes back if it has to.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use super::{OFFER, TAKERS};
use crate::backlog::Backlog;
use crate::clock::{MS, Slice};
use crate::framing::Format;
use crate::handover::{
    Gone, Head, Hello, More, OLDEST_VERSION, Offer, PARCEL_ROWS, Parcel, Peer, Poll, Receipt, Record, Stream, Tls, version_of,
};
use crate::id::Id;
use crate::listener::Listener;
use crate::mail::MoveReport;
use crate::rows::{Input, State};
use crate::shard::Shard;
use crate::telemetry::{add, subtract};

/// A parcel with more bytes that wait for slow clients is complete: they are in memory twice.
const MOST_WAITING_BYTES: usize = 1 << 20;
/// How soon a parcel is sent again that the kernel had no room for.
const AGAIN_NS: u64 = MS;

#[derive(Debug, Default)]
pub struct Giving {
    offer: Option<Offer>,
    takers: Vec<Taker>,
    round: Option<Round>,
    /// Rows that have their receipt, and the ids that they have in another shard.
    moved: Vec<(u32, Id)>,
    /// What was read of heads that are on their way, and the addresses of their clients, by row.
    heads: HashMap<u32, (Vec<u8>, Option<IpAddr>)>,
    /// Nobody accepts from them until they are released or taken back.
    listeners: Vec<Listener>,
    /// Streams that could not be taken. They are not offered again.
    refused: HashSet<Id>,
    parcels: u32,
}

#[derive(Debug)]
struct Taker {
    peer: Peer,
    /// None until it has come.
    hello: Option<Hello>,
    /// Rows that it was sent.
    sent: usize,
    has_listeners: bool,
    /// What waits for its receipt.
    parcel: Option<OnItsWay>,
    is_gone: bool,
}

#[derive(Debug)]
struct OnItsWay {
    number: u32,
    /// Empty for listeners.
    rows: Vec<u32>,
    /// What the kernel had no room for yet.
    unsent: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Round {
    until_ns: u64,
    /// Rows below it had their turn.
    next_row: u32,
    wants_ids: bool,
    /// Rows at its beginning, of which each taker gets its share.
    rows: usize,
    is_broken: bool,
    is_reported: bool,
}

impl Taker {
    /// Whether it can be sent something.
    fn is_free(&self) -> bool {
        !self.is_gone && self.hello.is_some() && self.parcel.is_none() && !self.peer.is_sending()
    }

    fn weight(&self) -> f64 {
        self.hello.map_or(0.0, |hello| hello.weight)
    }

    /// How many of `rows` are left for it.
    fn share_left(&self, rows: usize, weights: f64) -> usize {
        let share = (rows as f64 * self.weight() / weights).ceil() as usize;
        share.saturating_sub(self.sent)
    }
}

impl Giving {
    /// Whether takers may connect.
    pub fn is_offering(&self) -> bool {
        self.offer.is_some()
    }

    /// Whether a round is under way: what JS says has to wait.
    pub fn is_in_round(&self) -> bool {
        self.round.is_some()
    }

    /// The taker that is to be sent something now, and how many rows.
    fn next_taker(&self, rows: usize) -> Option<(usize, usize)> {
        let weights: f64 = self.takers.iter().map(Taker::weight).sum();
        let left = |taker: &Taker| taker.share_left(rows, weights);
        let all_have_theirs = self.takers.iter().all(|taker| taker.is_gone || left(taker) == 0);
        let free = self.takers.iter().enumerate().filter(|(_, taker)| taker.is_free());
        let mut fitting = free.filter(|(_, taker)| all_have_theirs || left(taker) > 0);
        fitting.next().map(|(number, taker)| (number, if all_have_theirs { PARCEL_ROWS } else { left(taker).min(PARCEL_ROWS) }))
    }
}

impl Shard {
    /// Lets takers connect, under the name that is returned.
    pub(in crate::shard) fn offer(&mut self) -> io::Result<String> {
        if self.giving.offer.is_none() {
            let offer = Offer::open()?;
            self.reactor.watch_level(&offer, OFFER)?;
            self.giving.offer = Some(offer);
        }
        Ok(self.giving.offer.as_ref().map_or(String::new(), |offer| offer.name().to_string()))
    }

    /// Somebody has connected.
    pub(in crate::shard) fn accept_takers(&mut self) {
        while let Some(peer) = self.giving.offer.as_ref().and_then(Offer::accept) {
            let token = TAKERS + self.giving.takers.len() as u64;
            if self.watch_peer(&peer, token).is_ok() {
                let taker = Taker { peer, hello: None, sent: 0, has_listeners: false, parcel: None, is_gone: false };
                self.giving.takers.push(taker);
            }
        }
    }

    /// From now on rows move, for so long; what JS says afterwards waits.
    pub(in crate::shard) fn begin_round(&mut self, length_ms: u64, wants_ids: bool) {
        self.accept_takers();
        // Every taker of this round has said hello before it.
        (0..self.giving.takers.len()).for_each(|number| self.handle_taker(number));
        let listeners = std::mem::take(&mut self.door.listeners);
        for listener in &listeners {
            self.reactor.forget(listener);
        }
        let is_broken = !self.giving.takers.iter().any(Taker::is_free);
        self.giving.listeners.extend(listeners);
        for taker in &mut self.giving.takers {
            taker.sent = 0;
        }
        let until_ns = self.now_ns + length_ms * MS;
        self.giving.round = Some(Round { until_ns, next_row: 0, wants_ids, rows: self.rows.used(), is_broken, is_reported: false });
    }

    /// When the round goes on by itself.
    pub(in crate::shard) fn next_parcel_ns(&self) -> Option<u64> {
        let round = self.giving.round.as_ref().filter(|round| !round.is_reported)?;
        let waits = self.giving.takers.iter().any(|taker| taker.parcel.as_ref().is_some_and(|parcel| parcel.unsent.is_some()));
        let has_more = !self.is_over(round) && self.giving.takers.iter().any(Taker::is_free);
        if has_more { Some(0) } else { waits.then_some(self.now_ns + AGAIN_NS) }
    }

    fn is_over(&self, round: &Round) -> bool {
        round.is_broken || self.now_ns >= round.until_ns || round.next_row as usize >= self.rows.len()
    }

    /// Sends parcels for a slice.
    pub(in crate::shard) fn give_some(&mut self) {
        let Some(round) = &self.giving.round else { return };
        if round.is_reported {
            return;
        }
        let rows = round.rows;
        self.give_listeners();
        self.send_again();
        let mut slice = Slice::of(self.slice_ns);
        while self.giving.round.as_ref().is_some_and(|round| !self.is_over(round)) {
            let Some((taker, most)) = self.giving.next_taker(rows) else { break };
            self.give_parcel(taker, most);
            if slice.is_over_now() {
                break;
            }
        }
        self.report_round();
    }

    /// Every taker gets all listeners, so that somebody accepts from each of them.
    fn give_listeners(&mut self) {
        if self.giving.listeners.is_empty() {
            return;
        }
        let listeners = self.giving.listeners.iter().take(PARCEL_ROWS);
        let records: Vec<Record> = listeners.map(|listener| Record::Listener { is_tls: listener.is_tls }).collect();
        for number in 0..self.giving.takers.len() {
            if self.giving.takers[number].is_free() && !self.giving.takers[number].has_listeners {
                self.giving.takers[number].has_listeners = true;
                self.send_parcel(number, records.clone(), Vec::new());
            }
        }
    }

    fn give_parcel(&mut self, taker: usize, most: usize) {
        let (mut rows, mut records) = (Vec::with_capacity(most), Vec::with_capacity(most));
        let known = self.giving.takers[taker].hello.map_or(0, |hello| hello.version);
        let mut waiting = 0;
        while rows.len() < most
            && waiting < MOST_WAITING_BYTES
            && let Some(index) = self.next_to_move()
        {
            if self.version_of(index) > known {
                self.giving.refused.insert(self.rows.id_of(index));
            } else if let Some(record) = self.pack(index) {
                waiting += self.backlogs.get(&index).map_or(0, |backlog| backlog.waiting().len());
                rows.push(index);
                records.push(record);
            }
        }
        if !rows.is_empty() {
            self.giving.takers[taker].sent += rows.len();
            self.send_parcel(taker, records, rows);
        }
    }

    fn next_to_move(&mut self) -> Option<u32> {
        let round = self.giving.round.as_mut()?;
        let index = round.next_row;
        round.next_row += 1;
        ((index as usize) < self.rows.len()).then_some(index)
    }

    /// The version that a taker of a row has to know.
    fn version_of(&self, index: u32) -> u8 {
        let format = match self.rows.state(index) {
            State::Idle => None,
            State::Held => Some(self.rows.format(index)),
            _ => Some(Format::default()),
        };
        version_of(format, self.tls.session(index).is_some())
    }

    /// Takes a row out of the epoll, and makes a record of it. None if it can't move now.
    fn pack(&mut self, index: u32) -> Option<Record> {
        match self.rows.state(index) {
            State::Held => self.pack_stream(index).map(Record::Stream),
            // A handshake belongs to rustls until it is over, and its last bytes have to be written.
            State::Head if !self.tls.is_greeting(index) && !self.rows.is_backlogged(index) => Some(Record::Head(self.pack_head(index))),
            State::Idle if !self.rows.is_backlogged(index) => {
                self.pack_head(index);
                Some(Record::Idle { tls: self.pack_tls(index) })
            }
            _ => None,
        }
    }

    fn pack_stream(&mut self, index: u32) -> Option<Stream> {
        let deliveries = self.catch_up(index);
        add(&self.telemetry.deliveries, deliveries.into());
        if !self.is_movable(index) {
            return None;
        }
        self.reactor.forget(self.rows.socket(index)?);
        let format = self.rows.format(index);
        let more = self.pack_more(index);
        self.rows.row(index).state = State::Moving;
        let backlog = self.backlogs.get(&index);
        Some(Stream {
            format,
            due_ns: self.pinger.wheel.due_of(index),
            label: self.labels.of(index),
            tag: self.tags.get(&index).cloned().unwrap_or_default(),
            channels: self.channels.names_of(index),
            backlog: backlog.map_or(&[][..], Backlog::waiting).into(),
            exempt: backlog.map_or(0, Backlog::exempt) as u32,
            more,
            tls: self.pack_tls(index),
        })
    }

    fn pack_more(&mut self, index: u32) -> More {
        let format = self.rows.format(index);
        if format.is_websocket() {
            return self.websockets.pack(index);
        }
        if !format.is_poll() {
            return More::Nothing;
        }
        let left_ms = self.poll_left_ms(index);
        let rest = self.door.arriving.read_of(index).into();
        let row = self.rows.row(index);
        let lines = self.polls.lines(row.aside())[..].into();
        More::Poll(Poll { lines, left_ms, keeps_connection: row.keeps_connection(), is_http_1_0: row.is_http_1_0(), rest })
    }

    fn pack_tls(&self, index: u32) -> Option<Tls> {
        let session = self.tls.session(index)?.clone();
        Some(Tls { session, unread: self.tls.unread(index).into() })
    }

    /// Whether a row is a stream that may move. One of updates without channels is still getting what it has missed, from JS.
    fn is_movable(&self, index: u32) -> bool {
        let is_joining = self.rows.format(index).is_of_updates() && !self.channels.has(index);
        self.rows.state(index) == State::Held && !is_joining && !self.giving.refused.contains(&self.rows.id_of(index))
    }

    fn pack_head(&mut self, index: u32) -> Head {
        if let Some(socket) = self.rows.socket(index) {
            self.reactor.forget(socket);
        }
        let address = self.door.arriving.address_of(index);
        let read = self.door.arriving.take(index).unwrap_or_default();
        let age_ms = self.now_ms().wrapping_sub(self.rows.row(index).since_ms);
        let row = self.rows.row(index);
        (row.state, row.input) = (State::Parked, Input::Unwatched);
        let head = Head { age_ms, read: read.as_slice().into(), tls: self.pack_tls(index) };
        self.giving.heads.insert(index, (read, address));
        head
    }

    fn send_parcel(&mut self, taker: usize, records: Vec<Record>, rows: Vec<u32>) {
        self.giving.parcels = self.giving.parcels.wrapping_add(1);
        let number = self.giving.parcels;
        let unsent = Some(Parcel { number, records }.encode());
        self.giving.takers[taker].parcel = Some(OnItsWay { number, rows, unsent });
        self.try_to_send(taker);
    }

    fn send_again(&mut self) {
        for taker in 0..self.giving.takers.len() {
            self.try_to_send(taker);
        }
    }

    /// Sends the parcel of a taker if it was not sent yet.
    fn try_to_send(&mut self, taker: usize) {
        let Giving { takers, listeners, .. } = &mut self.giving;
        let Taker { peer, parcel: Some(parcel), .. } = &mut takers[taker] else { return };
        let Some(frame) = &parcel.unsent else { return };
        let of_rows = parcel.rows.iter().filter_map(|row| self.rows.socket(*row)).map(AsFd::as_fd);
        let of_listeners = listeners.iter().take(PARCEL_ROWS).map(AsFd::as_fd);
        let fds: Vec<BorrowedFd> = if parcel.rows.is_empty() { of_listeners.collect() } else { of_rows.collect() };
        match peer.send(frame, &fds) {
            Ok(true) => parcel.unsent = None,
            Ok(false) => {}
            Err(Gone) => self.lose_taker(taker),
        }
    }

    /// A round without it can't be completed.
    fn lose_taker(&mut self, taker: usize) {
        self.giving.takers[taker].is_gone = true;
        self.reactor.forget(&self.giving.takers[taker].peer);
        if let Some(round) = &mut self.giving.round {
            round.is_broken = true;
        }
        self.report_round();
    }

    pub(super) fn handle_taker(&mut self, number: usize) {
        if self.giving.takers.get(number).is_none_or(|taker| taker.is_gone) {
            return;
        }
        if self.serve_taker(number).is_err() {
            self.lose_taker(number);
        }
        self.report_round();
    }

    fn serve_taker(&mut self, number: usize) -> Result<(), Gone> {
        let read = self.giving.takers[number].peer.read();
        while let Some((frame, _)) = self.giving.takers[number].peer.next_frame()? {
            if self.giving.takers[number].hello.is_none() {
                self.giving.takers[number].hello = Some(hello_in(&frame)?);
            } else {
                let receipt = Receipt::decode(&frame).map_err(|_| Gone)?;
                self.take_receipt(number, &receipt)?;
            }
        }
        read?;
        self.giving.takers[number].peer.send_more()
    }

    fn take_receipt(&mut self, number: usize, receipt: &Receipt) -> Result<(), Gone> {
        let parcel = self.giving.takers[number].parcel.take().filter(|parcel| parcel.number == receipt.number).ok_or(Gone)?;
        // Without the listeners, nobody could connect any more.
        if parcel.rows.is_empty() && (0..self.giving.listeners.len().min(PARCEL_ROWS)).any(|place| receipt.id(place).is_none()) {
            return Err(Gone);
        }
        for (place, index) in parcel.rows.into_iter().enumerate() {
            match receipt.id(place) {
                Some(id) => self.giving.moved.push((index, id)),
                None => {
                    self.giving.refused.insert(self.rows.id_of(index));
                    self.take_row_back(index);
                }
            }
        }
        Ok(())
    }

    /// Tells JS once that nothing is on its way any more.
    fn report_round(&mut self) {
        let Some(round) = &self.giving.round else { return };
        let is_waiting = !round.is_broken && self.giving.takers.iter().any(|taker| taker.parcel.is_some());
        if round.is_reported || is_waiting || !self.is_over(round) {
            return;
        }
        let is_broken = round.is_broken;
        let left = (0..self.rows.len() as u32).filter(|index| self.may_move_later(*index)).count();
        let report = MoveReport { shard: self.number, prepared: self.giving.moved.len() as u32, left: left as u32, is_broken };
        self.mail.events.moves.push(report);
        if let Some(round) = &mut self.giving.round {
            round.is_reported = true;
        }
    }

    fn may_move_later(&self, index: u32) -> bool {
        match self.rows.state(index) {
            State::Head | State::Asked | State::Idle => true,
            State::Held => !self.giving.refused.contains(&self.rows.id_of(index)),
            _ => false,
        }
    }

    /// The others have what moved: here, it is gone.
    pub(in crate::shard) fn release_moved(&mut self) {
        let wants_ids = self.giving.round.take().is_some_and(|round| round.wants_ids);
        let mut ids = Vec::new();
        for (index, id) in std::mem::take(&mut self.giving.moved) {
            if self.giving.heads.remove(&index).is_none() {
                if wants_ids {
                    ids.push((self.rows.id_of(index), id));
                }
                self.forget_stream(index);
            }
            self.free(index);
        }
        self.giving.listeners.clear();
        self.mail.events.released.push((self.number, ids));
    }

    /// Forgets a stream that is not counted as closed.
    fn forget_stream(&mut self, index: u32) {
        self.forget_details(index);
        self.held -= 1;
        subtract(&self.telemetry.streams, 1);
        subtract(&self.telemetry.updates, u64::from(self.rows.format(index).is_of_updates()));
    }

    /// Everything goes on here as before the round, and the offer ends.
    pub(in crate::shard) fn take_back(&mut self) {
        let on_their_way = self.giving.takers.iter_mut().filter_map(|taker| taker.parcel.take());
        let rows: Vec<u32> = on_their_way.flat_map(|parcel| parcel.rows).collect();
        let moved = std::mem::take(&mut self.giving.moved).into_iter().map(|(index, _)| index);
        for index in moved.chain(rows) {
            self.take_row_back(index);
        }
        let listeners = std::mem::take(&mut self.giving.listeners);
        self.accept_from(listeners);
        self.giving = Giving::default();
    }

    fn take_row_back(&mut self, index: u32) {
        match self.giving.heads.remove(&index) {
            Some((read, address)) => self.resume_head(index, &read, address),
            None => {
                self.rows.row(index).state = State::Held;
                self.watch(index);
            }
        }
    }

    /// The offer has ended; what has moved stays where it is now.
    pub(in crate::shard) fn withdraw(&mut self) {
        if self.giving.is_in_round() {
            return self.take_back();
        }
        self.giving = Giving::default();
    }

    /// Including those that are on their way.
    pub(in crate::shard) fn all_listeners(&mut self) -> Vec<Listener> {
        let mut all = std::mem::take(&mut self.door.listeners);
        all.append(&mut self.giving.listeners);
        all
    }
}

/// A taker that does not understand our records gets none.
fn hello_in(frame: &[u8]) -> Result<Hello, Gone> {
    Hello::decode(frame).ok().filter(|hello| hello.version >= OLDEST_VERSION).ok_or(Gone)
}
