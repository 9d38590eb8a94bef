//! A Hold that is dropped leaves no descriptor and no thread behind, at whatever stage of its life.
//!
//! A binary of its own, whose tests take turns: they count what the whole process has.

mod common;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::*;
use holdfast_core::Hold;
use holdfast_core::parcel::Adoption;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For each stage, with a table of its own and without.
const ROUNDS: usize = 4;

type Stage = fn(&mut Held) -> Vec<TcpStream>;

/// How far a Hold has come, and its clients at that time.
const STAGES: [(&str, Stage); 14] = [
    ("listening", |_| Vec::new()),
    ("a head that is incomplete", |held| {
        let client = ask(held.address, b"GET / HT");
        held.until_connections(1);
        vec![client]
    }),
    ("a head that JS decides about", asked_about),
    ("lingering", |held| {
        let client = ask(held.address, &request("/x"));
        let id = held.asked_for("/x");
        held.command(&refuse(id, 404));
        vec![client]
    }),
    ("a response that waits", |held| {
        let client = ask(held.address, &request("/x"));
        let id = held.asked_for("/x");
        held.command(&respond(id, NOT_FOUND, &[b'x'; 16 << 20]));
        held.until("that some waits", |held| (held.backlog() > 0).then_some(()));
        vec![client]
    }),
    ("streams", |held| vec![held.stream(TEXT, &["news"]).0, held.stream(CHUNKED_EVENTS, &[]).0]),
    ("an adopted stream", |held| {
        let (client, server) = accepted();
        held.hold
            .adopt(
                server.as_fd(),
                &Adoption { token: 1, relayed: None, format: Default::default(), channels: Vec::new(), opening: Box::default() },
            )
            .unwrap();
        held.until("the adoption", |held| held.rest.adopted.pop());
        vec![client]
    }),
    ("a remembered head", |held| {
        held.remember(opening(TEXT, HEAD, &[], &["news"]), "/cached");
        let mut client = ask(held.address, &request("/cached"));
        read_head(&mut client);
        vec![client]
    }),
    ("an adoption and a passed connection that nobody took", |held| {
        let mut clients = asked_about(held);
        held.command(&pass(held.heads[0].0));
        held.until_connections(0);
        let (client, server) = accepted();
        held.hold
            .adopt(
                server.as_fd(),
                &Adoption { token: 1, relayed: None, format: Default::default(), channels: Vec::new(), opening: Box::default() },
            )
            .unwrap();
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
    ("a round in which streams move", |held| {
        let clients = vec![slow(held), held.stream(TEXT, &["news"]).0];
        let taker = Hold::new(options()).unwrap();
        prepare_move(held, &taker);
        clients
    }),
    ("streams that were taken over", |held| {
        let mut giver = Held::start(options_with(|options| options.max_backlog_bytes = 1 << 30));
        let clients = vec![slow(&mut giver), giver.stream(TEXT, &["news"]).0];
        prepare_move(&mut giver, &held.hold);
        giver.hold.release();
        held.hold.go(None);
        until("that they are here", || (held.total(|telemetry| telemetry.streams.load(Relaxed)) == 2).then_some(()));
        clients
    }),
    ("a failure", |held| {
        let clients = vec![slow(held), held.stream(TEXT, &["news"]).0];
        let count = held.hold.telemetry().count();
        (0..count).for_each(|shard| held.hold.fail(shard as u8));
        held.until("the reports", |held| (held.rest.failed.len() == count).then_some(()));
        clients
    }),
];

/// A client that JS decides about; it stays in the list of heads.
fn asked_about(held: &mut Held) -> Vec<TcpStream> {
    let client = ask(held.address, &request("/x"));
    let id = held.asked_for("/x");
    held.heads.push((id, String::new()));
    vec![client]
}

/// A round, up to the point of no return.
fn prepare_move(giver: &mut Held, taker: &Hold) {
    for name in giver.hold.offer().unwrap() {
        taker.take_from(0, name, 1.0).unwrap();
    }
    giver.hold.begin_move(60_000, false);
    let shards = giver.hold.telemetry().count();
    giver.until("the reports", |held| (held.rest.moves.len() == shards).then_some(()));
    assert!(giver.rest.moves.iter().all(|report| !report.is_broken));
}

/// A client whose stream has a backlog.
fn slow(held: &mut Held) -> TcpStream {
    let (client, id) = held.stream(TEXT, &[]);
    let payload = vec![b'x'; 1 << 20];
    held.until("that some waits", |held| {
        held.command(&send(id, &payload));
        (held.backlog() > 0).then_some(())
    });
    client
}

fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the descriptors in a table refer to, by number. One that is closed in the meantime is left out.
fn table(directory: &Path) -> BTreeMap<String, PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return BTreeMap::new() };
    let links = entries.flatten().filter_map(|entry| Some((entry.file_name().into_string().ok()?, fs::read_link(entry.path()).ok()?)));
    // The listing itself has one, which is closed again when it is seen.
    links.filter(|(_, link)| !link.starts_with("/proc")).collect()
}

