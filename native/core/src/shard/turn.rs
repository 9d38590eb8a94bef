//! The loop of a shard. A turn handles events, commands, pings and fan-outs, each for a slice of time at most.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::Sender;

use rustix::event::epoll::{Event, EventFlags};

use super::Shard;
use super::handover::{OFFER, TAKERS};
use super::tls::RELAYED;
use crate::clock::{MS, cpu_ns, unix_us};
use crate::id::Id;
use crate::listener::Listener;
use crate::reactor::{self, BELL, EVENTS_A_TURN, Reactor, Task, has_input};
use crate::rows::{Input, State};

/// The token of the listener. Rows have smaller ones.
pub(super) const LISTENER: u64 = BELL - 1;

/// The shortest time between two reports to JS. Heads that come together are answered together; a single one is reported
/// at once. Waking JS and being woken by it costs as much as dozens of heads. The next request on a connection that is kept does not wait:
/// its client would wait for so long after each answer.
const TELL_EVERY_NS: u64 = 4 * MS;
const NEVER_NS: u64 = u64::MAX;

impl Task for Shard {
    /// When connections come more often than this, several are accepted in one turn: a turn for each would cost as much
    /// as they do.
    const OFTEN_NS: u64 = 2 * MS;
    const REST_NS: u64 = MS;

    fn reactor(&self) -> &Reactor {
        &self.reactor
    }

    fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    fn turn(&mut self, ready: &[Event], now_ns: u64) {
        self.now_ns = now_ns;
        self.door.date.set(unix_us() / 1_000_000);
        self.door.accepted_in_turn = 0;
        self.door.continued_in_turn = 0;
        // What was said before a head came takes effect before the head is answered (`hold_cached`).
        if self.mail.inbox.has_mail() {
            self.read_mail();
        }
        // If there is more than one turn can handle, JS and new connections would wait behind all of it.
        let is_full = ready.len() == EVENTS_A_TURN || self.has_events();
        if is_full {
            self.handle_mail();
        }
        let cpu_before_ns = cpu_ns();
        if is_full && !self.rows.is_full() {
            self.accept();
        }
        for event in ready {
            self.sort(event);
        }
        self.handle_events();
        self.hear_waiting();
        self.retry_passing();
        self.note_door_cpu(cpu_before_ns);
        self.handle_mail();
        self.give_some();
        self.send_pings();
        self.fan_out();
        self.sweep();
        self.end_expired();
        self.end_some();
        self.continue_drain();
        self.continue_census();
        self.report_published();
        self.give_back_memory();
        self.tell_js();
    }

    fn next_turn_ns(&self) -> u64 {
        if self.is_behind() {
            return 0;
        }
        let times = [
            self.has_news().then_some(self.mail.told_ns + TELL_EVERY_NS),
            (self.held > 0).then(|| self.pinger.wheel.due_ns()),
            self.has_outsiders().then_some(self.door.sweep_ns),
            self.resume_accepting_ns(),
            self.next_drain_step_ns(),
            self.labels.next_search_ns(),
            (!self.door.passing.is_empty()).then_some(self.now_ns + MS),
            self.next_parcel_ns(),
            self.next_hearing_ns(),
            self.tls.gives_back_ns(),
        ];
        times.into_iter().flatten().min().unwrap_or(NEVER_NS)
    }

    fn may_rest(&self) -> bool {
        self.door.accepted_in_turn + self.door.continued_in_turn > 0 && !self.is_behind()
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped
    }
}

impl Shard {
    /// Whether work is left because the slices were too short.
    pub(super) fn is_behind(&self) -> bool {
        self.has_events()
            || (!self.mail.unread.is_empty() && !self.giving.is_in_round())
            || self.channels.is_fanning_out()
            || !self.ending.is_empty()
            || self.labels.is_searching()
            || self.census.is_some()
    }

    /// Handles an event of the bell or the listener at once; those of connections are queued.
    fn sort(&mut self, event: &Event) {
        let data = event.data;
        match data.u64() {
            BELL => self.read_mail(),
            LISTENER => self.accept(),
            OFFER => self.accept_takers(),
            token @ TAKERS.. => self.handle_peer(token),
            _ => self.events.push_back(*event),
        }
    }

    /// Handles events of connections, for a slice.
    fn handle_events(&mut self) {
        let mut slice = self.slice();
        while let Some(Event { data, flags }) = self.events.pop_front() {
            let token = data.u64();
            if token & RELAYED != 0 {
                self.continue_relay(Id::from_bits(token & !RELAYED));
            } else if let Some(index) = self.rows.find(Id::from_bits(token)) {
                self.handle_row(index, flags);
            }
            if slice.is_over_now() {
                return;
            }
        }
    }

