//! A packet socket with its rings.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::layout::{Options, RingSize, Version};
use super::map::Region;
use crate::{Error, sys};
use thalweg_device_linux::IfInfo;
use thalweg_device_linux::sys as devices;

/// Limit of a socket's queues, for frames that did not fit their slots and for frames in flight. No
/// memory is reserved.
const QUEUE_BYTES: c_int = 16 << 20;
/// Minimum queue size for large frames to pass through the socket.
const DEEP_ENOUGH: u32 = 4 << 20;
const ETH_P_ALL: u16 = 3;
/// Timeout after which the kernel closes a V3 block.
const V3_RETIRE_MS: u32 = 1;

/// The kernel's counters of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelStats {
    /// Frames for this queue, dropped ones included.
    pub packets: u64,
    /// Frames dropped because the ring was full.
    pub drops: u64,
    /// Number of times the ring ran full (V3 only).
    pub freezes: u64,
}

/// A packet socket on a device, with the memory of its rings.
///
/// Shared by a [`RxRing`](super::RxRing) and a [`TxRing`](super::TxRing); all methods may be called
/// from any thread, at any time.
#[derive(Debug)]
pub struct Socket {
    // Dropped before the socket that it belongs to.
    pub(super) region: Region,
    fd: OwnedFd,
    /// Socket for frames larger than a slot; present if there is a tx ring.
    large: Option<OwnedFd>,
    name: String,
    ifindex: u32,
    pub(super) version: Version,
    pub(super) vnet: bool,
    pub(super) rx: Option<RingSize>,
    pub(super) tx: Option<RingSize>,
    qdisc_bypass: AtomicBool,
    /// The device has no queueing discipline: bypassing it gains nothing.
    unqueued: AtomicBool,
    /// The device segments GSO packets itself.
    segments: bool,
    promiscuous: AtomicBool,
    mtu: AtomicU32,
    packets: AtomicU64,
    drops: AtomicU64,
    freezes: AtomicU64,
}

/// A socket before it is bound: the kernel requires this order of calls.
pub(super) struct Builder<'a> {
    fd: OwnedFd,
    info: &'a IfInfo,
    options: &'a Options,
    vnet: bool,
}

