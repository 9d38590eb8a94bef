//! Request heads: found and checked by httparse, and written down for JS.

use std::mem::MaybeUninit;
use std::net::IpAddr;

use crate::response::Refusal;
use crate::websocket::KEY_BYTES;

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
    Whole(Whole),
    /// Not a head that we accept.
    Bad(Refusal),
}

/// A complete head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// Its bytes.
    pub size: usize,
    /// Whether another request may follow on the connection, once this one is answered: the client wants it, and the request has no
    /// body that we would have to read first (RFC 9112, section 9.3).
    pub keeps_connection: bool,
    pub is_http_1_0: bool,
}

/// Reads a head and appends it to `out` as lines for JS: method, target, version, then the value of each header asked
/// for; the last line ends with `END`. Leaves `out` as it is unless the head is complete.
///
/// `asked` are names in lower case. The values of a header that was sent several times are joined by commas. A Host or
/// Content-Length that is malformed, or sent several times, is refused: requests are smuggled that way.
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
    if !has_at_most_one(request.headers, "host", is_host) || !has_at_most_one(request.headers, "content-length", is_length) {
        return Head::Bad(Refusal::BadRequest);
    }
    out.extend_from_slice(request.method.unwrap_or_default().as_bytes());
    push_line(out, request.path.unwrap_or_default().as_bytes());
    push_line(out, version);
    for name in asked {
        let mut values = values(request.headers, name);
        push_line(out, values.next().unwrap_or(ABSENT));
        for value in values {
            out.extend_from_slice(b", ");
            out.extend_from_slice(value);
        }
    }
    out.push(END);
    let is_http_1_0 = request.version == Some(0);
    // What follows a CONNECT is no request.
    let is_request_next = request.method != Some("CONNECT") && has_crlfs(&seen[..size]);
    let keeps_connection = is_request_next && keeps_connection(request.headers, is_http_1_0);
    Head::Whole(Whole { size, keeps_connection, is_http_1_0 })
}

/// Whether all lines end with CRLF. A proxy that takes nothing else for the end of a line may believe that the head goes on, and that we
/// answer what follows would be request smuggling.
fn has_crlfs(head: &[u8]) -> bool {
    head.iter().zip(head.iter().skip(1)).all(|(before, byte)| *byte != b'\n' || *before == b'\r') && head[0] != b'\n'
}

fn keeps_connection(fields: &[httparse::Header], is_http_1_0: bool) -> bool {
    let is_wanted = if is_http_1_0 { has_token(fields, "connection", "keep-alive") } else { !has_token(fields, "connection", "close") };
    let is_empty = |value: &[u8]| value.iter().all(|byte| *byte == b'0');
    is_wanted && values(fields, "transfer-encoding").next().is_none() && values(fields, "content-length").all(is_empty)
}

/// The key of a request that asks for a WebSocket (RFC 6455, section 4.2.1), or how to refuse one that doesn't, or not in the right way.
pub fn websocket_key(head: &[u8]) -> Result<[u8; KEY_BYTES], Refusal> {
    let mut fields = [const { MaybeUninit::uninit() }; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut []);
    request.parse_with_uninit_headers(head, &mut fields).map_err(|_| Refusal::BadRequest)?;
    let fields = &*request.headers;
    if request.method != Some("GET") {
        return Err(Refusal::MethodNotAllowed);
    }
    let asks = request.version == Some(1)
        && has_token(fields, "connection", "upgrade")
        && has_token(fields, "upgrade", "websocket")
        && values(fields, "sec-websocket-version").eq([b"13"]);
    if !asks {
        return Err(Refusal::UpgradeRequired);
    }
    let mut keys = values(fields, "sec-websocket-key");
    let key: Option<[u8; KEY_BYTES]> = keys.next().and_then(|key| key.try_into().ok()).filter(is_key);
    key.filter(|_| keys.next().is_none()).ok_or(Refusal::BadRequest)
}

/// 16 bytes in base64.
fn is_key(key: &[u8; KEY_BYTES]) -> bool {
    let (digits, end) = key.split_at(KEY_BYTES - 2);
    end == b"==" && digits.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// The values of a header, by its name in lower case.
fn values<'a>(fields: &'a [httparse::Header], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
}

