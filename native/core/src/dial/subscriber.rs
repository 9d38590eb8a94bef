//! What outlives the connection of a stream that subscribes to topics: its cursor, and its position in each topic.

use std::sync::Arc;

use super::position::{Position, Verdict, key_of};
use super::publication::{Publication, Sent, publication_in};
use super::tally::Tally;
use super::template::{Filling, Template};
use crate::clock::unix_us;
use crate::telemetry::{add, subtract};

/// What all streams of a target subscribe to. The number of a stream is `first + step * place`, and its place is the same for
/// as long as it exists.
#[derive(Debug, PartialEq, Eq)]
pub struct Subscription {
    /// The complete request head.
    pub request: Template,
    pub topics: Box<[Template]>,
    pub first: u64,
    pub step: u64,
    /// Whether all streams use the token of the first place.
    pub is_token_shared: bool,
}

impl Subscription {
    pub fn number(&self, place: u64) -> u64 {
        self.first + self.step * place
    }

    fn positions(&self, place: u64) -> Box<[Position]> {
        let mut topic = Vec::new();
        let mut position = |template: &Template| {
            topic.clear();
            template.write(Filling { number: self.number(place), ..Filling::default() }, &mut topic);
            Position::new(key_of(&topic))
        };
        self.topics.iter().map(&mut position).collect()
    }
}

/// One stream: 64 bytes, its cursor, and 32 bytes per topic. Nothing of it exists for streams that don't subscribe.
#[derive(Debug, Default)]
pub struct Subscriber {
    subscription: Option<Arc<Subscription>>, // 8
    cursor: Vec<u8>,                         // 24
    positions: Box<[Position]>,              // 16
    /// When it was open again, with a cursor; 0 if it never was.
    resumed_ns: u64, // 8
    /// Whether it has been open before.
    was_open: bool,
}

const _: () = assert!(size_of::<Subscriber>() == 64);

impl Subscriber {
    /// It is about to be opened. It keeps its cursor if it has the same subscription as before.
    fn begin(&mut self, subscription: &Arc<Subscription>, place: u64) {
        if self.subscription.as_ref().is_none_or(|before| !Arc::ptr_eq(before, subscription)) {
            let positions = subscription.positions(place);
            *self = Subscriber { subscription: Some(subscription.clone()), positions, ..Subscriber::default() };
        }
    }

    pub fn cursor(&self) -> &[u8] {
        &self.cursor
    }

    /// It is open.
    pub fn welcome(&mut self, tally: &Tally, now_ns: u64) {
        if !self.cursor.is_empty() {
            self.resumed_ns = now_ns;
            add(&tally.resumed, 1);
        } else if self.was_open {
            self.positions.iter_mut().for_each(Position::forget);
            add(&tally.restarted, 1);
        }
        self.was_open = true;
    }

    /// The server says that what follows may have a gap before it.
    pub fn expect_gap(&mut self, tally: &Tally) {
        self.positions.iter_mut().for_each(Position::expect_gap);
        add(&tally.gaps, 1);
    }

    /// A block of events has arrived. Its id moves the cursor (an empty one removes it), its data is checked if it is ours.
    pub fn note(&mut self, id: Option<&[u8]>, data: Option<&[u8]>, tally: &Tally, now_ns: u64) {
        if let Some(id) = id {
            self.cursor.clear();
            self.cursor.extend_from_slice(id);
        }
        if let Some(data) = data {
            self.check(data, tally, now_ns);
        }
    }

    fn check(&mut self, data: &[u8], tally: &Tally, now_ns: u64) {
        let Some(publication) = publication_in(data) else { return };
        let key = key_of(publication.topic);
        let Some(position) = self.positions.iter_mut().find(|position| position.key == key) else {
            return add(&tally.strayed, 1);
        };
        if count(position.check(publication.publisher, publication.number), tally) {
            self.measure(&publication, tally, now_ns);
        }
    }

    fn measure(&self, publication: &Publication, tally: &Tally, now_ns: u64) {
        let age_ns = match publication.sent {
            Sent::MonotonicNs(sent_ns) => now_ns.saturating_sub(sent_ns),
            Sent::UnixUs(sent_us) => unix_us().saturating_sub(sent_us) * 1000,
        };
        // It was sent before the stream was open again. Its age says nothing about delivery.
        if self.resumed_ns > 0 && age_ns > now_ns.saturating_sub(self.resumed_ns) {
            add(&tally.recovered, 1);
        } else {
            tally.delivery.record(age_ns / 1000, 1);
        }
    }
}

/// Returns whether it has arrived for the first time.
fn count(verdict: Verdict, tally: &Tally) -> bool {
    match verdict {
        Verdict::Next { skipped } => add(&tally.missed, skipped.into()),
        Verdict::AfterGap { skipped } => add(&tally.discarded, skipped.into()),
        Verdict::Late => {
            subtract(&tally.missed, 1);
            add(&tally.out_of_order, 1);
        }
        Verdict::BeforeFirst => add(&tally.out_of_order, 1),
        Verdict::Outdated => {
            add(&tally.out_of_order, 1);
            return false;
        }
        Verdict::Repeated => {
            add(&tally.duplicated, 1);
            return false;
        }
    }
    add(&tally.delivered, 1);
    true
}

/// The subscribers of a thread, by row.
#[derive(Debug, Default)]
pub struct Subscribers {
    rows: Vec<Subscriber>,
}