    fn handle_row(&mut self, index: u32, flags: EventFlags) {
        match self.rows.state(index) {
            State::Free | State::Moving | State::Parked => {}
            State::Head => {
                if flags.contains(EventFlags::OUT) {
                    self.write_backlog(index);
                }
                self.continue_head(index, reactor::has_ended(flags));
            }
            State::Idle => {
                if flags.contains(EventFlags::OUT) {
                    self.write_backlog(index);
                }
                if has_input(flags) && self.rows.state(index) == State::Idle {
                    self.begin_request(index, reactor::has_ended(flags));
                }
            }
            State::Asked => {
                if flags.contains(EventFlags::OUT) {
                    self.write_backlog(index);
                }
                if has_input(flags) {
                    self.rows.row(index).input = Input::Some;
                }
            }
            State::Relayed => self.continue_relay(self.rows.id_of(index)),
            State::Held | State::Ending => {
                if flags.contains(EventFlags::OUT) {
                    self.write_backlog(index);
                }
                if has_input(flags) {
                    self.read_input(index);
                }
            }
            State::Lingering => self.discard(index),
        }
    }

    /// Its state may have changed since the event: a backlog was written, or could not be.
    fn read_input(&mut self, index: u32) {
        match self.rows.state(index) {
            State::Held => self.read_stream(index),
            State::Ending | State::Lingering => self.discard(index),
            State::Free | State::Head | State::Idle | State::Asked | State::Moving | State::Parked | State::Relayed => {}
        }
    }

    pub(super) fn reply_listening(&mut self, address: SocketAddr, is_tls: bool, reply: &Sender<io::Result<u16>>) {
        // Nobody waits any more if the caller is gone.
        let _ = reply.send(self.listen(address, is_tls));
    }

    /// Looks at some more channels.
    fn continue_census(&mut self) {
        let Some(mut census) = self.census.take() else { return };
        if self.channels.count_some(&mut census, &mut self.slice()) {
            self.mail.events.counted.push(census.into_counted());
        } else {
            self.census = Some(census);
        }
    }

    fn listen(&mut self, address: SocketAddr, is_tls: bool) -> io::Result<u16> {
        let (listener, port) = Listener::open(address, is_tls, &self.options)?;
        self.reactor.watch_level(&listener, LISTENER)?;
        self.door.listeners.push(listener);
        Ok(port)
    }

    pub(super) fn unlisten(&mut self) {
        self.door.listeners.clear();
    }

    /// When to accept again, if there is a reason not to.
    pub(super) fn resume_accepting_ns(&self) -> Option<u64> {
        self.door.accepting.resume_ns().filter(|_| !self.door.listeners.is_empty())
    }

    /// Tells JS what was gathered, unless it was told a moment ago.
    fn tell_js(&mut self) {
        let is_time = self.mail.is_urgent || self.now_ns >= self.mail.told_ns + TELL_EVERY_NS;
        if is_time && self.has_news() {
            self.mail.told_ns = self.now_ns;
            self.mail.is_urgent = false;
            self.mail.post();
        }
    }

    fn has_news(&self) -> bool {
        !self.mail.heads.ids.is_empty() || !self.mail.events.is_empty()
    }

    /// CPU spent on connections is the cost of the streams that they become, in this turn or a later one.
    fn note_door_cpu(&mut self, before_ns: u64) {
        self.door.cpu_ns += cpu_ns() - before_ns;
        self.record_opened();
    }

    /// JS takes what there is to report once all shards have stopped.
    pub(super) fn stop(&mut self) {
        self.is_stopped = true;
        self.mail.post();
    }

    pub(super) fn record_opened(&mut self) {
        let door = &mut self.door;
        if door.opened_in_turn > 0 {
            self.telemetry.open_cpu.record(door.cpu_ns / u64::from(door.opened_in_turn), door.opened_in_turn);
            door.cpu_ns = 0;
            door.opened_in_turn = 0;
        }
    }
}

impl super::Mail {
    /// Reports what the client of a WebSocket has said.
    pub(super) fn hear(&mut self, id: Id, text: Vec<u8>) {
        self.outbox.add_said(text.len());
        self.events.said.push((id, text));
    }

    /// Moves everything to the mailbox of JS.
    pub(super) fn post(&mut self) {
        if !self.heads.ids.is_empty() {
            self.events.heads.push_back(std::mem::take(&mut self.heads));
        }
        if self.outbox.post(&mut self.events) {
            // It can only fail if nobody reads any more.
            let _ = rustix::io::write(&self.bell_of_js, &[0]);
        }
    }
}
