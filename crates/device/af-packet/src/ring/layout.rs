//! Ring sizes.

use crate::Error;
use thalweg_device_linux::Framing;

const PAGE: usize = 4096;
const LINE: usize = 64;
/// Bytes of a slot beyond the MTU, for its headers and two VLAN tags.
const SLOT_OVERHEAD: usize = 128;
/// Slot size for the largest frame: 64 KiB and its headers.
const LARGE_SLOT: usize = (66 * 1024) | LINE;
/// Default memory limit of a receive ring.
const RX_BUDGET: usize = 8 << 20;
const RX_SLOTS: usize = 4096;
const TX_SLOTS: usize = 1024;
const TX_BUDGET: usize = 4 << 20;
/// A V3 block holds the largest frame.
const V3_BLOCK: usize = 128 * 1024;
/// Maximum memory of a ring.
const MAX_RING: usize = 256 << 20;
const MIN_SLOT: u32 = 256;
const MAX_SLOT: u32 = 256 * 1024;
const MAX_PER_BLOCK: u32 = 16 * 1024;
const MAX_QUEUES: u16 = 64;

/// Ring layout shared with the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// `TPACKET_V2`: every frame is delivered as it arrives.
    #[default]
    V2,
    /// `TPACKET_V3`: frames are delivered in blocks, at most 1 ms late.
    V3,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V2 => "v2",
            Self::V3 => "v3",
        })
    }
}

/// Options of `create host-interface`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Ring layout.
    pub version: Version,
    /// Framing.
    pub framing: Framing,
    /// Receive queues, 1 to 64. Flows are spread over them by hash.
    pub rx_queues: u16,
    /// Transmit queues, 1 to 64.
    pub tx_queues: u16,
    /// Receive slot size in bytes, headers included (V3: with `rx_per_block`, that of a block).
    pub rx_size: Option<u32>,
    /// Transmit slot size in bytes, headers included.
    pub tx_size: Option<u32>,
    /// Receive slots per block of memory.
    pub rx_per_block: Option<u32>,
    /// Transmit slots per block of memory.
    pub tx_per_block: Option<u32>,
    /// Bypass the queueing discipline: faster, but without its shaping and queue.
    pub qdisc_bypass: bool,
    /// Exchange packets with pending checksums or segmentation (off by `cksum-gso-disable`).
    pub offload: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            version: Version::default(),
            framing: Framing::default(),
            rx_queues: 1,
            tx_queues: 1,
            rx_size: None,
            tx_size: None,
            rx_per_block: None,
            tx_per_block: None,
            qdisc_bypass: true,
            offload: true,
        }
    }
}

/// Geometry of a ring: blocks of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingSize {
    /// Slot size in bytes, headers included. A V3 receive ring packs frames instead.
    pub slot: usize,
    /// Slots per block.
    pub per_block: usize,
    /// Block size in bytes: at least that of its slots.
    pub block: usize,
    /// Number of blocks.
    pub blocks: usize,
}

impl RingSize {
    fn new(slot: usize, per_block: usize, slots: usize) -> Self {
        let block = (slot * per_block).next_multiple_of(PAGE);
        Self { slot, per_block: block / slot, block, blocks: slots.div_ceil(per_block).max(1) }
    }

    /// Size of the ring in bytes.
    pub fn bytes(&self) -> usize {
        self.block * self.blocks
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.per_block * self.blocks
    }

    /// The next smaller ring to try when memory is short.
    pub(super) fn smaller(&self) -> Option<Self> {
        (self.blocks > 1).then_some(Self { blocks: self.blocks / 2, ..*self })
    }
}

/// Position in a ring, moving slot by slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    /// Byte offset of the slot from the start of the mapping.
    pub at: usize,
    base: usize,
    in_block: usize,
    block: usize,
}

impl Cursor {
    pub(super) fn new(base: usize) -> Self {
        Self { at: base, base, in_block: 0, block: 0 }
    }

