//! What goes between the shards of two processes, or workers, when one hands its streams over to the other: frames over a stream
//! socket, each with the descriptors that belong to it (SCM_RIGHTS, unix(7)).
//!
//! ```text
//!     giver                                            taker
//!       | <-- hello: version, weight ------------------- |    once
//!       | --- parcel: number, records, descriptors ----> |    at most PARCEL_ROWS; one at a time
//!       | <-- receipt: number, the id of each ---------- |    0: it can't be taken
//! ```

mod peer;
mod record;

pub use peer::{Gone, Offer, Peer};
pub use record::{Head, Hello, More, OLDEST_VERSION, Parcel, Poll, Receipt, Record, Stream, Tls, VERSION, version_of};

/// Descriptors in one parcel. The kernel allows 253 (SCM_MAX_FD).
pub const PARCEL_ROWS: usize = 250;
