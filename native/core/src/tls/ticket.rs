//! Session tickets: what a client shows to resume a session, sealed with a key that follows from a secret and the time. Whoever
//! has the secret accepts them, so nothing is stored or sent around (RFC 5077; RFC 8446, section 4.6.1).

use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use rustls::server::ProducesTickets;

pub const SECRET_BYTES: usize = 32;
/// How long tickets are sealed with one key. They are accepted until the next period is over.
const PERIOD_S: u64 = 6 * 3600;
const EPOCH_BYTES: usize = 4;

#[derive(Debug)]
pub struct Tickets {
    secret: [u8; SECRET_BYTES],
    random: SystemRandom,
}

impl Tickets {
    pub fn new(secret: [u8; SECRET_BYTES]) -> Self {
        Tickets { secret, random: SystemRandom::new() }
    }

    fn key(&self, epoch: u32) -> Option<LessSafeKey> {
        let salt = Salt::new(HKDF_SHA256, b"holdfast ticket");
        let key = salt.extract(&self.secret);
        let key = UnboundKey::from(key.expand(&[&epoch.to_be_bytes()], &AES_256_GCM).ok()?);
        Some(LessSafeKey::new(key))
    }

    fn encrypt_at(&self, epoch: u32, plain: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        let epoch_bytes = epoch.to_be_bytes();
        let mut text = plain.to_vec();
        let sealed = Nonce::assume_unique_for_key(nonce);
        self.key(epoch)?.seal_in_place_append_tag(sealed, Aad::from(epoch_bytes), &mut text).ok()?;
        Some([&epoch_bytes[..], &nonce, &text].concat())
    }

    fn decrypt_at(&self, epoch: u32, ticket: &[u8]) -> Option<Vec<u8>> {
        let (epoch_bytes, rest) = ticket.split_first_chunk::<EPOCH_BYTES>()?;
        let (nonce, text) = rest.split_first_chunk::<NONCE_LEN>()?;
        let its = u32::from_be_bytes(*epoch_bytes);
        if its != epoch && its.checked_add(1) != Some(epoch) {
            return None;
        }
        let mut text = text.to_vec();
        let opened = Nonce::assume_unique_for_key(*nonce);
        let plain = self.key(its)?.open_in_place(opened, Aad::from(*epoch_bytes), &mut text).ok()?;
        Some(plain.to_vec())
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        PERIOD_S as u32
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.encrypt_at(epoch_now(), plain)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.decrypt_at(epoch_now(), ticket)
    }
}

fn epoch_now() -> u32 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| (since.as_secs() / PERIOD_S) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_accepted_with_the_same_secret_in_its_period_and_the_next_one() {
        let tickets = Tickets::new([7; SECRET_BYTES]);
        let ticket = tickets.encrypt_at(1000, b"a session").unwrap();
        for (epoch, accepted) in [(999, false), (1000, true), (1001, true), (1002, false)] {
            let plain = Tickets::new([7; SECRET_BYTES]).decrypt_at(epoch, &ticket);
            assert_eq!(plain.as_deref(), accepted.then_some(&b"a session"[..]), "{epoch}");
        }
        assert_eq!(Tickets::new([8; SECRET_BYTES]).decrypt_at(1000, &ticket), None);
    }

    #[test]
    fn a_ticket_that_was_changed_or_cut_off_is_not_accepted() {
        let tickets = Tickets::new([7; SECRET_BYTES]);
        let ticket = tickets.encrypt(b"a session").unwrap();
        assert_eq!(tickets.decrypt(&ticket).as_deref(), Some(&b"a session"[..]));
        for place in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[place] ^= 1;
            assert_eq!(tickets.decrypt(&changed), None, "{place}");
            assert_eq!(tickets.decrypt(&ticket[..place]), None, "{place}");
        }
    }
}
