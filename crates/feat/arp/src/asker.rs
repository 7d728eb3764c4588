//! Requests that a worker sends itself.

use crate::addrs::IfAddrs;
use crate::counters::{ArpCounters, Counted};
use crate::packet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use thalweg_device::{IfTable, Interfaces, SwIfIndex};
use thalweg_graph::{BuildCx, NodeCx, Verdict};
use thalweg_tables::snapshot::Snapshot;

/// Sends requests.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) addrs: Arc<Snapshot<IfAddrs>>,
    interfaces: Arc<Snapshot<IfTable>>,
    counters: Arc<ArpCounters>,
}

impl Asker {
    pub(crate) fn new(cx: &BuildCx<'_>) -> Asker {
        Asker { addrs: cx.shared(), interfaces: Interfaces::table(cx), counters: cx.shared() }
    }

    /// Sends a request for `dst` from an address of the interface; returns false if it has no
    /// other, or there is no buffer.
    pub(crate) fn ask(&self, cx: &mut NodeCx<'_>, tx_if: SwIfIndex, dst: Ipv4Addr) -> bool {
        let source = self.addrs.load(cx.guard()).source_for(tx_if, dst);
        let Some(source) = source.filter(|source| *source != dst) else { return false };
        let row = self.interfaces.load(cx.guard()).get(tx_if);
        let frame = packet::request(row.mac, source, dst, None);
        let Some(mut request) = cx.originate() else { return false };
        // One buffer holds the frame, and it was allocated.
        let (addresses, rest) = frame.split_at(12);
        for part in [addresses, row.tags.as_slice(), rest] {
            request.append(part, cx.cache());
        }
        request.set_tx_if(tx_if);
        self.counters.count(cx.worker(), tx_if, Counted::TxRequest);
        cx.send(request, Verdict::node(row.output));
        true
    }
}
