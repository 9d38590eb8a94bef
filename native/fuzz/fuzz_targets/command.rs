//! Records of any bytes: reading them ends, and takes no more memory than the bytes allow.
#![no_main]

use std::collections::HashSet;
use std::sync::Arc;

use holdfast_core::command::{Command, Opening, Records};
use holdfast_core::framing::{Format, Message};
use libfuzzer_sys::fuzz_target;

/// The shortest record is an operation and a reason.
const SHORTEST: usize = 2;
/// The shortest text in a list is its length.
const SHORTEST_TEXT: usize = 4;
const UPDATES: u8 = 2;
/// The size line and the line end of a chunk.
const MOST_FRAMING: usize = 20;

/// What was copied out of the records.
#[derive(Default)]
struct Copied {
    bytes: usize,
    texts: usize,
    /// Openings are shared: each counts once.
    openings: HashSet<*const Opening>,
}

fuzz_target!(|bytes: &[u8]| {
    let mut copied = Copied::default();
    let mut commands = Vec::new();
    let mut is_over = false;
    let queue = Arc::default();
    for record in Records::new(bytes, &queue) {
        assert!(!is_over, "nothing follows a malformed record");
        let Ok(command) = record else {
            is_over = true;
            continue;
        };
        copied.add(&command);
        commands.push(command); // so that no two openings have the same address
    }
    assert!(commands.len() * SHORTEST <= bytes.len(), "{} records in {} bytes", commands.len(), bytes.len());
    assert!(copied.bytes + copied.texts * SHORTEST_TEXT <= bytes.len(), "{} bytes copied of {}", copied.bytes, bytes.len());
});

impl Copied {
    fn add(&mut self, command: &Command) {
        match command {
            Command::Hold { opening, .. } => self.add_opening(opening),
            Command::Remember { lines, opening } => {
                self.text(lines);
                self.add_opening(opening);
            }
            Command::Respond { head, body, .. } => {
                self.text(head);
                self.text(body);
            }
            Command::Tag { tag, .. } => self.text(tag),
            Command::Subscribe { channel, .. } | Command::Unsubscribe { channel, .. } | Command::EndChannel { channel, .. } => {
                self.text(channel);
            }
            Command::Publish { channels, queued, cursor } => {
                channels.iter().for_each(|channel| self.text(channel));
                if let Some(cursor) = cursor {
                    let ping = cursor.frame(Format::from_byte(UPDATES).unwrap());
                    self.text(ping.strip_prefix(b"id: ").and_then(|rest| rest.strip_suffix(b"\n\n")).unwrap());
                }
                if let Some(queued) = queued {
                    self.add_message(&queued.message);
                }
            }
            Command::Send { queued, .. } | Command::Write { queued, .. } => self.add_message(&queued.message),
            Command::Adopt
            | Command::Refuse { .. }
            | Command::Pass { .. }
            | Command::End { .. }
            | Command::Label { .. }
            | Command::EndLabelled { .. }
            | Command::EndUpdates { .. }
            | Command::Drain { .. } => {}
        }
    }

    fn text(&mut self, text: &[u8]) {
        self.texts += 1;
        self.bytes += text.len();
    }

    fn add_opening(&mut self, opening: &Arc<Opening>) {
        if !self.openings.insert(Arc::as_ptr(opening)) {
            return;
        }
        let Opening { format, head, welcomes, channels, .. } = &**opening;
        // Each line becomes a frame of a WebSocket; the shortest grows from 2 bytes to 3.
        let growth = if format.is_websocket() { 2 } else { 1 };
        assert!(channels.capacity() <= 4.max(2 * channels.len()), "no more is reserved than was read");
        self.text(head);
        channels.iter().for_each(|channel| self.text(channel));
        for welcome in welcomes {
            self.texts += 1;
            // It was framed already.
            self.bytes += welcome.len().saturating_sub(MOST_FRAMING) / growth;
        }
    }

    fn add_message(&mut self, message: &Message) {
        for format in Format::all() {
            let raw = Format::from_byte(format.byte() & 0xf).unwrap();
            let (frame, payload) = (message.frame(format).len(), message.frame(raw).len());
            // The answer to a poll contains the line without its end.
            let end = usize::from(format.is_poll());
            assert!(frame + end >= payload && frame <= payload + MOST_FRAMING);
        }
        self.text(message.frame(Format::default()));
    }
}
