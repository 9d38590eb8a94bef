//! Holds open HTTP streams outside of JS. A `Hold` has several shards; a shard is a thread with an epoll, a table of
//! connections, a ping wheel and, if the kernel allows it, a descriptor table of its own.
//!
//! In reading order: `hold` (all shards), `shard` (one of them). Below them, from the bottom up:
//! `clock`, `options`, `socket`, `wire`, `framing`, `command`, `parcel`, `response`, `head`, `id`, `rows`, `channels`,
//! `wheel`, `backlog`, `cache`, `listener`, `mail`, `reactor`, `telemetry`. The other side, a drone of the fleet that
//! dials, is `dial`.

mod backlog;
mod cache;
mod channels;
mod clock;
pub mod command;
pub mod dial;
pub mod framing;
pub mod head;
mod hold;
pub mod id;
mod listener;
pub mod mail;
mod options;
pub mod parcel;
pub mod protocol;
mod reactor;
mod response;
mod rows;
mod shard;
mod socket;
mod sys;
pub mod telemetry;
mod wheel;
pub mod wire;

pub use hold::{Hold, can_unshare};
pub use options::Options;
#[doc(hidden)]
pub use shard::{Fds, Phase, Shard, Shared};
pub use sys::duplicate;
