//! Capture files: classic pcap files, whose headers writers of other shapes use too, and pcapng
//! files.
//!
//! Classic files have microseconds. Pcapng files ([`NgFile`]) have nanoseconds, several
//! interfaces, the direction of each packet, and the number of packets that were not captured
//! (draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng). All of it is little-endian.

use alloc::vec::Vec;

/// Length of the header of a classic file.
pub const FILE_HEADER: usize = 24;
/// Length of the header of each record in a classic file.
pub const RECORD_HEADER: usize = 16;
/// First word of a classic file with microseconds.
pub const MAGIC: u32 = 0xa1b2_c3d4;
/// First word of a classic file with nanoseconds.
pub const MAGIC_NS: u32 = 0xa1b2_3c4d;

/// Link type of Ethernet frames.
pub const LINK_ETHERNET: u32 = 1;
/// Link type of IP packets without a link header; VPP writes this number (`DLT_RAW`).
pub const LINK_RAW: u32 = 12;

/// Link type of records of VPP's graph dispatch trace (`LINKTYPE_VPP_DISPATCH`).
pub const LINK_VPP_DISPATCH: u32 = 280;

/// The header of a classic file with microseconds, version 2.4. `snap` is the number of bytes that
/// its records have at most.
#[inline]
pub fn file_header(link: u32, snap: u32) -> [u8; FILE_HEADER] {
    let mut h = [0; FILE_HEADER];
    h[..4].copy_from_slice(&MAGIC.to_le_bytes());
    h[4] = 2;
    h[6] = 4;
    h[16..20].copy_from_slice(&snap.to_le_bytes());
    h[20..].copy_from_slice(&link.to_le_bytes());
    h
}

/// The header of a record: microseconds since 1970, bytes that follow, and the packet's length.
#[inline]
pub fn record_header(micros: u64, kept: u32, length: u32) -> [u8; RECORD_HEADER] {
    const SECOND: u64 = 1_000_000;
    let (seconds, micros) = ((micros / SECOND) as u32, (micros % SECOND) as u32);
    let mut h = [0; RECORD_HEADER];
    for (at, word) in [seconds, micros, kept, length].into_iter().enumerate() {
        h[4 * at..4 * at + 4].copy_from_slice(&word.to_le_bytes());
    }
    h
}

/// A classic file with microseconds, built in memory piece by piece.
#[derive(Debug, Clone)]
pub struct File(Vec<u8>);

impl File {
    /// A file without packets; `snap` is the number of bytes that are kept of a packet at most.
    pub fn new(link: u32, snap: u32) -> File {
        let mut bytes = Vec::with_capacity(4096);
        bytes.extend(file_header(link, snap));
        File(bytes)
    }

    /// Adds a packet of `length` bytes, of which `parts` are kept; `at` is in microseconds since
    /// 1970.
    pub fn packet<'a>(
        &mut self,
        at: u64,
        length: u32,
        parts: impl IntoIterator<Item = &'a [u8], IntoIter: Clone>,
    ) {
        let parts = parts.into_iter();
        let kept: usize = parts.clone().map(<[u8]>::len).sum();
        self.0.extend(record_header(at, kept as u32, length));
        parts.for_each(|part| self.0.extend_from_slice(part));
    }

    /// The bytes since the last [`File::clear`].
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Forgets bytes that have been written somewhere; more packets may follow.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Direction of a packet at an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Received by the interface.
    Inbound,
    /// Sent by it.
    Outbound,
}

/// A pcapng file with one section of Ethernet interfaces, built in memory.
#[derive(Debug, Clone)]
pub struct NgFile {
    bytes: Vec<u8>,
    interfaces: u32,
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;

impl NgFile {
    /// A file without packets. Wireshark shows `comment` as the capture's.
    pub fn new(comment: &str) -> NgFile {
        let mut file = NgFile { bytes: Vec::new(), interfaces: 0 };
        file.block(SECTION_HEADER, |out| {
            out.extend(0x1a2b_3c4d_u32.to_le_bytes());
            out.extend([1, 0, 0, 0]);
            // The section's length is left open.
            out.extend(u64::MAX.to_le_bytes());
            option(out, OPT_COMMENT, comment.as_bytes());
            option(out, SHB_USERAPPL, b"thalweg");
        });
        file
    }

    /// Adds an interface of which up to `snap` bytes of each packet are kept; returns its number.
    pub fn interface(&mut self, name: &str, snap: u32) -> u32 {
        self.block(INTERFACE, |out| {
            out.extend(LINK_ETHERNET.to_le_bytes());
            out.extend(snap.to_le_bytes());
            option(out, IF_NAME, name.as_bytes());
            // Nanoseconds.
            option(out, IF_TSRESOL, &[9]);
        });
        self.interfaces += 1;
        self.interfaces - 1
    }

