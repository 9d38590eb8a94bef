//! The tokens that streams send in their requests. JS makes them, and all threads read them.

use std::sync::{PoisonError, RwLock};

/// By the place of the stream.
#[derive(Debug, Default)]
pub struct Tokens(RwLock<Vec<Box<[u8]>>>);

impl Tokens {
    /// Sets those from this place on. Others stay as they are.
    pub fn set(&self, from: usize, tokens: Vec<Box<[u8]>>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let needed = from + tokens.len();
        if all.len() < needed {
            all.resize_with(needed, Box::default);
        }
        for (place, token) in (from..).zip(tokens) {
            all[place] = token;
        }
    }

    /// Passes the token for a place, which is empty if there is none.
    pub fn with<T>(&self, place: u64, body: impl FnOnce(&[u8]) -> T) -> T {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        body(usize::try_from(place).ok().and_then(|place| all.get(place)).map_or(&[], |token| token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_the_token_that_was_set_last_or_none() {
        let tokens = Tokens::default();
        let set = |from, some: &[&str]| tokens.set(from, some.iter().map(|token| token.as_bytes().into()).collect());
        set(2, &["c", "d"]);
        set(1, &["b", "C"]);
        let found: Vec<String> = (0..5).map(|place| tokens.with(place, |token| String::from_utf8_lossy(token).into_owned())).collect();
        assert_eq!(found, ["", "b", "C", "d", ""]);
    }
}
