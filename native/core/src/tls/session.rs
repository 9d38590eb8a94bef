//! What is kept of TLS once the handshake is over: keys, and the numbers of the next records. 100 bytes.
//!
//! Secrets and keys of TLS 1.3 follow from each other: a traffic secret gives the key and the IV, and the secret after a key update
//! (RFC 8446, sections 7.2 and 7.3). What a client sends is rare, so only the secret of that direction is kept. Of the direction
//! in which we write, AES-128 has its key and IV too; ChaCha20, whose key is twice as long, derives both for each record.

use aws_lc_rs::aead::{AES_128_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk};
use zeroize::Zeroize;

use super::record::{Alert, Content, HEADER_BYTES, MOST_PLAINTEXT, VERSION, header};
use crate::wire::Malformed;

pub const SESSION_BYTES: usize = 100;
/// Records under one key. AES-GCM allows 2^24.5 (RFC 8446, section 5.5).
pub const MOST_RECORDS: u32 = 1 << 22;
/// No record gets this number: its key was replaced, or its connection has ended, long before.
const NO_RECORD: u32 = 1 << 24;

const SECRET: usize = 32;
const KEY_AES: usize = 16;
const KEY_CHACHA: usize = 32;
const IV: usize = 12;
const TAG: usize = 16;
const EXPLICIT_NONCE: usize = 8;
const MATERIAL: usize = SESSION_BYTES - 8;

/// The version and the cipher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
enum Suite {
    /// Not TLS.
    #[default]
    None,
    Aes,
    ChaCha,
    Aes12,
    ChaCha12,
}

impl Suite {
    fn of(byte: u8) -> Option<Self> {
        [Suite::Aes, Suite::ChaCha, Suite::Aes12, Suite::ChaCha12].into_iter().find(|suite| *suite as u8 == byte)
    }

    fn is_tls12(self) -> bool {
        matches!(self, Suite::Aes12 | Suite::ChaCha12)
    }

    fn algorithm(self) -> &'static Algorithm {
        if matches!(self, Suite::Aes | Suite::Aes12) { &AES_128_GCM } else { &CHACHA20_POLY1305 }
    }

    fn key_bytes(self) -> usize {
        if matches!(self, Suite::Aes | Suite::Aes12) { KEY_AES } else { KEY_CHACHA }
    }

    /// Whether records carry a part of their nonce (RFC 5288, section 3).
    fn has_explicit_nonce(self) -> bool {
        self == Suite::Aes12
    }
}

/// The two directions, as secrets or keys. `to` is the one in which we write.
#[derive(Debug)]
pub enum Secrets<'a> {
    /// Traffic secrets.
    Tls13 { is_aes: bool, to: &'a [u8; SECRET], from: &'a [u8; SECRET] },
    /// A key and an IV each.
    Tls12 { is_aes: bool, to: (&'a [u8], &'a [u8; IV]), from: (&'a [u8], &'a [u8; IV]) },
}

/// What has become of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    NotNeeded,
    Done,
    /// In TLS 1.2: the connection has to end.
    Impossible,
}

