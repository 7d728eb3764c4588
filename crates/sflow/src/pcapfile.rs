//! sFlow datagrams out of capture files: classic pcap (both byte orders, micro- and nanoseconds,
//! and the modified form) and pcapng.

use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;

use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use thiserror::Error;

use crate::frame::{Extracted, extract};
use crate::merged::split_first;
use crate::text::Moment;

/// Reason why a capture file could not be read.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The file could not be opened.
    #[error("cannot open {path}: {why}")]
    Open {
        /// The file.
        path: String,
        /// Reason.
        why: std::io::Error,
    },
    /// The file is no capture.
    #[error("not a capture file: it starts like neither pcap nor pcapng")]
    Format,
    /// The file was cut while it was written. Packets before the cut have been delivered.
    #[error("the capture file ends in the middle of a packet, after {packets} whole packets")]
    Truncated {
        /// Packets read.
        packets: u64,
    },
    /// A block makes no sense.
    #[error("packet {packet} of the capture file is malformed: {what}")]
    Malformed {
        /// Number of the packet, counted from 1.
        packet: u64,
        /// The packet's fault.
        what: String,
    },
}

/// Counts of a file's contents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CaptureStats {
    /// Packets.
    pub packets: u64,
    /// sFlow datagrams.
    pub datagrams: u64,
    /// IP fragments, which are passed over.
    pub fragments: u64,
    /// Datagrams that the capture cut short; these are passed over.
    pub cut: u64,
    /// Packets that held several datagrams, as segmentation offload leaves them.
    pub merged: u64,
    /// Everything else: other ports and protocols.
    pub other: u64,
    /// Packets with a link header that is not known.
    pub unknown_links: u64,
    /// Link type of the first of these.
    pub unknown_link: u16,
}

/// An sFlow datagram of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedDatagram<'r> {
    /// Time when it was captured.
    pub time: Moment,
    /// The sender.
    pub source: SocketAddr,
    /// The sFlow datagram.
    pub payload: &'r [u8],
}

/// An interface of a pcapng section.
struct Link {
    kind: Linktype,
    resolution: u64,
    offset: i64,
}

/// Reads the datagrams of a file one by one, whatever its size.
pub struct PcapReader {
    reader: Box<dyn PcapReaderIterator + Send>,
    sections: Sections,
    port: u16,
    links: Vec<Link>,
    nanoseconds: bool,
    stats: CaptureStats,
    /// The payload of the latest packet, how far it has been handed out, and whose it is.
    payload: Vec<u8>,
    given: usize,
    origin: Option<(Moment, SocketAddr)>,
}

/// Larger packets than a jumbo datagram do not occur; the buffer grows when one does.
const BUFFER_BYTES: usize = 1 << 18;
const MAX_BUFFER_BYTES: usize = 1 << 24;

impl PcapReader {
    /// Opens a file. Datagrams to UDP `port` are sFlow.
    ///
    /// # Errors
    /// When it cannot be opened or is not a capture.
    pub fn open(path: impl AsRef<Path>, port: u16) -> Result<Self, CaptureError> {
        let path = path.as_ref();
        let file = File::open(path)
            .map_err(|why| CaptureError::Open { path: path.display().to_string(), why })?;
        Self::new(file, port)
    }

    /// Reads from anything, such as standard input.
    ///
    /// # Errors
    /// When it does not start like a capture.
    pub fn new(input: impl Read + Send + 'static, port: u16) -> Result<Self, CaptureError> {
        let reader = create_reader(BUFFER_BYTES, WholeReads(Unmodified::new(input)));
        let reader = reader.map_err(|_| CaptureError::Format)?;
        Ok(PcapReader {
            sections: Sections::new(reader.data()),
            reader,
            port,
            links: Vec::new(),
            nanoseconds: false,
            stats: CaptureStats::default(),
            payload: Vec::new(),
            given: 0,
            origin: None,
        })
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn stats(&self) -> CaptureStats {
        self.stats
    }

    /// The next datagram; `None` at the end of the file.
    ///
    /// # Errors
    /// When the file is cut or malformed; there is nothing more to read then.
    pub fn next_datagram(&mut self) -> Result<Option<CapturedDatagram<'_>>, CaptureError> {
        loop {
            if let Some((time, source)) = self.origin {
                let from = self.given;
                self.given += split_first(&self.payload[from..]).0.len();
                if self.given == self.payload.len() {
                    self.origin = None;
                } else if from == 0 {
                    self.stats.merged += 1;
                }
                self.stats.datagrams += 1;
                let payload = &self.payload[from..self.given];
                return Ok(Some(CapturedDatagram { time, source, payload }));
            }
            if let Some(length) = self.sections.bad_block(self.reader.data()) {
                let (packet, what) = (self.stats.packets + 1, format!("a block of {length} bytes"));
                return Err(CaptureError::Malformed { packet, what });
            }
            let found = match self.reader.next() {
                Ok((length, block)) => {
                    let found = take_block(
                        (&block, self.sections.is_big_endian()),
                        &mut self.links,
                        &mut self.nanoseconds,
                        &mut self.stats,
                        self.port,
                        &mut self.payload,
                    );
                    self.reader.consume(length);
                    found
                }
                Err(PcapError::Eof) => return Ok(None),
                Err(PcapError::Incomplete(_)) => {
                    self.refill()?;
                    None
                }
                Err(PcapError::BufferTooSmall) => {
                    self.grow()?;
                    None
                }
                Err(PcapError::UnexpectedEof) => {
                    return Err(CaptureError::Truncated { packets: self.stats.packets });
                }
                Err(error) => {
                    let (packet, what) = (self.stats.packets + 1, error.to_string());
                    return Err(CaptureError::Malformed { packet, what });
                }
            };
            (self.origin, self.given) = (found, 0);
        }
    }

