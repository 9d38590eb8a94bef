//! Loads a server that speaks the text protocol of memcached, or RESP, from one thread and at little cost of its own.
//!
//!     generator --tcp ADDRESS:PORT --op get|set|mixed --connections N --requests N …
//!
//! Sets all keys before gets, then measures. Prints `progress COMPLETE FAILED` on stderr once a second and one line of JSON on
//! stdout at the end. Anything on standard input, or its end, stops the run.

mod clock;
mod connection;
mod events;
mod histogram;
mod load;
mod options;
mod order;
mod protocol;
mod random;
mod tally;

use std::process::ExitCode;

use clock::cpu_ns;
use load::Load;
use options::{Operations, Options};
use order::Order;
use protocol::{Dialog, Verdict};
use tally::End;

/// Bytes of the requests that fill the server which are under way at once, about.
const FILL_BYTES: usize = 100_000;

fn main() -> ExitCode {
    match Options::read(std::env::args().skip(1)).map(|options| run(&options)) {
        Ok(Ok(json)) => println!("{json}"),
        Ok(Err(error)) => return fail(&error.to_string()),
        Err(problem) => return fail(&problem),
    }
    ExitCode::SUCCESS
}

fn fail(problem: &str) -> ExitCode {
    eprintln!("generator: {problem}");
    ExitCode::from(2)
}

/// Returns the measurement as JSON, or that of the filling if it failed.
fn run(options: &Options) -> std::io::Result<String> {
    let dialog = Dialog::new(options.protocol, options.keys, options.value_size);
    if options.operations != Operations::Set && !options.is_filled {
        let filling = fill_options(options);
        let mut fill = Load::new(&filling, &dialog, Order::Fill)?;
        let (end, now) = fill.run()?;
        let is_full = fill.tally.count(Verdict::Stored) == options.keys as u64;
        if end != End::Count || !is_full {
            return Ok(fill.tally.json("fill", end, now, cpu_ns()));
        }
    }
    let mut load = Load::new(options, &dialog, Order::Random(options.operations))?;
    let before_ns = cpu_ns();
    let (end, now) = load.run()?;
    Ok(load.tally.json("requests", end, now, cpu_ns() - before_ns))
}

/// One connection sets every key once.
fn fill_options(options: &Options) -> Options {
    let pipeline = (FILL_BYTES / (options.value_size + 50)).clamp(1, 100);
    Options { connections: 1, requests: options.keys as u64, duration_ms: 0, pipeline, ..options.clone() }
}