impl<'a> Builder<'a> {
    /// Opens the socket and sets what must be set before its rings exist.
    pub(super) fn new(info: &'a IfInfo, options: &'a Options) -> Result<Self, Error> {
        let (fd, vnet) = open_socket(info, options)?;
        let builder = Self { fd, info, options, vnet };
        let version = match options.version {
            Version::V2 => libc::tpacket_versions::TPACKET_V2,
            Version::V3 => libc::tpacket_versions::TPACKET_V3,
        };
        builder.set(libc::PACKET_VERSION, version as c_int, "choose the ring version")?;
        // A frame that the kernel finds malformed would block the ring otherwise.
        builder.set(libc::PACKET_LOSS, 1, "make the ring pass over malformed frames")?;
        builder.set(libc::PACKET_COPY_THRESH, 1, "queue large frames")?;
        // Since Linux 4.20; where this fails, the ring skips such frames itself.
        let _ = sys::set_option(builder.fd(), libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1);
        Ok(builder)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn set(&self, option: c_int, value: c_int, what: &'static str) -> Result<(), Error> {
        sys::set_option(self.fd(), libc::SOL_PACKET, option, value)
            .map_err(|error| Error::system(&self.info.name, what, error))
    }

    /// Creates and maps the rings and binds the socket. With `gather` it refuses all frames until
    /// [`Socket::accept`], so that its siblings can join first.
    pub(super) fn finish(self, rx: bool, tx: bool, gather: bool) -> Result<Socket, Error> {
        let name = &self.info.name;
        let mut rings = [None, None];
        if rx {
            let deep = deepen(self.fd(), libc::SO_RCVBUFFORCE, libc::SO_RCVBUF) >= DEEP_ENOUGH;
            let wanted = self.options.rx_geometry(self.info.mtu, deep)?;
            rings[0] = Some(self.ring(libc::PACKET_RX_RING, wanted)?);
        }
        let mut large = None;
        let segments = devices::segments_tcp(self.fd(), name);
        if tx {
            deepen(self.fd(), libc::SO_SNDBUFFORCE, libc::SO_SNDBUF);
            let wanted = self.options.tx_geometry(self.info.mtu)?;
            rings[1] = Some(self.ring(libc::PACKET_TX_RING, wanted)?);
            let (fd, _) = open_socket(self.info, self.options)?;
            deepen(fd.as_fd(), libc::SO_SNDBUFFORCE, libc::SO_SNDBUF);
            sys::bind_packet(fd.as_fd(), self.info.ifindex, 0)
                .map_err(|error| Error::system(name, "bind a packet socket", error))?;
            large = Some(fd);
        }
        let bytes = rings.iter().flatten().map(RingSize::bytes).sum();
        let region = Region::map(self.fd(), bytes)
            .map_err(|error| Error::system(name, "map the packet rings", error))?;
        if gather {
            sys::refuse_all(self.fd(), true)
                .map_err(|error| Error::system(name, "hold back frames", error))?;
        }
        let protocol = if rx { ETH_P_ALL } else { 0 };
        sys::bind_packet(self.fd(), self.info.ifindex, protocol)
            .map_err(|error| Error::system(name, "bind a packet socket", error))?;
        let socket = Socket {
            region,
            fd: self.fd,
            large,
            name: name.clone(),
            ifindex: self.info.ifindex,
            version: self.options.version,
            vnet: self.vnet,
            rx: rings[0],
            tx: rings[1],
            qdisc_bypass: AtomicBool::new(false),
            unqueued: AtomicBool::new(self.info.unqueued),
            segments: self.vnet && segments,
            promiscuous: AtomicBool::new(false),
            mtu: AtomicU32::new(self.info.mtu),
            packets: AtomicU64::new(0),
            drops: AtomicU64::new(0),
            freezes: AtomicU64::new(0),
        };
        if self.options.qdisc_bypass {
            socket.set_qdisc_bypass(true)?;
        }
        if rx {
            // Groups of neighbour discovery are many, and differ by address.
            socket
                .membership(libc::PACKET_MR_ALLMULTI, true)
                .map_err(|error| Error::system(name, "have multicast frames received", error))?;
        }
        Ok(socket)
    }

    /// Requests a ring, and smaller ones while memory is short.
    fn ring(&self, which: c_int, wanted: RingSize) -> Result<RingSize, Error> {
        let mut ring = wanted;
        loop {
            match self.try_ring(which, &ring) {
                Ok(()) => break,
                Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {
                    let name = self.info.name.clone();
                    let kib = ring.bytes() / 1024;
                    ring = ring.smaller().ok_or(Error::RingMemory { name, kib })?;
                }
                Err(error) => return Err(Error::system(&self.info.name, "make a ring", error)),
            }
        }
        if ring != wanted {
            tracing::warn!(
                device = self.info.name,
                "memory is short: a packet ring has {} KiB instead of {} KiB",
                ring.bytes() / 1024,
                wanted.bytes() / 1024
            );
        }
        Ok(ring)
    }

    fn try_ring(&self, which: c_int, ring: &RingSize) -> io::Result<()> {
        let (level, slots) = (libc::SOL_PACKET, ring.slots() as u32);
        let (block, blocks, slot) = (ring.block as u32, ring.blocks as u32, ring.slot as u32);
        match self.options.version {
            Version::V2 => {
                let request = libc::tpacket_req {
                    tp_block_size: block,
                    tp_block_nr: blocks,
                    tp_frame_size: slot,
                    tp_frame_nr: slots,
                };
                sys::set_option(self.fd(), level, which, request)
            }
            Version::V3 => {
                let rx = which == libc::PACKET_RX_RING;
                let request = libc::tpacket_req3 {
                    tp_block_size: block,
                    tp_block_nr: blocks,
                    tp_frame_size: slot,
                    tp_frame_nr: slots,
                    tp_retire_blk_tov: if rx { V3_RETIRE_MS } else { 0 },
                    tp_sizeof_priv: 0,
                    tp_feature_req_word: 0,
                };
                sys::set_option(self.fd(), level, which, request)
            }
        }
    }
}

/// Opens a socket that receives nothing yet; also returns whether vnet headers are on.
fn open_socket(info: &IfInfo, options: &Options) -> Result<(OwnedFd, bool), Error> {
    let fd = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)
        .map_err(|error| Error::system(&info.name, "open a packet socket", error))?;
    let mut vnet = false;
    if options.offload {
        match sys::set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1) {
            Ok(()) => vnet = true,
            Err(error) => tracing::warn!(
                device = info.name,
                "no checksum and segmentation offload: the kernel refused PACKET_VNET_HDR: {error}"
            ),
        }
    }
    Ok((fd, vnet))
}

