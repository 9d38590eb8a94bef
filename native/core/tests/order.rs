//! Everything said to streams takes effect in the order in which it was requested, however long it waits.

mod common;

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use common::by_hand::{ByHand, read_now};
use common::*;
use holdfast_core::command::Command;
use holdfast_core::id::Id;
use holdfast_core::mail::ShardMessage;
use holdfast_core::parcel::{self, Adoption};

/// Enough that a fan-out takes several slices of 2 ms.
const MANY: usize = 90;
const ROUNDS: usize = 40;

/// A shard in which a fan-out to three streams is under way.
fn busy() -> (ByHand, Vec<UnixStream>) {
    let mut by_hand = ByHand::new(options()).step_by_step();
    let listeners = (0..3).map(|_| by_hand.stream(TEXT, &["news"]).0).collect();
    (by_hand, listeners)
}

#[test]
fn a_stream_does_not_get_what_was_published_before_it_was_held() {
    let (mut by_hand, mut listeners) = busy();
    let (mut client, id) = by_hand.connect_and_ask();
    by_hand.say(&[publish("news", b"old"), hold(id, TEXT, &["news"]), publish("news", b"new")].concat());
    assert!(by_hand.finish() > 4, "the fan-outs span turns");
    assert_eq!(read_head(&mut client), HEAD);
    assert_eq!(read_now(&mut client), "new");
    listeners.iter_mut().for_each(|listener| assert_eq!(read_now(listener), "oldnew"));
}

#[test]
fn a_stream_that_is_held_in_a_later_batch_does_not_get_it_either() {
    let (mut by_hand, _listeners) = busy();
    let (mut client, id) = by_hand.connect_and_ask();
    by_hand.say(&publish("news", b"old"));
    by_hand.say(&hold(id, TEXT, &["news"]));
    by_hand.say(&publish("news", b"new"));
    by_hand.finish();
    assert_eq!(read_head(&mut client), HEAD);
    assert_eq!(read_now(&mut client), "new");
}

#[test]
fn a_remembered_head_waits_for_what_was_said_before_it_came() {
    let (mut by_hand, _listeners) = busy();
    by_hand.say(&[opening(TEXT, HEAD, &[], &["news"]), remember(&lines_of("/cached"))].concat());
    by_hand.say(&[publish("news", b"1"), publish("news", b"2")].concat());
    let mut client = by_hand.connect(&request("/cached"));
    by_hand.say(&publish("news", b"3"));
    assert_eq!(read_now(&mut client), "", "it waits");
    by_hand.finish();
    assert!(by_hand.asked().is_empty());
    assert_eq!(read_head(&mut client), HEAD);
    assert_eq!(read_now(&mut client), "3");
}

#[test]
fn a_stream_opens_at_once_when_nothing_waits() {
    let (mut by_hand, _listeners) = busy();
    let (mut client, id) = by_hand.connect_and_ask();
    by_hand.say(&hold(id, TEXT, &[]));
    assert!(!by_hand.shard.is_busy());
    assert_eq!(read_head(&mut client), HEAD);
}

#[test]
fn subscribing_and_leaving_keep_their_places_between_messages() {
    let (mut by_hand, mut listeners) = busy();
    let (mut client, id) = by_hand.stream(TEXT, &[]);
    let say = |data: &str| publish("news", data.as_bytes());
    by_hand.say(
        &[
            say("1"),
            subscribe(id, "news"),
            say("2"),
            send(id, b"!"),
            unsubscribe(id, "news"),
            say("3"),
            subscribe(id, "news"),
            say("4"),
            end(id),
            say("5"),
        ]
        .concat(),
    );
    by_hand.finish();
    expect_end(&mut client, b"2!4");
    listeners.iter_mut().for_each(|listener| assert_eq!(read_now(listener), "12345"));
}

#[test]
fn what_is_sent_to_a_stream_that_is_still_to_be_held_follows_its_opening() {
    let (mut by_hand, _listeners) = busy();
    let (mut client, id) = by_hand.connect_and_ask();
    let said = [publish("news", b"old"), hold(id, TEXT, &[]), send(id, b"a"), subscribe(id, "news"), publish("news", b"b"), end(id)];
    by_hand.say(&said.concat());
    by_hand.finish();
    assert_eq!(read_head(&mut client), HEAD);
    expect_end(&mut client, b"ab");
}

