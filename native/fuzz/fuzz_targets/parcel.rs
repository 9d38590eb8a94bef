//! Records of adoptions, and those of a handover: any bytes are rejected or read, and what is read is written as it was.
#![no_main]

use holdfast_core::framing::Format;
use holdfast_core::handover::{Hello, Parcel, Receipt, Record};
use holdfast_core::id::Id;
use holdfast_core::parcel::Adoption;
use libfuzzer_sys::fuzz_target;

/// The token, an id, the format, the number of channels and the size of the opening.
const FIXED_BYTES: usize = 19;

fuzz_target!(|bytes: &[u8]| {
    decode_any(bytes);
    encode_any(bytes);
    decode_handover(bytes);
});

/// What was not understood can't be written again.
fn decode_handover(bytes: &[u8]) {
    if let Ok(parcel) = Parcel::decode(bytes)
        && !parcel.records.contains(&Record::Unknown)
    {
        assert_eq!(Parcel::decode(&parcel.encode()), Ok(parcel));
    }
    if let Ok(hello) = Hello::decode(bytes) {
        assert!(hello.weight > 0.0 && bytes.starts_with(&hello.encode()));
    }
    if let Ok(receipt) = Receipt::decode(bytes) {
        assert_eq!(receipt.encode(), bytes);
    }
}

fn decode_any(bytes: &[u8]) {
    let Ok(adoption) = Adoption::decode(bytes) else { return };
    let record = adoption.encode();
    assert!(bytes.starts_with(&record), "it is written as it was read");
    let sizes: usize = adoption.channels.iter().map(|channel| 4 + channel.len()).sum();
    assert_eq!(record.len(), FIXED_BYTES + sizes + adoption.opening.len());
    for end in 0..record.len().min(64) {
        assert!(Adoption::decode(&record[..end]).is_err(), "cut off at {end}");
    }
}

/// The opening and the channels are what stands between zeros.
fn encode_any(bytes: &[u8]) {
    let [token, format, rest @ ..] = bytes else { return };
    let Some(format) = Format::from_byte(*format) else { return };
    let mut texts = rest.split(|byte| *byte == 0).map(Box::from);
    let opening = texts.next().unwrap_or_default();
    let channels = texts.collect();
    let relayed = (token % 2 == 0).then(|| Id::new(*token, 1, 1));
    let adoption = Adoption { token: u32::from(*token) << 24 | 1, relayed, format, channels, opening };
    assert_eq!(Adoption::decode(&adoption.encode()), Ok(adoption));
}
