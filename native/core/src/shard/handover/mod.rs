//! Handover: a shard gives its streams to shards of another process, or worker, while they are live; nobody closes anything.
//! JS decides when (`transport/handover.js`), in rounds:
//!
//! ```text
//!     giver                                 taker
//!     Move: rows become Moving  --parcels-> Parked
//!       | all have their receipt              |
//!     Release: the rows are freed             |      the point of no return
//!                                           Go: the rows are Held
//!     TakeBack: Held again                  DropParked: closed here, and nothing has happened to the streams
//! ```
//!
//! Neither shard writes to a row in between. `giving` is one side, `taking` the other.

mod giving;
mod taking;

use std::io;
use std::os::fd::AsFd;

pub(super) use giving::Giving;
pub(super) use taking::Taking;

use super::Shard;
use super::turn::LISTENER;
use crate::handover::Peer;

/// The token of the offer. Those of peers are below it, and rows have smaller ones.
pub(super) const OFFER: u64 = LISTENER - 1;
/// The tokens of takers, and of givers, by their numbers.
pub(super) const TAKERS: u64 = 1 << 60;
const GIVERS: u64 = TAKERS | 1 << 32;

impl Shard {
    /// Something has happened to a peer.
    pub(super) fn handle_peer(&mut self, token: u64) {
        match token.checked_sub(GIVERS) {
            Some(number) => self.handle_giver(number as usize),
            None => self.handle_taker((token - TAKERS) as usize),
        }
    }

    fn watch_peer(&self, peer: &Peer, token: u64) -> io::Result<()> {
        Ok(self.reactor.watch(peer.as_fd(), token, true)?)
    }
}
