//! Streams that a shard gives to another one while they are live. Both are turned by hand.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::channel;

use common::by_hand::{ByHand, read_now};
use common::pair::*;
use common::tls::*;
use common::tls_client::*;
use common::*;
use holdfast_core::Options;
use holdfast_core::handover::{Hello, OLDEST_VERSION, Parcel, Peer, Receipt, Record, VERSION};
use holdfast_core::labels::Kind;
use holdfast_core::mail::{MoveReport, ShardMessage};
use holdfast_core::telemetry::Reason;
use holdfast_core::tls::Content;

fn streams(by_hand: &ByHand) -> (u64, u64) {
    (by_hand.telemetry.streams.load(Relaxed), by_hand.telemetry.connections.load(Relaxed))
}

#[test]
fn a_stream_moves_with_its_channels_label_and_tag_and_is_neither_opened_nor_closed() {
    let mut pair = Pair::usual();
    let (mut client, id) = pair.giver.stream(CHUNKED_EVENTS, &["news", "weather"]);
    pair.giver.say(&[label(id, 7, 8, f64::INFINITY), tag(id, "Ann"), publish("news", b"1")].concat());
    pair.connect();
    let MoveReport { prepared, left, is_broken, .. } = pair.prepare();
    assert_eq!((prepared, left, is_broken, streams(&pair.giver), streams(&pair.taker)), (1, 0, false, (1, 1), (0, 1)));
    let [(before, after)] = pair.complete()[..] else { panic!() };
    let taken = pair.from_taker.taken.pop().unwrap();
    assert_eq!((before, after), (id, taken.id));
    assert_eq!((&taken.tag[..], taken.label.subject, taken.label.token), (&b"Ann"[..], 7, 8));
    assert_eq!(taken.channels.iter().map(|name| &name[..]).collect::<Vec<_>>(), [&b"news"[..], b"weather"]);
    assert_eq!((streams(&pair.giver), streams(&pair.taker)), ((0, 0), (1, 1)));
    pair.giver.say(&[publish("news", b"lost"), send(id, b"lost")].concat());
    pair.taker.say(&[publish("weather", b"2"), send(after, b"3")].concat());
    pair.taker.finish();
    let chunk = |data: &str| format!("9\r\ndata: {data}\n\n\r\n");
    assert_eq!(read_now(&mut client), ["1", "2", "3"].map(chunk).concat());
    pair.taker.say(&end_labelled(Kind::Subject, 7, Reason::Revoked));
    let closed = pair.until("the end of the stream", |pair| pair.from_taker.closed.pop());
    assert_eq!((closed, pair.from_giver.closed.len()), ((after, Reason::Revoked), 0));
    let opened = |by_hand: &ByHand| by_hand.telemetry.opened.load(Relaxed);
    assert_eq!((opened(&pair.giver), opened(&pair.taker)), (1, 0));
}

#[test]
fn streams_that_are_quiet_are_not_reported() {
    let mut pair = Pair::usual();
    let _clients = [["a=1", "a=2"], ["a=1", "b=1"]].map(|channels| pair.giver.stream(TEXT, &channels));
    pair.connect();
    pair.prepare();
    say_to(&mut pair.giver, ShardMessage::Release);
    say_to(&mut pair.taker, ShardMessage::Go { quiet: Some([b"a="[..].into()].into()) });
    let (_, count) = pair.until("that the taker goes on", |pair| pair.from_taker.went.pop());
    assert_eq!((count, pair.from_taker.taken.len()), (2, 1));
    assert_eq!(&pair.from_taker.taken[0].channels[1][..], b"b=1");
}

