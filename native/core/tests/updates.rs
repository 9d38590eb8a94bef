//! What a hub needs: publications to several channels, cursors, replays, and streams that end together or by themselves.

mod common;

use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;

use common::by_hand::{BUFFER_BYTES, ByHand, read_now};
use common::*;
use holdfast_core::id::Id;
use holdfast_core::labels::Kind;
use holdfast_core::telemetry::Reason;
use rustix::net::sockopt;

/// So long that a test is over before its own time matters: rows are due in a slot of a hundredth of it.
const PING_MS: u64 = 100_000;
const NEVER: f64 = f64::INFINITY;

/// A shard that pings once a second.
fn pinging() -> ByHand {
    ByHand::new(options_with(|options| options.ping_interval_ms = PING_MS)).step_by_step()
}

/// What a stream gets in the next interval.
fn pinged(by_hand: &mut ByHand, client: &mut UnixStream) -> String {
    by_hand.turn(PING_MS);
    (0..10).for_each(|_| by_hand.turn(0)); // a step each
    read_now(client)
}

/// The streams that ended since the last time, with their reasons.
fn closed(by_hand: &mut ByHand) -> Vec<(Id, Reason)> {
    by_hand.finish();
    by_hand.turn(5);
    by_hand.outbox.take(0).0.closed
}

#[test]
fn with_idle_pings_a_message_takes_the_place_of_one_ping() {
    let quietly = options_with(|options| (options.ping_interval_ms, options.idle_pings) = (PING_MS, true));
    let mut by_hand = ByHand::new(quietly).step_by_step();
    let (mut client, id) = by_hand.stream(EVENTS, &["news"]);
    assert_eq!(pinged(&mut by_hand, &mut client), ":\n\n");
    for message in [publish("news", b"hi"), send(id, b"hi"), [publish("news", b"h"), publish("news", b"i")].concat()] {
        by_hand.say(&message);
        by_hand.finish();
        assert_eq!(pinged(&mut by_hand, &mut client).replace("data: h\n\ndata: i", "data: hi"), "data: hi\n\n", "no ping");
        assert_eq!(pinged(&mut by_hand, &mut client), ":\n\n", "nothing has come since");
    }
}

/// Streams that are pinged, one in each turn, while a publication is on its way to them, one in each turn too.
fn pinged_in_a_fan_out(by_hand: &mut ByHand) -> Vec<UnixStream> {
    let mut clients: Vec<UnixStream> = (0..10).map(|_| by_hand.stream(EVENTS, &["news"]).0).collect();
    by_hand.turn(PING_MS);
    (0..20).for_each(|_| by_hand.turn(0));
    clients.iter_mut().for_each(|client| assert_eq!(read_now(client), ":\n\n"));
    by_hand.say(&publish_to(7, &["news"], "", b"hi"));
    assert!(by_hand.shard.is_busy(), "it has not reached everyone");
    by_hand.turn(PING_MS);
    (0..20).for_each(|_| by_hand.turn(0));
    by_hand.turn(5);
    assert_eq!(by_hand.outbox.take(0).0.published, [(7, 10)]);
    assert_eq!(by_hand.telemetry.deliveries.load(Relaxed), 10);
    clients
}

#[test]
fn a_ping_during_a_fan_out_follows_what_is_on_its_way_to_its_stream() {
    for client in &mut pinged_in_a_fan_out(&mut pinging()) {
        assert_eq!(read_now(client), "data: hi\n\n:\n\n");
    }
}

#[test]
fn with_idle_pings_a_publication_on_its_way_takes_the_place_of_a_ping_that_is_due() {
    let mut by_hand = ByHand::new(options_with(|options| (options.ping_interval_ms, options.idle_pings) = (PING_MS, true))).step_by_step();
    let mut clients = pinged_in_a_fan_out(&mut by_hand);
    clients.iter_mut().for_each(|client| assert_eq!(read_now(client), "data: hi\n\n"));
    by_hand.turn(PING_MS);
    (0..20).for_each(|_| by_hand.turn(0));
    clients.iter_mut().for_each(|client| assert_eq!(read_now(client), ":\n\n", "nothing has come since"));
}

