//! Claims to a port, beside the sockets of a Hold and of others.

mod common;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Barrier};
use std::thread;

use common::options;
use holdfast_core::{Claim, Hold};

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn at(claim: &Claim) -> SocketAddr {
    SocketAddr::new(any().ip(), claim.port())
}

#[test]
fn a_claimed_port_is_free_for_shards_but_for_no_other_claim() {
    let claim = Claim::open(any()).unwrap();
    let refused = || Claim::open(at(&claim)).unwrap_err().kind();
    assert_eq!(refused(), ErrorKind::AddrInUse);
    let hold = Hold::new(options()).unwrap();
    assert_eq!(hold.listen(at(&claim), false).unwrap(), claim.port());
    assert_eq!(refused(), ErrorKind::AddrInUse);
    drop(hold);
    assert_eq!(refused(), ErrorKind::AddrInUse, "it holds even while no shard is listening");
    let address = at(&claim);
    drop(claim);
    assert!(Claim::open(address).is_ok());
}

#[test]
fn a_claim_that_was_joined_lasts_until_both_are_dropped() {
    let claim = Claim::open(any()).unwrap();
    let address = at(&claim);
    let joined = Claim::join(address).unwrap();
    assert_eq!(joined.port(), claim.port());
    let hold = Hold::new(options()).unwrap();
    assert_eq!(hold.listen(address, false).unwrap(), claim.port());
    drop(claim);
    drop(hold);
    assert_eq!(Claim::open(address).unwrap_err().kind(), ErrorKind::AddrInUse);
    drop(joined);
    assert!(Claim::open(address).is_ok());
    let plain = TcpListener::bind(any()).unwrap();
    assert_eq!(Claim::join(plain.local_addr().unwrap()).unwrap_err().kind(), ErrorKind::AddrInUse);
}

#[test]
fn a_port_is_not_claimed_from_a_server_that_listens_on_it() {
    let plain = TcpListener::bind(any()).unwrap();
    let address = plain.local_addr().unwrap();
    assert_eq!(Claim::open(address).unwrap_err().kind(), ErrorKind::AddrInUse);
    let everywhere = SocketAddr::new("::".parse().unwrap(), address.port());
    assert_eq!(Claim::open(everywhere).unwrap_err().kind(), ErrorKind::AddrInUse);
    let hold = Hold::new(options()).unwrap();
    let port = hold.listen(any(), false).unwrap();
    assert_eq!(Claim::open(SocketAddr::new(any().ip(), port)).unwrap_err().kind(), ErrorKind::AddrInUse);
}

#[test]
fn of_many_claims_at_the_same_moment_exactly_one_succeeds() {
    for _ in 0..50 {
        let address = at(&Claim::open(any()).unwrap());
        let barrier = Arc::new(Barrier::new(8));
        let claimants: Vec<_> = (0..8)
            .map(|_| {
                let barrier = barrier.clone();
                thread::spawn(move || {
                    barrier.wait();
                    let claim = Claim::open(address);
                    barrier.wait(); // the winner keeps its claim until all have tried
                    claim.is_ok()
                })
            })
            .collect();
        let won = claimants.into_iter().filter_map(|one| one.join().unwrap().then_some(())).count();
        assert_eq!(won, 1);
    }
}