#[test]
fn what_is_taken_back_goes_on_as_if_nothing_had_happened() {
    let mut pair = Pair::usual();
    let (mut client, id) = pair.giver.stream(TEXT, &["news"]);
    pair.connect();
    assert_eq!(pair.prepare().prepared, 1);
    pair.giver.say(&[publish("news", b"1"), send(id, b"2"), subscribe(id, "weather")].concat());
    assert_eq!(read_now(&mut client), "", "it waits");
    pair.take_back();
    pair.giver.say(&publish("weather", b"3"));
    pair.giver.finish();
    assert_eq!((read_now(&mut client), streams(&pair.giver), streams(&pair.taker)), ("123".into(), (1, 1), (0, 0)));
    drop(client);
    assert_eq!(pair.until("its end", |pair| pair.from_giver.closed.pop()), (id, Reason::ClientGone));
}

#[test]
fn every_stream_gets_everything_once_even_if_a_fan_out_is_under_way_in_both_shards() {
    let mut pair = Pair::new(ByHand::new(options()).step_by_step(), options());
    pair.taker.shard.set_slice(0);
    let mut own = pair.taker.stream(TEXT, &["news"]).0;
    let mut clients: Vec<UnixStream> = (0..5).map(|_| pair.giver.stream(TEXT, &["news", "weather"]).0).collect();
    pair.connect();
    for by_hand in [&mut pair.giver, &mut pair.taker] {
        by_hand.say(&[publish("news", b"1"), publish("weather", b"2"), publish("news", b"3")].concat());
    }
    assert_eq!(pair.prepare().prepared, 5);
    pair.complete();
    pair.taker.say(&[publish("weather", b"4"), publish("news", b"5")].concat());
    pair.taker.finish();
    assert_eq!(read_now(&mut own), "135");
    assert!(clients.iter_mut().all(|client| read_now(client) == "12345"));
}

#[test]
fn a_slow_client_keeps_its_backlog_in_order() {
    let mut pair = Pair::usual();
    let (mut client, id) = pair.giver.stream(TEXT, &["news"]);
    let (first, second, third) = (vec![b'1'; 30_000], vec![b'2'; 20_000], vec![b'3'; 10_000]);
    pair.giver.say(&[write(id, &first), publish("news", &second)].concat());
    assert!(pair.giver.telemetry.backlog_bytes.load(Relaxed) > 0);
    pair.connect();
    pair.prepare();
    pair.complete();
    assert_eq!(pair.giver.telemetry.backlog_bytes.load(Relaxed), 0);
    pair.taker.say(&publish("news", &third));
    let mut read = String::new();
    pair.until("all of it", |_| {
        read += &read_now(&mut client);
        (read.len() == 60_000).then_some(())
    });
    assert_eq!(read.as_bytes(), [first, second, third].concat());
    assert_eq!((streams(&pair.taker), pair.taker.telemetry.backlog_bytes.load(Relaxed)), ((1, 1), 0));
}

#[test]
fn backlogs_that_are_larger_than_a_parcel_go_in_several() {
    const BYTES: usize = 300_000;
    let mut pair = Pair::usual();
    let mut clients = Vec::new();
    for number in 0..5 {
        let (client, id) = pair.giver.stream(TEXT, &[]);
        pair.giver.say(&write(id, &vec![b'0' + number; BYTES]));
        clients.push((client, String::new()));
    }
    pair.connect();
    assert_eq!(pair.prepare().prepared, 5);
    pair.complete();
    pair.until("all of it", |_| {
        clients.iter_mut().for_each(|(client, read)| *read += &read_now(client));
        clients.iter().all(|(_, read)| read.len() == BYTES).then_some(())
    });
    for (number, (_, read)) in clients.iter().enumerate() {
        assert!(read.bytes().all(|byte| usize::from(byte - b'0') == number), "{number}");
    }
}