#[test]
fn a_publication_to_several_channels_reaches_each_stream_once_and_in_order() {
    let mut held = Held::start(options_with(|options| options.shards = 2));
    let mut both = held.stream(TEXT, &["a", "b"]);
    let mut first = held.stream(TEXT, &["a"]);
    let mut second = held.stream(TEXT, &["b"]);
    held.command(&[publish_to(7, &["a", "b"], "", b"1"), publish("b", b"2"), publish_to(8, &["b", "a", "a"], "", b"3")].concat());
    held.command(&[end(both.1), end(first.1), end(second.1)].concat());
    expect_end(&mut both.0, b"123");
    expect_end(&mut first.0, b"13");
    expect_end(&mut second.0, b"123");
    held.until("the outcomes", |held| (held.rest.published.len() == 2).then_some(()));
    held.rest.published.sort_unstable();
    assert_eq!((&held.rest.published[..], held.hold.queued_bytes()), (&[(7, 3), (8, 3)][..], 0));
}

#[test]
fn a_publication_without_channels_reaches_nobody() {
    let mut held = Held::start(options());
    held.command(&[publish_to(7, &[], "", b"1"), publish_to(8, &["nobody", "there"], "", b"2")].concat());
    held.until("the outcomes", |held| (held.rest.published.len() == 2).then_some(()));
    assert_eq!(held.rest.published, [(7, 0), (8, 0)]);
}

#[test]
fn the_ping_of_a_stream_of_updates_is_the_cursor_and_that_of_others_is_not() {
    let mut by_hand = pinging();
    let (mut updates, _) = by_hand.stream(UPDATES, &["news"]);
    let (mut chunked, _) = by_hand.stream(UPDATES | CHUNKED, &["news"]);
    let (mut events, _) = by_hand.stream(EVENTS, &["news"]);
    assert_eq!(pinged(&mut by_hand, &mut updates), ":\n\n", "there is none yet");
    by_hand.say(&[publish_to(0, &["other"], "#1", b"x"), set_cursor("#2")].concat());
    by_hand.finish();
    read_now(&mut chunked);
    assert_eq!(pinged(&mut by_hand, &mut updates), "id: #2\n\n");
    assert_eq!(read_now(&mut chunked), "8\r\nid: #2\n\n\r\n");
    assert_eq!(read_now(&mut events), ":\n\n".repeat(2));
    by_hand.say(&set_cursor("#3"));
    assert_eq!(pinged(&mut by_hand, &mut updates), "id: #3\n\n");
}

#[test]
fn a_stream_of_updates_without_channels_gets_no_cursor() {
    let mut by_hand = pinging();
    let (mut client, id) = by_hand.stream(UPDATES, &[]);
    by_hand.say(&set_cursor("#1"));
    assert_eq!(pinged(&mut by_hand, &mut client), ":\n\n", "it may still get what it has missed");
    by_hand.say(&subscribe(id, "news"));
    assert_eq!(pinged(&mut by_hand, &mut client), "id: #1\n\n");
}

/// What streams read during a fan-out with a ping after each step of it: cursors as numbers, and publications too.
fn read_updates(read: &str) -> Vec<(bool, u32)> {
    let blocks = read.split_terminator("\n\n").filter(|block| *block != ":");
    let number = |text: &str| text.parse().unwrap();
    blocks.map(|block| block.strip_prefix("id: ").map_or_else(|| (false, number(&block[6..])), |id| (true, number(id)))).collect()
}

