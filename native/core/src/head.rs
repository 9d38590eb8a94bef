//! Request heads: found and checked by httparse, and written down for JS.

use std::mem::MaybeUninit;

use crate::response::Refusal;

/// The most header fields of a request.
const MOST_FIELDS: usize = 128;
/// Stands for a header that was not sent; no value can contain it.
const ABSENT: &[u8] = b"\r";

/// Ends the lines of a head; no head can contain it.
pub const END: u8 = 0;

/// What the bytes contain so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// An incomplete head.
    Partial,
    /// A complete head of this many bytes.
    Whole(usize),
    /// Not a head that we accept.
    Bad(Refusal),
}

/// Reads a head and appends it to `out` as lines for JS: method, target, version, then the value of each header asked
/// for; the last line ends with `END`. Leaves `out` as it is unless the head is complete.
///
/// `asked` are names in lower case. The values of a header that was sent several times are joined by commas. Several
/// Content-Length headers are refused, because requests are smuggled that way.
pub fn read(bytes: &[u8], max_bytes: usize, asked: &[String], out: &mut Vec<u8>) -> Head {
    let mut fields = [const { MaybeUninit::uninit() }; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut []);
    let seen = &bytes[..bytes.len().min(max_bytes)];
    let size = match request.parse_with_uninit_headers(seen, &mut fields) {
        Ok(httparse::Status::Complete(size)) => size,
        Ok(httparse::Status::Partial) if bytes.len() < max_bytes => return Head::Partial,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => return Head::Bad(Refusal::HeadTooLarge),
        // The preface of HTTP/2 is not a request, whatever version it names.
        Err(httparse::Error::Version) if !bytes.starts_with(b"PRI ") => return Head::Bad(Refusal::VersionNotSupported),
        Err(_) => return Head::Bad(Refusal::BadRequest),
    };
    let version: &[u8] = if request.version == Some(0) { b"1.0" } else { b"1.1" };
    let lengths = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("content-length"));
    if lengths.count() > 1 {
        return Head::Bad(Refusal::BadRequest);
    }
    out.extend_from_slice(request.method.unwrap_or_default().as_bytes());
    push_line(out, request.path.unwrap_or_default().as_bytes());
    push_line(out, version);
    for name in asked {
        let mut values = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        push_line(out, values.next().map_or(ABSENT, |field| field.value));
        for field in values {
            out.extend_from_slice(b", ");
            out.extend_from_slice(field.value);
        }
    }
    out.push(END);
    Head::Whole(size)
}

fn push_line(out: &mut Vec<u8>, value: &[u8]) {
    out.push(b'\n');
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> (Head, String) {
        let mut out = Vec::new();
        let asked = ["host".to_string(), "accept".to_string()];
        let head = read(bytes, 200, &asked, &mut out);
        (head, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_complete_head_is_written_down_line_by_line() {
        let bytes = b"GET /x HTTP/1.1\r\nHost: a\r\nACCEPT: b\r\nAccept: c\r\n\r\nmore";
        assert_eq!(lines(bytes), (Head::Whole(bytes.len() - 4), "GET\n/x\n1.1\na\nb, c\0".into()));
        assert_eq!(lines(b"GET / HTTP/1.0\r\n\r\n"), (Head::Whole(18), "GET\n/\n1.0\n\r\n\r\0".into()));
    }

    #[test]
    fn a_head_that_is_cut_off_is_partial_and_leaves_no_trace() {
        let bytes = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n";
        for end in 0..bytes.len() {
            assert_eq!(lines(&bytes[..end]), (Head::Partial, String::new()), "{end}");
        }
    }

    #[test]
    fn other_bytes_are_refused_with_the_right_status() {
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a:b\r\n".repeat(MOST_FIELDS + 1));
        let mut out = Vec::new();
        assert_eq!(read(many.as_bytes(), 10_000, &[], &mut out), Head::Bad(Refusal::HeadTooLarge));
        for (bytes, status) in [
            (&b"GET / HTTP/9.9\r\n\r\n"[..], 505),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
            (b"\x16\x03\x01\x02\x00", 400),
            (b"GET / HTTP/1.1\r\nbad header\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
            (&[b'x'; 200], 431),
            (&[b'x'; 300], 431),
        ] {
            assert_eq!(lines(bytes), (Head::Bad(Refusal::of(status).unwrap()), String::new()), "{}", String::from_utf8_lossy(bytes));
        }
    }
}
