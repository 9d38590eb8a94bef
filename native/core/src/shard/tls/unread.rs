//! What was read of a connection with TLS and is no whole record yet, or that nobody has looked at.

use crate::tls::{Alert, LONGEST_RECORD, record_size};

#[derive(Debug, Default)]
pub(super) struct Unread {
    bytes: Vec<u8>,
    /// Before it, records were taken. They are removed together: moving what follows after each costs the square of their number.
    taken: usize,
}

impl Unread {
    pub fn add(&mut self, bytes: &[u8]) {
        self.forget_taken();
        self.bytes.extend_from_slice(bytes);
    }

    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// The next record, if it is whole.
    pub fn next_record(&mut self) -> Result<Option<Vec<u8>>, Alert> {
        let rest = self.rest();
        match record_size(rest, LONGEST_RECORD)? {
            Some(size) if size <= rest.len() => {
                let record = rest[..size].to_vec();
                self.taken += size;
                Ok(Some(record))
            }
            _ => {
                self.forget_taken();
                Ok(None)
            }
        }
    }

    /// With their memory.
    fn forget_taken(&mut self) {
        if self.taken > 0 {
            self.bytes = self.rest().to_vec();
            self.taken = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: [u8; 6] = [23, 3, 3, 0, 1, 7];

    #[test]
    fn records_come_out_whole_and_what_is_left_takes_no_more_memory_than_it_needs() {
        let mut unread = Unread::default();
        unread.add(&RECORD.repeat(1000));
        unread.add(&RECORD[..5]);
        for _ in 0..1000 {
            assert_eq!(unread.next_record(), Ok(Some(RECORD.to_vec())));
        }
        assert_eq!(unread.next_record(), Ok(None));
        assert_eq!((unread.rest(), unread.bytes.capacity()), (&RECORD[..5], 5));
        unread.add(&[7, 99]);
        assert_eq!(unread.next_record(), Ok(Some(RECORD.to_vec())));
        assert_eq!(unread.next_record(), Err(Alert::UnexpectedMessage));
    }
}