/// What a record contained.
#[derive(Debug, PartialEq, Eq)]
pub enum Message<'a> {
    Data(&'a [u8]),
    /// The other side writes nothing more.
    CloseNotify,
    /// It has failed, and says why.
    Failure(u8),
    /// It uses its next key from now on. True: and wants us to do the same.
    KeyUpdate(bool),
    /// A handshake message other than a key update, such as a ticket. Only clients get them.
    Handshake(&'a [u8]),
}

#[derive(Clone, Debug)]
pub struct Session {
    /// Records written under the current key; the suite in the upper 8 bits.
    written: u32,
    /// Records read under the current key.
    read: u32,
    /// TLS 1.3: the secrets to and from the other side, then the key and IV of AES. TLS 1.2: a key and an IV for each direction.
    material: [u8; MATERIAL],
}

const _: () = assert!(size_of::<Session>() == SESSION_BYTES);

impl Default for Session {
    fn default() -> Self {
        Session { written: 0, read: 0, material: [0; MATERIAL] }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.material.zeroize();
    }
}

impl Session {
    /// `written` and `read` are the numbers of the next records.
    pub fn new(secrets: &Secrets, written: u32, read: u32) -> Self {
        let mut session = Session { read, ..Session::default() };
        let material = &mut session.material;
        let suite = match *secrets {
            Secrets::Tls13 { is_aes, to, from } => {
                material[..SECRET].copy_from_slice(to);
                material[SECRET..2 * SECRET].copy_from_slice(from);
                if is_aes { Suite::Aes } else { Suite::ChaCha }
            }
            Secrets::Tls12 { is_aes, to, from } => {
                let suite = if is_aes { Suite::Aes12 } else { Suite::ChaCha12 };
                let half = suite.key_bytes() + IV;
                for (place, (key, iv)) in [(0, to), (half, from)] {
                    material[place..place + suite.key_bytes()].copy_from_slice(key);
                    material[place + suite.key_bytes()..place + half].copy_from_slice(iv);
                }
                suite
            }
        };
        session.written = (suite as u32) << 24 | written;
        session.keep_key();
        session
    }

    /// Whether there is one: a connection without TLS has an empty one.
    pub fn is_some(&self) -> bool {
        self.written >> 24 != 0
    }

    /// Appends a key update if the key was used often enough.
    pub fn renew(&mut self, out: &mut Vec<u8>) -> Renewal {
        if self.written() < MOST_RECORDS {
            return Renewal::NotNeeded;
        }
        if !self.can_update() {
            return Renewal::Impossible;
        }
        self.seal_key_update(out);
        Renewal::Done
    }

    /// Whether its version has key updates.
    pub fn can_update(&self) -> bool {
        !self.suite().is_tls12()
    }

    /// For tests: as if so many records had been written, or read, before.
    #[doc(hidden)]
    pub fn skip_to(&mut self, written: u32, read: u32) {
        self.written = self.written & !(NO_RECORD - 1) | written;
        self.read = read;
    }

    pub fn bytes(&self) -> [u8; SESSION_BYTES] {
        let mut bytes = [0; SESSION_BYTES];
        bytes[..4].copy_from_slice(&self.written.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.read.to_le_bytes());
        bytes[8..].copy_from_slice(&self.material);
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let bytes: &[u8; SESSION_BYTES] = bytes.try_into().map_err(|_| Malformed)?;
        let number = |place: usize| u32::from_le_bytes([bytes[place], bytes[place + 1], bytes[place + 2], bytes[place + 3]]);
        let mut session = Session { written: number(0), read: number(4), ..Session::default() };
        session.material.copy_from_slice(&bytes[8..]);
        Suite::of((session.written >> 24) as u8).map(|_| session).ok_or(Malformed)
    }

    /// Appends records with `bytes` to `out`, as many as it takes.
    pub fn seal(&mut self, content: Content, bytes: &[u8], out: &mut Vec<u8>) {
        let (key, iv) = self.write_key();
        for part in bytes.chunks(MOST_PLAINTEXT) {
            self.seal_one(&key, iv, content, part, out);
        }
    }

    /// Appends an alert, after which nothing may follow.
    pub fn seal_alert(&mut self, alert: Alert, out: &mut Vec<u8>) {
        self.seal(Content::Alert, &alert.bytes(), out);
    }

    /// Appends a key update, and writes with the next key from now on.
    pub fn seal_key_update(&mut self, out: &mut Vec<u8>) {
        self.seal_key_update_with(0, out);
    }

    /// The same; 1 asks the other side to do that too.
    pub fn seal_key_update_with(&mut self, is_requested: u8, out: &mut Vec<u8>) {
        debug_assert!(self.can_update());
        self.seal(Content::Handshake, &[KEY_UPDATE, 0, 0, 1, is_requested], out);
        let next = next_secret(&self.material[..SECRET]);
        self.material[..SECRET].copy_from_slice(&next);
        self.written &= !(NO_RECORD - 1);
        self.keep_key();
    }

    fn seal_one(&mut self, key: &LessSafeKey, iv: [u8; IV], content: Content, part: &[u8], out: &mut Vec<u8>) {
        let suite = self.suite();
        let number = self.written();
        assert!(number < NO_RECORD - 1, "a nonce would be used twice");
        self.written += 1;
        let nonce = nonce(iv, number);
        let begin = out.len();
        let explicit = if suite.has_explicit_nonce() { EXPLICIT_NONCE } else { 0 };
        let tail = usize::from(!suite.is_tls12());
        let size = explicit + part.len() + tail + TAG;
        out.reserve(HEADER_BYTES + size);
        let header = header(if suite.is_tls12() { content } else { Content::Data }, size);
        out.extend_from_slice(&header);
        out.extend_from_slice(&nonce[IV - explicit..]);
        out.extend_from_slice(part);
        let aad = if suite.is_tls12() {
            Associated::of_tls12(number, content, part.len())
        } else {
            out.push(content as u8);
            Associated::of_header(header)
        };
        let text = &mut out[begin + HEADER_BYTES + explicit..];
        let tag = key.seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(aad), text);
        // It can only fail for a text longer than a record can be.
        out.extend_from_slice(tag.expect("a record is short").as_ref());
    }

    /// Reads a whole record, with its header, in place.
    pub fn open<'a>(&mut self, record: &'a mut [u8]) -> Result<Message<'a>, Alert> {
        let (content, text) = self.open_record(record)?;
        match content {
            Content::Data => Ok(Message::Data(text)),
            Content::Alert => read_alert(text, self.suite().is_tls12()),
            Content::Handshake => self.read_handshake(text),
            Content::ChangeCipherSpec => Err(Alert::UnexpectedMessage),
        }
    }

    fn open_record<'a>(&mut self, record: &'a mut [u8]) -> Result<(Content, &'a [u8]), Alert> {
        let (&mut header, body) = record.split_first_chunk_mut::<HEADER_BYTES>().ok_or(Alert::DecodeError)?;
        let content = Content::of(header[0]).filter(|_| header[1..3] == VERSION).ok_or(Alert::UnexpectedMessage)?;
        let suite = self.suite();
        if content == Content::ChangeCipherSpec || (!suite.is_tls12() && content != Content::Data) {
            return Err(Alert::UnexpectedMessage);
        }
        if self.read >= NO_RECORD - 1 {
            return Err(Alert::UnexpectedMessage);
        }
        if usize::from(u16::from_be_bytes([header[3], header[4]])) != body.len() {
            return Err(Alert::DecodeError);
        }
        let (key, iv) = self.read_key();
        let explicit = if suite.has_explicit_nonce() { EXPLICIT_NONCE } else { 0 };
        let size = body.len().checked_sub(explicit + TAG).ok_or(Alert::BadRecordMac)?;
        let mut nonce = nonce(iv, self.read);
        nonce[IV - explicit..].copy_from_slice(&body[..explicit]);
        let aad = if suite.is_tls12() { Associated::of_tls12(self.read, content, size) } else { Associated::of_header(header) };
        let nonce = Nonce::assume_unique_for_key(nonce);
        let text = key.open_in_place(nonce, Aad::from(aad), &mut body[explicit..]).map_err(|_| Alert::BadRecordMac)?;
        self.read += 1;
        let (content, text) = if suite.is_tls12() { (content, &*text) } else { inner(text)? };
        if text.len() > MOST_PLAINTEXT { Err(Alert::RecordOverflow) } else { Ok((content, text)) }
    }

    fn read_handshake<'a>(&mut self, text: &'a [u8]) -> Result<Message<'a>, Alert> {
        if self.suite().is_tls12() {
            return Err(Alert::UnexpectedMessage); // it wants another handshake
        }
        match *text {
            // Nothing may follow it in its record (section 5.1).
            [KEY_UPDATE, 0, 0, 1, is_requested @ 0..=1] => {
                let next = next_secret(&self.material[SECRET..2 * SECRET]);
                self.material[SECRET..2 * SECRET].copy_from_slice(&next);
                self.read = 0;
                Ok(Message::KeyUpdate(is_requested == 1))
            }
            [KEY_UPDATE, 0, 0, 1, _] => Err(Alert::IllegalParameter),
            [] | [KEY_UPDATE, ..] => Err(Alert::UnexpectedMessage),
            _ => Ok(Message::Handshake(text)),
        }
    }

    fn suite(&self) -> Suite {
        Suite::of((self.written >> 24) as u8).unwrap_or_default()
    }

    /// The number of the next record under the current key.
    fn written(&self) -> u32 {
        self.written & (NO_RECORD - 1)
    }

    /// Keeps the key of the direction in which we write, if there is room for it.
    fn keep_key(&mut self) {
        if self.suite() == Suite::Aes {
            let secret = Prk::new_less_safe(HKDF_SHA256, &self.material[..SECRET]);
            let (key, iv) = self.material[2 * SECRET..].split_at_mut(KEY_AES);
            expand(&secret, b"tls13 key", key);
            expand(&secret, b"tls13 iv", iv);
        }
    }

    fn write_key(&self) -> (LessSafeKey, [u8; IV]) {
        match self.suite() {
            Suite::Aes => self.kept_key(2 * SECRET),
            Suite::ChaCha => derived_key(self.suite(), &self.material[..SECRET]),
            _ => self.kept_key(0),
        }
    }

    fn read_key(&self) -> (LessSafeKey, [u8; IV]) {
        let suite = self.suite();
        if suite.is_tls12() { self.kept_key(suite.key_bytes() + IV) } else { derived_key(suite, &self.material[SECRET..2 * SECRET]) }
    }

    fn kept_key(&self, place: usize) -> (LessSafeKey, [u8; IV]) {
        let key = &self.material[place..];
        let mut iv = [0; IV];
        iv.copy_from_slice(&key[self.suite().key_bytes()..][..IV]);
        (key_of(self.suite(), key), iv)
    }
}