    #[inline]
    pub(super) fn advance(&mut self, geometry: &RingSize) {
        self.in_block += 1;
        self.at += geometry.slot;
        if self.in_block == geometry.per_block {
            self.in_block = 0;
            self.block += 1;
            if self.block == geometry.blocks {
                self.block = 0;
            }
            self.at = self.base + self.block * geometry.block;
        }
    }
}

impl Options {
    /// Refuses values that no ring can have.
    pub(super) fn check(&self) -> Result<(), Error> {
        let queues = |option, value: u16| {
            range(option, u32::from(value), 1..=u32::from(MAX_QUEUES), "1 to 64 queues")
        };
        queues("num-rx-queues", self.rx_queues)?;
        queues("num-tx-queues", self.tx_queues)?;
        for (option, size) in [("rx-size", self.rx_size), ("tx-size", self.tx_size)] {
            let size = size.unwrap_or(MIN_SLOT);
            range(option, size, MIN_SLOT..=MAX_SLOT, "256 to 262144 bytes")?;
        }
        for (option, count) in
            [("rx-per-block", self.rx_per_block), ("tx-per-block", self.tx_per_block)]
        {
            range(option, count.unwrap_or(1), 1..=MAX_PER_BLOCK, "1 to 16384 slots")?;
        }
        Ok(())
    }

    /// Geometry of the receive ring for an MTU. `deep_queue`: the socket can queue large frames.
    pub(super) fn rx_geometry(&self, mtu: u32, deep_queue: bool) -> Result<RingSize, Error> {
        if self.version == Version::V3 {
            let slot = align(self.rx_size.unwrap_or(2048));
            let wanted = slot * self.rx_per_block.map_or(V3_BLOCK / slot, |n| n as usize);
            // A block is the slot of the largest frame, so it cannot be smaller.
            let block = wanted.max(V3_BLOCK).max(slot).next_multiple_of(PAGE);
            let blocks = (RX_BUDGET / block).max(4);
            // V3 slots are only nominal: frames are packed.
            let geometry = RingSize { slot, per_block: block / slot, block, blocks };
            return limit("rx-per-block", self.rx_per_block, geometry);
        }
        let slot = match self.rx_size {
            Some(size) => align(size),
            None if deep_queue => slot_for(mtu),
            None => LARGE_SLOT.max(slot_for(mtu)),
        };
        let slots = (RX_BUDGET / slot).clamp(128, RX_SLOTS);
        let per_block = self.rx_per_block.map_or_else(|| natural_block(slot), |n| n as usize);
        limit("rx-per-block", self.rx_per_block, RingSize::new(slot, per_block, slots))
    }

    /// Geometry of the transmit ring for an MTU.
    pub(super) fn tx_geometry(&self, mtu: u32) -> Result<RingSize, Error> {
        let slot = self.tx_size.map_or_else(|| slot_for(mtu), align);
        let slots = (TX_BUDGET / slot).clamp(64, TX_SLOTS);
        let per_block = self.tx_per_block.map_or_else(|| natural_block(slot), |n| n as usize);
        limit("tx-per-block", self.tx_per_block, RingSize::new(slot, per_block, slots))
    }
}

fn range(
    option: &'static str,
    value: u32,
    allowed: std::ops::RangeInclusive<u32>,
    want: &'static str,
) -> Result<(), Error> {
    if allowed.contains(&value) {
        Ok(())
    } else {
        Err(Error::BadOption { option, value: value.into(), want })
    }
}

fn limit(option: &'static str, value: Option<u32>, ring: RingSize) -> Result<RingSize, Error> {
    if ring.bytes() <= MAX_RING {
        Ok(ring)
    } else {
        let want = "a ring (size times slots per block, times its blocks) may take 256 MiB";
        Err(Error::BadOption { option, value: value.unwrap_or(0).into(), want })
    }
}

