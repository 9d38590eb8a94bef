//! Records of any bytes: they end, and take no more memory than the bytes allow.
#![no_main]

use std::collections::HashSet;
use std::sync::Arc;

use holdfast_core::command::{Command, Opening, Records};
use libfuzzer_sys::fuzz_target;

/// The shortest record is an operation and four bytes.
const SHORTEST: usize = 5;
/// The shortest text in a list is its length.
const SHORTEST_TEXT: usize = 4;

fuzz_target!(|bytes: &[u8]| {
    let mut count = 0;
    let mut texts = 0;
    let mut commands = Vec::new();
    let mut openings = HashSet::new();
    let mut kept = 0;
    let mut is_over = false;
    for record in Records::new(bytes) {
        assert!(!is_over, "nothing follows a malformed record");
        let Ok(command) = record else {
            is_over = true;
            continue;
        };
        count += 1;
        kept += size_of_texts(&command, &mut texts, &mut openings);
        if let Some(shard) = command.shard() {
            assert!(usize::from(shard) < holdfast_core::id::MOST_SHARDS);
        }
        commands.push(command); // so that no two openings have the same address
    }
    assert!(count * SHORTEST <= bytes.len(), "{count} records of {} bytes", bytes.len());
    assert!(kept + texts * SHORTEST_TEXT <= bytes.len(), "{kept} bytes kept of {}", bytes.len());

    // The records of adoptions are read field by field.
    let mut fields = Records::new(bytes);
    let _ = (fields.u32(), fields.format(), fields.texts());
});

/// Bytes that a command has copied; those of an opening once for all that share it.
fn size_of_texts(command: &Command, texts: &mut usize, openings: &mut HashSet<*const Opening>) -> usize {
    match command {
        Command::Hold { opening, .. } if openings.insert(Arc::as_ptr(opening)) => {
            let channels = &opening.channels;
            *texts += 1 + channels.len();
            assert!(channels.capacity() <= 4.max(2 * channels.len()), "no more is reserved than was read");
            opening.bytes.len() + channels.iter().map(|channel| channel.len()).sum::<usize>()
        }
        Command::Refuse { response, .. } => response.len(),
        Command::Subscribe { channel, .. } | Command::Unsubscribe { channel, .. } => channel.len(),
        Command::Publish { channel, message } => channel.len() + size_of_frames(message),
        Command::Send { message, .. } => size_of_frames(message),
        Command::Hold { .. } | Command::Pass { .. } | Command::Close { .. } | Command::Drain { .. } => 0,
    }
}

/// Both payloads, after a look at each frame.
fn size_of_frames(message: &holdfast_core::framing::Message) -> usize {
    let frame = |bits| message.frame(holdfast_core::framing::Format::from_bits(bits).unwrap()).len();
    for (plain, chunked) in [(0, 2), (1, 3)] {
        assert!(frame(chunked) <= frame(plain) + 20 && (frame(chunked) > frame(plain) || frame(plain) == 0));
    }
    frame(0) + frame(1)
}