/// Whether a header is a list with this token in it.
fn has_token(fields: &[httparse::Header], name: &str, token: &str) -> bool {
    values(fields, name)
        .flat_map(|value| value.split(|byte| *byte == b','))
        .any(|one| one.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

/// Adds a line with the client's address to the lines of a head; an empty one if it is unknown.
pub fn add_address(lines: &mut Vec<u8>, address: Option<IpAddr>) {
    lines.pop(); // END
    push_line(lines, address.map(|address| address.to_string()).unwrap_or_default().as_bytes());
    lines.push(END);
}

/// Whether a header is absent, or there once with a value that is valid.
fn has_at_most_one(fields: &[httparse::Header], name: &str, is_valid: fn(&[u8]) -> bool) -> bool {
    let mut values = values(fields, name);
    values.next().is_none_or(is_valid) && values.next().is_none()
}

/// Digits only (RFC 9110, section 8.6).
fn is_length(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(u8::is_ascii_digit)
}

/// A name or an address in brackets, either with a port (RFC 9110, section 7.2). `HOST` in transport/policy.js accepts the
/// same.
fn is_host(value: &[u8]) -> bool {
    if let Some(literal) = value.strip_prefix(b"[") {
        let Some(end) = literal.iter().position(|byte| *byte == b']') else { return false };
        let (address, port) = (&literal[..end], &literal[end + 1..]);
        return !address.is_empty() && address.iter().all(|byte| *byte == b':' || is_name_byte(*byte)) && is_port(port);
    }
    let end = value.iter().position(|byte| *byte == b':').unwrap_or(value.len());
    value[..end].iter().all(|byte| is_name_byte(*byte)) && is_port(&value[end..])
}

/// Nothing, or a colon and digits.
fn is_port(value: &[u8]) -> bool {
    value.is_empty() || value.strip_prefix(b":").is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
}

/// What the name of a host can contain (RFC 3986, section 3.2.2).
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte)
}

/// Finds the end of a head that comes in pieces, looking at each byte once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scan {
    /// Empty lines may come before a head.
    #[default]
    Before,
    InLine,
    /// At the beginning of a line, or after the CR of an empty one.
    AtLine,
    End,
}

