//! Samples as they come out of the rings: what is known of a packet, in the agent's terms.

use super::labels;
use super::netlink::{Dropped, Sampled};
use super::{Port, Service};
use crate::head::Head;
use crate::record::{Cause, Disposition, SampleRecord, Tuple};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;
use thalweg_device::link_header::Link;
use thalweg_device::{IfTable, SwIfIndex};
use thalweg_fib::{Dpo, DpoTable, LabelStep, RouteBook, Routes};
use thalweg_graph::Control;
use thalweg_sflow::header::HeaderProtocol;
use thalweg_sflow::model::{
    ExtendedMpls, ExtendedNat, ExtendedNatPort, ExtendedRouter, ExtendedSwitch, HardwareTrap,
};
use thalweg_sflow::value::{Address, Text};
use thalweg_sflow::{DataSource, DiscardReason, FlowRecord, Interface};
use thalweg_sflow_agent::agent::{DiscardIn, FCS_BYTES, FlowSampleIn};
use thalweg_tables::qsbr::{Guard, Reader};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::bytes::get_be16;

/// Tables that tell how packets are routed, and which sub-interface they come by.
pub(crate) struct Guide {
    interfaces: Option<Arc<Snapshot<IfTable>>>,
    entries: Option<Arc<DpoTable>>,
    routes: Vec<Arc<dyn Routes>>,
}

impl Guide {
    /// Collects the sources that this router has.
    pub(crate) fn new(c: &Control) -> Guide {
        Guide {
            interfaces: c.find_shared(),
            entries: c.find_shared(),
            routes: c.find_shared::<RouteBook>().map_or_else(Vec::new, |book| book.all()),
        }
    }

    /// The forwarding objects.
    pub(super) fn entries(&self) -> Option<&DpoTable> {
        self.entries.as_deref()
    }

    /// Returns the step of a label table for the label of a stack entry.
    pub(super) fn label(&self, guard: &Guard<'_>, table: u32, entry: u32) -> Option<LabelStep> {
        self.routes.iter().find_map(|routes| routes.label(guard, table, entry))
    }

    /// The sub-interface of a port that a frame belongs to.
    fn sub_interface(&self, guard: &Guard<'_>, port: SwIfIndex, frame: &[u8]) -> Option<SwIfIndex> {
        let subs = self.interfaces.as_ref()?.load(guard).subs(port)?;
        let (sub, _) = subs.find(frame).ok()?;
        (sub != SwIfIndex(0)).then_some(sub)
    }

    /// The tunnel by which packets leave that meet an adjacency.
    fn tunnel(&self, entry: u32) -> Option<SwIfIndex> {
        self.routes.iter().find_map(|routes| routes.tunnel(Dpo(entry)))
    }

    /// The tunnel that a packet left by.
    fn tunnel_of(&self, disposition: Disposition) -> Option<SwIfIndex> {
        match disposition {
            Disposition::Out { entry: entry @ 1.., .. } => self.tunnel(entry),
            _ => None,
        }
    }

    fn prefix_len(&self, guard: &Guard<'_>, rx_if: SwIfIndex, address: IpAddr) -> u32 {
        let len = self.routes.iter().find_map(|r| r.prefix_len(guard, rx_if, address));
        len.map_or(0, u32::from)
    }

    /// Returns how a packet with these addresses was routed; `None` if it was not.
    fn router(
        &self,
        guard: &Guard<'_>,
        entry: u32,
        rx_if: SwIfIndex,
        addresses: Option<(IpAddr, IpAddr)>,
    ) -> Option<ExtendedRouter> {
        let entry = self.entries.as_ref()?.get(Dpo(entry));
        if !entry.state().kind.is_complete() {
            return None;
        }
        let (source, destination) = addresses?;
        Some(ExtendedRouter {
            next_hop: Address(entry.next_hop()),
            source_mask: self.prefix_len(guard, rx_if, source),
            destination_mask: self.prefix_len(guard, rx_if, destination),
        })
    }
}

/// VLAN and priority of a packet when it came or left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vlan {
    /// Unknown, or the packet did not come or leave.
    Unknown,
    /// The tag, or none.
    Known(Option<u16>),
}