/// The threads of shards.
fn shards() -> Vec<PathBuf> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten().map(|entry| entry.path());
    tasks.filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.starts_with("holdfast-"))).collect()
}

/// Waits until the process has what it had before, and nothing else.
fn until_as_before(before: &BTreeMap<String, PathBuf>, stage: &str) {
    until(&format!("the end of the threads after {stage}"), || shards().is_empty().then_some(()));
    until(&format!("the descriptors from before {stage}"), || (table(Path::new("/proc/self/fd")) == *before).then_some(()));
}

#[test]
fn a_hold_that_is_dropped_closes_everything_and_ends_its_threads() {
    let _turn = alone();
    let before = table(Path::new("/proc/self/fd"));
    for (stage, reach) in STAGES {
        for round in 0..2 * ROUNDS {
            let mut held = Held::start(options_with(|options| {
                options.own_tables = round % 2 == 0;
                options.shards = 2 - (round as u8 / 2) % 2;
                options.max_backlog_bytes = 1 << 30;
            }));
            let clients = reach(&mut held);
            // Those of another Hold may take a moment to be gone.
            until(stage, || (shards().len() == held.hold.telemetry().count()).then_some(()));
            drop(held);
            // A client sees the end, or a reset if something it sent was not read.
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
        let mut hold = Hold::new(options_with(|options| options.own_tables = round % 2 == 0)).unwrap();
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
    let hold = Hold::new(options_with(|options| options.shards = 3)).unwrap();
    let error = hold.listen(taken.local_addr().unwrap(), false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    drop((hold, taken));
    until_as_before(&before, "a port that is taken");
}

/// Allows the process descriptors below this number; the limit from before comes back when it is dropped.
struct Limited(Rlimit);

impl Limited {
    fn to(most: u64) -> Self {
        let before = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: before.maximum }).unwrap();
        Limited(before)
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        setrlimit(Resource::Nofile, self.0).unwrap();
    }
}

#[test]
fn when_one_of_several_shards_can_not_listen_none_does() {
    let _turn = alone();
    let before = table(Path::new("/proc/self/fd"));
    let hold = Hold::new(options_with(|options| (options.shards, options.own_tables) = (3, false))).unwrap();
    // The first shards get the last two descriptors of the table that they share, the third gets none.
    let mut free = [File::open("/dev/null").unwrap(), File::open("/dev/null").unwrap()].map(|file| file.as_raw_fd() as u64);
    free.sort_unstable();
    let limited = Limited::to(free[1] + 1);
    let error = hold.listen(([127, 0, 0, 1], 0).into(), false).unwrap_err();
    drop(limited);
    assert_eq!(error.raw_os_error(), Some(Errno::MFILE.raw_os_error()));
    until("that none listens", || (listeners() == 0).then_some(()));
    // With more descriptors it works, and all of them listen.
    hold.listen(([127, 0, 0, 1], 0).into(), false).unwrap();
    assert_eq!(listeners(), 3);
    drop(hold);
    until_as_before(&before, "a shard that could not listen");
}

/// How many sockets of the process listen.
fn listeners() -> usize {
    let sockets = fs::read_to_string("/proc/self/net/tcp").unwrap();
    // The fourth column is the state, TCP_LISTEN is 10; the tenth is the inode.
    let listening: Vec<String> = sockets
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<&str>>())
        .filter(|columns| columns.get(3) == Some(&"0A"))
        .map(|columns| format!("socket:[{}]", columns[9]))
        .collect();
    let mine = table(Path::new("/proc/self/fd"));
    mine.values().filter(|link| listening.iter().any(|socket| link.as_path() == Path::new(socket))).count()
}

#[test]
fn a_table_of_its_own_has_the_stdio_of_the_process_and_none_of_its_sockets() {
    let _turn = alone();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut held = Held::start(options());
    let _stream = held.stream(TEXT, &[]);
    if !held.hold.has_own_tables() {
        return eprintln!("the kernel refuses tables to threads here: nothing to see");
    }
    let [shard] = shards().try_into().unwrap();
    let (mine, theirs) = (table(Path::new("/proc/self/fd")), table(&shard.join("fd")));
    for number in ["0", "1", "2"] {
        assert_eq!(theirs.get(number), mine.get(number), "a panic must not be written to a client");
    }
    let socket = |table: &BTreeMap<String, PathBuf>, link: &Path| table.values().any(|found| found == link);
    let number = listener.as_raw_fd().to_string();
    assert!(!socket(&theirs, &mine[&number]), "a socket of the process is open in the table of a shard");
}