#[test]
fn the_limit_of_a_backlog_is_the_same_after_the_move() {
    let mut pair = Pair::new(ByHand::new(options()), options_with(|options| options.max_backlog_bytes = 50_000));
    let (_client, id) = pair.giver.stream(TEXT, &["news"]);
    pair.giver.say(&[write(id, &[b'1'; 200_000]), publish("news", &[b'2'; 40_000])].concat());
    pair.connect();
    pair.prepare();
    let [(_, after)] = pair.complete()[..] else { panic!() };
    pair.taker.say(&publish("news", &[b'3'; 9_000]));
    assert_eq!(streams(&pair.taker).0, 1, "what was written does not count");
    pair.taker.say(&publish("news", &[b'3'; 9_000]));
    assert_eq!(pair.until("its end", |pair| pair.from_taker.closed.pop()), (after, Reason::Slow));
}

#[test]
fn a_head_that_is_half_read_is_read_to_its_end_and_one_that_js_decides_about_stays() {
    let mut pair = Pair::usual();
    let (mut asking, id) = pair.giver.connect_and_ask();
    let [start, end] = ["GET /half HTT", "P/1.1\r\nHost: x\r\n\r\n"];
    let mut half = pair.giver.connect(start.as_bytes());
    pair.connect();
    let MoveReport { prepared, left, .. } = pair.prepare();
    assert_eq!((prepared, left), (1, 1));
    assert!(pair.complete().is_empty(), "it is no stream yet");
    half.write_all(end.as_bytes()).unwrap();
    let [(after, lines)] = pair.taker.asked().try_into().unwrap();
    assert!(lines.starts_with("GET\n/half\n"), "{lines}");
    pair.taker.say(&hold(after, TEXT, &[]));
    assert_eq!(read_head(&mut half), HEAD);
    pair.giver.say(&hold(id, TEXT, &["news"]));
    assert_eq!((read_head(&mut asking), pair.prepare().prepared), (HEAD.to_vec(), 1));
    pair.complete();
    pair.taker.say(&publish("news", b"1"));
    assert_eq!((read_now(&mut asking), streams(&pair.taker)), ("1".into(), (2, 2)));
}

#[test]
fn a_head_that_is_taken_back_is_read_to_its_end() {
    let mut pair = Pair::usual();
    let mut half = pair.giver.connect(b"GET / HTTP/1.1\r\nHo");
    pair.connect();
    assert_eq!(pair.prepare().prepared, 1);
    half.write_all(b"st: x\r\n\r\n").unwrap();
    assert!(asked(&mut pair.giver, &mut pair.from_giver).is_empty(), "nobody reads it");
    pair.take_back();
    assert_eq!(asked(&mut pair.giver, &mut pair.from_giver).len(), 1);
}

#[test]
fn connections_that_come_during_a_round_wait_for_the_shard_that_has_the_listener_afterwards() {
    for is_taken_back in [false, true] {
        let mut pair = Pair::usual();
        let address = pair.giver.listen();
        pair.connect();
        pair.prepare();
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(&request("/")).unwrap();
        pair.turn();
        assert_eq!((streams(&pair.giver), streams(&pair.taker)), ((0, 0), (0, 0)));
        if is_taken_back {
            pair.take_back();
        } else {
            pair.complete();
        }
        let Pair { giver, taker, from_giver, from_taker } = &mut pair;
        let (server, kept, other) = if is_taken_back { (giver, from_giver, taker) } else { (taker, from_taker, giver) };
        let (id, _) = until("a head", || asked(server, kept).pop());
        server.say(&hold(id, TEXT, &[]));
        assert_eq!((read_head(&mut client), streams(other)), (HEAD.to_vec(), (0, 0)));
    }
}

#[test]
fn a_shard_accepts_from_all_listeners_it_has_taken_but_has_none_twice() {
    let mut pair = Pair::usual();
    let addresses = [(); 2].map(|()| {
        pair.giver = ByHand::new(options());
        let address = pair.giver.listen();
        for _ in 0..2 {
            pair.connect(); // twice the same listener
        }
        pair.prepare();
        pair.complete();
        address
    });
    drop(pair.giver);
    let mut clients = addresses.map(|address| ask(address, &request("/")));
    let mut heads = Vec::new();
    until("a head from each", || {
        heads.append(&mut asked(&mut pair.taker, &mut pair.from_taker));
        (heads.len() == 2).then_some(())
    });
    heads.iter().for_each(|(id, _)| pair.taker.say(&hold(*id, TEXT, &[])));
    clients.iter_mut().for_each(|client| assert_eq!(read_head(client), HEAD));
}

