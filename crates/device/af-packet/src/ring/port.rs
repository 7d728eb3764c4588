//! The queues of one device.

use std::os::fd::AsFd;
use std::sync::Arc;

use super::claim::Claim;
use super::layout::{Options, RingSize};
use super::rx::RxRing;
use super::socket::{Builder, KernelStats, Socket};
use super::tx::TxRing;
use crate::Error;
use thalweg_device_linux::{Framing, IfInfo, sys};

/// `ARPHRD_ETHER` and `ARPHRD_LOOPBACK`: devices whose frames start with an
/// Ethernet header.
const ETHERNET_KINDS: [u16; 2] = [1, 772];

/// A device with its queues, open until this is dropped.
///
/// The rings may be moved out (`std::mem::take` on [`HostPort::rx`], [`HostPort::tx`])
/// to the threads that serve them; they keep their sockets alive by themselves.
#[derive(Debug)]
pub struct HostPort {
    /// The device, as of opening.
    pub info: IfInfo,
    /// The receive queues.
    pub rx: Vec<RxRing>,
    /// The transmit queues.
    pub tx: Vec<TxRing>,
    sockets: Vec<Arc<Socket>>,
    claim: Option<Claim>,
}

impl HostPort {
    /// Opens the queues of the device `name` in the calling thread's namespace.
    ///
    /// # Errors
    /// If the device does not exist or has another framing, this process has it open already,
    /// privileges or memory are missing, or an option is out of range.
    pub fn open(name: &str, options: &Options) -> Result<Self, Error> {
        options.check()?;
        let info = IfInfo::query(name)?;
        match (options.framing, ETHERNET_KINDS.contains(&info.kind)) {
            (Framing::Ethernet, false) => {
                return Err(Error::NotEthernet { name: name.to_owned(), kind: info.kind });
            }
            (Framing::Ip, true) => return Err(Error::NotIp(name.to_owned())),
            _ => {}
        }
        let claim =
            Claim::take(info.ifindex).ok_or_else(|| Error::AlreadyAttached(name.to_owned()))?;
        let sockets = open_sockets(&info, options)?;
        let rx = sockets.iter().filter_map(RxRing::new).collect();
        let tx = sockets.iter().filter_map(TxRing::new).collect();
        Ok(Self { info, rx, tx, sockets, claim: Some(claim) })
    }

    /// Closes all sockets but for those that rings keep, and gives the device up.
    pub fn close(&mut self) {
        self.sockets.clear();
        self.claim = None;
    }

    /// Sizes of the receive rings, if there are any.
    pub fn rx_size(&self) -> Option<RingSize> {
        self.sockets.iter().find_map(|s| s.rx_size())
    }

    /// Sizes of the transmit rings, if there are any.
    pub fn tx_size(&self) -> Option<RingSize> {
        self.sockets.iter().find_map(|s| s.tx_size())
    }

    /// Returns whether checksums and segmentation can be left to the device.
    pub fn offload(&self) -> bool {
        self.sockets.iter().all(|s| s.offload())
    }

    /// The sockets, for settings and counters.
    pub fn sockets(&self) -> &[Arc<Socket>] {
        &self.sockets
    }

    /// Switches the queueing discipline bypass on all queues.
    pub fn set_qdisc_bypass(&self, on: bool) -> Result<(), Error> {
        self.sockets.iter().try_for_each(|socket| socket.set_qdisc_bypass(on))
    }

    /// Switches promiscuous mode of the device.
    pub fn set_promiscuous(&self, on: bool) -> Result<(), Error> {
        // One socket's membership applies to the device.
        self.sockets.first().map_or(Ok(()), |socket| socket.set_promiscuous(on))
    }

    /// Returns whether the device segments TCP itself, as of now.
    pub fn segments_tcp(&self) -> bool {
        self.sockets.first().is_some_and(|s| sys::segments_tcp(s.as_fd(), &s.present_name()))
    }

    /// Stops receiving on all queues until each socket [accepts](Socket::accept) frames again.
    pub fn refuse(&self) -> Result<(), Error> {
        self.sockets.iter().filter(|socket| socket.receives()).try_for_each(|s| s.refuse())
    }

    /// Sets on all transmit queues whether the device lacks a queueing discipline.
    pub fn set_unqueued(&self, unqueued: bool) -> Result<(), Error> {
        self.sockets.iter().try_for_each(|socket| socket.set_unqueued(unqueued))
    }

    /// Sets the device's MTU in bytes on all transmit queues.
    pub fn set_mtu(&self, mtu: u32) {
        self.sockets.iter().for_each(|socket| socket.set_mtu(mtu));
    }

    /// Sum of the kernel's counters over all queues.
    pub fn kernel_stats(&self) -> KernelStats {
        self.sockets.iter().map(|socket| socket.kernel_stats()).fold(
            KernelStats::default(),
            |sum, one| KernelStats {
                packets: sum.packets + one.packets,
                drops: sum.drops + one.drops,
                freezes: sum.freezes + one.freezes,
            },
        )
    }
}

fn open_sockets(info: &IfInfo, options: &Options) -> Result<Vec<Arc<Socket>>, Error> {
    let (rx, tx) = (options.rx_queues, options.tx_queues);
    let gather = rx > 1;
    let sockets = (0..rx.max(tx))
        .map(|queue| {
            let (rx, tx) = (queue < rx, queue < tx);
            Builder::new(info, options)?.finish(rx, tx, rx && gather).map(Arc::new)
        })
        .collect::<Result<Vec<_>, _>>()?;
    if gather {
        // Frames may arrive only once all sockets are in the group: a socket that is bound but not
        // yet a member would get those of its siblings too.
        let members = &sockets[..usize::from(rx)];
        let group = members[0].found_group()?;
        members[1..].iter().try_for_each(|socket| socket.join(group))?;
        members.iter().try_for_each(|socket| socket.accept())?;
    }
    Ok(sockets)
}