#[test]
fn a_cursor_is_never_ahead_of_a_stream_and_never_goes_backwards_however_long_fan_outs_take() {
    let mut by_hand = pinging();
    let channels: [&[&str]; 4] = [&["a"], &["b"], &["a", "b"], &["b", "c"]];
    let mut clients: Vec<UnixStream> = (0..12).map(|i| by_hand.stream(UPDATES, channels[i % 4]).0).collect();
    let mut expected = vec![Vec::new(); 12];
    let mut read = vec![String::new(); 12];
    let mut was_pinged = false;
    for number in 1..=60u32 {
        let to: &[&str] = [&["a"][..], &["a", "b"], &["b", "c"], &["c"], &["nobody"]][number as usize % 5];
        for (i, expected) in expected.iter_mut().enumerate() {
            if channels[i % 4].iter().any(|channel| to.contains(channel)) {
                expected.push(number);
            }
        }
        by_hand.say(&publish_to(0, to, &number.to_string(), number.to_string().as_bytes()));
        // In the middle of fan-outs: only some streams are reached in between.
        for step in 0..number % 4 {
            by_hand.turn(if step == 1 { PING_MS } else { 0 });
        }
        for (client, read) in clients.iter_mut().zip(&mut read) {
            read.push_str(&read_now(client));
        }
    }
    by_hand.turn(PING_MS);
    by_hand.finish();
    for (i, client) in clients.iter_mut().enumerate() {
        read[i].push_str(&read_now(client));
        let updates = read_updates(&read[i]);
        let got: Vec<u32> = updates.iter().filter(|(is_cursor, _)| !is_cursor).map(|(_, number)| *number).collect();
        assert_eq!(got, expected[i], "stream {i} has got everything in order");
        let mut cursor = 0;
        for (at, (is_cursor, number)) in updates.iter().enumerate() {
            if !is_cursor {
                assert!(*number > cursor, "stream {i} had the cursor {cursor} and then got {number}");
                continue;
            }
            was_pinged = true;
            assert!(*number >= cursor, "stream {i} went backwards from {cursor} to {number}");
            cursor = *number;
            let before = updates[..at].iter().filter(|(is_cursor, _)| !is_cursor).count();
            let due = expected[i].iter().filter(|published| **published <= cursor).count();
            assert!(before >= due, "stream {i} has got {before} of {due} up to {cursor}");
        }
    }
    assert!(was_pinged);
}

#[test]
fn a_cursor_survives_a_failure_and_is_not_behind() {
    let mut held = Held::start(options_with(|options| options.ping_interval_ms = 20));
    held.command(&set_cursor("#1"));
    held.hold.fail(0);
    held.until("the failure", |held| (held.rest.failed.len() == 1).then_some(()));
    let (mut client, _) = held.until("a stream", |held| {
        let client = ask(held.address, &request("/stream"));
        let id = held.asked_for("/stream");
        held.command(&hold(id, UPDATES, &["news"]));
        Some((client, id))
    });
    assert_eq!(read_head(&mut client), HEAD);
    expect(&mut client, b"id: #1\n\n");
}

#[test]
fn what_is_written_to_a_stream_is_framed_but_not_encoded_and_follows_what_was_published() {
    let mut by_hand = ByHand::new(options()).step_by_step();
    let (mut client, id) = by_hand.stream(CHUNKED_EVENTS, &["news"]);
    let (mut other, _) = by_hand.stream(TEXT, &["news"]);
    by_hand.say(&[publish("news", b"1"), write(id, b"raw\n"), publish("news", b"2"), write(id, b"")].concat());
    by_hand.finish();
    assert_eq!(read_now(&mut client), "9\r\ndata: 1\n\n\r\n4\r\nraw\n\r\n9\r\ndata: 2\n\n\r\n");
    assert_eq!(read_now(&mut other), "12");
    assert_eq!((by_hand.telemetry.deliveries.load(Relaxed), by_hand.queue.bytes()), (4, 0));
}

#[test]
fn what_is_written_or_a_welcome_never_makes_a_stream_slow_but_what_is_published_does() {
    let most = 2000;
    for is_welcome in [false, true] {
        let mut by_hand = ByHand::new(options_with(|options| options.max_backlog_bytes = most));
        let replay = vec![b'x'; 20 * BUFFER_BYTES];
        let (mut client, id) = by_hand.connect_and_ask();
        let welcome = if is_welcome { &replay[..] } else { b"" };
        let opening = opening(TEXT, HEAD, &[welcome], &["news"]);
        by_hand.say(&[opening, hold_so(id)].concat());
        if !is_welcome {
            by_hand.say(&write(id, &replay));
        }
        assert!(by_hand.telemetry.backlog_bytes.load(Relaxed) > most as u64);
        by_hand.say(&[publish("news", &vec![b'y'; most]), write(id, b"zz")].concat());
        assert!(closed(&mut by_hand).is_empty(), "the replay does not count");
        if is_welcome {
            by_hand.say(&publish("news", b"one too many"));
            assert_eq!(closed(&mut by_hand), [(id, Reason::Slow)], "nothing was read");
            continue;
        }
        assert_eq!(read_head(&mut client), HEAD);
        let mut read = String::new();
        while !read.ends_with("zz") {
            read.push_str(&read_now(&mut client));
            by_hand.turn(0);
        }
        assert_eq!(read.len(), replay.len() + most + 2);
        by_hand.say(&publish("news", &vec![b'y'; 2 * BUFFER_BYTES + most]));
        assert_eq!(closed(&mut by_hand), [(id, Reason::Slow)], "what has been read is no excuse");
    }
}

