//! Classic pcap files: read as a whole, written record by record.

use crate::error::PgError;
use std::path::Path;
use thalweg_wire::pcap::{self, FILE_HEADER, MAGIC, MAGIC_NS};

pub(crate) use thalweg_wire::pcap::RECORD_HEADER;
pub use thalweg_wire::pcap::{LINK_ETHERNET, LINK_RAW};

/// Maximum size of a replayed file.
const MAX_FILE: u64 = 512 << 20;

/// File header of a capture.
pub(crate) fn file_header(link: u32) -> [u8; FILE_HEADER] {
    pcap::file_header(link, 65_535)
}

/// Record header of an untruncated packet of `len` bytes.
pub(crate) fn record_header(micros: u64, len: u32) -> [u8; RECORD_HEADER] {
    pcap::record_header(micros, len, len)
}

/// Reads the packets of a file.
///
/// # Errors
/// [`PgError::Pcap`] if the file cannot be read, is not a classic pcap file of either byte order,
/// is larger than 512 MiB, or contains no packet.
pub fn read(path: &Path) -> Result<Vec<Vec<u8>>, PgError> {
    let fail = |why: String| PgError::Pcap { path: path.display().to_string(), why };
    let bytes = thalweg_files::read(path, MAX_FILE).map_err(|e| fail(e.source.to_string()))?;
    parse(&bytes).map_err(fail)
}

/// Parses a file's packets; the error is the reason.
pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let word = |at: usize, swap: bool| -> Option<u32> {
        let raw: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        let v = u32::from_le_bytes(raw);
        Some(if swap { v.swap_bytes() } else { v })
    };
    let swap = match word(0, false) {
        Some(MAGIC | MAGIC_NS) => false,
        Some(m) if matches!(m.swap_bytes(), MAGIC | MAGIC_NS) => true,
        _ => return Err("not a pcap file (pcapng is not supported)".into()),
    };
    let mut packets = Vec::new();
    let mut at = FILE_HEADER;
    while at < bytes.len() {
        let number = packets.len() + 1;
        let kept = word(at + 8, swap).ok_or_else(|| format!("truncated in packet {number}"))?;
        let from = at + RECORD_HEADER;
        let to = from + kept as usize;
        let data = bytes.get(from..to).ok_or_else(|| format!("truncated in packet {number}"))?;
        if data.len() > crate::template::SIZES.1 {
            return Err(format!("packet {number} has {kept} bytes, more than 65535"));
        }
        if !data.is_empty() {
            packets.push(data.to_vec());
        }
        at = to;
    }
    if packets.is_empty() { Err("no packets in the file".into()) } else { Ok(packets) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(packets: &[Vec<u8>], swap: bool) -> Vec<u8> {
        let mut out = file_header(LINK_ETHERNET).to_vec();
        for p in packets {
            out.extend(record_header(1_234_567, p.len() as u32));
            out.extend(p);
        }
        if swap {
            out[..4].reverse();
            let mut at = FILE_HEADER;
            for p in packets {
                out[at + 8..at + 12].reverse();
                at += RECORD_HEADER + p.len();
            }
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn files_read_back(
            packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..80), 1..8),
            swap: bool,
        ) {
            prop_assert_eq!(parse(&file(&packets, swap)).unwrap(), packets);
        }

        #[test]
        fn no_bytes_panic(cut in 0usize..200, at in 0usize..200, value: u8) {
            let mut bytes = file(&[vec![1; 60], vec![2; 60]], false);
            bytes.truncate(cut);
            if let Some(b) = bytes.get_mut(at) { *b = value; }
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn mistakes_are_reported() {
        assert!(parse(b"").unwrap_err().contains("not a pcap"));
        assert!(parse(&file(&[], false)).unwrap_err().contains("no packets"));
        let mut cut = file(&[vec![0; 9]], false);
        cut.pop();
        assert_eq!(parse(&cut).unwrap_err(), "truncated in packet 1");
        assert!(read(Path::new("/nonexistent")).is_err() && read(Path::new("/dev")).is_err());
    }
}
