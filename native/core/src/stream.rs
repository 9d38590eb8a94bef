//! From held to gone: what is written to streams, what waits where the kernel took no more, and how they end.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recv, recvmsg, send, sockopt};

use crate::command::{Opening, Records};
use crate::door::LINGER_NS;
use crate::framing::{Format, Message};
use crate::id::Id;
use crate::rows::{Input, NONE, State};
use crate::shard::{Drain, MS, SCRATCH_BYTES, SLICE_NS, STRIDE, Shard, cpu_ns, now_ns};
use crate::telemetry::{Reason, add, take_off};

/// An adopted socket may be one that waits.
const NEVER_WAIT: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);
/// Empty lines that a client may send on a stream before it counts as one that sends nonsense.
const EMPTY_READS: usize = 16;
/// How often streams are let go in a drain.
const DRAIN_STEP_NS: u64 = 20 * MS;
/// The most that an adoption's record takes: token, format and channels.
pub const ADOPTION_BYTES: usize = 16_384;

/// Bytes that the kernel refused.
#[derive(Debug, Default)]
pub struct Backlog {
    bytes: Vec<u8>,
    sent: usize,
}

impl Backlog {
    pub(crate) fn waiting(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// The kernel took so many. What was sent is given up once it is the greater part, so that a stream which never
    /// quite catches up does not keep all it ever had.
    fn take_off(&mut self, count: usize) {
        self.sent += count;
        if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// What it keeps in memory, sent or not.
    pub(crate) fn kept(&self) -> usize {
        self.bytes.len()
    }
}

/// What is to be said to streams, in the order it was asked for.
#[derive(Debug)]
pub enum Job {
    Send(Id, Arc<Message>),
    Close(Id),
    Subscribe(Id, Box<[u8]>),
    Unsubscribe(Id, Box<[u8]>),
    Publish(Box<[u8]>, Arc<Message>),
    /// What was said before a drain leaves before the streams are let go.
    LetGo,
}

/// A message on its way through the list of a channel.
#[derive(Debug)]
pub struct Walk {
    channel: u32,
    message: Arc<Message>,
    place: usize,
    end: usize,
}

impl Shard {
    /// Makes a stream of a connection whose head was asked about, and says its opening. Where there is no room JS is
    /// asked for a refusal instead.
    pub(crate) fn hold(&mut self, id: Id, opening: &Opening) {
        let Some(index) = self.asked(id) else { return };
        if self.held >= self.options.capacity || self.drain.is_some() {
            return self.ask_refusal(index, 503);
        }
        let row = self.rows.row(index);
        let Some(fd) = &row.fd else { return };
        // The head was only peeked at. The kernel takes it off without a copy.
        let size = row.head_bytes as usize;
        if recv(fd, &mut self.scratch[..size], RecvFlags::TRUNC).is_err() {
            return drop(self.free(index));
        }
        let input = row.input;
        self.open(index, opening.format, &opening.channels);
        self.opened_in_turn += 1;
        if !self.write(index, &opening.bytes) {
            return;
        }
        match input {
            Input::Unwatched => self.watch(index),
            Input::None => {}
            Input::Some => self.read_stream(index),
        }
    }

    /// Takes a connection that another server answered, with all it has to say so far.
    pub(crate) fn receive(&mut self) {
        let mut bytes = vec![0; ADOPTION_BYTES];
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let Ok(message) = recvmsg(&self.transfer, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) else { return };
            let fd = control.drain().find_map(|sent| match sent {
                RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
                _ => None,
            });
            if message.bytes == 0 {
                return; // the other end is closed
            }
            self.adopt(fd, &bytes[..message.bytes]);
        }
    }

    fn adopt(&mut self, fd: Option<OwnedFd>, record: &[u8]) {
        let mut fields = Records::new(record);
        let (Ok(token), Ok(format), Ok(channels)) = (fields.u32(), fields.format(), fields.texts()) else { return };
        let adopted = fd.filter(|_| self.held < self.options.capacity && !self.rows.is_full() && self.drain.is_none()).and_then(|fd| {
            let _ = sockopt::set_tcp_nodelay(&fd, self.options.nodelay);
            let _ = sockopt::set_tcp_user_timeout(&fd, self.options.user_timeout_ms);
            let index = self.insert(fd);
            self.open(index, format, &channels);
            let id = self.rows.id_of(index);
            self.watch(index);
            self.rows.find(id).map(|_| id)
        });
        self.events.adopted.push((token, adopted));
    }

    fn open(&mut self, index: u32, format: Format, channels: &[Box<[u8]>]) {
        let row = self.rows.row(index);
        row.state = State::Held;
        row.format = format;
        let mut link = NONE;
        for channel in channels {
            self.channels.subscribe(index, &mut link, channel);
        }
        self.rows.row(index).link = link;
        if self.held == 0 {
            self.wheel.skip_to(self.now_ns);
        }
        self.held += 1;
        add(&self.telemetry.streams, 1);
        add(&self.telemetry.opened, 1);
    }

    /// A stream is only listened to: whatever its client sends, or that it ends, ends it.
    pub(crate) fn read_stream(&mut self, index: u32) {
        for _ in 0..EMPTY_READS {
            let Some(fd) = &self.rows.row(index).fd else { return };
            match recv(fd, &mut self.scratch[..SCRATCH_BYTES], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return self.close(index, Reason::ClientGone),
                Ok((count, _)) => {
                    if self.scratch[..count].iter().any(|byte| !matches!(byte, b'\r' | b'\n')) {
                        return self.close(index, Reason::BadRequest);
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(error) => return self.close(index, reason_of(error)),
            }
        }
        self.close(index, Reason::BadRequest);
    }

    /// Writes at once, and keeps as backlog what the kernel refuses. False where the stream has ended of it.
    fn write(&mut self, index: u32, frame: &[u8]) -> bool {
        let row = self.rows.row(index);
        if row.is_backlogged {
            return self.wait(index, frame);
        }
        let Some(fd) = &row.fd else { return false };
        match send(fd, frame, NEVER_WAIT) {
            Ok(count) => {
                add(&self.telemetry.bytes_written, count as u64);
                count == frame.len() || self.wait(index, &frame[count..])
            }
            Err(Errno::AGAIN | Errno::INTR) => self.wait(index, frame),
            Err(error) => {
                self.close(index, reason_of(error));
                false
            }
        }
    }

    /// Adds to the backlog of a stream, or closes it as slow where too much waits already.
    fn wait(&mut self, index: u32, bytes: &[u8]) -> bool {
        let backlog = self.backlogs.entry(index).or_default();
        if backlog.waiting().len() > self.options.max_backlog_bytes {
            self.close(index, Reason::Slow);
            return false;
        }
        backlog.bytes.extend_from_slice(bytes);
        add(&self.telemetry.backlog_bytes, bytes.len() as u64);
        let row = self.rows.row(index);
        if !row.is_backlogged {
            row.is_backlogged = true;
            self.watch_again(index, epoll::EventFlags::OUT);
        }
        true
    }

    /// The kernel has room again.
    pub(crate) fn write_backlog(&mut self, index: u32) {
        let (Some(backlog), Some(fd)) = (self.backlogs.get_mut(&index), &self.rows.row(index).fd) else { return };
        match send(fd, backlog.waiting(), NEVER_WAIT) {
            Ok(count) => {
                backlog.take_off(count);
                add(&self.telemetry.bytes_written, count as u64);
                take_off(&self.telemetry.backlog_bytes, count as u64);
                if !backlog.waiting().is_empty() {
                    return;
                }
                self.forget_backlog(index);
                if self.rows.state(index) == State::Ending {
                    self.end_row(index);
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => self.close(index, reason_of(error)),
        }
    }

    pub(crate) fn forget_backlog(&mut self, index: u32) {
        self.rows.row(index).is_backlogged = false;
        if let Some(backlog) = self.backlogs.remove(&index) {
            take_off(&self.telemetry.backlog_bytes, backlog.waiting().len() as u64);
        }
    }

    /// Ends a stream at once, or what is left of one.
    pub(crate) fn close(&mut self, index: u32, reason: Reason) {
        if self.rows.state(index) == State::Held {
            self.release(index, reason);
        }
        self.end_row(index);
    }

    /// Ends a stream gently: what was written, and a proper end, still leave.
    pub(crate) fn finish(&mut self, index: u32, reason: Reason) {
        if self.rows.state(index) != State::Held || !self.write(index, self.rows.format(index).end()) {
            return;
        }
        self.release(index, reason);
        if !self.rows.row(index).is_backlogged {
            self.end_row(index);
            return;
        }
        let row = self.rows.row(index);
        row.state = State::Ending;
        row.since_ms = (self.now_ns / MS) as u32;
    }

    /// It is no stream any more, and counted as one that ended.
    fn release(&mut self, index: u32, reason: Reason) {
        let mut link = self.rows.row(index).link;
        let rows = &self.rows;
        self.channels.unsubscribe_all(&mut link, |row| rows.link(row));
        self.rows.row(index).link = NONE;
        self.held -= 1;
        take_off(&self.telemetry.streams, 1);
        add(&self.telemetry.closed[reason as usize], 1);
        if self.options.reports_closes {
            self.events.closed.push((self.rows.id_of(index), reason));
        }
    }

    /// Pings what is due, for a slice; the rest is due still, in the next turn. The clock is read once a stride.
    pub(crate) fn ping_due(&mut self) {
        if self.held == 0 || self.wheel.due_ns() > self.now_ns {
            return;
        }
        let (begun_ns, cpu_before_ns) = (now_ns(), cpu_ns());
        let mut at_ns = begun_ns;
        let mut pings = 0;
        while let Some((row, due_ns)) = self.wheel.next(self.now_ns, self.rows.len()) {
            if self.rows.state(row as u32) != State::Held {
                continue;
            }
            self.telemetry.lateness.record(at_ns.saturating_sub(due_ns) / 1000, 1);
            self.write_ping(row as u32);
            pings += 1;
            if pings % STRIDE == 0 {
                at_ns = now_ns();
                if at_ns - begun_ns > SLICE_NS {
                    break;
                }
            }
        }
        if pings > 0 {
            add(&self.telemetry.pings, pings.into());
            self.telemetry.ping_cpu.record((cpu_ns() - cpu_before_ns) / u64::from(pings), pings);
        }
    }

    fn write_ping(&mut self, index: u32) {
        let bits = usize::from(self.rows.format(index).bits());
        let ping = std::mem::take(&mut self.ping[bits]);
        self.write(index, &ping);
        self.ping[bits] = ping;
    }

    pub(crate) fn has_jobs(&self) -> bool {
        self.walk.is_some() || !self.jobs.is_empty()
    }

    /// Does what was asked for, for a slice.
    pub(crate) fn deliver_jobs(&mut self) {
        if !self.has_jobs() {
            return;
        }
        let (begun_ns, cpu_before_ns) = (now_ns(), cpu_ns());
        let mut deliveries = 0;
        let mut steps = 0;
        while let Some(count) = self.step() {
            deliveries += count;
            steps += 1;
            if steps % STRIDE == 0 && now_ns() - begun_ns > SLICE_NS {
                break;
            }
        }
        if deliveries > 0 {
            add(&self.telemetry.deliveries, deliveries.into());
            self.telemetry.delivery_cpu.record((cpu_ns() - cpu_before_ns) / u64::from(deliveries), deliveries);
        }
    }

    /// One delivery, or one other job. None where nothing is left to do.
    fn step(&mut self) -> Option<u32> {
        let Some(mut walk) = self.walk.take() else { return self.begin_job() };
        if walk.place == walk.end {
            let rows = &self.rows;
            self.channels.end_walk(walk.channel, |row| rows.link(row));
            return Some(0);
        }
        let row = self.channels.row_at(walk.channel, walk.place);
        walk.place += 1;
        if let Some(index) = row {
            self.write(index, walk.message.frame(self.rows.format(index)));
        }
        self.walk = Some(walk);
        Some(row.is_some().into())
    }

    fn begin_job(&mut self) -> Option<u32> {
        match self.jobs.pop_front()? {
            Job::Publish(name, message) => {
                self.walk = self.channels.begin_walk(&name).map(|(channel, end)| Walk { channel, message, place: 0, end });
                Some(0)
            }
            Job::Send(id, message) => Some(self.held_row(id).map_or(0, |index| {
                self.write(index, message.frame(self.rows.format(index)));
                1
            })),
            Job::Close(id) => {
                if let Some(index) = self.held_row(id) {
                    self.finish(index, Reason::Drain);
                }
                Some(0)
            }
            Job::LetGo => {
                self.begin_letting_go();
                Some(0)
            }
            Job::Subscribe(id, name) => {
                if let Some(index) = self.held_row(id) {
                    let mut link = self.rows.link(index);
                    self.channels.subscribe(index, &mut link, &name);
                    self.rows.row(index).link = link;
                }
                Some(0)
            }
            Job::Unsubscribe(id, name) => {
                if let Some(index) = self.held_row(id) {
                    let mut link = self.rows.link(index);
                    let rows = &self.rows;
                    self.channels.unsubscribe(&mut link, &name, |row| rows.link(row));
                    self.rows.row(index).link = link;
                }
                Some(0)
            }
        }
    }

    /// The stream that an id names, if it is one still.
    fn held_row(&self, id: Id) -> Option<u32> {
        self.rows.find(id).filter(|index| self.rows.state(*index) == State::Held)
    }

    pub(crate) fn begin_drain(&mut self, period_ns: u64) {
        self.listener = None;
        if self.drain.is_none() {
            self.jobs.push_back(Job::LetGo);
            self.drain = Some(Drain { since_ns: self.now_ns, period_ns, next_row: 0, lets_go: false, is_said: false });
            self.sweep_ns = self.sweep_ns.min(self.now_ns + LINGER_NS);
        }
    }

    fn begin_letting_go(&mut self) {
        if let Some(drain) = &mut self.drain
            && !drain.lets_go
        {
            drain.lets_go = true;
            drain.since_ns = self.now_ns;
        }
    }

    /// When the drain goes on.
    pub(crate) fn next_step_ns(&self) -> Option<u64> {
        self.drain.filter(|drain| !drain.is_said).map(|drain| drain.next_step_ns(self.now_ns, self.rows.len()))
    }

    /// In a drain: lets go of the share of streams whose time has come, and says so when no connection is left.
    pub(crate) fn let_go(&mut self) {
        let Some(mut drain) = self.drain else { return };
        if !drain.lets_go {
            // However much was published, the end is not put off for longer.
            if self.now_ns < drain.since_ns + LINGER_NS {
                return;
            }
            self.begin_letting_go();
            return;
        }
        let until = drain.due_rows(self.now_ns, self.rows.len());
        let slice_ns = now_ns() + SLICE_NS;
        while drain.next_row < until && now_ns() < slice_ns {
            self.finish(drain.next_row as u32, Reason::Drain);
            drain.next_row += 1;
        }
        if self.rows.used() == 0 && !drain.is_said {
            drain.is_said = true;
            self.events.drained.push(self.number);
        }
        self.drain = Some(drain);
    }
}

impl Drain {
    /// How many of the rows are to be gone by now.
    fn due_rows(&self, now_ns: u64, rows: usize) -> usize {
        let passed_ns = now_ns - self.since_ns;
        let share = if self.period_ns == 0 { 1.0 } else { passed_ns as f64 / self.period_ns as f64 };
        ((rows as f64 * share).ceil() as usize).min(rows)
    }

    /// At once where a slice was too short for all that were due: the next turn sees to others before it goes on.
    fn next_step_ns(&self, now_ns: u64, rows: usize) -> u64 {
        let is_behind = self.lets_go && self.next_row < self.due_rows(now_ns, rows);
        if is_behind { now_ns } else { now_ns + DRAIN_STEP_NS }
    }
}

fn reason_of(error: Errno) -> Reason {
    match error {
        Errno::CONNRESET | Errno::PIPE => Reason::ClientGone,
        Errno::TIMEDOUT | Errno::HOSTUNREACH | Errno::NETUNREACH => Reason::DeadPeer,
        _ => Reason::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_goes_on_at_once_while_rows_are_overdue_and_waits_a_step_otherwise() {
        let begun_ns = 1000 * MS;
        let drain = Drain { since_ns: begun_ns, period_ns: 100 * MS, next_row: 500, lets_go: true, is_said: false };
        let wait_ns = |drain: &Drain, ms: u64| drain.next_step_ns(begun_ns + ms * MS, 1000) - begun_ns - ms * MS;
        assert_eq!(wait_ns(&drain, 50), DRAIN_STEP_NS, "as far as it should be");
        assert_eq!(wait_ns(&drain, 60), 0, "100 rows behind");
        assert_eq!(wait_ns(&Drain { period_ns: 0, ..drain }, 0), 0, "all are due at once");
        assert_eq!(wait_ns(&Drain { next_row: 1000, ..drain }, 200), DRAIN_STEP_NS, "all were let go");
        assert_eq!(wait_ns(&Drain { lets_go: false, ..drain }, 60), DRAIN_STEP_NS, "what was said before is to leave first");
    }
}