#[test]
fn a_stream_ends_when_its_time_is_over_and_not_before() {
    let mut by_hand = ByHand::new(options());
    let mut now = now_ms();
    let (mut soon, its) = by_hand.stream(CHUNKED, &["news"]);
    let (mut later, _) = by_hand.stream(TEXT, &["news"]);
    let (mut never, id) = by_hand.stream(TEXT, &["news"]);
    // From now on no ping is due for an hour: when they are depends on how long the machine has been running.
    while read_now(&mut never).is_empty() {
        by_hand.turn(10_000);
        now += 10_000.0;
    }
    read_now(&mut soon);
    read_now(&mut later);
    let (late, late_id) = by_hand.connect_and_ask();
    by_hand.say(&[label(its, 1, 2, now + 60_000.0), publish("news", b"1")].concat());
    by_hand.say(&[hold(late_id, TEXT, &[]), label(late_id, 0, 0, now + 60_000.0), label(id, 0, 0, NEVER)].concat());
    by_hand.turn(59_000);
    assert!(closed(&mut by_hand).is_empty());
    by_hand.turn(1_500);
    assert_eq!(closed(&mut by_hand), [(its, Reason::Expired), (late_id, Reason::Expired)]);
    expect_end(&mut soon, b"1\r\n1\r\n0\r\n\r\n");
    drop(late);
    by_hand.turn(1 << 31);
    assert!(closed(&mut by_hand).is_empty());
    assert_eq!((read_now(&mut later), read_now(&mut never)), ("1\n".into(), "1\n".into()));
}

#[test]
fn the_time_of_a_stream_can_be_changed_and_one_that_is_over_ends_it_at_once() {
    let mut by_hand = ByHand::new(options());
    let ((_renewed, id), (_ended, other)) = (by_hand.stream(TEXT, &[]), by_hand.stream(TEXT, &[]));
    let now = now_ms();
    by_hand.say(&[label(id, 0, 0, now + 10_000.0), label(id, 0, 0, now + 20_000.0)].concat());
    by_hand.turn(11_000);
    assert!(closed(&mut by_hand).is_empty());
    by_hand.say(&[label(id, 0, 0, NEVER), label(other, 0, 0, 0.0)].concat());
    by_hand.turn(1000);
    assert_eq!(closed(&mut by_hand), [(other, Reason::Expired)]);
}

#[test]
fn labels_belong_to_the_stream_and_not_to_the_row_that_another_has_later() {
    let mut by_hand = ByHand::new(options());
    let (client, id) = by_hand.stream(TEXT, &[]);
    by_hand.say(&label(id, 7, 8, now_ms() + 1000.0));
    drop(client);
    by_hand.turn(0);
    assert_eq!(closed(&mut by_hand), [(id, Reason::ClientGone)]);
    let (_next, next_id) = by_hand.stream(TEXT, &[]);
    assert_eq!(next_id.index(), id.index());
    by_hand.say(&[label(id, 7, 8, 0.0), end_labelled(Kind::Subject, 7, Reason::Revoked)].concat());
    by_hand.turn(5000);
    assert!(closed(&mut by_hand).is_empty());
}