#[test]
fn a_stream_that_ends_during_a_fan_out_gets_nothing_of_it_twice_and_disturbs_no_other() {
    let (mut by_hand, mut listeners) = busy();
    by_hand.say(&publish("news", b"1"));
    drop(listeners.remove(1));
    by_hand.say(&publish("news", b"2"));
    by_hand.finish();
    by_hand.say(&publish("news", b"3"));
    by_hand.finish();
    listeners.iter_mut().for_each(|listener| assert_eq!(read_now(listener), "123"));
}

#[test]
fn what_was_published_before_a_drain_reaches_everyone_before_the_end() {
    let (mut by_hand, mut listeners) = busy();
    by_hand.say(&[publish("news", b"last"), drain(0), publish("news", b"!")].concat());
    by_hand.finish();
    (0..5).for_each(|_| by_hand.turn(1));
    for listener in &mut listeners {
        let mut heard = String::new();
        std::io::Read::read_to_string(listener, &mut heard).unwrap();
        assert!(heard.starts_with("last"), "{heard}");
    }
    assert_eq!(by_hand.telemetry.streams.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[test]
fn a_drain_during_fan_outs_cuts_nobody_off() {
    let (mut by_hand, listeners) = busy();
    by_hand.say(&[publish("news", b"x").repeat(4), drain(0)].concat());
    by_hand.finish();
    (0..5).for_each(|_| by_hand.turn(1));
    for mut listener in listeners {
        expect_end(&mut listener, b"xxxx");
    }
    by_hand.turn(2000);
    assert_eq!(by_hand.outbox.take(0).0.drained, [0], "reported once");
}

/// A Hold with many streams on "news", to which so much is published that it takes several slices.
fn flood(held: &mut Held) -> (Vec<TcpStream>, Vec<u8>) {
    let listeners = (0..MANY).map(|_| held.stream(TEXT, &["news"]).0).collect();
    (listeners, publish("news", b"old ").repeat(ROUNDS))
}

#[test]
fn a_thread_keeps_the_order_over_several_slices() {
    let mut held = Held::start(options());
    let (mut listeners, flood) = flood(&mut held);
    let mut asked: BTreeMap<usize, (TcpStream, Id)> = BTreeMap::new();
    for round in 0..5 {
        let client = ask(held.address, &request("/late"));
        asked.insert(round, (client, held.asked_for("/late")));
    }
    // One after the other, each before a message that the ones after it must not get.
    let mut said = flood;
    for (round, (_, id)) in &asked {
        said.extend([hold(*id, TEXT, &["news"]), publish("news", format!("{round} ").as_bytes())].concat());
    }
    held.command(&said);
    let all = "0 1 2 3 4 ";
    for (round, (client, _)) in &mut asked {
        assert_eq!(read_head(client), HEAD);
        expect(client, &all.as_bytes()[2 * *round..]);
    }
    let whole = "old ".repeat(ROUNDS) + all;
    listeners.iter_mut().for_each(|listener| expect(listener, whole.as_bytes()));
}

#[test]
fn a_thread_holds_remembered_heads_in_order_with_what_is_published() {
    let mut held = Held::start(options());
    held.command(&[opening(TEXT, HEAD, &[], &["news"]), remember(&lines_of("/cached"))].concat());
    let (_listeners, flood) = flood(&mut held);
    held.command(&flood);
    let mut clients: Vec<TcpStream> = (0..5).map(|_| ask(held.address, &request("/cached"))).collect();
    for client in &mut clients {
        // When its head is here the stream is open, so that it gets what is published from now on.
        assert_eq!(read_head(client), HEAD);
    }
    held.command(&publish("news", b"new"));
    clients.iter_mut().for_each(|client| expect(client, b"new"));
}

#[test]
fn an_adopted_stream_does_not_get_what_was_published_before_it_was_adopted() {
    let (mut by_hand, _listeners) = busy();
    by_hand.say(&[publish("news", b"1"), publish("news", b"2")].concat());
    let (mut client, its) = UnixStream::pair().unwrap();
    its.set_nonblocking(true).unwrap();
    let adoption =
        Adoption { token: 1, relayed: None, format: Default::default(), channels: vec![b"news"[..].into()], opening: Box::default() };
    parcel::send(&by_hand.transfer, &adoption.encode(), its.as_fd()).unwrap();
    by_hand.inbox.post([ShardMessage::Command(Command::Adopt)]);
    by_hand.say(&publish("news", b"3"));
    by_hand.finish();
    assert_eq!(read_now(&mut client), "3");
}

#[test]
fn a_stream_opens_at_once_however_much_was_published_before() {
    let (mut by_hand, _listeners) = busy();
    let (mut client, id) = by_hand.connect_and_ask();
    (0..20).for_each(|_| by_hand.say(&publish("news", &[b'x'; 10_000])));
    by_hand.say(&hold(id, TEXT, &["news"]));
    assert!(by_hand.shard.is_busy());
    assert_eq!(read_head(&mut client), HEAD);
}

#[test]
fn what_is_sent_to_a_stream_follows_what_was_published_before_without_waiting_for_the_others() {
    let mut by_hand = ByHand::new(options()).step_by_step();
    let (mut first, id) = by_hand.stream(TEXT, &["news", "sport"]);
    let _others: Vec<_> = (0..20).map(|_| by_hand.stream(TEXT, &["news"])).collect();
    let said = [publish("news", b"1"), publish("sport", b"2"), publish("news", b"3"), send(id, b"4")];
    by_hand.say(&said.concat());
    (0..3).for_each(|_| by_hand.turn(0));
    assert_eq!(read_now(&mut first), "1234");
    assert!(by_hand.shard.is_busy(), "the others have their turns");
    by_hand.finish();
    assert_eq!(read_now(&mut first), "", "nothing comes twice");
}

#[test]
fn channels_take_turns() {
    let mut by_hand = ByHand::new(options()).step_by_step();
    let many: Vec<_> = (0..50).map(|_| by_hand.stream(TEXT, &["many"])).collect();
    let (mut few, _) = by_hand.stream(TEXT, &["few"]);
    by_hand.say(&[publish("many", &[b'x'; 20_000]).repeat(4), publish("few", b"!")].concat());
    // Five commands, and a turn of each channel, which is one row because a slice is one step.
    (0..6).for_each(|_| by_hand.turn(0));
    assert_eq!(read_now(&mut few), "!");
    assert!(by_hand.shard.is_busy());
    drop(many);
    by_hand.finish();
}

#[test]
fn what_a_publication_reached_is_reported_when_it_has_reached_everyone() {
    let (mut by_hand, listeners) = busy();
    let (_client, id) = by_hand.stream(TEXT, &["news", "sport"]);
    let said = [publish_with_token(1, "news", "", "", b"a"), publish_with_token(2, "sport", "", "", b"b"), send(id, b"!")];
    by_hand.say(&[said.concat(), publish_with_token(3, "nobody", "", "", b"c")].concat());
    by_hand.turn(5);
    assert_eq!(by_hand.outbox.take(0).0.published, [], "some wait for it");
    by_hand.finish();
    by_hand.turn(5);
    let mut published = by_hand.outbox.take(0).0.published;
    published.sort_unstable();
    assert_eq!(published, [(1, listeners.len() as u32 + 1), (2, 1), (3, 0)]);
    assert_eq!(by_hand.queue.bytes(), 0);
}

#[test]
fn messages_count_as_queued_once_until_every_shard_has_delivered_them() {
    let mut held = Held::start(options_with(|options| options.shards = 4));
    let message = publish_with_token(9, "news", "", "", &[b'x'; 50_000]);
    let listeners: Vec<_> = (0..8).map(|_| held.stream(TEXT, &["news"])).collect();
    held.hold.command(&message.repeat(5), true).unwrap();
    assert!(held.hold.queued_bytes() < 5 * 51_000, "not once for each shard");
    held.until("the outcome", |held| (held.rest.published.len() == 5).then_some(()));
    assert_eq!(held.rest.published, [(9, listeners.len() as u32); 5]);
    assert_eq!(held.hold.queued_bytes(), 0);
}

#[test]
fn a_stream_that_was_held_before_a_drain_opens_and_ends_properly() {
    let (mut by_hand, _listeners) = busy();
    let (mut client, id) = by_hand.connect_and_ask();
    by_hand.say(&[publish("news", b"old"), hold(id, TEXT, &["news"]), publish("news", b"bye"), drain(0)].concat());
    by_hand.finish();
    assert_eq!(read_head(&mut client), HEAD);
    assert_eq!(read_now(&mut client), "bye");
}

#[test]
fn a_stream_that_was_held_in_time_is_not_refused_because_its_turn_comes_later() {
    let mut by_hand = ByHand::new(options_with(|options| options.answer_timeout_ms = 1000)).step_by_step();
    let _listeners: Vec<_> = (0..3).map(|_| by_hand.stream(TEXT, &["news"]).0).collect();
    let (mut client, id) = by_hand.connect_and_ask();
    by_hand.turn(900);
    by_hand.say(&[publish("news", b"1"), publish("news", b"2"), hold(id, TEXT, &["news"])].concat());
    by_hand.turn(900);
    by_hand.finish();
    assert_eq!(read_head(&mut client), HEAD);
}