#[test]
fn a_stream_that_js_is_still_writing_to_does_not_move_before_it_follows_a_channel() {
    let mut pair = Pair::usual();
    let (_client, id) = pair.giver.stream(UPDATES, &[]);
    pair.connect();
    let MoveReport { prepared, left, .. } = pair.prepare();
    assert_eq!((prepared, left), (0, 1));
    pair.complete();
    pair.giver.say(&subscribe(id, "news"));
    assert_eq!(pair.prepare().prepared, 1);
}

#[test]
fn streams_for_which_there_is_no_room_stay_and_are_not_offered_again() {
    let mut pair = Pair::new(ByHand::new(options()), options_with(|options| options.capacity = 2));
    let mut clients: Vec<UnixStream> = (0..3).map(|_| pair.giver.stream(TEXT, &["news"]).0).collect();
    pair.connect();
    let MoveReport { prepared, left, is_broken, .. } = pair.prepare();
    assert_eq!((prepared, left, is_broken), (2, 0, false));
    pair.complete();
    for by_hand in [&mut pair.giver, &mut pair.taker] {
        by_hand.say(&publish("news", b"1"));
    }
    assert_eq!((streams(&pair.giver).0, streams(&pair.taker).0), (1, 2));
    assert!(clients.iter_mut().all(|client| read_now(client) == "1"));
    assert_eq!(pair.prepare().prepared, 0);
}

#[test]
fn a_taker_that_is_gone_breaks_the_round() {
    let mut pair = Pair::usual();
    let (mut client, _) = pair.giver.stream(TEXT, &["news"]);
    let name = pair.offer();
    let mut peer = Peer::connect(&name).unwrap();
    peer.send(&Hello { version: VERSION, weight: 1.0 }.encode(), &[]).unwrap();
    pair.begin();
    assert!(pair.from_giver.moves.is_empty(), "it waits for the receipt");
    drop(peer);
    let MoveReport { prepared, is_broken, .. } = pair.until("the report", |pair| pair.from_giver.moves.pop());
    assert_eq!((prepared, is_broken), (0, true));
    pair.take_back();
    pair.giver.say(&publish("news", b"1"));
    assert_eq!(read_now(&mut client), "1");
}

#[test]
fn a_taker_of_an_older_version_gets_nothing() {
    let mut pair = Pair::usual();
    let _stream = pair.giver.stream(TEXT, &[]);
    let name = pair.offer();
    let mut peer = Peer::connect(&name).unwrap();
    peer.send(&Hello { version: OLDEST_VERSION - 1, weight: 1.0 }.encode(), &[]).unwrap();
    let MoveReport { prepared, is_broken, .. } = pair.prepare();
    assert_eq!((prepared, is_broken), (0, true));
}

#[test]
fn a_record_of_a_newer_version_is_refused_and_those_beside_it_are_taken() {
    let mut pair = Pair::usual();
    let offer = holdfast_core::handover::Offer::open().unwrap();
    let (reply, _connected) = channel();
    say_to(&mut pair.taker, ShardMessage::TakeFrom { name: offer.name().into(), weight: 1.0, reply });
    let mut giver = offer.accept().unwrap();
    let head = Record::Head(holdfast_core::handover::Head { age_ms: 0, read: b"GET / HTTP/1.1\r\n"[..].into(), tls: None });
    let mut frame = Parcel { number: 1, records: vec![Record::Listener { is_tls: false }, head] }.encode();
    frame[4] = VERSION + 1;
    let (_ours, theirs) = UnixStream::pair().unwrap();
    giver.send(&frame, &[theirs.as_fd(), theirs.as_fd()]).unwrap();
    pair.turn();
    giver.read().unwrap();
    let receipt = loop {
        match giver.next_frame().unwrap() {
            Some((frame, _)) if frame.len() > 16 => break Receipt::decode(&frame).unwrap(),
            Some(_) => {} // its hello
            None => panic!("no receipt"),
        }
    };
    assert_eq!((receipt.number, receipt.id(0), receipt.id(1).is_some()), (1, None, true));
}

