//! Measures pauses of the machine itself: a thread that only wakes every 2 ms, or as often as its argument says. Run it on
//! one core at the highest priority: then only the host of a virtual machine or the kernel can delay it, no program.
//!
//! Takes orders on standard input: `read` answers `late US`, the longest delay since the last time.

use std::io;
use std::time::{Duration, Instant};

use holdfast_bare::{new_epoll, read_order, wait};

const EVERY_MS: u64 = 2;

fn main() -> io::Result<()> {
    let every_ms = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(EVERY_MS);
    let epoll = new_epoll()?;
    let mut ready = Vec::with_capacity(1);
    let mut latest = Duration::ZERO;
    let mut before = Instant::now();
    println!("ready");
    loop {
        wait(&epoll, &mut ready, Some(every_ms))?;
        let now = Instant::now();
        latest = latest.max((now - before).saturating_sub(Duration::from_millis(every_ms)));
        before = now;
        if !ready.is_empty() {
            if read_order().is_none() {
                return Ok(());
            }
            println!("late {}", latest.as_micros());
            latest = Duration::ZERO;
        }
    }
}
