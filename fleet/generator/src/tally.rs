//! What is counted and measured, and how it is printed.

use std::fmt::Write;

use crate::histogram::Histogram;
use crate::protocol::Verdict;

/// Why a request got no answer. The names are those of fleet/drone/causes.js.
#[derive(Clone, Copy)]
pub enum Cause {
    Refused,
    Unreachable,
    Timeout,
    NoPort,
    Descriptors,
    Reset,
    Closed,
    Unexpected,
    Other,
}

const CAUSES: [&str; 9] = ["refused", "unreachable", "timeout", "no-port", "descriptors", "reset", "closed", "unexpected", "other"];
const VERDICTS: [&str; 5] = ["hits", "misses", "stored", "wrong", "errors"];
const PERCENTILES: [f64; 10] = [50.0, 66.0, 75.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.9, 100.0];

/// Why the run ended: all requests were sent, the time was up, somebody stopped it, or nothing was ever answered.
#[derive(Clone, Copy, PartialEq)]
pub enum End {
    Count,
    Duration,
    Stopped,
    Unanswered,
}

pub struct Tally {
    pub started_ns: Option<u64>,
    pub last_ns: u64,
    pub sent: u64,
    pub complete: u64,
    verdicts: [u64; VERDICTS.len()],
    failed: [u64; CAUSES.len()],
    pub failures: u64,
    /// The last line that said there was an error, or the last error of a connection.
    pub last_error: String,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    latency: Histogram,
}

impl Tally {
    pub fn new() -> Tally {
        Tally {
            started_ns: None,
            last_ns: 0,
            sent: 0,
            complete: 0,
            verdicts: [0; VERDICTS.len()],
            failed: [0; CAUSES.len()],
            failures: 0,
            last_error: String::new(),
            received_bytes: 0,
            sent_bytes: 0,
            latency: Histogram::new(),
        }
    }

    pub fn add_answer(&mut self, verdict: Verdict, latency_ns: u64, now_ns: u64) {
        self.complete += 1;
        self.verdicts[verdict as usize] += 1;
        self.latency.record(latency_ns);
        self.last_ns = now_ns;
    }

    pub fn add_failures(&mut self, cause: Cause, count: u64, now_ns: u64) {
        self.failed[cause as usize] += count;
        self.failures += count;
        self.last_ns = now_ns;
    }

    pub fn count(&self, verdict: Verdict) -> u64 {
        self.verdicts[verdict as usize]
    }

    /// One line of JSON. `phase` is what was measured: the requests, or the filling if that failed.
    pub fn json(&self, phase: &str, end: End, end_ns: u64, cpu_ns: u64) -> String {
        let until_ns = if matches!(end, End::Count | End::Unanswered) { self.last_ns } else { end_ns };
        let elapsed_ns = self.started_ns.map_or(0, |start| until_ns.saturating_sub(start));
        let end = ["count", "duration", "stopped", "unanswered"][end as usize];
        let mut text = format!(
            r#"{{"phase":"{phase}","end":"{end}","elapsedMs":{},"cpuMs":{},"sent":{},"complete":{},"inFlight":{}"#,
            ms(elapsed_ns),
            ms(cpu_ns),
            self.sent,
            self.complete,
            self.sent - self.complete - self.failures
        );
        for (name, count) in VERDICTS.iter().zip(self.verdicts) {
            let _ = write!(text, r#","{name}":{count}"#);
        }
        let _ =
            write!(text, r#","bytes":{},"sentBytes":{},"lastError":"{}""#, self.received_bytes, self.sent_bytes, quoted(&self.last_error));
        let failed: Vec<String> = CAUSES.iter().zip(self.failed).map(|(name, count)| format!(r#""{name}":{count}"#)).collect();
        let _ = write!(text, r#","failed":{{{}}},"latencyMs":{}}}"#, failed.join(","), self.latency_json());
        text
    }

    fn latency_json(&self) -> String {
        let Histogram { count, min, max, .. } = self.latency;
        let min = if count == 0 { 0 } else { min };
        let percentiles: Vec<String> =
            PERCENTILES.iter().map(|percent| format!(r#""{percent}":{}"#, ms(self.latency.percentile(*percent)))).collect();
        let mean = ms(self.latency.mean());
        format!(r#"{{"count":{count},"min":{},"mean":{mean},"max":{},"percentiles":{{{}}}}}"#, ms(min), ms(max), percentiles.join(","))
    }
}

/// To the ns.
fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// What may stand between the quotes of JSON: everything but letters, digits and simple punctuation becomes a space.
fn quoted(text: &str) -> String {
    text.chars().map(|char| if (' '..='~').contains(&char) && !matches!(char, '"' | '\\') { char } else { ' ' }).collect()
}