impl Subscribers {
    /// The stream of this row is about to be opened. `most` is the number of rows that there can be.
    pub fn begin(&mut self, row: u32, subscription: &Arc<Subscription>, place: u64, most: usize) {
        let row = row as usize;
        if self.rows.capacity() == 0 {
            // The kernel provides memory for a row when it is first used.
            self.rows.reserve_exact(most);
        }
        if row >= self.rows.len() {
            self.rows.resize_with(row + 1, Subscriber::default);
        }
        self.rows[row].begin(subscription, place);
    }

    pub fn get(&self, row: u32) -> Option<&Subscriber> {
        self.rows.get(row as usize).filter(|subscriber| subscriber.subscription.is_some())
    }

    pub fn get_mut(&mut self, row: u32) -> Option<&mut Subscriber> {
        self.rows.get_mut(row as usize).filter(|subscriber| subscriber.subscription.is_some())
    }

    /// The stream was closed for good, or no longer subscribes.
    pub fn forget(&mut self, row: u32) {
        if let Some(subscriber) = self.rows.get_mut(row as usize) {
            *subscriber = Subscriber::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::super::template::Piece;
    use super::*;

    fn subscription() -> Arc<Subscription> {
        let topic = |pieces: &[Piece]| Template(pieces.into());
        let topics = [topic(&[Piece::Text(b"all"[..].into())]), topic(&[Piece::Text(b"room/"[..].into()), Piece::Remainder(10)])];
        Arc::new(Subscription { request: topic(&[]), topics: topics.into(), first: 5, step: 2, is_token_shared: false })
    }

    struct Fixture {
        subscribers: Subscribers,
        subscription: Arc<Subscription>,
        tally: Tally,
    }

    impl Fixture {
        /// The stream at place 3, which has number 11.
        fn open() -> Self {
            let mut fixture = Fixture { subscribers: Subscribers::default(), subscription: subscription(), tally: Tally::default() };
            fixture.reopen(1000);
            fixture
        }

        fn reopen(&mut self, now_ns: u64) {
            self.subscribers.begin(3, &self.subscription, 3, 10);
            self.subscribers.get_mut(3).unwrap().welcome(&self.tally, now_ns);
        }

        fn get(&mut self, topic: &str, number: u32, sent_ns: u64, now_ns: u64) {
            let data = format!("{{\"p\":1,\"n\":{number},\"t\":{sent_ns},\"topic\":\"{topic}\"}}");
            self.note(Some(&format!("#{number}")), Some(&data), now_ns);
        }

        fn note(&mut self, id: Option<&str>, data: Option<&str>, now_ns: u64) {
            let subscriber = self.subscribers.get_mut(3).unwrap();
            subscriber.note(id.map(str::as_bytes), data.map(str::as_bytes), &self.tally, now_ns);
        }

        /// The counters that are not 0.
        fn counts(&self) -> Vec<(&'static str, u64)> {
            let named = Tally::COUNTS.iter().copied().zip(self.tally.counts().map(|count| count.load(Relaxed)));
            named.filter(|(_, count)| *count > 0).collect()
        }
    }

    #[test]
    fn each_topic_of_a_stream_is_checked_separately_and_others_are_none_of_its() {
        let mut fixture = Fixture::open();
        for (topic, number) in [("all", 1), ("room/1", 7), ("all", 2), ("room/1", 9), ("room/2", 8), ("room/1", 9)] {
            fixture.get(topic, number, 0, 2000);
        }
        fixture.note(None, Some("not ours"), 2000);
        assert_eq!(fixture.counts(), [("delivered", 4), ("missed", 1), ("duplicated", 1), ("strayed", 1)]);
    }

    #[test]
    fn a_stream_that_comes_back_with_its_cursor_continues_where_it_was() {
        let mut fixture = Fixture::open();
        fixture.get("all", 1, 500, 2000);
        fixture.reopen(10_000);
        assert_eq!(fixture.subscribers.get(3).unwrap().cursor(), b"#1");
        fixture.get("all", 2, 9000, 20_000);
        fixture.get("all", 3, 11_000, 20_000);
        fixture.get("all", 5, 9000, 20_000);
        assert_eq!(fixture.counts(), [("resumed", 1), ("delivered", 4), ("missed", 1), ("recovered", 2)]);
    }

    #[test]
    fn a_stream_without_a_cursor_begins_anew() {
        let mut fixture = Fixture::open();
        fixture.get("all", 1, 500, 2000);
        fixture.note(Some(""), None, 2000);
        fixture.reopen(10_000);
        fixture.get("all", 5, 500, 20_000);
        assert_eq!(fixture.counts(), [("restarted", 1), ("delivered", 2)]);
    }

    #[test]
    fn what_is_missing_after_a_gap_that_the_server_reports_is_counted_separately() {
        let mut fixture = Fixture::open();
        fixture.get("all", 1, 500, 2000);
        fixture.reopen(10_000);
        fixture.subscribers.get_mut(3).unwrap().expect_gap(&fixture.tally);
        fixture.get("all", 5, 500, 20_000);
        assert_eq!(fixture.counts(), [("resumed", 1), ("gaps", 1), ("delivered", 2), ("discarded", 3), ("recovered", 1)]);
    }

    #[test]
    fn a_new_subscription_or_a_stream_that_was_closed_for_good_has_no_cursor() {
        let mut fixture = Fixture::open();
        fixture.get("all", 1, 500, 2000);
        fixture.subscribers.begin(3, &subscription(), 3, 10);
        assert!(fixture.subscribers.get(3).unwrap().cursor().is_empty());
        fixture.get("all", 1, 500, 2000);
        fixture.subscribers.forget(3);
        assert!(fixture.subscribers.get(3).is_none());
        assert!(fixture.subscribers.get(2).is_none(), "a row that no subscriber has used");
    }
}
