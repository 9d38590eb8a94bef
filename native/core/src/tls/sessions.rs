//! The sessions of a table of connections, beside that table: without TLS, it takes no memory.

use super::session::Session;

/// By row.
#[derive(Debug, Default)]
pub struct Sessions(Vec<Session>);

impl Sessions {
    pub fn get(&self, row: u32) -> Option<&Session> {
        self.0.get(row as usize).filter(|session| session.is_some())
    }

    pub fn get_mut(&mut self, row: u32) -> Option<&mut Session> {
        self.0.get_mut(row as usize).filter(|session| session.is_some())
    }

    /// `most` is the number of rows that there can be. The kernel provides memory for a row when it is first used.
    pub fn insert(&mut self, row: u32, session: Session, most: usize) {
        if self.0.capacity() == 0 {
            self.0.reserve_exact(most);
        }
        let rows = self.0.len().max(row as usize + 1);
        self.0.resize_with(rows, Session::default);
        self.0[row as usize] = session;
    }

    /// Wipes its secrets too.
    pub fn remove(&mut self, row: u32) {
        if let Some(session) = self.get_mut(row) {
            *session = Session::default();
        }
    }

    /// Rows that have a session.
    pub fn rows(&self) -> impl Iterator<Item = u32> {
        (0..self.0.len() as u32).filter(|row| self.get(*row).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::{SESSION_BYTES, Secrets};

    #[test]
    fn a_row_takes_100_bytes_once_it_is_used() {
        assert_eq!(SESSION_BYTES, 100);
        let mut sessions = Sessions::default();
        assert!(sessions.get(0).is_none() && sessions.0.capacity() == 0);
        let secrets = Secrets::Tls13 { is_aes: true, to: &[1; 32], from: &[2; 32] };
        sessions.insert(3, Session::new(&secrets, 0, 0), 1000);
        assert_eq!((sessions.0.len(), sessions.0.capacity()), (4, 1000));
        assert_eq!(sessions.rows().collect::<Vec<_>>(), [3]);
        sessions.remove(3);
        assert!(sessions.get_mut(3).is_none() && sessions.rows().next().is_none());
    }
}