impl Vlan {
    /// VLAN and priority: 0 without a tag, all ones if they are not known, as no VLAN and no
    /// priority are.
    fn fields(self) -> (u32, u32) {
        match self {
            Vlan::Unknown => (u32::MAX, u32::MAX),
            Vlan::Known(tag) => {
                let tci = u32::from(tag.unwrap_or(0));
                (tci & 0xfff, tci >> 13)
            }
        }
    }
}

/// VLANs in and out, if there is a tag.
fn switch(before: Vlan, after: Vlan) -> Option<ExtendedSwitch> {
    if ![before, after].iter().any(|vlan| matches!(vlan, Vlan::Known(Some(_)))) {
        return None;
    }
    let ((source_vlan, source_priority), (destination_vlan, destination_priority)) =
        (before.fields(), after.fields());
    Some(ExtendedSwitch { source_vlan, source_priority, destination_vlan, destination_priority })
}

/// Returns the translated addresses and ports of a packet, if they were translated.
fn translation(before: Tuple, after: Tuple) -> Option<(ExtendedNat, Option<ExtendedNatPort>)> {
    // The ports of a truncated header are not known.
    let ports = before.ports.zip(after.ports);
    let addresses = |t: Tuple| (t.source, t.destination);
    if addresses(before) == addresses(after) && ports.is_none_or(|(old, new)| old == new) {
        return None;
    }
    let address = |word: u32| Address(Some(Ipv4Addr::from_bits(word).into()));
    let nat =
        ExtendedNat { source: address(after.source), destination: address(after.destination) };
    let ports = ports.map(|(_, (source, destination))| ExtendedNatPort {
        source: source.into(),
        destination: destination.into(),
    });
    Some((nat, ports))
}

/// The index by which an interface is known outside: `local0` is the router itself.
fn interface(sw_if: SwIfIndex) -> Interface {
    if sw_if == SwIfIndex(0) { Interface::INTERNAL } else { Interface::Index(sw_if.get()) }
}

fn head_of(header: &[u8], link: Link) -> Head<'_> {
    match link {
        Link::Ethernet => Head::ethernet(header),
        Link::Ip => Head::ip(header),
    }
}

/// Returns the protocol that a sampled header begins with, and the bytes that were stripped from
/// the packet's end.
fn protocol(header: &[u8], link: Link) -> (HeaderProtocol, u32) {
    match (link, header.first()) {
        (Link::Ethernet, _) => (HeaderProtocol::ETHERNET, FCS_BYTES),
        (Link::Ip, Some(first)) if first >> 4 == 6 => (HeaderProtocol::IPV6, 0),
        (Link::Ip, _) => (HeaderProtocol::IPV4, 0),
    }
}

/// The same of the interface that a packet came by.
fn input(rx_if: SwIfIndex) -> u32 {
    match interface(rx_if) {
        Interface::Index(index) => index,
        _ => 0,
    }
}

/// A sampled packet, as far as its record and header tell.
struct SampledPacket<'a> {
    guard: Option<&'a Guard<'a>>,
    record: &'a SampleRecord,
    header: &'a [u8],
    head: Head<'a>,
    /// Protocol that the header begins with.
    protocol: HeaderProtocol,
    /// Bytes that were stripped from the packet's end.
    stripped: u32,
}

impl<'a> SampledPacket<'a> {
    #[inline]
    fn new(
        guard: Option<&'a Guard<'a>>,
        record: &'a SampleRecord,
        header: &'a [u8],
        link: Link,
    ) -> SampledPacket<'a> {
        let (protocol, stripped) = protocol(header, link);
        SampledPacket { guard, record, header, head: head_of(header, link), protocol, stripped }
    }
}

/// Interfaces of a sampled packet, as samples name them.
struct Way {
    came_by: SwIfIndex,
    output: Interface,
    /// The tunnel that it left by.
    tunnel: Option<SwIfIndex>,
    /// True if the tunnel is a pseudowire, whose frames are not routed.
    is_wire: bool,
}

/// Name and length of a prefix.
type Prefix = (String, u32);

/// Counts of a port's samplers on all workers.
#[derive(Clone, Copy)]
struct PortTotals {
    /// Candidates for sampling.
    pool: u64,
    /// Samples that were lost.
    lost: u64,
}

impl Port {
    /// Takes over what a worker's sampler has counted, and sums it up.
    #[inline]
    fn totals(&mut self, worker: usize, record: &SampleRecord) -> PortTotals {
        // One that has waited for another worker may be older than one that has gone.
        self.pools[worker] = self.pools[worker].max(record.pool);
        let lost = &mut self.lost[worker];
        *lost += record.lost.wrapping_sub(*lost as u32).cast_signed().max(0) as u64;
        PortTotals { pool: self.pools.iter().sum(), lost: self.lost.iter().sum() }
    }
}