    fn refill(&mut self) -> Result<(), CaptureError> {
        let before = self.reader.data().len();
        let exhausted = self.reader.reader_exhausted();
        match self.reader.refill() {
            Ok(()) => {}
            Err(PcapError::BufferTooSmall) => return self.grow(),
            Err(_) => return Err(CaptureError::Truncated { packets: self.stats.packets }),
        }
        if exhausted && self.reader.data().len() == before {
            return Err(CaptureError::Truncated { packets: self.stats.packets });
        }
        Ok(())
    }

    fn grow(&mut self) -> Result<(), CaptureError> {
        let size = self.reader.data().len().max(BUFFER_BYTES) * 2;
        if size > MAX_BUFFER_BYTES || !self.reader.grow(size) {
            return Err(CaptureError::Malformed {
                packet: self.stats.packets + 1,
                what: format!("a block is larger than {MAX_BUFFER_BYTES} bytes"),
            });
        }
        let _ = self.reader.refill();
        Ok(())
    }
}

/// Looks at the lengths of pcapng blocks before the parser does, which subtracts the 12 bytes that
/// every block has (draft-ietf-opsawg-pcapng section 3.1) without looking.
enum Sections {
    Classic,
    Ng { big_endian: bool },
}

const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const MIN_BLOCK: u32 = 12;

impl Sections {
    fn new(start: &[u8]) -> Sections {
        match start.starts_with(&SECTION_HEADER) {
            true => Sections::Ng { big_endian: false },
            false => Sections::Classic,
        }
    }

    fn is_big_endian(&self) -> bool {
        matches!(self, Sections::Ng { big_endian: true })
    }

    /// The length of the block at the start of `data`, if no block can be so short.
    fn bad_block(&mut self, data: &[u8]) -> Option<u32> {
        let Sections::Ng { big_endian } = self else { return None };
        let (kind, rest) = data.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        if *kind == SECTION_HEADER
            && let Some(magic) = rest.first_chunk::<4>()
        {
            *big_endian = *magic == [0x1a, 0x2b, 0x3c, 0x4d];
        }
        let length = match big_endian {
            true => u32::from_be_bytes(*length),
            false => u32::from_le_bytes(*length),
        };
        (length < MIN_BLOCK).then_some(length)
    }
}

/// Turns the modified form of pcap, which has eight bytes more in front of each packet, into the
/// classic one; passes all else on as it is.
struct Unmodified<R> {
    input: R,
    state: Form,
    /// Bytes handed out before more is read.
    ready: Vec<u8>,
    given: usize,
}

enum Form {
    /// Nothing has been read.
    Unknown,
    /// The file is of another form, and passed on.
    Other,
    /// Bytes of a packet that are still to come.
    Modified { big_endian: bool, left: u32 },
}

/// Magic numbers of the modified and of the classic form, the most significant byte first.
const MODIFIED: [u8; 4] = [0xa1, 0xb2, 0xcd, 0x34];
const CLASSIC: [u8; 4] = [0xa1, 0xb2, 0xc3, 0xd4];
/// Length of a packet's header in the modified form, and in the classic form.
const MODIFIED_HEADER: usize = 24;
const CLASSIC_HEADER: usize = 16;

impl<R: Read> Unmodified<R> {
    fn new(input: R) -> Self {
        Unmodified { input, state: Form::Unknown, ready: Vec::new(), given: 0 }
    }

    /// Reads the next bytes that are not a packet's data.
    fn advance(&mut self) -> std::io::Result<()> {
        let (want, kept) = match self.state {
            Form::Unknown => (MODIFIED.len(), MODIFIED.len()),
            _ => (MODIFIED_HEADER, CLASSIC_HEADER),
        };
        self.given = 0;
        self.ready.clear();
        (&mut self.input).take(want as u64).read_to_end(&mut self.ready)?;
        let whole = self.ready.len() == want;
        self.ready.truncate(kept);
        match &mut self.state {
            Form::Unknown => {
                let mut magic = self.ready.clone();
                let is_big = magic == MODIFIED;
                magic.reverse();
                let is_little = magic == MODIFIED;
                if is_big || is_little {
                    let mut classic = CLASSIC;
                    if is_little {
                        classic.reverse();
                    }
                    self.ready = classic.to_vec();
                    // The rest of the file's header, which is the same in both forms.
                    self.state = Form::Modified { big_endian: is_big, left: 20 };
                } else {
                    self.state = Form::Other;
                }
            }
            Form::Modified { big_endian, left } if whole => {
                let bytes = [self.ready[8], self.ready[9], self.ready[10], self.ready[11]];
                *left = match big_endian {
                    true => u32::from_be_bytes(bytes),
                    false => u32::from_le_bytes(bytes),
                };
            }
            _ => {}
        }
        Ok(())
    }
}