#[test]
fn a_shard_that_is_stopped_in_a_round_stops() {
    let mut pair = Pair::usual();
    let _stream = pair.giver.stream(TEXT, &[]);
    pair.connect();
    pair.prepare();
    say_to(&mut pair.giver, ShardMessage::Stop);
    assert_eq!(pair.giver.telemetry.streams.load(Relaxed), 1);
}

#[test]
fn pings_keep_their_phase() {
    const INTERVAL_MS: u64 = 10_000;
    const STEP_MS: u64 = 50;
    const STREAMS: usize = 640; // ten blocks of the wheel
    let change = |options: &mut Options| {
        (options.ping_interval_ms, options.capacity, options.connection_limit) = (INTERVAL_MS, 2 * STREAMS, 8 * STREAMS);
    };
    let with_pings = || options_with(change);
    let mut pair = Pair::new(ByHand::new(with_pings()), with_pings());
    let _own: Vec<UnixStream> = (0..100).map(|_| pair.taker.stream(TEXT, &[]).0).collect(); // others have the first rows
    let mut clients: Vec<UnixStream> = (0..STREAMS).map(|_| pair.giver.stream(TEXT, &[]).0).collect();
    let mut pings = |by_hand: &mut ByHand, ms: u64| {
        (0..ms / STEP_MS).for_each(|_| by_hand.turn(STEP_MS));
        clients.iter_mut().map(|client| read_now(client).len()).collect::<Vec<_>>()
    };
    let all = pings(&mut pair.giver, INTERVAL_MS + 1000);
    assert!(all.iter().all(|count| *count > 0), "{all:?}");
    let before = pings(&mut pair.giver, INTERVAL_MS / 2);
    // Both clocks are the same; to be asked about a head takes 5 ms.
    pair.taker.turn(INTERVAL_MS + 1000 + INTERVAL_MS / 2 + 5 * (STREAMS as u64 - 100));
    pair.connect();
    assert_eq!(pair.prepare().prepared as usize, STREAMS);
    pair.complete();
    let after = pings(&mut pair.taker, INTERVAL_MS / 2);
    let count = |pings: usize| (0..STREAMS).filter(|client| before[*client] + after[*client] == pings).count();
    // A block that is due when the interval begins and ends may have its ping on either side.
    assert!(before.contains(&0) && before.contains(&1), "{before:?}");
    assert!(count(1) >= STREAMS - 64, "never {}, once {}, twice {}", count(0), count(1), count(2));
}

#[test]
fn a_ping_that_was_due_during_the_round_is_sent_at_once() {
    let with_pings = || options_with(|options| options.ping_interval_ms = 10_000);
    let mut pair = Pair::new(ByHand::new(with_pings()), with_pings());
    let mut own = pair.taker.stream(TEXT, &[]).0; // so that its wheel turns
    let mut client = pair.giver.stream(TEXT, &[]).0;
    pair.connect();
    pair.prepare();
    pair.taker.turn(20_000);
    assert!(!read_now(&mut own).is_empty());
    assert_eq!(read_now(&mut client), "");
    pair.complete();
    assert_eq!(read_now(&mut client), "\n");
}

/// A number below `most`, from a generator of Lehmer's.
fn random(state: &mut u64, most: u64) -> u64 {
    *state = *state * 48_271 % 0x7fff_ffff;
    *state % most
}