impl Scan {
    /// Looks at the next bytes. `End` when an empty line was among them.
    pub fn over(self, bytes: &[u8]) -> Self {
        bytes.iter().fold(self, |scan, byte| match (scan, byte) {
            (Scan::End, _) | (Scan::AtLine, b'\n') => Scan::End,
            (Scan::Before, b'\r' | b'\n') => Scan::Before,
            (Scan::AtLine, b'\r') | (Scan::InLine, b'\n') => Scan::AtLine,
            _ => Scan::InLine,
        })
    }
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
        let whole = Whole { size: bytes.len() - 4, keeps_connection: true, is_http_1_0: false };
        assert_eq!(lines(bytes), (Head::Whole(whole), "GET\n/x\n1.1\na\nb, c\0".into()));
        let old = Whole { size: 18, keeps_connection: false, is_http_1_0: true };
        assert_eq!(lines(b"GET / HTTP/1.0\r\n\r\n"), (Head::Whole(old), "GET\n/\n1.0\n\r\n\r\0".into()));
    }

    #[test]
    fn the_address_of_a_client_is_the_last_line() {
        let (_, text) = lines(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        for (address, line) in [(Some([10, 0, 0, 1].into()), "10.0.0.1"), (Some([0, 0, 0, 0, 0, 0, 0, 1u16].into()), "::1"), (None, "")] {
            let mut with_address = text.clone().into_bytes();
            add_address(&mut with_address, address);
            assert_eq!(String::from_utf8(with_address).unwrap(), format!("GET\n/\n1.1\na\n\r\n{line}\0"));
        }
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
            (b"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", 400),
            (&[b'x'; 200], 431),
            (&[b'x'; 300], 431),
        ] {
            assert_eq!(lines(bytes), (Head::Bad(Refusal::of(status).unwrap()), String::new()), "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn the_end_of_a_head_is_found_in_whatever_pieces_it_comes() {
        for (head, rest) in
            [("\r\n\r\n\nGET / HTTP/1.1\r\nA: b\r\n\r\n", "more"), ("GET / HTTP/1.0\nA: b\n\n", "\n"), ("GET / HTTP/1.1\r\n\r\n", "")]
        {
            let bytes = [head, rest].concat();
            for middle in 0..bytes.len() {
                let (first, second) = bytes.as_bytes().split_at(middle);
                assert_eq!(Scan::default().over(first) == Scan::End, middle >= head.len(), "{middle} of {head:?}");
                assert_eq!(Scan::default().over(first).over(second), Scan::End);
            }
        }
    }

    #[test]
    fn the_connection_is_kept_if_the_client_wants_that_and_has_sent_no_body() {
        for (version, fields, is_kept) in [
            ("1.1", "", true),
            ("1.1", "Connection: keep-alive\r\n", true),
            ("1.1", "Connection: x, Close\r\n", false),
            ("1.1", "Connection: x\r\nConnection: close\r\n", false),
            ("1.1", "Content-Length: 0\r\n", true),
            ("1.1", "Content-Length: 00\r\n", true),
            ("1.1", "Content-Length: 10\r\n", false),
            ("1.1", "Transfer-Encoding: chunked\r\n", false),
            ("1.0", "", false),
            ("1.0", "Connection: Keep-Alive\r\n", true),
        ] {
            let head = format!("GET / HTTP/{version}\r\n{fields}\r\n");
            let Head::Whole(whole) = lines(head.as_bytes()).0 else { panic!("{head}") };
            assert_eq!(whole.keeps_connection, is_kept, "{head}");
        }
        for head in [
            "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\n\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\n",
            "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        ] {
            let Head::Whole(whole) = lines(head.as_bytes()).0 else { panic!("{head}") };
            assert!(!whole.keeps_connection, "{head:?}");
        }
    }

    #[test]
    fn a_request_for_a_websocket_has_everything_that_it_needs() {
        let head = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        assert_eq!(websocket_key(head.as_bytes()).as_ref(), Ok(b"dGhlIHNhbXBsZSBub25jZQ=="));
        for (from, to, status) in [
            ("GET", "POST", 405),
            ("1.1", "1.0", 426),
            ("Upgrade: websocket", "Upgrade: h2c", 426),
            ("keep-alive, Upgrade", "keep-alive", 426),
            ("13", "8", 426),
            ("Host: a", "Sec-WebSocket-Version: 13", 426),
            ("ZQ==", "Z===", 400),
            ("ZQ==", "Q==", 400),
            ("dGh", "d h", 400),
            ("Host: a", "Sec-WebSocket-Key: x", 400),
        ] {
            let refusal = websocket_key(head.replacen(from, to, 1).as_bytes()).unwrap_err();
            assert_eq!(refusal.status(), status, "{to}");
        }
    }

    #[test]
    fn a_content_length_is_digits() {
        for (value, is_valid) in [
            ("0", true),
            ("00", true),
            ("12", true),
            ("", false),
            ("-0", false),
            ("+0", false),
            ("0x0", false),
            ("0e9", false),
            ("0, 0", false),
        ] {
            assert_eq!(is_length(value.as_bytes()), is_valid, "{value}");
            let head = format!("GET / HTTP/1.1\r\nContent-Length: {value}\r\n\r\n");
            assert_eq!(lines(head.as_bytes()).0 == Head::Bad(Refusal::BadRequest), !is_valid, "{value}");
        }
    }

    #[test]
    fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
        for host in ["", "a", "a_b.example:", "a:80", "1.2.3.4:80", "[::1]", "[::1]:80", "[fe80::1%25en0]", "a%20b", "a!$&'()*+,;=~-"] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in [
            "a b", "a/c", "b/c@d", "u@a", "a:b", "a:80:80", "[", "[]", "[::1", "[::1]x", "::1", "a\\b", "a?", "a#", "\u{e4}", "<a>",
            "\"a\"",
        ] {
            assert!(!is_host(host.as_bytes()), "{host}");
            let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert_eq!(lines(head.as_bytes()).0, Head::Bad(Refusal::BadRequest), "{host}");
        }
    }
}
