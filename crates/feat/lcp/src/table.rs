//! Pairs as workers read them.

use crate::gate::OfWorker;
use std::sync::Arc;
use thalweg_buffer::SwIfIndex;
use thalweg_fib::Dpo;
use thalweg_graph::{BuildCx, Control};
use thalweg_tables::CowTable;
use thalweg_tables::snapshot::{self, Snapshot};

/// The twin of an interface.
#[derive(Clone, Debug)]
pub struct Twin {
    /// The router's end.
    pub host: SwIfIndex,
    /// Number of the pair.
    pub number: u32,
    /// Counters of what is punted, by worker.
    pub counts: Arc<[OfWorker]>,
    /// The interface, or that of which it is a part, has no device.
    pub has_no_device: bool,
}

/// Interface of a twin.
#[derive(Clone, Copy, Debug)]
pub struct Original {
    /// The interface.
    pub phy: SwIfIndex,
    /// Forwarding objects by which IPv4 and IPv6 packets leave.
    pub to: [Dpo; 2],
}

/// All pairs, and what else is passed between interfaces and twins.
#[derive(Clone, Debug, Default)]
pub struct Table {
    twins: CowTable<Option<Twin>>,
    originals: CowTable<Option<Original>>,
    /// IPv4 addresses that links on the twin of an interface have, in order.
    of_host: CowTable<Option<Arc<[u32]>>>,
    /// IPv6 addresses, likewise.
    of_host6: CowTable<Option<Arc<[u128]>>>,
    /// OSI protocols that are passed.
    pub(crate) osi: Vec<u8>,
}

impl Table {
    /// Returns the twin of an interface.
    #[inline]
    pub fn twin(&self, phy: SwIfIndex) -> Option<&Twin> {
        self.twins.get(phy)?.as_ref()
    }

    /// Returns the interface of a router's end.
    #[inline]
    pub fn original(&self, host: SwIfIndex) -> Option<&Original> {
        self.originals.get(host)?.as_ref()
    }

    /// Returns whether a link on the twin of an interface has an IPv4 address.
    #[inline]
    pub fn is_of_host(&self, phy: SwIfIndex, ip: [u8; 4]) -> bool {
        let all = self.of_host.get(phy).and_then(Option::as_deref);
        all.is_some_and(|all| all.binary_search(&u32::from_be_bytes(ip)).is_ok())
    }

    /// Returns whether a link on the twin of an interface has an IPv6 address.
    #[inline]
    pub fn is_of_host6(&self, phy: SwIfIndex, ip: [u8; 16]) -> bool {
        let all = self.of_host6.get(phy).and_then(Option::as_deref);
        all.is_some_and(|all| all.binary_search(&u128::from_be_bytes(ip)).is_ok())
    }

    /// Returns whether frames of an OSI protocol are passed.
    #[inline]
    pub fn passes_osi(&self, protocol: u8) -> bool {
        self.osi.contains(&protocol)
    }

    pub(crate) fn set_twin(&mut self, phy: SwIfIndex, twin: Option<Twin>) {
        self.twins.set(phy, twin);
    }

    /// Sets the IPv4 addresses that links on the twin of an interface have, in order.
    pub(crate) fn set_of_host(&mut self, phy: SwIfIndex, ips: Vec<u32>) {
        let ips: Arc<[u32]> = ips.into();
        self.of_host.set(phy, Some(ips).filter(|ips| !ips.is_empty()));
    }

    /// Sets the IPv6 addresses, likewise.
    pub(crate) fn set_of_host6(&mut self, phy: SwIfIndex, ips: Vec<u128>) {
        let ips: Arc<[u128]> = ips.into();
        self.of_host6.set(phy, Some(ips).filter(|ips| !ips.is_empty()));
    }

    pub(crate) fn set_original(&mut self, host: SwIfIndex, original: Option<Original>) {
        self.originals.set(host, original);
    }
}

/// The writer, on the main thread.
pub(crate) struct Writer(snapshot::Writer<Table>);

pub(crate) fn init(c: &mut Control) {
    let (writer, snapshot) = snapshot::channel(Table::default());
    let snapshot: Arc<Snapshot<Table>> = snapshot;
    c.share(snapshot);
    c.insert(Writer(writer));
}

/// Publishes a change to workers.
pub(crate) fn update(c: &Control, change: impl FnOnce(&mut Table)) {
    let writer = c.state::<Writer>();
    writer.borrow_mut().0.update(c.domain(), |old| {
        let mut new = old.clone();
        change(&mut new);
        new
    });
}

/// Returns the table that a node reads.
pub(crate) fn of(cx: &BuildCx<'_>) -> Arc<Snapshot<Table>> {
    cx.shared()
}
