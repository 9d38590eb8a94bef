//! The formats in which streams can be dialled. Pure.

/// What the streams of a target are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Format {
    /// A response of text or of Server-Sent Events: its head says which.
    #[default]
    Http,
    /// A response of lines of JSON.
    Ndjson,
    /// One request after the other on the same connection, each of which waits for its answer.
    Poll,
    WebSocket,
}

impl Format {
    /// By the name in `fleet/drone/params.js`.
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "text" | "events" => Some(Format::Http),
            "ndjson" => Some(Format::Ndjson),
            "poll" => Some(Format::Poll),
            "websocket" => Some(Format::WebSocket),
            _ => None,
        }
    }
}
