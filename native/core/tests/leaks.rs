//! A Hold that is dropped leaves no descriptor and no thread behind, at whatever stage of its life.
//!
//! A binary of its own, whose tests take turns: they count what the whole process has.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::*;
use holdfast_core::{Adoption, Hold};

/// For each stage, with a table of its own and without.
const ROUNDS: usize = 4;

type Stage = fn(&mut Held) -> Vec<TcpStream>;

/// How far a Hold came, and who its clients are then.
const STAGES: [(&str, Stage); 9] = [
    ("listening", |_| Vec::new()),
    ("a head coming in", |held| {
        let client = ask(held.address, b"GET / HT");
        held.until_connections(1);
        vec![client]
    }),
    ("a head asked about", asked_about),
    ("lingering", |held| {
        let client = ask(held.address, b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
        let id = held.asked_for("/x");
        held.command(&refuse(id, b"HTTP/1.1 404 Not Found\r\n\r\n"));
        vec![client]
    }),
    ("streams", |held| vec![held.stream(TEXT, &["news"]).0, held.stream(CHUNKED_EVENTS, &[]).0]),
    ("an adopted stream", |held| {
        let (client, server) = pair();
        held.hold.adopt(server.as_fd(), &Adoption { token: 1, format: Default::default(), channels: &[] }, 100).unwrap();
        held.until("the adoption", |held| held.rest.adopted.pop());
        vec![client]
    }),
    ("an adoption and a connection passed on that nobody took", |held| {
        let mut clients = asked_about(held);
        held.command(&pass(held.heads[0].0));
        held.until_connections(0);
        let (client, server) = pair();
        held.hold.adopt(server.as_fd(), &Adoption { token: 1, format: Default::default(), channels: &[] }, 100).unwrap();
        clients.push(client);
        clients
    }),
    ("a backlog", |held| vec![slow(held)]),
    ("a drain", |held| {
        let clients = vec![slow(held), held.stream(TEXT, &[]).0];
        held.command(&drain(3_600_000));
        until("the end of listening", || TcpStream::connect(held.address).is_err().then_some(()));
        clients
    }),
];

/// A client whose head waits for an answer, and stays on the list of heads.
fn asked_about(held: &mut Held) -> Vec<TcpStream> {
    let client = ask(held.address, b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    let id = held.asked_for("/x");
    held.heads.push((id, String::new()));
    vec![client]
}

/// A client that has some of its stream waiting.
fn slow(held: &mut Held) -> TcpStream {
    let (client, id) = held.stream(TEXT, &[]);
    let payload = vec![b'x'; 1 << 20];
    held.until("that some waits", |held| {
        held.command(&send(id, &payload));
        (held.backlog() > 0).then_some(())
    });
    client
}

/// A client, and the connection that another server accepted of it.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = connect(listener.local_addr().unwrap());
    let (server, _) = listener.accept().unwrap();
    server.set_nonblocking(true).unwrap();
    (client, server)
}

fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the descriptors in a table are open on, by number. One that goes meanwhile is left out.
fn table(directory: &Path) -> BTreeMap<String, PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return BTreeMap::new() };
    let links = entries.flatten().filter_map(|entry| Some((entry.file_name().into_string().ok()?, fs::read_link(entry.path()).ok()?)));
    // Of the listing itself there is one that is gone as soon as it is seen.
    links.filter(|(_, link)| !link.starts_with("/proc")).collect()
}

/// The threads of shards.
fn shards() -> Vec<PathBuf> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten().map(|entry| entry.path());
    tasks.filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.starts_with("holdfast-"))).collect()
}

/// Waits until the process has what it had before.
fn until_as_before(before: &BTreeMap<String, PathBuf>, stage: &str) {
    until(&format!("the end of the threads after {stage}"), || shards().is_empty().then_some(()));
    until(&format!("the descriptors from before {stage}"), || (table(Path::new("/proc/self/fd")) == *before).then_some(()));
}

#[test]
fn a_hold_that_is_dropped_closes_all_it_had_and_ends_its_threads() {
    let _turn = alone();
    let before = table(Path::new("/proc/self/fd"));
    for (stage, reach) in STAGES {
        for round in 0..2 * ROUNDS {
            let mut held = Held::start(options_with(|options| {
                options.unshare = round % 2 == 0;
                options.shards = 2 - (round as u8 / 2) % 2;
                options.shard.max_backlog_bytes = 1 << 30;
            }));
            let clients = reach(&mut held);
            assert_eq!(shards().len(), held.hold.telemetry().count(), "{stage}");
            drop(held);
            // What a client sees of it is the end, or a reset where it left something unread.
            for mut client in clients {
                let _ = client.read_to_end(&mut Vec::new()).inspect_err(|error| {
                    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{stage}");
                });
            }
            until_as_before(&before, stage);
        }
    }
}

#[test]
fn a_hold_that_never_listened_leaves_nothing_behind() {
    let _turn = alone();
    let before = table(Path::new("/proc/self/fd"));
    for round in 0..2 * ROUNDS {
        let mut hold = Hold::new(options_with(|options| options.unshare = round % 2 == 0)).unwrap();
        if round % 4 == 0 {
            hold.stop();
            hold.stop();
        }
        drop(hold);
        until_as_before(&before, "nothing");
    }
}

#[test]
fn a_hold_that_could_not_listen_leaves_nothing_behind() {
    let _turn = alone();
    let before = table(Path::new("/proc/self/fd"));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let hold = Hold::new(options()).unwrap();
    assert!(hold.listen(taken.local_addr().unwrap()).is_err());
    drop((hold, taken));
    until_as_before(&before, "a port that is taken");
}

#[test]
fn a_table_of_its_own_has_the_stdio_of_the_process_and_none_of_its_sockets() {
    let _turn = alone();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut held = Held::start(options());
    let _stream = held.stream(TEXT, &[]);
    if !held.hold.is_unshared() {
        return eprintln!("the kernel gives no table to a thread here: nothing to see");
    }
    let [shard] = shards().try_into().unwrap();
    let (mine, theirs) = (table(Path::new("/proc/self/fd")), table(&shard.join("fd")));
    for number in ["0", "1", "2"] {
        assert_eq!(theirs.get(number), mine.get(number), "a panic must not be written to a client");
    }
    let socket = |table: &BTreeMap<String, PathBuf>, link: &Path| table.values().any(|found| found == link);
    let number = std::os::fd::AsRawFd::as_raw_fd(&listener).to_string();
    assert!(!socket(&theirs, &mine[&number]), "a socket of the process is open in the table of a shard");
}
