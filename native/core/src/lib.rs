//! Holds open HTTP streams outside of JS. A `Hold` is some shards; a shard is a thread with an epoll, a table of
//! rows, a wheel of pings, and, where the kernel lets it, a descriptor table of its own.
//!
//! In reading order: `hold` (all shards), `shard` (the loop of one), `door` (from accepted to answered), `stream`
//! (from held to gone); below them `rows`, `standing`, `channels`, `wheel`, `framing`, `head`, `command`, `mail`, `telemetry`.
//! The other side, a fleet's drone that dials, is `dial`.

mod channels;
mod check;
pub mod command;
pub mod dial;
mod door;
pub mod framing;
pub mod head;
mod hold;
pub mod id;
pub mod mail;
mod rows;
mod shard;
mod standing;
mod stream;
mod sys;
pub mod telemetry;
mod wheel;

pub use hold::{Adoption, Hold, HoldOptions, can_unshare};
pub use shard::Options;
#[doc(hidden)]
pub use shard::{Seat, Shard, Shared};
pub use sys::duplicate;