#[test]
fn streams_with_a_label_or_on_a_channel_end_gently_and_no_others() {
    let mut by_hand = ByHand::new(options()).step_by_step();
    let labels = [(1, 0), (1, 5), (2, 5), (0, 0), (5, 1)];
    let mut streams: Vec<(UnixStream, Id)> = labels.iter().map(|_| by_hand.stream(CHUNKED, &["news"])).collect();
    for ((_, id), (subject, token)) in streams.iter().zip(labels) {
        by_hand.say(&label(*id, subject, token, NEVER));
    }
    let ids: Vec<Id> = streams.iter().map(|(_, id)| *id).collect();
    by_hand.say(&[publish("news", b"last"), end_labelled(Kind::Token, 5, Reason::Revoked), publish("news", b"!")].concat());
    assert_eq!(closed(&mut by_hand), [(ids[1], Reason::Revoked), (ids[2], Reason::Revoked)]);
    let read = read_now(&mut streams[1].0);
    assert!(read.starts_with("4\r\nlast\r\n") && read.ends_with("0\r\n\r\n"), "{read}");
    by_hand.say(&[end_labelled(Kind::Subject, 0, Reason::Drain), end_labelled(Kind::Subject, 9, Reason::Drain)].concat());
    assert!(closed(&mut by_hand).is_empty(), "0 is no label, and nobody has 9");
    by_hand.say(&[end_labelled(Kind::Subject, 1, Reason::Expired), end_channel("other", Reason::Drain)].concat());
    assert_eq!(closed(&mut by_hand), [(ids[0], Reason::Expired)]);
    by_hand.say(&end_channel("news", Reason::Drain));
    assert_eq!(closed(&mut by_hand), [(ids[4], Reason::Drain), (ids[3], Reason::Drain)]);
    assert_eq!(by_hand.telemetry.streams.load(Relaxed), 0);
}

#[test]
fn a_stream_that_is_to_end_twice_or_is_gone_meanwhile_ends_once() {
    let mut by_hand = ByHand::new(options()).step_by_step();
    let (clients, ids): (Vec<UnixStream>, Vec<Id>) = (0..4).map(|_| by_hand.stream(TEXT, &["news"])).unzip();
    by_hand.say(&ids.iter().flat_map(|id| label(*id, 1, 1, 0.0)).collect::<Vec<u8>>());
    by_hand.say(&[end_channel("news", Reason::Revoked), end_labelled(Kind::Token, 1, Reason::Drain), end(ids[3])].concat());
    drop(clients);
    let mut ended: Vec<u64> = closed(&mut by_hand).iter().map(|(id, _)| id.bits()).collect();
    ended.sort_unstable();
    assert_eq!(ended, ids.iter().map(|id| id.bits()).collect::<Vec<_>>());
}

#[test]
fn all_streams_of_updates_end_and_get_nothing_that_is_said_later_however_long_it_takes() {
    // Short enough that the connection that was asked about does not time out meanwhile.
    const SHORT_PING_MS: u64 = 50;
    let mut by_hand = ByHand::new(options_with(|options| options.ping_interval_ms = SHORT_PING_MS)).step_by_step();
    let formats = [UPDATES, UPDATES | CHUNKED, EVENTS, UPDATES, TEXT, UPDATES];
    let (mut clients, ids): (Vec<UnixStream>, Vec<Id>) = formats.map(|format| by_hand.stream(format, &["news"])).into_iter().unzip();
    let (mut late, late_id) = by_hand.connect_and_ask();
    let before = [publish_to(0, &["news"], "#1", b"1"), set_cursor("#2"), end_updates(Reason::Restarted)];
    let after = [publish_to(0, &["news"], "#3", b"3"), write(ids[0], b"raw"), send(ids[3], b"sent"), set_cursor("#4")];
    by_hand.say(&[before.concat(), after.concat(), hold(late_id, UPDATES, &["news"]), publish("news", b"5")].concat());
    for _ in 0..100 {
        by_hand.turn(SHORT_PING_MS); // everybody is pinged after each step
    }
    assert!(!by_hand.shard.is_busy());
    let ended: Vec<Id> = [0, 1, 3, 5].map(|i| ids[i]).to_vec();
    assert_eq!(closed(&mut by_hand), ended.iter().map(|id| (*id, Reason::Restarted)).collect::<Vec<_>>());
    for (client, format) in clients.iter_mut().zip(formats) {
        let read = read_now(client);
        if format & UPDATES == 0 {
            assert!(read.contains('1') && read.contains('5'), "others go on: {read}");
            continue;
        }
        assert!(read.contains("data: 1\n\n"), "{read}");
        assert!(!["data: 3", "#3", "raw", "sent", "#4", "data: 5"].iter().any(|later| read.contains(later)), "{read}");
        assert_eq!(read.ends_with("\r\n0\r\n\r\n"), format & CHUNKED != 0, "{read}");
    }
    assert_eq!(read_head(&mut late), HEAD);
    let read = read_now(&mut late);
    assert!(read.contains("data: 5\n\n") && !read.contains("data: 3") && !read.contains("#2"), "held later, it goes on: {read}");
    assert!(pinged(&mut by_hand, &mut late).ends_with("id: #4\n\n"));
}

