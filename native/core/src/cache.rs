//! Cached decisions: heads that JS said are always held the same way. In a storm of identical heads JS is then not
//! asked about each one.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::command::Opening;

/// Heads that are remembered; the oldest makes room for a new one.
const MOST: usize = 16;

#[derive(Debug, Default)]
pub struct DecisionCache {
    decisions: VecDeque<(Box<[u8]>, Arc<Opening>)>,
}

impl DecisionCache {
    /// The newest decision about a head replaces the one before. The opening is copied: shards that share one would
    /// contend for its reference count with each stream.
    pub fn remember(&mut self, lines: Box<[u8]>, opening: &Opening) {
        self.decisions.retain(|(known, _)| *known != lines);
        if self.decisions.len() == MOST {
            self.decisions.pop_front();
        }
        self.decisions.push_back((lines, Arc::new(opening.clone())));
    }

    /// How a stream with this head begins, if that is known.
    pub fn find(&self, lines: &[u8]) -> Option<Arc<Opening>> {
        let found = self.decisions.iter().rev().find(|(known, _)| **known == *lines);
        found.map(|(_, opening)| opening.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::Format;

    fn opening(head: &str) -> Opening {
        Opening { format: Format::default(), head: head.as_bytes().into(), welcomes: Box::default(), channels: Vec::new(), wait_ms: 0 }
    }

    fn found(cache: &DecisionCache, lines: &str) -> Option<String> {
        cache.find(lines.as_bytes()).map(|opening| String::from_utf8_lossy(&opening.head).into_owned())
    }

    #[test]
    fn the_newest_decision_counts() {
        let mut cache = DecisionCache::default();
        cache.remember(b"a"[..].into(), &opening("old"));
        cache.remember(b"a"[..].into(), &opening("new"));
        assert_eq!((found(&cache, "a").as_deref(), found(&cache, "b")), (Some("new"), None));
        assert_eq!(cache.decisions.len(), 1);
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut cache = DecisionCache::default();
        for n in 0..=MOST {
            cache.remember(n.to_string().into_bytes().into(), &opening("x"));
        }
        assert_eq!((cache.decisions.len(), found(&cache, "0")), (MOST, None));
        assert!(found(&cache, &MOST.to_string()).is_some());
    }
}