/// The type of a handshake message (RFC 8446, section 4.6.3).
const KEY_UPDATE: u8 = 24;

/// What a tag covers besides the text.
struct Associated([u8; 13], usize);

impl Associated {
    /// RFC 8446, section 5.2.
    fn of_header(header: [u8; HEADER_BYTES]) -> Self {
        let mut bytes = [0; 13];
        bytes[..HEADER_BYTES].copy_from_slice(&header);
        Associated(bytes, HEADER_BYTES)
    }

    /// RFC 5246, section 6.2.3.3.
    fn of_tls12(number: u32, content: Content, size: usize) -> Self {
        let mut bytes = [0; 13];
        bytes[..8].copy_from_slice(&u64::from(number).to_be_bytes());
        bytes[8..].copy_from_slice(&header(content, size));
        Associated(bytes, 13)
    }
}

impl AsRef<[u8]> for Associated {
    fn as_ref(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// The real type of a record is its last byte that is not 0, and what is before it is the text.
fn inner(text: &[u8]) -> Result<(Content, &[u8]), Alert> {
    let last = text.iter().rposition(|byte| *byte != 0).ok_or(Alert::UnexpectedMessage)?;
    Ok((Content::of(text[last]).ok_or(Alert::UnexpectedMessage)?, &text[..last]))
}

fn read_alert(text: &[u8], is_tls12: bool) -> Result<Message<'_>, Alert> {
    const CLOSE_NOTIFY: u8 = 0;
    const USER_CANCELED: u8 = 90;
    const WARNING: u8 = 1;
    match *text {
        [_, CLOSE_NOTIFY] => Ok(Message::CloseNotify),
        // It announces a close_notify, or, in TLS 1.2, is not the end.
        [WARNING, what] if is_tls12 || what == USER_CANCELED => Ok(Message::Data(b"")),
        [_, what] => Ok(Message::Failure(what)),
        _ => Err(Alert::DecodeError),
    }
}

/// RFC 8446, section 5.3. The same for AES in TLS 1.2, whose IV is the constant part, and 8 bytes that make the nonce unique.
fn nonce(mut iv: [u8; IV], number: u32) -> [u8; IV] {
    for (byte, part) in iv[IV - 4..].iter_mut().zip(number.to_be_bytes()) {
        *byte ^= part;
    }
    iv
}

fn key_of(suite: Suite, key: &[u8]) -> LessSafeKey {
    let key = UnboundKey::new(suite.algorithm(), &key[..suite.key_bytes()]);
    LessSafeKey::new(key.expect("a key of the right size"))
}

fn derived_key(suite: Suite, secret: &[u8]) -> (LessSafeKey, [u8; IV]) {
    let secret = Prk::new_less_safe(HKDF_SHA256, secret);
    let (mut key, mut iv) = ([0; KEY_CHACHA], [0; IV]);
    expand(&secret, b"tls13 key", &mut key[..suite.key_bytes()]);
    expand(&secret, b"tls13 iv", &mut iv);
    let whole = key_of(suite, &key);
    key.zeroize();
    (whole, iv)
}

fn next_secret(secret: &[u8]) -> [u8; SECRET] {
    let mut next = [0; SECRET];
    expand(&Prk::new_less_safe(HKDF_SHA256, secret), b"tls13 traffic upd", &mut next);
    next
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand-Label without a context (RFC 8446, section 7.1).
fn expand(secret: &Prk, label: &[u8], out: &mut [u8]) {
    let size = (out.len() as u16).to_be_bytes();
    let info = [&size[..], &[label.len() as u8], label, &[0]];
    let done = secret.expand(&info, Length(out.len())).and_then(|key| key.fill(out));
    done.expect("a key is shorter than 255 hashes");
}
