//! Publications on their way to the rows of their channels.
//!
//! Channels take turns, so that one with many rows or messages doesn't delay the others. Each row still gets
//! everything in the order in which it was published. Three things make that true:
//!
//! - Everything published in a shard has a sequence number.
//! - A channel sends its oldest publications as one batch, from the end of its list to the beginning. Rows from the cursor
//!   on have had the batch. Rows that subscribe are appended, so they count as having had it.
//! - A row that is on several channels, or that something else is said to, such as a ping, first gets everything that waits
//!   for it, in order (`take_due`). It is then ahead of the fan-outs, which pass over it until they have caught up with it.
//!
//! A publication to several channels waits in each of them, with the same sequence number. A row on one of them gets it in a
//! batch of that one; a row on several of them has it in `take_due`, which leaves out what comes twice.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use super::{Channel, Channels, KEPT, Subscription};
use crate::framing::{FORMATS, Format};
use crate::queue::Queued;

/// A batch is at least one publication, and otherwise as many as fit into this.
const BATCH_BYTES: usize = 16_384;
/// Most rows of other channels that are searched for one.
const MOST_SEARCHED: usize = 64;

/// A publication that some rows of its channel have not got yet.
#[derive(Debug)]
struct Pending {
    sequence: u64,
    queued: Arc<Queued>,
    /// The rows it was for so far.
    listeners: u32,
}

/// The publications that go to each row in one write.
#[derive(Debug)]
pub struct Batch {
    messages: Vec<Arc<Queued>>,
    /// The sequence of the last one.
    through: u64,
    frames: [OnceLock<Box<[u8]>>; FORMATS],
}

impl Batch {
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    pub fn messages(&self) -> &[Arc<Queued>] {
        &self.messages
    }

    /// What is written to a stream of this format.
    pub fn frame(&self, format: Format) -> &[u8] {
        match &self.messages[..] {
            [one] => one.message.frame(format),
            all => self.frames[format.slot()].get_or_init(|| joined(all, format).into()),
        }
    }
}

/// The frames of several messages, one after the other.
pub fn joined(messages: &[Arc<Queued>], format: Format) -> Vec<u8> {
    let frames: Vec<&[u8]> = messages.iter().map(|queued| queued.message.frame(format)).collect();
    frames.concat()
}

/// What a channel has to send, oldest first. There is always something.
#[derive(Debug)]
pub(super) struct FanOut {
    pending: VecDeque<Pending>,
    /// The oldest ones, on their way through the list.
    batch: Option<Arc<Batch>>,
    /// Rows from this place on have had the batch.
    cursor: usize,
    /// Rows that got exactly the batch.
    reached: u32,
}

impl FanOut {
    fn of(first: Pending) -> Box<Self> {
        Box::new(FanOut { pending: [first].into(), batch: None, cursor: 0, reached: 0 })
    }

    /// The batch that is under way, or the next one, which is to go to `rows` rows.
    fn batch(&mut self, rows: usize) -> Arc<Batch> {
        if self.batch.is_none() {
            self.cursor = rows;
            self.reached = 0;
        }
        let pending = &self.pending;
        self.batch.get_or_insert_with(|| Arc::new(next_batch(pending))).clone()
    }

    /// Forgets the batch, which has reached everyone. Returns what was in it.
    fn end_batch(&mut self) -> impl Iterator<Item = (Arc<Queued>, u32)> {
        let count = self.batch.take().map_or(0, |batch| batch.len());
        let reached = self.reached;
        self.pending.drain(..count).map(move |pending| (pending.queued, pending.listeners + reached))
    }

    /// The row at `place` leaves the list. Returns the place whose row takes it over, so that no row misses the batch: if this
    /// one has not had it, the last one that has not either. Any row may then fill the gap there.
    pub(super) fn leave(&mut self, place: usize) -> usize {
        if self.batch.is_none() || place >= self.cursor {
            return place;
        }
        self.cursor -= 1;
        self.cursor
    }