/// Slots start at multiples of `TPACKET_ALIGNMENT`.
fn align(size: u32) -> usize {
    (size as usize).next_multiple_of(16)
}

/// Slot size for the frames of an MTU: an odd number of cache lines, so that slot headers spread
/// over the cache sets.
fn slot_for(mtu: u32) -> usize {
    let need = (mtu as usize).clamp(1500, 65_536) + SLOT_OVERHEAD;
    need.next_multiple_of(LINE) | LINE
}

/// Slots per block that make blocks powers of two, as the kernel's page allocator rounds up to
/// these.
fn natural_block(slot: usize) -> usize {
    if slot <= 16 * 1024 { 64 * 1024 / slot } else { (1 << 20) / slot }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn defaults() {
        let options = Options::default();
        let rx = options.rx_geometry(1500, true).unwrap();
        assert_eq!(rx.slot, 1728);
        assert!(rx.slots() >= 4096 && rx.bytes() <= 8 << 20, "{rx:?}");
        let jumbo = options.rx_geometry(9000, true).unwrap();
        assert_eq!(jumbo.slot, 9152);
        assert!(jumbo.slots() >= 900 && jumbo.bytes() <= 9 << 20, "{jumbo:?}");
        let rootless = options.rx_geometry(1500, false).unwrap();
        assert!(rootless.slot > 65_536 + 80, "{rootless:?}");
        assert!(rootless.slots() >= 128 && rootless.bytes() <= 10 << 20, "{rootless:?}");
        let tx = options.tx_geometry(1500).unwrap();
        assert!(tx.slots() >= 1024 && tx.bytes() <= 2 << 20, "{tx:?}");
        let v3 = Options { version: Version::V3, ..options };
        let v3 = v3.rx_geometry(1500, true).unwrap();
        assert_eq!((v3.block, v3.blocks), (128 * 1024, 64));
    }

    #[test]
    fn refuses_silly_options() {
        let check = |options: Options| options.check().unwrap_err().to_string();
        let none = Options { rx_queues: 0, ..Options::default() };
        assert_eq!(check(none), "num-rx-queues 0 is out of range: 1 to 64 queues");
        let tiny = Options { tx_size: Some(64), ..Options::default() };
        assert!(check(tiny).contains("tx-size 64"));
        let huge = Options {
            rx_size: Some(MAX_SLOT),
            rx_per_block: Some(MAX_PER_BLOCK),
            ..Options::default()
        };
        huge.check().unwrap();
        assert!(huge.rx_geometry(1500, true).is_err());
    }

    proptest! {
        /// The kernel's conditions for a ring (`packet_set_ring`), and cursors that stay inside.
        #[test]
        fn geometries_suit_the_kernel(
            v3: bool,
            deep: bool,
            mtu in 68u32..70_000,
            size in proptest::option::of(MIN_SLOT..=MAX_SLOT),
            per_block in proptest::option::of(1u32..=2048),
        ) {
            let options = Options {
                version: if v3 { Version::V3 } else { Version::V2 },
                rx_size: size,
                tx_size: size,
                rx_per_block: per_block,
                tx_per_block: per_block,
                ..Options::default()
            };
            for ring in [options.rx_geometry(mtu, deep), options.tx_geometry(mtu)] {
                let Ok(ring) = ring else { continue };
                prop_assert_eq!(ring.slot % 16, 0);
                prop_assert_eq!(ring.block % PAGE, 0);
                prop_assert_eq!(ring.per_block, ring.block / ring.slot);
                prop_assert!(ring.per_block > 0 && ring.blocks > 0);
                let mut cursor = Cursor::new(0);
                for _ in 0..ring.slots() {
                    prop_assert!(cursor.at + ring.slot <= ring.bytes());
                    cursor.advance(&ring);
                }
                prop_assert_eq!(cursor.at, 0);
            }
        }
    }
}
