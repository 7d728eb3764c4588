//! Entry for fuzzing.

use crate::memclnt::{ApiVersionsReply, GetApiJsonReply, GetFirstMsgId, SockclntCreateReply};
use crate::types::{AddressWithPrefix, MacAddr, Prefix, Timestamp};
use crate::wire::{FRAMING, Framed, Reader, Wire, framed};
use crate::{ApiType, Message, Text};

/// Has a field of each kind.
#[derive(ApiType)]
struct Everything {
    on: bool,
    text: Text<7>,
    prefix: Prefix,
    with: AddressWithPrefix,
    time: Timestamp,
    macs: [MacAddr; 3],
    #[api(count = "n: u8")]
    inner: Vec<Inner>,
    open: String,
}

#[derive(ApiType)]
struct Inner {
    x: i16,
    #[api(count = "n: u32", at = "x")]
    many: Vec<u64>,
}

fn again<T>(
    bytes: &[u8],
    decode: fn(&mut Reader<'_>) -> Result<T, crate::wire::Truncated>,
    encode: fn(&T, &mut Vec<u8>),
) {
    let Ok(value) = decode(&mut Reader::new(bytes)) else { return };
    let mut first = Vec::new();
    encode(&value, &mut first);
    // A written value reads back the same.
    let mut second = Vec::new();
    if let Ok(value) = decode(&mut Reader::new(&first)) {
        encode(&value, &mut second);
    }
    assert_eq!(first, second);
}

/// Splits the bytes of a connection, and reads each message as one of several kinds.
pub fn fuzz_message(mut data: &[u8]) {
    while let Framed::Message(message) = framed(data, 1 << 16) {
        data = &data[FRAMING + message.len()..];
        let Some((kind, body)) = message.split_first() else { continue };
        match kind % 5 {
            0 => again(body, Everything::decode, Everything::encode),
            1 => again(body, SockclntCreateReply::decode_body, SockclntCreateReply::encode_body),
            2 => again(body, ApiVersionsReply::decode_body, ApiVersionsReply::encode_body),
            3 => again(body, GetApiJsonReply::decode_body, GetApiJsonReply::encode_body),
            _ => again(body, GetFirstMsgId::decode_body, GetFirstMsgId::encode_body),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_panic(messages in proptest::collection::vec((0_u8..5, any::<Vec<u8>>()), 0..5)) {
            let mut data = Vec::new();
            for (kind, body) in messages {
                data.extend_from_slice(&[0; 8]);
                data.extend_from_slice(&(body.len() as u32 + 1).to_be_bytes());
                data.extend_from_slice(&[0; 4]);
                data.push(kind);
                data.extend_from_slice(&body);
            }
            super::fuzz_message(&data);
        }
    }
}
