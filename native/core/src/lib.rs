//! Holds open HTTP streams outside of JS. A `Hold` has several shards; a shard is a thread with an epoll, a table of
//! connections, a ping wheel and, if the kernel allows it, a descriptor table of its own.
//!
//! In reading order: `hold` (all shards), `shard` (one of them). What they are made of, from the bottom up: `clock`, `id`,
//! `sys`, `protocol`, `framing`, `queue`, `wire`, `address`, `options`, `socket`, `parcel`, `response`, `telemetry`, `head`,
//! `tls`, `labels`, `command`, `cache`, `rows`, `arriving`, `channels`, `wheel`, `backlog`, `listener`, `claim`, `reactor`, `mail`. The other side,
//! a drone of the fleet that dials, is `dial`.

pub mod address;
mod arriving;
mod backlog;
mod cache;
mod channels;
mod claim;
mod clock;
pub mod command;
pub mod dial;
pub mod framing;
pub mod handover;
pub mod head;
mod hold;
pub mod id;
mod json;
pub mod labels;
mod listener;
pub mod mail;
mod options;
pub mod parcel;
pub mod protocol;
pub mod queue;
mod reactor;
pub mod response;
mod rows;
mod shard;
mod socket;
mod sys;
pub mod telemetry;
pub mod tls;
pub mod websocket;
mod wheel;
pub mod wire;

pub use address::Range;
pub use channels::Counted;
pub use claim::Claim;
pub use hold::Hold;
pub use options::Options;
#[doc(hidden)]
pub use shard::{Fds, Phase, Shard, Shared};
pub use sys::{can_unshare, duplicate};