impl Service {
    /// Adds the label stacks of a packet; returns the name and length of the prefix for which it
    /// got labels.
    fn labels(
        &self,
        sample: &SampledPacket<'_>,
        records: &mut Vec<FlowRecord<'static>>,
    ) -> Option<Prefix> {
        let (guard, record, head) = (sample.guard?, sample.record, &sample.head);
        let Disposition::Out { entry, .. } = record.disposition else {
            return None;
        };
        if record.cause != Cause::Received {
            // The way in is unknown.
            let output = head.labels();
            if !output.is_empty() {
                let next_hop = self.guide.entries().and_then(|e| e.get(Dpo(entry)).next_hop());
                let (next_hop, input) = (Address(next_hop), Vec::new());
                records.push(FlowRecord::Mpls(ExtendedMpls { next_hop, input, output }));
            }
            return None;
        }
        if entry == 0 {
            return None;
        }
        let stacks = self.guide.labels(guard, entry, head)?;
        let pushed = stacks.input.is_empty();
        records.push(FlowRecord::Mpls(stacks));
        let (_, destination) = head.addresses().filter(|_| pushed)?;
        let len = self.guide.prefix_len(guard, record.rx_if, destination);
        Some((labels::prefix_name(destination, len), len))
    }

    /// Returns the output of a packet.
    fn output(&self, disposition: Disposition) -> Interface {
        match disposition {
            Disposition::Unknown | Disposition::Pending { .. } | Disposition::Elsewhere(_) => {
                Interface::UNKNOWN
            }
            Disposition::Delivered => Interface::INTERNAL,
            Disposition::Several { outputs, .. } => Interface::Multiple(outputs.into()),
            Disposition::Dropped(reason) => {
                let reason = self.setup.reasons.get(reason as usize);
                Interface::Discarded(reason.map_or(DiscardReason::UNKNOWN, |r| r.code).0)
            }
            Disposition::Out { tx_if, .. } => interface(self.named(tx_if)),
        }
    }

    /// The interface that a sample names: a sub-interface only if that is wanted.
    fn named(&self, sw_if: SwIfIndex) -> SwIfIndex {
        let port = self.ports.get(sw_if.index()).and_then(Option::as_ref);
        let parent = port.and_then(|port| port.setup.view.parent);
        parent.filter(|_| !self.setup.sub_interfaces).unwrap_or(sw_if)
    }

    /// The interface by which a packet came.
    fn came_by(&self, sample: &SampledPacket<'_>) -> SwIfIndex {
        let record = sample.record;
        // The packet was sampled before its port's sub-interfaces were looked at.
        let is_whole = self.setup.sub_interfaces && record.cause == Cause::Received;
        let guard = sample.guard.filter(|_| is_whole);
        let sub =
            guard.and_then(|guard| self.guide.sub_interface(guard, record.rx_if, sample.header));
        sub.unwrap_or_else(|| self.named(record.rx_if))
    }

    /// The sub-interface by which a packet left that was sampled as it left its port, with the
    /// sub-interface's tags.
    fn sub_output(&self, sample: &SampledPacket<'_>) -> Option<Interface> {
        if !self.setup.sub_interfaces || sample.record.cause != Cause::Sent {
            return None;
        }
        let Disposition::Out { tx_if, .. } = sample.record.disposition else { return None };
        self.guide.sub_interface(sample.guard?, tx_if, sample.header).map(interface)
    }

    /// The VLANs in which a packet with this outermost tag came and left.
    fn vlans(&self, record: &SampleRecord, tag: Option<u16>) -> (Vlan, Vlan) {
        let sampled = Vlan::Known(tag);
        let received = record.cause == Cause::Received;
        match record.disposition {
            // A frame sent as it came has the tags with which it came; a routed one has not.
            Disposition::Out { entry: 0, headers: None, .. } if record.rx_if != SwIfIndex(0) => {
                (sampled, sampled)
            }
            Disposition::Out { .. } if !received => (Vlan::Unknown, sampled),
            Disposition::Out { headers: Some(headers), .. } => (sampled, Vlan::Known(headers.tag)),
            Disposition::Out { tx_if, entry: 1.., .. } => (sampled, self.vlan_of(tx_if)),
            Disposition::Out { .. } | Disposition::Several { changed: false, .. } => {
                (sampled, sampled)
            }
            _ => (sampled, Vlan::Unknown),
        }
    }