/// Streams move to and fro between two shards while both are told the same publications, whose fan-outs span many turns.
fn moves_to_and_fro(mut state: u64) {
    const CHANNELS: [&str; 3] = ["a", "b", "c"];
    let mut pair = Pair::new(ByHand::new(options()).step_by_step(), options());
    pair.taker.shard.set_slice(0);
    let mut clients = Vec::new();
    let mut published = Vec::new();
    for step in 0..60 {
        if clients.len() < 12 {
            let channels: Vec<&str> = CHANNELS.into_iter().filter(|_| random(&mut state, 2) == 0).collect();
            // What is still on its way is not for it.
            let client = pair.giver.stream(TEXT, &channels).0;
            clients.push((client, channels, published.len(), String::new()));
        }
        for _ in 0..random(&mut state, 4) {
            let (channel, data) = (CHANNELS[random(&mut state, 3) as usize], format!("{}.", published.len()));
            published.push((channel, data.clone()));
            for by_hand in [&mut pair.giver, &mut pair.taker] {
                by_hand.say(&publish(channel, data.as_bytes()));
            }
        }
        for (client, .., read) in &mut clients {
            if random(&mut state, 3) == 0 {
                *read += &read_now(client);
            }
        }
        if step % 3 > 0 {
            continue;
        }
        pair.connect();
        let report = pair.prepare();
        assert!(!report.is_broken);
        if random(&mut state, 3) == 0 {
            pair.take_back();
        } else {
            pair.complete();
            say_to(&mut pair.giver, ShardMessage::Withdraw);
            say_to(&mut pair.taker, ShardMessage::DropParked);
            assert_eq!(streams(&pair.giver).0, 0);
            std::mem::swap(&mut pair.giver, &mut pair.taker);
        }
    }
    pair.giver.finish();
    for (client, channels, from, read) in &mut clients {
        read.push_str(&read_now(client));
        let due = published[*from..].iter().filter(|(channel, _)| channels.contains(channel));
        assert_eq!(*read, due.map(|(_, data)| data.as_str()).collect::<String>(), "on {channels:?}");
    }
    assert_eq!((streams(&pair.giver), streams(&pair.taker)), ((12, 12), (0, 0)));
}

#[test]
fn streams_that_move_to_and_fro_get_everything_once_and_in_order() {
    (1..40).for_each(moves_to_and_fro);
}

#[test]
fn real_shards_share_the_streams_by_weight_with_tables_of_their_own() {
    let mut giver = Held::start(options_with(|options| options.ping_interval_ms = 60_000));
    let with_two = |options: &mut Options| (options.ping_interval_ms, options.shards, options.phases) = (60_000, 2, 2);
    let taker = Held::start(options_with(with_two));
    let mut clients: Vec<TcpStream> = (0..90).map(|_| giver.stream(TEXT, &["news"]).0).collect();
    let names = giver.hold.offer().unwrap();
    for (shard, weight) in [(0, 2.0), (1, 1.0)] {
        taker.hold.take_from(shard, names[0].clone(), weight).unwrap();
    }
    giver.hold.begin_move(ROUND_MS, false);
    let report = giver.until("the report", |held| held.rest.moves.pop());
    assert_eq!((report.prepared, report.left), (90, 0));
    giver.hold.release();
    taker.hold.go(None);
    until("that all are there", || (taker.total(|telemetry| telemetry.streams.load(Relaxed)) == 90).then_some(()));
    let each: Vec<u64> = taker.hold.telemetry().map(|telemetry| telemetry.streams.load(Relaxed)).collect();
    assert_eq!(each, [60, 30]);
    drop(giver);
    taker.command(&publish("news", b"1"));
    for client in &mut clients {
        let mut byte = [b'\n']; // a ping: these tables are too small for every phase
        while byte == *b"\n" {
            client.read_exact(&mut byte).unwrap();
        }
        assert_eq!(byte, *b"1");
    }
}

