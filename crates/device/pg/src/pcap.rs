//! Classic pcap files: read as a whole, written record by record.

use crate::error::PgError;
use crate::grammar::Outermost;
use std::path::Path;
use thalweg_files::client;
use thalweg_wire::pcap::{self, FILE_HEADER, MAGIC, MAGIC_NS};

pub(crate) use thalweg_wire::pcap::RECORD_HEADER;
pub use thalweg_wire::pcap::{LINK_ETHERNET, LINK_RAW};

/// Link types of packets of one version of IP.
const LINK_IPV4: u32 = 228;
const LINK_IPV6: u32 = 229;

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

/// Packets of a capture file.
#[derive(Debug)]
pub struct Capture {
    path: String,
    /// Link type (tcpdump.org/linktypes.html).
    link: u32,
    /// The packets.
    pub packets: Vec<Vec<u8>>,
}

impl Capture {
    /// Checks that the packets begin with a layer.
    ///
    /// # Errors
    /// [`PgError::Pcap`] if they begin with another one.
    pub(crate) fn check(&self, layer: Outermost) -> Result<(), PgError> {
        check_link(self.link, layer).map_err(|why| PgError::Pcap { path: self.path.clone(), why })
    }
}

/// Reads the packets of a file.
///
/// # Errors
/// [`PgError::Pcap`] if the file cannot be read or [shown](client::read_shown) to clients, is not a
/// classic pcap file of either byte order, is larger than 512 MiB, or contains no packet.
pub fn read(path: &Path) -> Result<Capture, PgError> {
    let fail = |why: String| PgError::Pcap { path: path.display().to_string(), why };
    let bytes = client::read_shown(path, MAX_FILE).map_err(|e| fail(e.source.to_string()))?;
    let (link, packets) = parse(&bytes).map_err(fail)?;
    Ok(Capture { path: path.display().to_string(), link, packets })
}

/// Checks that packets of a link type (tcpdump.org/linktypes.html) begin with a layer.
fn check_link(link: u32, layer: Outermost) -> Result<(), String> {
    // The bits above say whether frames have a check sequence.
    let link = link & 0xffff;
    // Some systems have numbers of their own for raw IP.
    let any_ip = matches!(link, LINK_RAW | 14 | 101);
    let (fits, wanted) = match layer {
        Outermost::Ethernet => (link == LINK_ETHERNET, "an Ethernet header"),
        Outermost::Ip4 => (any_ip || link == LINK_IPV4, "an IPv4 header"),
        Outermost::Ip6 => (any_ip || link == LINK_IPV6, "an IPv6 header"),
    };
    let found = match link {
        LINK_ETHERNET => "Ethernet frames".into(),
        LINK_IPV4 => "IPv4 packets".into(),
        LINK_IPV6 => "IPv6 packets".into(),
        _ if any_ip => "IP packets".into(),
        other => format!("packets of link type {other}"),
    };
    if fits { Ok(()) } else { Err(format!("it holds {found}, and {wanted} is expected here")) }
}

/// Parses a file's link type and packets; the error is the reason.
pub(crate) fn parse(bytes: &[u8]) -> Result<(u32, Vec<Vec<u8>>), String> {
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
    let link = word(FILE_HEADER - 4, swap).ok_or("truncated in its header")?;
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
    if packets.is_empty() { Err("no packets in the file".into()) } else { Ok((link, packets)) }
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
            out[FILE_HEADER - 4..FILE_HEADER].reverse();
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
            prop_assert_eq!(parse(&file(&packets, swap)).unwrap(), (LINK_ETHERNET, packets));
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
    fn packets_begin_with_the_layer_that_is_expected() {
        use Outermost::{Ethernet, Ip4, Ip6};
        for (link, layers) in [
            (1, &[Ethernet][..]),
            (2 << 28 | 1 << 26 | 1, &[Ethernet]),
            (101, &[Ip4, Ip6]),
            (12, &[Ip4, Ip6]),
            (228, &[Ip4]),
            (229, &[Ip6]),
            (113, &[]),
        ] {
            for layer in [Ethernet, Ip4, Ip6] {
                let fits = check_link(link, layer);
                assert_eq!(fits.is_ok(), layers.contains(&layer), "{link} {layer:?} {fits:?}");
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("raw.pcap");
        let mut bytes = file(&[vec![0x45; 60]], false);
        bytes[FILE_HEADER - 4] = 101;
        std::fs::write(&path, bytes).unwrap();
        let capture = read(&path).unwrap();
        let error = capture.check(Ethernet).unwrap_err().to_string();
        assert!(error.ends_with("it holds IP packets, and an Ethernet header is expected here"));
        assert!(capture.check(Ip4).is_ok());
    }

    #[test]
    fn mistakes_are_reported() {
        assert!(parse(b"").unwrap_err().contains("not a pcap"));
        assert!(parse(&file(&[], false)).unwrap_err().contains("no packets"));
        let mut cut = file(&[vec![0; 9]], false);
        cut.pop();
        assert_eq!(parse(&cut).unwrap_err(), "truncated in packet 1");
        let any = |path: &str| read(Path::new(path));
        assert!(any("/nonexistent").is_err() && any("/dev").is_err());
        assert!(parse(&file(&[vec![0; 9]], false)[..22]).unwrap_err().contains("in its header"));
    }
}