impl<R: Read> Read for Unmodified<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        if self.given == self.ready.len() {
            match &mut self.state {
                Form::Other => return self.input.read(buf),
                Form::Modified { left: left @ 1.., .. } => {
                    let most = buf.len().min(*left as usize);
                    let n = self.input.read(&mut buf[..most])?;
                    *left -= n as u32;
                    return Ok(n);
                }
                _ => self.advance()?,
            }
        }
        let n = buf.len().min(self.ready.len() - self.given);
        buf[..n].copy_from_slice(&self.ready[self.given..self.given + n]);
        self.given += n;
        Ok(n)
    }
}

/// A pipe gives a few bytes at a time, but the reader wants to see a whole file header at once.
struct WholeReads<R>(R);

impl<R: Read> Read for WholeReads<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let mut filled = 0;
        while filled < buf.len() {
            match self.0.read(&mut buf[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if filled == 0 => return Err(error),
                Err(_) => break,
            }
            // Past a file header, what a live capture has written so far is enough.
            if filled >= 512 {
                break;
            }
        }
        Ok(filled)
    }
}

/// A Packet Block, which Enhanced Packet Blocks have replaced (draft-ietf-opsawg-pcapng section
/// 11.1).
const PACKET_BLOCK: u32 = 2;

/// Interface, time and data of a Packet Block's body.
fn packet_block(body: &[u8], big_endian: bool) -> Option<(u16, u64, &[u8])> {
    let (head, rest) = body.split_first_chunk::<20>()?;
    let word = |at: usize| {
        let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
        if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    };
    let bytes = [head[0], head[1]];
    let link = if big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) };
    let ticks = u64::from(word(4)) << 32 | u64::from(word(8));
    Some((link, ticks, rest.get(..word(12) as usize)?))
}

fn take_block(
    (block, big_endian): (&PcapBlockOwned<'_>, bool),
    links: &mut Vec<Link>,
    nanoseconds: &mut bool,
    stats: &mut CaptureStats,
    port: u16,
    payload: &mut Vec<u8>,
) -> Option<(Moment, SocketAddr)> {
    let (link, time, data) = match block {
        PcapBlockOwned::LegacyHeader(header) => {
            *nanoseconds = header.is_nanosecond_precision();
            links.push(Link { kind: header.network, resolution: 0, offset: 0 });
            return None;
        }
        PcapBlockOwned::Legacy(packet) => {
            let micros = packet.ts_usec / if *nanoseconds { 1000 } else { 1 };
            let time = Moment { seconds: packet.ts_sec.into(), micros };
            (links.first()?, time, packet.data)
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            links.clear();
            return None;
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
            links.push(Link {
                kind: interface.linktype,
                resolution: interface.ts_resolution().unwrap_or(1_000_000),
                offset: interface.ts_offset(),
            });
            return None;
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let link = links.get(packet.if_id as usize)?;
            let time = link.time(u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low));
            let data = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
            (link, time, data)
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            let data = packet.data.get(..packet.origlen as usize).unwrap_or(packet.data);
            (links.first()?, Moment::default(), data)
        }
        PcapBlockOwned::NG(Block::Unknown(unknown))
            // The parser leaves it in the byte order of the file.
            if [unknown.block_type, unknown.block_type.swap_bytes()].contains(&PACKET_BLOCK) =>
        {
            let (link, ticks, data) = packet_block(unknown.data, big_endian)?;
            let link = links.get(usize::from(link))?;
            (link, link.time(ticks), data)
        }
        PcapBlockOwned::NG(_) => return None,
    };
    stats.packets += 1;
    match extract(link.kind, data, port) {
        Extracted::Datagram { source, data } => {
            payload.clear();
            payload.extend_from_slice(data);
            Some((time, source))
        }
        Extracted::Fragment => {
            stats.fragments += 1;
            None
        }
        Extracted::Cut => {
            stats.cut += 1;
            None
        }
        Extracted::Other => {
            stats.other += 1;
            None
        }
        Extracted::Link(kind) => {
            if stats.unknown_links == 0 {
                stats.unknown_link = kind;
            }
            stats.unknown_links += 1;
            None
        }
    }
}

impl Link {
    fn time(&self, ticks: u64) -> Moment {
        let resolution = self.resolution.max(1);
        let seconds = (ticks / resolution).saturating_add_signed(self.offset);
        let micros = u128::from(ticks % resolution) * 1_000_000 / u128::from(resolution);
        Moment { seconds, micros: micros as u32 }
    }
}
