//! Text that differs from stream to stream: topics, and the request that subscribes to them. Pure, and the same as
//! `fleet/drone/template.js`.

use std::io::Write;

/// A part of a template. `n` is the number of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text(Box<[u8]>),
    /// n
    Number,
    /// n % k; k is at least 1
    Remainder(u64),
    /// n / k, rounded down; likewise
    Quotient(u64),
    /// The token of the stream.
    Token,
    /// The header with the cursor of the stream; nothing if it has none.
    Cursor,
    /// How many seconds a poll waits: so many if it has a cursor. Without one, it first asks where it is.
    Wait(u64),
}

/// What a template is filled with. Topics need only the number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filling<'a> {
    pub number: u64,
    pub token: &'a [u8],
    pub cursor: &'a [u8],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(pub Box<[Piece]>);

impl Template {
    /// Appends the text of a stream.
    pub fn write(&self, filling: Filling, out: &mut Vec<u8>) {
        let Filling { number, token, cursor } = filling;
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Number => write_number(number, out),
                Piece::Remainder(k) => write_number(number % k, out),
                Piece::Quotient(k) => write_number(number / k, out),
                Piece::Token => out.extend_from_slice(token),
                Piece::Wait(seconds) => write_number(if cursor.is_empty() { 0 } else { *seconds }, out),
                Piece::Cursor if cursor.is_empty() => {}
                Piece::Cursor => {
                    out.extend_from_slice(b"Last-Event-ID: ");
                    out.extend_from_slice(cursor);
                    out.extend_from_slice(b"\r\n");
                }
            }
        }
    }
}

fn write_number(number: u64, out: &mut Vec<u8>) {
    // A Vec takes everything.
    let _ = write!(out, "{number}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Piece {
        Piece::Text(text.as_bytes().into())
    }

    fn filled(pieces: &[Piece], filling: Filling) -> String {
        let mut out = Vec::new();
        Template(pieces.into()).write(filling, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_those_of_the_stream() {
        let pieces = [text("a/"), Piece::Number, text("/"), Piece::Remainder(100), text("/"), Piece::Quotient(100)];
        assert_eq!(filled(&pieces, Filling { number: 1234, ..Filling::default() }), "a/1234/34/12");
        assert_eq!(filled(&pieces, Filling::default()), "a/0/0/0");
    }

    #[test]
    fn a_stream_without_a_cursor_sends_no_header_and_does_not_wait() {
        assert_eq!(filled(&[Piece::Wait(25)], Filling::default()), "0");
        assert_eq!(filled(&[Piece::Wait(25)], Filling { cursor: b"#x", ..Filling::default() }), "25");
        let pieces = [text("Authorization: Bearer "), Piece::Token, text("\r\n"), Piece::Cursor, text("\r\n")];
        let filling = Filling { number: 1, token: b"abc", cursor: b"" };
        assert_eq!(filled(&pieces, filling), "Authorization: Bearer abc\r\n\r\n");
        assert_eq!(filled(&pieces, Filling { cursor: b"#x", ..filling }), "Authorization: Bearer abc\r\nLast-Event-ID: #x\r\n\r\n");
    }
}
