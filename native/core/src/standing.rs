//! Heads that need not be asked about: JS has said how those are held that are written down so. In a storm of alike
//! heads JS is then asked a few times a second, whatever their number.

use std::sync::Arc;

use crate::command::Opening;
use crate::shard::MS;

/// For how long it holds: what streams begin with has the time in it.
const HOLDS_NS: u64 = 1000 * MS;
/// Kinds of heads that are known; the one that was said first goes for a new one.
const MOST: usize = 16;

#[derive(Debug)]
struct Answer {
    lines: Box<[u8]>,
    openings: Arc<[Opening]>,
    turn: usize,
    until_ns: u64,
}

#[derive(Debug, Default)]
pub struct Standing {
    answers: Vec<Answer>,
}

impl Standing {
    pub fn say(&mut self, lines: Box<[u8]>, openings: Arc<[Opening]>, now_ns: u64) {
        self.answers.retain(|answer| answer.lines != lines && answer.until_ns > now_ns);
        if self.answers.len() == MOST {
            self.answers.remove(0);
        }
        self.answers.push(Answer { lines, openings, turn: 0, until_ns: now_ns + HOLDS_NS });
    }

    /// How a stream begins whose head is written down so: the openings, and the place of that whose turn it is.
    pub fn find(&mut self, lines: &[u8], now_ns: u64) -> Option<(Arc<[Opening]>, usize)> {
        let answer = self.answers.iter_mut().rev().find(|answer| *answer.lines == *lines && answer.until_ns > now_ns)?;
        answer.turn = (answer.turn + 1) % answer.openings.len();
        Some((answer.openings.clone(), answer.turn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::Format;

    fn openings(texts: &[&str]) -> Arc<[Opening]> {
        let format = Format::from_bits(0).unwrap();
        texts.iter().map(|text| Opening { format, bytes: text.as_bytes().into(), channels: Vec::new() }).collect()
    }

    fn found(standing: &mut Standing, lines: &str, now_ns: u64) -> Option<String> {
        let (openings, turn) = standing.find(lines.as_bytes(), now_ns)?;
        Some(String::from_utf8_lossy(&openings[turn].bytes).into_owned())
    }

    #[test]
    fn alike_heads_get_the_openings_in_turn_for_a_second() {
        let mut standing = Standing::default();
        standing.say(b"a"[..].into(), openings(&["one", "two"]), 0);
        let all: Vec<_> = (0..4).map(|_| found(&mut standing, "a", HOLDS_NS - 1).unwrap()).collect();
        assert_eq!(all, ["two", "one", "two", "one"]);
        assert_eq!(found(&mut standing, "b", 1), None);
        assert_eq!(found(&mut standing, "a", HOLDS_NS), None);
    }

    #[test]
    fn the_last_that_was_said_counts() {
        let mut standing = Standing::default();
        standing.say(b"a"[..].into(), openings(&["old"]), 0);
        standing.say(b"a"[..].into(), openings(&["new"]), 1);
        assert_eq!(found(&mut standing, "a", 2).as_deref(), Some("new"));
    }

    #[test]
    fn there_are_no_more_than_some() {
        let mut standing = Standing::default();
        for n in 0..=MOST {
            standing.say(n.to_string().into_bytes().into(), openings(&["x"]), 0);
        }
        assert_eq!(standing.answers.len(), MOST);
        assert_eq!(found(&mut standing, "0", 1), None);
        assert!(found(&mut standing, &MOST.to_string(), 1).is_some());
    }
}