/// Enlarges a socket queue as far as permitted; returns the resulting limit.
fn deepen(fd: BorrowedFd<'_>, force: c_int, ask: c_int) -> u32 {
    // Forcing needs CAP_NET_ADMIN in the initial namespace; otherwise net.core.[rw]mem_max is the
    // limit.
    if sys::set_option(fd, libc::SOL_SOCKET, force, QUEUE_BYTES).is_err() {
        let _ = sys::set_option(fd, libc::SOL_SOCKET, ask, QUEUE_BYTES);
    }
    sys::get_option::<1>(fd, libc::SOL_SOCKET, ask).map_or(0, |[bytes]| bytes)
}

impl Socket {
    /// Name of the device, as of opening.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Layout of the rings.
    pub fn version(&self) -> Version {
        self.version
    }

    /// True if packets carry a [`VnetHdr`](thalweg_device_linux::VnetHdr).
    pub fn offload(&self) -> bool {
        self.vnet
    }

    /// Geometry of the receive ring, if there is one. V3 slots hold no single frame.
    pub fn rx_size(&self) -> Option<RingSize> {
        self.rx
    }

    /// Geometry of the transmit ring, if there is one.
    pub fn tx_size(&self) -> Option<RingSize> {
        self.tx
    }

    /// True if the queueing discipline is bypassed.
    pub fn qdisc_bypass(&self) -> bool {
        self.qdisc_bypass.load(Relaxed)
    }

    /// Switches the queueing discipline bypass.
    pub fn set_qdisc_bypass(&self, on: bool) -> Result<(), Error> {
        let option = libc::PACKET_QDISC_BYPASS;
        // The kernel does not segment packets that bypass it; without one, order is the same either
        // way.
        let large = self.large.as_ref().map(|fd| (fd, on && !self.unqueued.load(Relaxed)));
        for (fd, on) in [Some((&self.fd, on)), large].into_iter().flatten() {
            sys::set_option(fd.as_fd(), libc::SOL_PACKET, option, c_int::from(on))
                .map_err(|error| Error::system(&self.name, "set the qdisc bypass", error))?;
        }
        self.qdisc_bypass.store(on, Relaxed);
        Ok(())
    }

    /// Returns whether the device or the kernel segments a TCP GSO packet larger than a slot.
    pub(super) fn supports_gso(&self) -> bool {
        self.vnet && (self.segments || self.unqueued.load(Relaxed) || !self.qdisc_bypass())
    }

    /// Sets whether the device lacks a queueing discipline: it gets one when it first comes up.
    pub(super) fn set_unqueued(&self, unqueued: bool) -> Result<(), Error> {
        match self.unqueued.swap(unqueued, Relaxed) == unqueued {
            true => Ok(()),
            false => self.set_qdisc_bypass(self.qdisc_bypass()),
        }
    }

    /// Switches promiscuous mode of the device. Ends with the socket.
    pub fn set_promiscuous(&self, on: bool) -> Result<(), Error> {
        if self.promiscuous.swap(on, Relaxed) == on {
            return Ok(());
        }
        self.membership(libc::PACKET_MR_PROMISC, on).map_err(|error| {
            self.promiscuous.store(!on, Relaxed);
            Error::system(&self.name, "change promiscuous mode", error)
        })
    }

