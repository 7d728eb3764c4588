//! Solicitations that a worker sends itself.

use crate::addrs::IfAddrs;
use crate::counters::{Counted, NdCounters};
use crate::packet;
use std::net::Ipv6Addr;
use std::sync::Arc;
use thalweg_device::{IfTable, Interfaces, SwIfIndex};
use thalweg_graph::{BuildCx, NodeCx, Verdict};
use thalweg_tables::snapshot::Snapshot;

/// Sends solicitations and advertisements.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) addrs: Arc<Snapshot<IfAddrs>>,
    pub(crate) interfaces: Arc<Snapshot<IfTable>>,
    pub(crate) counters: Arc<NdCounters>,
}

impl Asker {
    pub(crate) fn new(cx: &BuildCx<'_>) -> Asker {
        Asker { addrs: cx.shared(), interfaces: Interfaces::table(cx), counters: cx.shared() }
    }

    /// Solicits `dst` from the link-local address of the interface; returns false if that does not
    /// speak IPv6, or there is no buffer.
    pub(crate) fn ask(&self, cx: &mut NodeCx<'_>, tx_if: SwIfIndex, dst: Ipv6Addr) -> bool {
        let addrs = self.addrs.load(cx.guard());
        let usable = |source: &Ipv6Addr| *source != dst && addrs.is_usable(tx_if, *source);
        let Some(source) = addrs.link_local(tx_if).filter(usable) else { return false };
        let mac = self.interfaces.load(cx.guard()).get(tx_if).mac;
        let frame = packet::solicitation(mac, source, dst, None);
        self.send(cx, tx_if, &frame, Counted::TxRequest)
    }

    /// Sends an untagged frame by an interface, which adds its tags; returns false if there is no
    /// buffer.
    pub(crate) fn send(
        &self,
        cx: &mut NodeCx<'_>,
        tx_if: SwIfIndex,
        frame: &[u8],
        what: Counted,
    ) -> bool {
        let row = self.interfaces.load(cx.guard()).get(tx_if);
        let Some(mut packet) = cx.originate() else { return false };
        // One buffer holds the frame, and it was allocated.
        let (addresses, rest) = frame.split_at(12.min(frame.len()));
        for part in [addresses, row.tags.as_slice(), rest] {
            packet.append(part, cx.cache());
        }
        packet.set_tx_if(tx_if);
        self.counters.count(cx.worker(), tx_if, what);
        cx.send(packet, Verdict::node(row.output));
        true
    }
}
