//! What the core writes by itself: the Date of responses, and refusals.

macro_rules! refusals {
    ($($name:ident = $status:literal $reason:literal $explanation:literal,)*) => {
        /// Every error that a request is refused with.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Refusal {
            $($name,)*
        }

        impl Refusal {
            pub const STATUSES: &'static [u16] = &[$($status),*];

            /// None when a request is never refused with this status.
            pub fn of(status: u16) -> Option<Self> {
                match status {
                    $($status => Some(Refusal::$name),)*
                    _ => None,
                }
            }

            pub fn status(self) -> u16 {
                Self::STATUSES[self as usize]
            }

            pub fn reason(self) -> &'static str {
                [$($reason),*][self as usize]
            }

            /// Tells the client what is wrong; `transport/responses.js` has the same texts.
            pub fn body(self) -> &'static str {
                [$(concat!($status, " ", $reason, ": ", $explanation, "\n")),*][self as usize]
            }
        }
    };
}

refusals! {
    BadRequest = 400 "Bad Request" "the request is invalid",
    NotFound = 404 "Not Found" "there is nothing at this address",
    MethodNotAllowed = 405 "Method Not Allowed" "the Allow header lists the methods",
    RequestTimeout = 408 "Request Timeout" "the request took too long to arrive",
    UpgradeRequired = 426 "Upgrade Required" "this address expects a WebSocket: Upgrade: websocket, Sec-WebSocket-Version: 13",
    HeadTooLarge = 431 "Request Header Fields Too Large" "the request head is too large",
    ServiceUnavailable = 503 "Service Unavailable" "no stream can be opened now, try again later",
    VersionNotSupported = 505 "HTTP Version Not Supported" "use HTTP/1.1 or HTTP/1.0",
}

pub const REFUSALS: usize = Refusal::STATUSES.len();

/// The Date header line, made once a second (RFC 9110, section 6.6.1).
#[derive(Debug)]
pub struct DateLine {
    second: u64,
    line: String,
}

impl Default for DateLine {
    fn default() -> Self {
        let mut date = DateLine { second: u64::MAX, line: String::new() };
        date.set(0);
        date
    }
}

impl DateLine {
    pub fn set(&mut self, unix_s: u64) {
        if unix_s != self.second {
            self.second = unix_s;
            self.line = format!("Date: {}\r\n", http_date(unix_s));
        }
    }

    /// `Date: Sun, 06 Nov 1994 08:49:37 GMT` and its line end.
    pub fn bytes(&self) -> &[u8] {
        self.line.as_bytes()
    }
}

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn http_date(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    let (year, month, day) = civil_of(days);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let (weekday, month) = (DAYS[(days % 7) as usize], MONTHS[month as usize - 1]);
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{:02} GMT", second % 60)
}

/// Year, month and day of a number of days since 1970. Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn civil_of(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since 0000-03-01
    let era_day = days % 146_097;
    let era_year = (era_day - era_day / 1460 + era_day / 36_524 - era_day / 146_096) / 365;
    let year_day = era_day - (365 * era_year + era_year / 4 - era_year / 100);
    let march_month = (5 * year_day + 2) / 153;
    let day = year_day - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era_year + days / 146_097 * 400 + u64::from(month <= 2);
    (year, month, day)
}

const CLOSE: &[u8] = b"Connection: close\r\n";

/// A whole response that refuses a request. `lines`: Connection and Date.
pub fn refusal(refusal: Refusal, lines: &[&[u8]], is_head: bool) -> Vec<u8> {
    refusal_with(refusal, refusal.body(), lines, is_head)
}

/// The answer to a request without TLS where TLS is expected.
pub fn plain_http(date: &[u8]) -> Vec<u8> {
    let body = "400 Bad Request: plain HTTP request to a TLS port, use https://\n";
    refusal_with(Refusal::BadRequest, body, &[CLOSE, date], false)
}

fn refusal_with(refusal: Refusal, body: &str, lines: &[&[u8]], is_head: bool) -> Vec<u8> {
    let status = refusal.status();
    let reason = refusal.reason();
    let extra = match refusal {
        Refusal::MethodNotAllowed => "Allow: GET, HEAD\r\n",
        Refusal::UpgradeRequired => "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n",
        Refusal::ServiceUnavailable => "Retry-After: 5\r\n",
        _ => "",
    };
    let head =
        format!("HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n{extra}", body.len());
    let shown: &[u8] = if is_head { b"" } else { body.as_bytes() };
    [head.as_bytes(), &lines.concat(), b"\r\n", shown].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix_s, date) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(http_date(unix_s), date);
        }
    }

    #[test]
    fn the_date_line_changes_with_the_second() {
        let mut date = DateLine::default();
        for (unix_s, line) in [(0, "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"), (1, "Date: Thu, 01 Jan 1970 00:00:01 GMT\r\n")] {
            date.set(unix_s);
            assert_eq!(date.bytes(), line.as_bytes());
        }
    }

    #[test]
    fn a_refusal_is_found_by_its_status() {
        for status in Refusal::STATUSES {
            let refusal = Refusal::of(*status).unwrap();
            assert_eq!(refusal.status(), *status);
            assert!(refusal.body().starts_with(&format!("{status} {}: ", refusal.reason())));
        }
        assert_eq!((Refusal::of(200), Refusal::of(431).map(Refusal::reason)), (None, Some("Request Header Fields Too Large")));
    }

    #[test]
    fn a_refusal_is_a_whole_response_without_its_body_to_head() {
        let all = |is_head| String::from_utf8(refusal(Refusal::MethodNotAllowed, &[CLOSE, b"Date: D\r\n"], is_head)).unwrap();
        let head = "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 59\r\n\
                    Allow: GET, HEAD\r\nConnection: close\r\nDate: D\r\n\r\n";
        assert_eq!(all(true), head);
        assert_eq!(all(false), format!("{head}405 Method Not Allowed: the Allow header lists the methods\n"));
    }
}