#[test]
fn what_js_says_is_read_again_once_all_streams_of_updates_have_ended_or_if_there_are_none() {
    let mut by_hand = ByHand::new(options()).step_by_step();
    let (_client, id) = by_hand.stream(TEXT, &[]);
    by_hand.say(&[end_updates(Reason::Restarted), end(id)].concat());
    assert_eq!(closed(&mut by_hand), [(id, Reason::Drain)]);
    let (_client, id) = by_hand.stream(UPDATES, &[]);
    let (_other, other) = by_hand.stream(TEXT, &["news"]);
    by_hand.say(&[end_channel("news", Reason::Revoked), end_updates(Reason::Restarted), end(other), end_updates(Reason::Drain)].concat());
    assert_eq!(closed(&mut by_hand), [(other, Reason::Revoked), (id, Reason::Restarted)]);
    by_hand.say(&drain(0));
    by_hand.finish();
    assert_eq!(by_hand.telemetry.streams.load(Relaxed), 0);
}

#[test]
fn a_shard_that_fails_while_streams_of_updates_end_reads_what_js_says_again() {
    let mut held = Held::start(options());
    let (client, _) = held.stream(UPDATES, &["news"]);
    held.hold.fail(0);
    held.command(&end_updates(Reason::Restarted));
    held.until("the failure", |held| (held.rest.failed.len() == 1).then_some(()));
    drop(client);
    let mut next = held.stream(TEXT, &["news"]);
    held.command(&[publish("news", b"x"), end(next.1)].concat());
    expect_end(&mut next.0, b"x");
}

#[test]
fn a_stream_that_js_holds_after_its_client_has_gone_is_reported_once() {
    let mut by_hand = ByHand::new(options_with(|options| options.answer_timeout_ms = 100));
    let (client, id) = by_hand.connect_and_ask();
    drop(client);
    by_hand.turn(500);
    by_hand.turn(500);
    by_hand.say(&hold(id, TEXT, &["news"]));
    assert_eq!(closed(&mut by_hand), [(id, Reason::ClientGone)]);
    let (_client, id) = by_hand.stream(TEXT, &[]);
    by_hand.say(&[hold(id, TEXT, &["news"]), end(id)].concat());
    assert_eq!(closed(&mut by_hand), [(id, Reason::Drain)], "held twice");
    assert_eq!(by_hand.telemetry.opened.load(Relaxed), 1);
}

#[test]
fn what_is_reported_last_is_reported_even_if_the_shard_stops_at_once() {
    let mut held = Held::start(options());
    let id = Id::new(0, 5, 5);
    held.command(&hold(id, TEXT, &[]));
    held.hold.stop();
    assert_eq!(held.hold.take_events(0).0.closed, [(id, Reason::ClientGone)]);
}

#[test]
fn a_slow_client_does_not_keep_an_expired_stream() {
    let mut by_hand = ByHand::new(options());
    let (client, id) = by_hand.stream(TEXT, &["news"]);
    sockopt::set_socket_recv_buffer_size(&client, BUFFER_BYTES).unwrap();
    by_hand.say(&[write(id, &vec![b'x'; 50 * BUFFER_BYTES]), label(id, 0, 0, 0.0)].concat());
    by_hand.turn(1000);
    assert_eq!(closed(&mut by_hand), [(id, Reason::Expired)]);
    by_hand.turn(2000);
    by_hand.turn(2000);
    assert_eq!(by_hand.telemetry.connections.load(Relaxed), 0);
    drop(client);
}