    /// Adds a packet of `length` bytes, of which `kept` are there; `at` is in nanoseconds since
    /// 1970.
    pub fn packet(
        &mut self,
        interface: u32,
        at: u64,
        direction: Direction,
        length: u32,
        kept: &[u8],
    ) {
        self.block(ENHANCED_PACKET, |out| {
            out.extend(interface.to_le_bytes());
            timestamp(out, at);
            out.extend((kept.len() as u32).to_le_bytes());
            out.extend(length.to_le_bytes());
            padded(out, kept);
            let flags: u32 = match direction {
                Direction::Inbound => 1,
                Direction::Outbound => 2,
            };
            option(out, EPB_FLAGS, &flags.to_le_bytes());
        });
    }

    /// Adds an interface's counters at the capture's end: packets in all, and those among them that
    /// were not captured.
    pub fn statistics(&mut self, interface: u32, at: u64, packets: u64, missed: u64) {
        self.block(INTERFACE_STATISTICS, |out| {
            out.extend(interface.to_le_bytes());
            timestamp(out, at);
            option(out, ISB_IFRECV, &packets.to_le_bytes());
            option(out, ISB_IFDROP, &missed.to_le_bytes());
        });
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds a block, whose length stands at both of its ends. All that have a body here end in
    /// options.
    fn block(&mut self, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend([0; 4]);
        body(&mut self.bytes);
        // The end of the options.
        self.bytes.extend([0; 4]);
        let length = ((self.bytes.len() - start + 4) as u32).to_le_bytes();
        self.bytes[start + 4..start + 8].copy_from_slice(&length);
        self.bytes.extend(length);
    }
}

/// Appends bytes, and zeros up to a multiple of four.
fn padded(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
    out.resize(out.len() + bytes.len().next_multiple_of(4) - bytes.len(), 0);
}

/// Appends an option; a value beyond 65,535 bytes is cut.
fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    padded(out, value);
}

/// Appends a time: the upper half comes first.
fn timestamp(out: &mut Vec<u8>, at: u64) {
    out.extend(((at >> 32) as u32).to_le_bytes());
    out.extend((at as u32).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classic_headers_are_as_documented() {
        let h = file_header(LINK_ETHERNET, 65_535);
        assert_eq!(h[..8], [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]);
        assert_eq!(h[8..], [0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0]);
        let h = record_header(1_000_002, 3, 0x0104);
        assert_eq!(h, [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 1, 0, 0]);
    }

    #[test]
    fn a_classic_file_can_be_written_in_pieces() {
        let mut file = File::new(LINK_RAW, 9);
        assert_eq!(file.bytes(), file_header(LINK_RAW, 9));
        file.clear();
        file.packet(1_000_002, 1500, [&[1, 2][..], &[], &[3]]);
        assert_eq!(file.bytes()[..RECORD_HEADER], record_header(1_000_002, 3, 1500));
        assert_eq!(file.bytes()[RECORD_HEADER..], [1, 2, 3]);
    }

    /// Type and length of each block, which stands at its end, too.
    fn blocks(bytes: &[u8]) -> Vec<(u32, usize)> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (mut at, mut all) = (0, Vec::new());
        while at < bytes.len() {
            let length = word(at + 4) as usize;
            assert_eq!((length % 4, word(at + length - 4) as usize), (0, length));
            all.push((word(at), length));
            at += length;
        }
        all
    }

    #[test]
    fn pcapng_blocks_follow_one_another() {
        let mut file = NgFile::new("a comment");
        let one = file.interface("eth0", 256);
        let two = file.interface("eth1", 256);
        assert_eq!((one, two), (0, 1));
        file.packet(two, 0x1_0000_0002, Direction::Outbound, 1500, &[7; 61]);
        file.statistics(two, 3, 1, 0);
        let all = blocks(file.bytes());
        let kinds: Vec<_> = all.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE, INTERFACE, ENHANCED_PACKET, 5]);
        let at: usize = all[..3].iter().map(|(_, length)| length).sum();
        let packet = &file.bytes()[at..at + all[3].1];
        assert_eq!(packet[8..20], [1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(packet[20..28], [61, 0, 0, 0, 0xdc, 5, 0, 0]);
        assert_eq!(packet[28..89], [7; 61]);
        assert_eq!(packet[89..100], [0, 0, 0, 2, 0, 4, 0, 2, 0, 0, 0]);
    }

    #[test]
    fn an_option_that_is_too_long_is_cut() {
        let comment = "x".repeat(70_000);
        assert_eq!(blocks(NgFile::new(&comment).bytes()).len(), 1);
    }
}