#[test]
fn streams_over_tls_move_with_their_keys_whatever_the_version_and_the_cipher() {
    let server = server_config();
    for (is_tls12, cipher) in ALL {
        let mut pair = Pair::usual();
        let (mut client, _) = stream_of(&mut pair.giver, &server, client_config(is_tls12, cipher), TEXT);
        pair.giver.say(&publish("news", b"one "));
        // A part of a record was read, and a part of another one is not written yet.
        let mut empty = Vec::new();
        client.session.seal(Content::Data, b"\n", &mut empty);
        client.send_raw(&empty[..6]);
        pair.giver.turn(0);
        let large = "x".repeat(100_000);
        pair.giver.say(&publish("news", large.as_bytes()));
        pair.connect();
        assert_eq!(pair.prepare().prepared, 1);
        assert_eq!(pair.complete().len(), 1);
        client.send_raw(&empty[6..]);
        pair.taker.say(&publish("news", b" two"));
        let mut read = String::new();
        while read.len() < large.len() + 8 {
            pair.turn();
            read += &client.read();
        }
        assert!(read.starts_with("one x") && read.ends_with("x two"), "{cipher:?}");
        client.send(Content::Alert, &[1, 0]);
        let closed = pair.until("the end", |pair| pair.from_taker.closed.pop());
        assert_eq!((closed.1, streams(&pair.giver), pair.from_giver.closed.len()), (Reason::ClientGone, (0, 0), 0));
    }
}

#[test]
fn a_stream_over_tls_that_comes_back_goes_on_with_its_keys() {
    let mut pair = Pair::usual();
    let (mut client, _) = stream_of(&mut pair.giver, &server_config(), aes(), TEXT);
    pair.connect();
    assert_eq!(pair.prepare().prepared, 1);
    pair.take_back();
    pair.giver.say(&publish("news", b"hello"));
    assert_eq!(client.read(), "hello");
    client.send(Content::Data, b"\n");
    pair.turn();
    assert_eq!((streams(&pair.giver), streams(&pair.taker)), ((1, 1), (0, 0)));
}

#[test]
fn a_head_over_tls_moves_but_not_before_its_handshake_is_over() {
    let mut pair = Pair::usual();
    let mut waiting = connect_tls(&mut pair.giver, &server_config());
    let mut client = shake_hands(&mut pair.giver, &server_config(), aes());
    let request = request("/");
    let (first, rest) = request.split_at(10);
    client.send(Content::Data, first);
    pair.giver.turn(0);
    pair.connect();
    let MoveReport { prepared, left, .. } = pair.prepare();
    assert_eq!((prepared, left), (1, 1), "the other one is in its handshake");
    pair.complete();
    client.send(Content::Data, rest);
    let [(id, _)] = pair.until("the head", |pair| asked(&mut pair.taker, &mut pair.from_taker).try_into().ok());
    pair.taker.say(&hold(id, TEXT, &[]));
    assert!(client.read().as_bytes().starts_with(HEAD));
    waiting.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    pair.turn();
    assert!(read_all(&mut waiting, &mut Vec::new()), "it is still served here");
}

#[test]
fn a_taker_that_does_not_know_tls_gets_only_streams_without_it() {
    let mut pair = Pair::usual();
    let (mut client, _) = stream_of(&mut pair.giver, &server_config(), aes(), TEXT);
    let (_plain, _) = pair.giver.stream(TEXT, &["news"]);
    let mut peer = Peer::connect(&pair.offer()).unwrap();
    peer.send(&Hello { version: 1, weight: 1.0 }.encode(), &[]).unwrap();
    pair.turn();
    pair.begin();
    let parcel = pair.until("a parcel", |_| {
        let _ = peer.read();
        peer.next_frame().unwrap().map(|(frame, _)| Parcel::decode(&frame).unwrap())
    });
    assert!(matches!(&parcel.records[..], [Record::Stream(stream)] if stream.tls.is_none()));
    say_to(&mut pair.giver, ShardMessage::TakeBack);
    pair.giver.say(&publish("news", b"hello"));
    assert_eq!(client.read(), "hello");
}
