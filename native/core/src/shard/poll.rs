//! Polls: requests that are held until there is something to say, or until their time is over, and then answered. A poll is a stream
//! until then. The connection is kept.

use std::collections::HashMap;
use std::sync::Arc;

use super::Shard;
use crate::command::Opening;
use crate::framing::Format;
use crate::json;
use crate::queue::Queued;
use crate::rows::{Input, State};
use crate::socket::Stop;
use crate::telemetry::{Reason, add};

/// The header lines of the application that answers have, by number. Many polls share them.
#[derive(Debug, Default)]
pub(super) struct Polls {
    templates: Vec<Template>,
    numbers: HashMap<Arc<[u8]>, u32>,
    free: Vec<u32>,
    /// Polls held.
    count: usize,
}

#[derive(Debug)]
struct Template {
    lines: Arc<[u8]>,
    polls: usize,
}

impl Polls {
    pub fn add(&mut self, lines: &[u8]) -> u32 {
        self.count += 1;
        if let Some(&number) = self.numbers.get(lines) {
            self.templates[number as usize].polls += 1;
            return number;
        }
        let template = Template { lines: lines.into(), polls: 1 };
        let number = self.free.pop().unwrap_or(self.templates.len() as u32);
        self.numbers.insert(template.lines.clone(), number);
        match self.templates.get_mut(number as usize) {
            Some(free) => *free = template,
            None => self.templates.push(template),
        }
        number
    }

    pub fn remove(&mut self, number: u32) {
        self.count -= 1;
        let template = &mut self.templates[number as usize];
        template.polls -= 1;
        if template.polls == 0 {
            self.numbers.remove(&template.lines);
            self.free.push(number);
        }
    }

    pub fn lines(&self, number: u32) -> &Arc<[u8]> {
        &self.templates[number as usize].lines
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Panics if there are not so many.
    pub fn check(&self, count: usize) {
        assert_eq!(self.count, count, "polls held");
        assert_eq!(self.count, self.numbers.values().map(|number| self.templates[*number as usize].polls).sum::<usize>());
        assert_eq!(self.templates.len(), self.numbers.len() + self.free.len());
    }
}

impl Shard {
    /// Goes on from `hold`: the row is open. `rest` was read after the head.
    pub(super) fn begin_poll(&mut self, index: u32, opening: &Opening, rest: &[u8], input: Input) {
        let until_ms = self.now_ms().wrapping_add(opening.wait_ms);
        let number = self.polls.add(&opening.head);
        let row = self.rows.row(index);
        row.set_aside(number);
        row.since_ms = until_ms;
        self.door.sweep_ns = self.door.sweep_ns.min(self.now_ns + self.sweep_every_ns());
        self.keep_for_later(index, rest);
        self.write_held_back(index);
        if self.rows.state(index) != State::Held {
            return;
        }
        match input {
            Input::Unwatched => self.watch(index),
            Input::None => {}
            Input::Some => self.read_poll(index),
        }
    }

    /// Its client may have left. Or it has sent the next request already, which waits.
    pub(super) fn read_poll(&mut self, index: u32) {
        let Some(socket) = self.rows.socket(index) else { return };
        match socket.peek(&mut [0]) {
            Ok(1..) => self.rows.row(index).input = Input::Some,
            Err(Stop::Later) => {}
            Ok(0) | Err(Stop::Broken(_)) => self.close(index, Reason::ClientGone),
        }
    }

    /// How long a poll still waits.
    pub(super) fn poll_left_ms(&mut self, index: u32) -> u32 {
        let left_ms = self.rows.row(index).since_ms.wrapping_sub(self.now_ms());
        if left_ms > u32::MAX / 2 { 0 } else { left_ms }
    }

    /// Whether it is a poll whose time is over.
    pub(super) fn is_poll_over(&mut self, index: u32) -> bool {
        self.rows.format(index).is_poll() && self.poll_left_ms(index) == 0
    }

    pub(super) fn end_poll_in_time(&mut self, index: u32) {
        let deliveries = self.catch_up(index);
        add(&self.telemetry.deliveries, deliveries.into());
        if self.rows.state(index) == State::Held {
            self.answer_poll(index, &[], Reason::Answered);
        }
    }

    /// Without messages, it only says where the client is.
    pub(super) fn answer_poll(&mut self, index: u32, messages: &[Arc<Queued>], reason: Reason) {
        let goes_on = reason == Reason::Answered && self.may_go_on(index);
        let bytes = self.answer_of(index, messages, goes_on);
        self.release(index, reason);
        if !goes_on {
            return self.answer(index, &bytes);
        }
        // What comes next on the connection is something else.
        self.rows.renew(index);
        self.become_idle(index);
        self.watch_again(index, false);
        self.write_and_go_on(index, &bytes);
    }

    fn answer_of(&mut self, index: u32, messages: &[Arc<Queued>], goes_on: bool) -> Vec<u8> {
        let format = self.rows.format(index);
        let cursor = self.poll_cursor(index, messages);
        let connection = self.connection_line(index, goes_on);
        let template = self.polls.lines(self.rows.row(index).aside()).clone();
        let (status, body) = if messages.is_empty() {
            ("HTTP/1.1 204 No Content\r\n".into(), Vec::new())
        } else {
            let body = body_of(messages, format, cursor.as_deref());
            (format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n", body.len()), body)
        };
        // An id may have characters that no header can have.
        let position = cursor.filter(|cursor| is_field_value(cursor));
        let position = position.map_or(Vec::new(), |cursor| [b"Last-Event-ID: ", &cursor[..], b"\r\n"].concat());
        [status.as_bytes(), &position, &template, connection, self.door.date.bytes(), b"\r\n", &body].concat()
    }

    /// What its client sends with the next poll. The rule is that of pings (`send_ping`).
    fn poll_cursor(&self, index: u32, messages: &[Arc<Queued>]) -> Option<Vec<u8>> {
        if let Some(last) = messages.last() {
            return last.message.id().map(Into::into);
        }
        let is_certain = self.rows.format(index).is_of_updates() && self.channels.has(index) && !self.channels.is_due(index);
        self.pinger.cursor.as_ref().filter(|_| is_certain).map(|cursor| cursor.id().into())
    }
}

/// `{"messages":[…],"cursor":"…"}`, with the messages as they are framed for polls: as JSON.
fn body_of(messages: &[Arc<Queued>], format: Format, cursor: Option<&[u8]>) -> Vec<u8> {
    let frames: Vec<&[u8]> = messages.iter().map(|queued| queued.message.frame(format)).collect();
    let mut body = [b"{\"messages\":[", frames.join(&b","[..]).as_slice(), b"]"].concat();
    if let Some(cursor) = cursor {
        json::push_member(&mut body, "{\"cursor\":", cursor);
    }
    body.extend_from_slice(b"}\n");
    body
}

/// RFC 9110, section 5.5. `positionField` in transport/poll.js accepts the same.
fn is_field_value(text: &[u8]) -> bool {
    text.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control())
}