    /// Changes what the device receives beyond its own. Ends with the socket.
    fn membership(&self, kind: c_int, on: bool) -> std::io::Result<()> {
        let request = libc::packet_mreq {
            mr_ifindex: self.ifindex as c_int,
            mr_type: kind as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        let option = if on { libc::PACKET_ADD_MEMBERSHIP } else { libc::PACKET_DROP_MEMBERSHIP };
        sys::set_option(self.fd(), libc::SOL_PACKET, option, request)
    }

    /// Sets the device's MTU in bytes, by which the transmit ring refuses long frames.
    pub fn set_mtu(&self, mtu: u32) {
        self.mtu.store(mtu, Relaxed);
    }

    pub(super) fn mtu(&self) -> u32 {
        self.mtu.load(Relaxed)
    }

    /// The kernel's counters since the socket was opened.
    pub fn kernel_stats(&self) -> KernelStats {
        // The kernel clears its counters on each read, so sums are kept here.
        let option = libc::PACKET_STATISTICS;
        let new = sys::get_option::<3>(self.fd(), libc::SOL_PACKET, option).unwrap_or_default();
        let add = |sum: &AtomicU64, value: u32| {
            sum.fetch_add(u64::from(value), Relaxed) + u64::from(value)
        };
        KernelStats {
            packets: add(&self.packets, new[0]),
            drops: add(&self.drops, new[1]),
            freezes: add(&self.freezes, new[2]),
        }
    }

    /// Takes the error that the device left at the socket, such as "network is down".
    ///
    /// Until it is taken, `poll` reports the socket as ready.
    pub fn take_error(&self) -> Option<io::Error> {
        if let Some(large) = &self.large {
            sys::take_error(large.as_fd());
        }
        sys::take_error(self.fd())
    }

    /// Present name of the device, which may have been renamed since the socket was opened.
    pub fn present_name(&self) -> String {
        devices::name_of(self.fd(), self.ifindex).unwrap_or_else(|| self.name.clone())
    }

    /// Switches the device on, as `ip link set up` does.
    pub fn switch_on(&self) -> Result<(), Error> {
        devices::switch_on(self.fd(), &self.present_name())
            .map_err(|error| Error::system(&self.name, "switch the device on", error))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn large_fd(&self) -> Option<BorrowedFd<'_>> {
        self.large.as_ref().map(AsFd::as_fd)
    }

    /// Starts a fanout group of sockets that share a device's flows; returns the argument for
    /// [`Socket::join`].
    pub(super) fn found_group(&self) -> Result<u32, Error> {
        // The kernel picks a free id. The group itself needs the option not to deliver frames sent
        // by this host; kernels before 6.2 do not know that flag.
        let base = libc::PACKET_FANOUT_HASH | libc::PACKET_FANOUT_FLAG_UNIQUEID;
        let quiet = base | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
        let found = |kind: u32| {
            let word = (kind << 16) as c_int;
            sys::set_option(self.fd(), libc::SOL_PACKET, libc::PACKET_FANOUT, word)
        };
        found(quiet)
            .or_else(|_| found(base))
            .and_then(|()| sys::get_option::<1>(self.fd(), libc::SOL_PACKET, libc::PACKET_FANOUT))
            .map(|[word]| word)
            .map_err(|error| self.group_error(error))
    }

    /// Joins a fanout group.
    pub(super) fn join(&self, group: u32) -> Result<(), Error> {
        sys::set_option(self.fd(), libc::SOL_PACKET, libc::PACKET_FANOUT, group as c_int)
            .map_err(|error| self.group_error(error))
    }

    fn group_error(&self, error: io::Error) -> Error {
        Error::system(&self.name, "spread flows over several receive queues", error)
    }

    /// Refuses all frames, which the kernel then neither queues nor counts, until
    /// [`accept`](Self::accept). Frames already in the ring stay there.
    pub fn refuse(&self) -> Result<(), Error> {
        sys::refuse_all(self.fd(), true)
            .map_err(|error| Error::system(&self.name, "hold back frames", error))
    }

    /// Stops refusing frames.
    pub fn accept(&self) -> Result<(), Error> {
        match sys::refuse_all(self.fd(), false) {
            // The socket refuses none.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            done => done.map_err(|error| Error::system(&self.name, "let frames in", error)),
        }
    }

    /// True if the socket receives frames.
    pub(super) fn receives(&self) -> bool {
        self.rx.is_some()
    }
}

impl AsFd for Socket {
    /// The descriptor to poll: readable when frames wait, writable when a
    /// transmit slot is free.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd()
    }
}