    /// The VLAN of what is routed to an interface.
    fn vlan_of(&self, tx_if: SwIfIndex) -> Vlan {
        match self.ports.get(tx_if.index()) {
            Some(Some(port)) => {
                let tags = port.setup.view.tags;
                Vlan::Known(get_be16(tags.as_slice(), 2))
            }
            _ => Vlan::Unknown,
        }
    }

    /// A reader for the guide, if there is room for one.
    pub(super) fn reader(c: &Control) -> Option<Reader> {
        c.domain().register().ok()
    }

    /// Takes what a worker's ring had.
    #[inline]
    pub(super) fn take(
        &mut self,
        now: Instant,
        guard: Option<&Guard<'_>>,
        worker: usize,
        record: &SampleRecord,
        header: &[u8],
    ) {
        // SampleRecord are looked at where they are: to copy what was just written in pieces takes
        // long.
        if record.cause != Cause::RemoteDisposition
            && !matches!(record.disposition, Disposition::Elsewhere(_))
        {
            self.sample(now, guard, worker, record, header);
        } else {
            self.take_handed(now, guard, worker, record, header);
        }
    }

    /// The same of a packet that was handed to another worker.
    #[cold]
    fn take_handed(
        &mut self,
        now: Instant,
        guard: Option<&Guard<'_>>,
        worker: usize,
        record: &SampleRecord,
        header: &[u8],
    ) {
        if record.cause == Cause::RemoteDisposition {
            self.handed.answer(now, record.pool as u32, record.disposition);
        } else if let Disposition::Elsewhere(number) = record.disposition
            && let Some(disposition) = self.handed.sample(now, number, (worker, record, header))
        {
            self.sample(now, guard, worker, &SampleRecord { disposition, ..*record }, header);
        }
    }

    /// Takes the samples of packets that were at other workers, as far as their ways are known.
    pub(super) fn let_go(&mut self, now: Instant, guard: Option<&Guard<'_>>) {
        if !self.handed.is_empty() {
            let mut handed = std::mem::take(&mut self.handed);
            handed.release(now, |held, disposition| {
                let record = SampleRecord { disposition, ..held.record };
                self.sample(now, guard, held.worker, &record, held.header());
            });
            self.handed = handed;
        }
    }

    /// Takes a sample of a worker's: finds its port, then what is known of the packet, and gives it
    /// to those who listen.
    fn sample(
        &mut self,
        now: Instant,
        guard: Option<&Guard<'_>>,
        worker: usize,
        record: &SampleRecord,
        header: &[u8],
    ) {
        let port = self.ports.get_mut(record.sw_if.index()).and_then(Option::as_mut);
        let Some(port) = port.filter(|p| p.setup.generation == record.generation) else {
            self.status.samples_stale += 1;
            return;
        };
        if record.cause == Cause::Dropped {
            self.dropped(now, worker, record, header);
            return;
        }
        let totals = port.totals(worker, record);
        let sample = SampledPacket::new(guard, record, header, Link::of(&port.setup.view));
        let way = self.way(&sample);
        let mut records = std::mem::take(&mut self.records);
        records.clear();
        let ftn = self.describe(&sample, &way, &mut records);
        let reported = self.report(&sample, &way, totals);
        let packed = self.pack(now, &sample, &way, totals, &records, ftn.as_ref());
        self.records = records;
        self.count(record.sw_if, reported, packed);
    }

    /// Finds the interfaces by which a packet came and left.
    #[inline]
    fn way(&self, sample: &SampledPacket<'_>) -> Way {
        let tunnel = self.guide.tunnel_of(sample.record.disposition);
        Way {
            came_by: self.came_by(sample),
            output: self
                .sub_output(sample)
                .unwrap_or_else(|| self.output(sample.record.disposition)),
            tunnel,
            is_wire: tunnel.is_some_and(|sw_if| {
                self.ports
                    .get(sw_if.index())
                    .and_then(Option::as_ref)
                    .is_some_and(|port| port.setup.view.ethernet)
            }),
        }
    }