    /// The last publication that the row at `place` has got as part of a batch that is under way.
    fn had(&self, place: usize) -> u64 {
        self.batch.as_ref().filter(|_| place >= self.cursor).map_or(0, |batch| batch.through)
    }

    /// What was published after a sequence.
    fn after(&self, sequence: u64) -> impl Iterator<Item = &Pending> {
        let begin = self.pending.partition_point(|pending| pending.sequence <= sequence);
        self.pending.range(begin..)
    }

    /// One more row has got the publication with this sequence, and not as part of a batch.
    fn count_listener(&mut self, sequence: u64) {
        if let Ok(place) = self.pending.binary_search_by_key(&sequence, |pending| pending.sequence) {
            self.pending[place].listeners += 1;
        }
    }

    /// The sequence of the newest publication.
    fn last(&self) -> u64 {
        self.pending.back().map_or(0, |pending| pending.sequence)
    }

    /// Ends it early. Returns each publication with the number of rows it was for so far.
    pub(super) fn into_finished(self) -> impl Iterator<Item = (Arc<Queued>, u32)> {
        let counted = self.batch.as_ref().map_or(0, |batch| batch.len());
        let reached = self.reached;
        let all = self.pending.into_iter().enumerate();
        all.map(move |(place, pending)| (pending.queued, pending.listeners + if place < counted { reached } else { 0 }))
    }

    /// Panics if it contradicts itself.
    pub(super) fn check(&self, rows: usize) {
        assert!(!self.pending.is_empty(), "a fan-out has something to send");
        assert!(self.pending.iter().is_sorted_by_key(|pending| pending.sequence), "oldest first");
        if let Some(batch) = &self.batch {
            assert!(self.cursor <= rows && batch.len() <= self.pending.len());
            assert_eq!(batch.through, self.pending[batch.len() - 1].sequence);
        }
    }
}

fn next_batch(pending: &VecDeque<Pending>) -> Batch {
    let mut bytes = 0;
    let fitting = pending.iter().take_while(|pending| {
        bytes += pending.queued.message.size();
        bytes <= BATCH_BYTES
    });
    let count = fitting.count().max(1);
    Batch {
        messages: pending.iter().take(count).map(|pending| pending.queued.clone()).collect(),
        through: pending[count - 1].sequence,
        frames: Default::default(),
    }
}

/// The turn of a channel.
#[derive(Debug)]
pub struct Turn {
    channel: u32,
    pub batch: Arc<Batch>,
}

/// What a row gets.
#[derive(Debug)]
pub enum Due {
    Batch,
    /// Something else, which may be nothing.
    Messages(Vec<Arc<Queued>>),
}

