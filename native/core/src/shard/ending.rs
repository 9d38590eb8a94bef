//! Streams that JS does not end one by one: all on a channel, all with a label, all of updates, and those whose time is over. They
//! are collected at once and end gently, a slice in each turn.

use super::Shard;
use crate::id::Id;
use crate::labels::{Kind, Label};
use crate::rows::State;
use crate::telemetry::{Reason, add};

/// An emptied queue keeps room for this many.
const KEPT: usize = 64;

impl Shard {
    pub(super) fn label(&mut self, id: Id, label: Label) {
        if let Some(index) = self.held_row(id) {
            self.labels.set(index, label);
        }
    }

    pub(super) fn tag(&mut self, id: Id, tag: Box<[u8]>) {
        if let Some(index) = self.held_row(id) {
            self.set_tag(index, tag);
        }
    }

    /// An empty tag is none.
    pub(super) fn set_tag(&mut self, index: u32, tag: Box<[u8]>) {
        if tag.is_empty() {
            self.tags.remove(&index);
        } else {
            self.tags.insert(index, tag);
        }
    }

    pub(super) fn end_channel(&mut self, channel: &[u8], reason: Reason) {
        let rows = self.channels.rows_of(channel).iter();
        self.ending.extend(rows.map(|index| (self.rows.id_of(*index), reason)));
    }

    pub(super) fn end_labelled(&mut self, kind: Kind, value: u32, reason: Reason) {
        let rows = self.labels.rows_with(kind, value);
        self.ending.extend(rows.map(|index| (self.rows.id_of(index), reason)));
    }

    /// Until they have ended, nothing more is read from JS: so nothing that was said after it reaches them, no cursor either.
    pub(super) fn end_updates(&mut self, reason: Reason) {
        for index in 0..self.rows.len() as u32 {
            if self.rows.state(index) == State::Held && self.rows.format(index).is_of_updates() {
                self.ending.push_back((self.rows.id_of(index), reason));
            }
        }
        self.mail.is_paused = !self.ending.is_empty();
    }

    /// Looks for streams whose time is over.
    pub(super) fn end_expired(&mut self) {
        if self.labels.next_search_ns().is_some_and(|due_ns| due_ns <= self.now_ns) {
            let over = self.labels.search(self.now_ns).into_iter();
            self.ending.extend(over.map(|index| (self.rows.id_of(index), Reason::Expired)));
        }
    }

    /// Ends some of those that were collected.
    pub(super) fn end_some(&mut self) {
        if self.ending.is_empty() {
            return;
        }
        let mut slice = self.slice();
        while let Some((id, reason)) = self.ending.pop_front() {
            if let Some(index) = self.held_row(id) {
                let deliveries = self.finish(index, reason);
                add(&self.telemetry.deliveries, deliveries.into());
            }
            if slice.is_over() {
                break;
            }
        }
        if self.ending.is_empty() {
            self.ending.shrink_to(KEPT);
            self.mail.is_paused = false;
        }
    }
}