    /// Collects the records of a packet: VLANs, route, translation, labels. Returns the name and
    /// length of the prefix for which it got labels.
    #[inline]
    fn describe(
        &self,
        sample: &SampledPacket<'_>,
        way: &Way,
        records: &mut Vec<FlowRecord<'static>>,
    ) -> Option<Prefix> {
        let (before, after) = self.vlans(sample.record, sample.head.tag);
        records.extend(switch(before, after).map(FlowRecord::Switch));
        self.routed(sample, way, records);
        self.labels(sample, records).filter(|_| !way.is_wire)
    }

    /// Adds how a packet was routed and translated.
    #[inline]
    fn routed(
        &self,
        sample: &SampledPacket<'_>,
        way: &Way,
        records: &mut Vec<FlowRecord<'static>>,
    ) {
        let record = sample.record;
        let Disposition::Out { entry, headers, .. } = record.disposition else { return };
        if entry == 0 && headers.is_none() {
            return;
        }
        let after = headers.and_then(|headers| headers.tuple);
        let translated = after.and_then(|after| translation(sample.head.tuple()?, after));
        // The packet was routed by its new destination.
        let addresses = sample.head.addresses().map(|(source, destination)| match &translated {
            Some((ExtendedNat { destination: Address(Some(new)), .. }, _)) => (source, *new),
            _ => (source, destination),
        });
        // Packets of the router itself are routed like those that come by the interface.
        let place = if record.rx_if == SwIfIndex(0) { record.sw_if } else { record.rx_if };
        let router =
            sample.guard.and_then(|guard| self.guide.router(guard, entry, place, addresses));
        // A pseudowire's frames are not.
        records.extend(router.filter(|_| !way.is_wire).map(FlowRecord::Router));
        if let Some((nat, ports)) = translated {
            records.push(FlowRecord::Nat(nat));
            records.extend(ports.map(FlowRecord::NatPort));
        }
    }

    /// Reports a sample over netlink; returns false if nothing listens.
    #[inline]
    fn report(&mut self, sample: &SampledPacket<'_>, way: &Way, totals: PortTotals) -> bool {
        let record = sample.record;
        self.netlink.sample(&Sampled {
            tx: record.cause != Cause::Received,
            input: input(way.came_by),
            output: match way.output {
                Interface::Index(index) if way.output != Interface::INTERNAL => index,
                _ => 0,
            },
            rate: record.rate,
            frame_length: record.frame_length,
            header: sample.header,
            protocol: sample.protocol,
            source: record.sw_if.get(),
            generation: record.generation,
            drops: totals.lost,
        })
    }