impl Channels {
    /// Has a publication wait for its turn in each of the channels. If nobody subscribes to any of them, it is finished.
    pub fn publish<'a>(&mut self, names: impl Iterator<Item = &'a [u8]>, queued: Arc<Queued>) {
        self.sequence += 1;
        let mut waits = false;
        for name in names {
            if let Some(channel) = self.find(name) {
                self.add_pending(channel, &queued);
                waits = true;
            }
        }
        if !waits {
            self.finished.push((queued, 0));
        }
    }

    fn add_pending(&mut self, channel: u32, queued: &Arc<Queued>) {
        let pending = Pending { sequence: self.sequence, queued: queued.clone(), listeners: 0 };
        match &mut self.channels[channel as usize].fan_out {
            // A channel may be named twice.
            Some(fan_out) if fan_out.last() == self.sequence => {}
            Some(fan_out) => fan_out.pending.push_back(pending),
            none => {
                *none = Some(FanOut::of(pending));
                self.fan_outs += 1;
                self.turns.push_back(channel);
            }
        }
    }

    /// Whether something is on its way.
    pub fn is_fanning_out(&self) -> bool {
        self.fan_outs > 0
    }

    /// The channel whose turn it is.
    pub fn begin_turn(&mut self) -> Option<Turn> {
        while let Some(channel) = self.turns.pop_front() {
            // The channel may be gone, and another may have its number now.
            if let Some(Channel { rows, fan_out: Some(fan_out), .. }) = self.channels.get_mut(channel as usize) {
                return Some(Turn { channel, batch: fan_out.batch(rows.len()) });
            }
        }
        None
    }

    /// The next row that has not had the batch, and what it is due. None once the batch has reached everyone.
    pub fn next_row(&mut self, turn: &Turn) -> Option<(u32, Due)> {
        let Channel { rows, fan_out, .. } = self.channels.get(turn.channel as usize)?;
        let place = fan_out.as_ref()?.cursor.checked_sub(1)?;
        let row = rows[place];
        let is_batch_all = !self.ahead.contains_key(&row) && !self.is_waited_for_elsewhere(turn, row);
        let due = if is_batch_all { Due::Batch } else { Due::Messages(self.take_due_through(row, turn.batch.through)) };
        if let Some(fan_out) = &mut self.channels[turn.channel as usize].fan_out {
            fan_out.cursor = place;
            fan_out.reached += u32::from(matches!(due, Due::Batch));
        }
        if !is_batch_all {
            self.forget_if_level(row);
        }
        Some((row, due))
    }

    /// The channel has more turns as long as it has something to send.
    pub fn end_turn(&mut self, turn: Turn) {
        let Turn { channel, batch } = turn;
        drop(batch);
        let Some(Channel { fan_out: place, .. }) = self.channels.get_mut(channel as usize) else { return };
        let Some(fan_out) = place else { return };
        if fan_out.cursor == 0 {
            self.finished.extend(fan_out.end_batch());
        }
        if fan_out.pending.is_empty() {
            *place = None;
            self.note_end_of_fan_out();
        } else {
            self.turns.push_back(channel);
        }
    }

    /// Everything that waits for a row, in order. The fan-outs pass over it from then on.
    pub fn take_due(&mut self, row: u32) -> Vec<Arc<Queued>> {
        self.take_due_through(row, self.sequence)
    }

    /// The same, but nothing that was published after the sequence `through`. What several of its channels have for it, it gets
    /// once, and is counted once as a listener.
    fn take_due_through(&mut self, row: u32, through: u64) -> Vec<Arc<Queued>> {
        let ahead = self.ahead.get(&row).copied().unwrap_or(0);
        let mut due: Vec<(u64, u32, Arc<Queued>)> = Vec::new();
        let mut is_waited_for = false;
        for Subscription { channel, place, .. } in self.subscriptions_of(row) {
            if let Some(fan_out) = &self.channels[channel as usize].fan_out {
                is_waited_for = true;
                let waiting = fan_out.after(ahead.max(fan_out.had(place as usize)));
                let waiting = waiting.take_while(|pending| pending.sequence <= through);
                due.extend(waiting.map(|pending| (pending.sequence, channel, pending.queued.clone())));
            }
        }
        if is_waited_for && through > ahead {
            self.ahead.insert(row, through);
        }
        due.sort_unstable_by_key(|(sequence, ..)| *sequence);
        due.dedup_by_key(|(sequence, ..)| *sequence);
        for (sequence, channel, _) in &due {
            if let Some(fan_out) = &mut self.channels[*channel as usize].fan_out {
                fan_out.count_listener(*sequence);
            }
        }
        due.into_iter().map(|(.., queued)| queued).collect()
    }

    /// Whether something that was published to a channel of a row has not reached it.
    pub fn is_due(&self, row: u32) -> bool {
        if self.fan_outs == 0 {
            return false;
        }
        let ahead = self.ahead.get(&row).copied().unwrap_or(0);
        self.subscriptions_of(row).any(|Subscription { channel, place, .. }| {
            let fan_out = &self.channels[channel as usize].fan_out;
            fan_out.as_ref().is_some_and(|fan_out| fan_out.last() > ahead.max(fan_out.had(place as usize)))
        })
    }

    /// Publications that every row has got, and for how many each was.
    pub fn take_finished(&mut self) -> Vec<(Arc<Queued>, u32)> {
        std::mem::take(&mut self.finished)
    }

    /// Ends all fan-outs, because the shard has failed.
    pub fn abandon(&mut self) -> Vec<(Arc<Queued>, u32)> {
        for channel in &mut self.channels {
            if let Some(fan_out) = channel.fan_out.take() {
                self.finished.extend(fan_out.into_finished());
            }
        }
        self.take_finished()
    }

    /// A row that has just subscribed, and that nothing waits for, gets nothing that was published before.
    pub(super) fn pass_over(&mut self, row: u32) {
        self.ahead.insert(row, self.sequence);
    }

    /// A row that is gone is not ahead any more.
    pub(super) fn forget_ahead(&mut self, row: u32) {
        if !self.ahead.is_empty() {
            self.ahead.remove(&row);
        }
    }

    /// Forgets that a row is ahead, once it has been passed by batches with everything that waits in its channels.
    fn forget_if_level(&mut self, row: u32) {
        let is_level = self.subscriptions_of(row).all(|Subscription { channel, place, .. }| {
            let fan_out = &self.channels[channel as usize].fan_out;
            fan_out.as_ref().is_none_or(|fan_out| fan_out.last() <= fan_out.had(place as usize))
        });
        if is_level {
            self.forget_ahead(row);
        }
    }

    pub(super) fn note_end_of_fan_out(&mut self) {
        self.fan_outs -= 1;
        if self.fan_outs == 0 {
            // Left by channels that were dropped before their turn: a later channel with the same number would get extra turns.
            self.turns.clear();
            self.ahead.clear();
            self.ahead.shrink_to(KEPT);
        }
    }

    /// Whether another channel may have something for a row. If the channels that wait for their turn have few rows, those are searched:
    /// they were read a moment ago, while the subscriptions of the row are unlikely to be in any cache.
    fn is_waited_for_elsewhere(&self, turn: &Turn, row: u32) -> bool {
        let lists = || self.turns.iter().filter_map(|channel| self.channels.get(*channel as usize)).map(|channel| &channel.rows);
        if self.turns.len() <= MOST_SEARCHED && lists().map(|rows| rows.len()).sum::<usize>() <= MOST_SEARCHED {
            return lists().any(|rows| rows.contains(&row));
        }
        let mut others = self.subscriptions_of(row).map(|subscription| subscription.channel).filter(|channel| *channel != turn.channel);
        others.any(|channel| self.channels[channel as usize].fan_out.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::random;
    use super::*;
    use crate::framing::Message;
    use crate::queue::Queue;

    /// Channels, what each row has got, and what it should get.
    struct Table {
        channels: Channels,
        queue: Arc<Queue>,
        got: Vec<Vec<u32>>,
        due: Vec<Vec<u32>>,
        subscribed: Vec<Vec<&'static str>>,
        published: u32,
        /// How many each publication should be for, and how many it was for.
        listeners: Vec<(u32, Option<u32>)>,
    }

    impl Table {
        fn of(rows: usize) -> Self {
            Table {
                channels: Channels::new(rows, usize::MAX),
                queue: Arc::default(),
                got: vec![Vec::new(); rows],
                due: vec![Vec::new(); rows],
                subscribed: vec![Vec::new(); rows],
                published: 0,
                listeners: Vec::new(),
            }
        }

        /// Rows that subscribe to one channel.
        fn listening(rows: usize, name: &'static str) -> Self {
            let mut table = Table::of(rows);
            (0..rows).for_each(|row| table.subscribe(row, name));
            table
        }

        fn subscribe(&mut self, row: usize, name: &'static str) {
            self.catch_up(row);
            self.channels.subscribe(row as u32, name.as_bytes());
            if !self.subscribed[row].contains(&name) {
                self.subscribed[row].push(name);
            }
            self.channels.check();
        }

        fn unsubscribe(&mut self, row: usize, name: &'static str) {
            self.catch_up(row);
            self.channels.unsubscribe(row as u32, name.as_bytes());
            self.subscribed[row].retain(|subscribed| *subscribed != name);
            self.channels.check();
        }

        /// The row is gone, with what it has not got. Another one takes its place.
        fn leave(&mut self, row: usize) {
            self.channels.unsubscribe_all(row as u32);
            assert!(self.due[row].starts_with(&self.got[row]), "a row that leaves early has got the first ones");
            self.got[row].clear();
            self.due[row].clear();
            self.subscribed[row].clear();
            self.channels.check();
        }

        fn publish(&mut self, name: &'static str, size: usize) {
            self.publish_to(&[name], size);
        }

        fn publish_to(&mut self, names: &[&'static str], size: usize) {
            let number = self.published;
            self.published += 1;
            let id = number.to_string().into_bytes().into();
            let message = Message::new(Some(id), None, vec![b'x'; size].into());
            let is_listening = |row: &usize| names.iter().any(|name| self.subscribed[*row].contains(name));
            let listeners: Vec<usize> = (0..self.due.len()).filter(is_listening).collect();
            listeners.iter().for_each(|row| self.due[*row].push(number));
            self.listeners.push((listeners.len() as u32, None));
            let names = names.iter().map(|name| name.as_bytes());
            self.channels.publish(names, Queued::new(&self.queue, number + 1, message));
            self.channels.check();
        }

        fn catch_up(&mut self, row: usize) {
            let due = self.channels.take_due(row as u32);
            self.deliver(row, &due);
            assert_eq!(self.got[row], self.due[row], "it has got everything");
        }

        fn deliver(&mut self, row: usize, messages: &[Arc<Queued>]) {
            let numbers = messages.iter().map(|queued| number_of(queued));
            self.got[row].extend(numbers);
        }

        /// Rows know whether something waits for them.
        fn check_due(&self) {
            for row in 0..self.due.len() {
                assert_eq!(self.channels.is_due(row as u32), self.got[row].len() < self.due[row].len(), "row {row}");
            }
        }

        /// A turn of at most so many rows.
        fn turn(&mut self, rows: usize) {
            if let Some(turn) = self.channels.begin_turn() {
                for _ in 0..rows {
                    let Some((row, due)) = self.channels.next_row(&turn) else { break };
                    match due {
                        Due::Batch => self.deliver(row as usize, &turn.batch.messages),
                        Due::Messages(messages) => self.deliver(row as usize, &messages),
                    }
                }
                self.channels.end_turn(turn);
                self.channels.check();
            }
            for (queued, listeners) in self.channels.take_finished() {
                if let Some((token, listeners)) = queued.finish(listeners) {
                    let outcome = self.listeners[token as usize - 1].1.replace(listeners);
                    assert_eq!(outcome, None, "reported once");
                }
            }
            self.check_due();
        }

        fn finish(&mut self) {
            while self.channels.is_fanning_out() {
                self.turn(usize::MAX);
            }
            self.turn(0);
            assert_eq!(self.got, self.due);
            assert_eq!(self.channels.turns.len(), 0);
        }
    }

    fn number_of(queued: &Queued) -> u32 {
        let event = queued.message.frame(Format::from_byte(1).unwrap());
        let text = std::str::from_utf8(event).unwrap();
        text.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().parse().unwrap()
    }

    #[test]
    fn a_channel_with_few_rows_does_not_wait_for_one_with_many() {
        let mut table = Table::listening(100, "many");
        table.subscribe(0, "few");
        table.unsubscribe(0, "many");
        (0..50).for_each(|_| table.publish("many", BATCH_BYTES));
        table.publish("few", 1);
        table.turn(10);
        table.turn(10);
        assert_eq!(table.got[0], [50]);
        assert_eq!(table.got.iter().filter(|got| !got.is_empty()).count(), 11);
        table.finish();
    }

    #[test]
    fn a_row_on_several_channels_of_a_publication_gets_it_once_and_is_counted_once() {
        let mut table = Table::listening(10, "a");
        (5..10).for_each(|row| table.subscribe(row, "b"));
        table.unsubscribe(9, "a");
        table.publish_to(&["a", "b", "nobody"], 1);
        table.publish_to(&["b", "a"], BATCH_BYTES);
        table.publish_to(&["a", "a"], 1);
        table.publish("b", 1);
        table.finish();
        assert_eq!((&table.got[0][..], &table.got[5][..], &table.got[9][..]), (&[0, 1, 2][..], &[0, 1, 2, 3][..], &[0, 1, 3][..]));
        assert_eq!(table.listeners, [(10, Some(10)), (10, Some(10)), (9, Some(9)), (5, Some(5))]);
        assert_eq!(table.queue.bytes(), 0);
    }

    #[test]
    fn a_row_that_moves_from_one_channel_of_a_publication_to_another_gets_it_once() {
        let mut table = Table::listening(4, "a");
        table.subscribe(3, "b");
        table.publish_to(&["a", "b"], 1);
        table.turn(1); // "a" has reached row 3, which is ahead of "b"
        table.unsubscribe(3, "a");
        table.turn(1);
        table.unsubscribe(2, "a");
        table.subscribe(2, "b");
        table.subscribe(0, "b");
        table.finish();
        assert_eq!(table.listeners, [(4, Some(4))]);
    }

    #[test]
    fn a_publication_to_several_channels_is_reported_when_the_last_of_them_is_done_or_gone() {
        let mut table = Table::of(3);
        (0..3).for_each(|row| table.subscribe(row, ["a", "b", "c"][row]));
        table.publish_to(&["a", "b", "c"], 1);
        table.turn(1);
        table.turn(1);
        assert_eq!(table.listeners, [(3, None)]);
        table.leave(2);
        table.turn(0);
        assert_eq!(table.listeners, [(3, Some(2))]);
    }

    #[test]
    fn a_row_on_two_channels_gets_everything_in_order_whichever_is_first() {
        let mut table = Table::listening(10, "a");
        table.subscribe(9, "b");
        for _ in 0..3 {
            table.publish("a", BATCH_BYTES);
            table.publish("b", 1);
        }
        table.turn(0); // "a" has begun, and reached nobody
        table.turn(1);
        assert_eq!(table.got[9], [0, 1, 2, 3, 4, 5]);
        table.finish();
    }

    #[test]
    fn small_publications_are_one_batch_and_large_ones_are_not() {
        let mut table = Table::listening(1, "a");
        (0..10).for_each(|_| table.publish("a", 100));
        table.turn(1);
        assert_eq!(table.got[0].len(), 10);
        (0..3).for_each(|_| table.publish("a", BATCH_BYTES));
        table.turn(1);
        assert_eq!(table.got[0].len(), 11);
        table.finish();
    }

    #[test]
    fn the_frames_of_a_batch_are_those_of_its_messages() {
        let mut table = Table::listening(1, "a");
        (0..3).for_each(|_| table.publish("a", 4));
        let turn = table.channels.begin_turn().unwrap();
        assert_eq!(turn.batch.frame(Format::default()), b"xxxxxxxxxxxx");
        let chunked = Format::from_byte(0x10).unwrap();
        assert_eq!(turn.batch.frame(chunked), b"4\r\nxxxx\r\n".repeat(3));
        assert_eq!(joined(&turn.batch.messages, chunked), turn.batch.frame(chunked));
    }

    #[test]
    fn rows_are_ahead_until_the_fan_out_has_passed_them() {
        let mut table = Table::listening(10, "a");
        table.publish("a", BATCH_BYTES);
        table.publish("a", 1);
        (0..10).step_by(2).for_each(|row| table.catch_up(row));
        assert_eq!(table.channels.ahead.len(), 5);
        table.turn(10);
        assert_eq!(table.channels.ahead.len(), 5, "of the second publication");
        table.turn(4); // from the last row on
        assert_eq!(table.channels.ahead.len(), 3);
        table.finish();
    }

    #[test]
    fn a_row_that_subscribes_during_a_fan_out_gets_only_what_is_published_later() {
        let mut table = Table::listening(3, "a");
        (0..3).for_each(|_| table.publish("a", BATCH_BYTES));
        table.turn(1);
        table.leave(0);
        table.subscribe(0, "a");
        table.publish("a", 1);
        table.finish();
        assert_eq!(table.got[0], [3]);
    }

    #[test]
    fn rows_that_leave_during_a_fan_out_cost_no_other_row_its_message() {
        for left in 0..6 {
            let mut table = Table::listening(6, "a");
            table.publish("a", 1);
            table.turn(3);
            table.leave(left);
            table.finish();
            assert_eq!(table.got.iter().filter(|got| got.len() == 1).count(), 5, "without {left}");
        }
    }

    #[test]
    fn what_nobody_waits_for_any_more_is_finished() {
        let mut table = Table::listening(2, "a");
        table.publish("nobody", 1);
        table.publish("a", 1);
        table.turn(1);
        table.leave(0);
        table.leave(1);
        table.subscribe(0, "b");
        table.finish();
        assert_eq!(table.listeners, [(0, Some(0)), (2, Some(1))]);
        drop(table.channels);
        assert_eq!(table.queue.bytes(), 0);
    }

    #[test]
    fn a_channel_that_is_dropped_before_its_turn_leaves_no_turn_behind() {
        let mut table = Table::of(2);
        for _ in 0..100 {
            table.subscribe(0, "a");
            table.publish("a", 1);
            table.leave(0);
        }
        assert_eq!(table.channels.turns.len(), 0);
    }

    #[test]
    fn a_fan_out_that_is_abandoned_is_finished() {
        let mut table = Table::listening(5, "a");
        table.publish("a", BATCH_BYTES);
        table.publish("a", 1);
        table.turn(2);
        let listeners: Vec<u32> = table.channels.abandon().into_iter().map(|(_, listeners)| listeners).collect();
        assert_eq!(listeners, [2, 0]);
        assert_eq!(table.queue.bytes(), 0);
    }

    #[test]
    fn every_row_gets_everything_once_and_in_order_after_ten_thousand_random_steps() {
        random_steps(12);
    }

    #[test]
    fn the_same_with_too_many_rows_to_search() {
        random_steps(2 * MOST_SEARCHED as u32);
    }

    fn random_steps(rows: u32) {
        const NAMES: [&str; 4] = ["a", "b", "c", "d"];
        let mut draw = random();
        let mut table = Table::of(rows as usize);
        for step in 0..10_000 {
            let (row, name) = (draw(rows) as usize, NAMES[draw(4) as usize]);
            match draw(16) {
                0..3 => table.subscribe(row, name),
                3 => table.unsubscribe(row, name),
                4 => table.leave(row),
                5..7 => table.publish(name, [1, 4000, BATCH_BYTES][draw(3) as usize]),
                7..9 => {
                    table.publish_to(&[name, NAMES[draw(4) as usize], NAMES[draw(4) as usize]], [1, 4000, BATCH_BYTES][draw(3) as usize])
                }
                9 => table.catch_up(row),
                _ => table.turn(draw(4) as usize),
            }
            if step % 500 == 0 {
                table.finish();
            }
        }
        table.finish();
        assert!(table.published > 1000);
        assert!(table.listeners.iter().all(|(due, got)| got.is_some_and(|got| got <= *due)), "all finished");
        assert_eq!(table.queue.bytes(), 0);
    }
}