    /// Puts a sample into datagrams; returns whether it fits, `None` without collectors.
    #[inline]
    fn pack(
        &mut self,
        now: Instant,
        sample: &SampledPacket<'_>,
        way: &Way,
        totals: PortTotals,
        records: &[FlowRecord<'static>],
        ftn: Option<&Prefix>,
    ) -> Option<bool> {
        let agent = self.exporter.agent()?;
        let record = sample.record;
        // Names are of the ports, which the list of records outlives.
        let named = |sw_if: SwIfIndex| {
            let port = self.ports.get(sw_if.index()).and_then(Option::as_ref);
            port.and_then(|port| labels::tunnel(&port.setup.view))
        };
        let by_tunnel = way.tunnel.and_then(named).or_else(|| named(record.rx_if));
        let ftn = ftn.map(|(name, len)| labels::prefix(name, *len));
        let all: Vec<FlowRecord<'_>>;
        let with_names = match (&by_tunnel, &ftn) {
            (None, None) => records,
            _ => {
                let names = [by_tunnel, ftn].into_iter().flatten();
                all = records.iter().cloned().chain(names).collect();
                &all[..]
            }
        };
        Some(agent.flow_sample(
            now,
            &FlowSampleIn {
                source: DataSource::interface(record.sw_if.get()),
                rate: record.rate,
                pool: totals.pool,
                drops: totals.lost,
                input: input(way.came_by),
                output: way.output,
                protocol: sample.protocol,
                frame_length: record.frame_length,
                stripped: sample.stripped,
                header: sample.header,
                records: with_names,
            },
        ))
    }

    /// Counts what became of a sample of an interface.
    #[inline]
    fn count(&mut self, sw_if: SwIfIndex, reported: bool, packed: Option<bool>) {
        if reported || packed == Some(true) {
            self.status.samples_sent += 1;
            self.status.sent_by_port[sw_if.index()] += 1;
        } else if packed.is_some() {
            self.status.samples_refused += 1;
        } else {
            self.status.samples_unwanted += 1;
        }
    }

    /// Takes a dropped packet.
    fn dropped(&mut self, now: Instant, worker: usize, record: &SampleRecord, header: &[u8]) {
        let reported = &mut self.suppressed[worker];
        *reported += u64::from(record.lost.wrapping_sub(*reported as u32));
        // Each worker keeps within the limit; all together must, too.
        if !self.limiter.allow(record.at) {
            self.status.drops_limited += 1;
            return;
        }
        let suppressed = self.suppressed.iter().sum::<u64>() + self.status.drops_limited;
        let Disposition::Dropped(reason) = record.disposition else { return };
        let reasons = Arc::clone(&self.setup.reasons);
        let reason = reasons.get(reason as usize);
        let came_by = self.named(record.rx_if);
        let port = self.ports.get(came_by.index()).and_then(Option::as_ref);
        let reported = self.netlink.drop(&Dropped {
            input: came_by.get(),
            input_name: port.map_or("", |p| &p.setup.view.name),
            frame_length: record.frame_length,
            header,
            bare: record.bare,
            group: reason.map_or("", |r| &r.group),
            trap: reason.map_or("", |r| &r.trap),
            code: reason.map_or(DiscardReason::UNKNOWN, |r| r.code),
        });
        self.status.drops_sent += u64::from(reported);
        let Some(agent) = self.exporter.agent() else { return };
        let trap = reason.map(|r| {
            let (group, name) = (Text::from(&*r.group), Text::from(&*r.trap));
            FlowRecord::HardwareTrap(HardwareTrap { group, name })
        });
        let link = if record.bare { Link::Ip } else { Link::Ethernet };
        let (protocol, stripped) = protocol(header, link);
        let packed = agent.discard(
            now,
            &DiscardIn {
                source: DataSource::NONE,
                drops: suppressed,
                input: input(came_by),
                output: 0,
                reason: reason.map_or(DiscardReason::UNKNOWN, |r| r.code),
                protocol,
                frame_length: record.frame_length,
                stripped,
                header,
                records: trap.as_slice(),
            },
        );
        if packed {
            self.status.drops_sent += u64::from(!reported);
        } else {
            self.status.drops_refused += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_vlan_is_not_vlan_0() {
        let (tagged, untagged) = (Vlan::Known(Some(0xa064)), Vlan::Known(None));
        let fields = |before, after| {
            let s = switch(before, after)?;
            Some((s.source_vlan, s.source_priority, s.destination_vlan, s.destination_priority))
        };
        assert_eq!(fields(tagged, tagged), Some((100, 5, 100, 5)));
        assert_eq!(fields(tagged, untagged), Some((100, 5, 0, 0)));
        assert_eq!(fields(Vlan::Unknown, tagged), Some((u32::MAX, u32::MAX, 100, 5)));
        assert_eq!(fields(tagged, Vlan::Unknown), Some((100, 5, u32::MAX, u32::MAX)));
        for other in [untagged, Vlan::Unknown] {
            assert_eq!(fields(untagged, other), None);
        }
    }

    #[test]
    fn translations_are_what_has_changed() {
        let tuple = |source, ports| Tuple { source, destination: 2, ports };
        let ports = Some((1000, 80));
        assert_eq!(translation(tuple(1, ports), tuple(1, ports)), None);
        // The sampled header ends before the ports, or what left is in pieces.
        assert_eq!(translation(tuple(1, None), tuple(1, ports)), None);
        assert_eq!(translation(tuple(1, ports), tuple(1, None)), None);
        let address = |a: u32| Address(Some(Ipv4Addr::from_bits(a).into()));
        let nat = |source| ExtendedNat { source: address(source), destination: address(2) };
        let to = |source| ExtendedNatPort { source, destination: 80 };
        let found = translation(tuple(1, ports), tuple(1, Some((1001, 80))));
        assert_eq!(found, Some((nat(1), Some(to(1001)))));
        let found = translation(tuple(1, ports), tuple(9, Some((1001, 80))));
        assert_eq!(found, Some((nat(9), Some(to(1001)))));
        assert_eq!(translation(tuple(1, None), tuple(9, None)), Some((nat(9), None)));
    }
}
