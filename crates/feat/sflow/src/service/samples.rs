//! Samples as they come out of the rings: what is known of a packet, in the agent's terms.

use super::Service;
use super::netlink::{Dropped, Sampled};
use crate::record::{Cause, Disposition, SampleRecord, Tuple};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;
use thalweg_device::SwIfIndex;
use thalweg_fib::{Dpo, DpoTable, RouteBook, Routes};
use thalweg_graph::Control;
use thalweg_sflow::header::HeaderProtocol;
use thalweg_sflow::model::{
    ExtendedNat, ExtendedNatPort, ExtendedRouter, ExtendedSwitch, HardwareTrap,
};
use thalweg_sflow::value::{Address, Text};
use thalweg_sflow::{DataSource, DiscardReason, FlowRecord, Interface};
use thalweg_sflow_agent::agent::{DiscardIn, FCS_BYTES, FlowSampleIn};
use thalweg_tables::qsbr::{Guard, Reader};
use thalweg_wire::bytes::get_be16;

/// Where to ask how packets are routed.
pub(crate) struct Guide {
    entries: Option<Arc<DpoTable>>,
    routes: Vec<Arc<dyn Routes>>,
}

impl Guide {
    /// What this router has of it.
    pub(crate) fn new(c: &Control) -> Guide {
        Guide {
            entries: c.find_shared(),
            routes: c.find_shared::<RouteBook>().map_or_else(Vec::new, |book| book.all()),
        }
    }

    fn prefix_len(&self, guard: &Guard<'_>, rx_if: SwIfIndex, address: IpAddr) -> u32 {
        let len = self.routes.iter().find_map(|r| r.prefix_len(guard, rx_if, address));
        len.map_or(0, u32::from)
    }

    /// How a packet was routed that had these addresses; `None` if it was not.
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

/// What a sampled header says of the packet. Addresses are only looked for when they are wanted.
#[derive(Debug, Clone, Copy)]
struct Head<'h> {
    header: &'h [u8],
    tag: Option<u16>,
    /// Where its ethertype is, behind all tags.
    at: usize,
}

impl Head<'_> {
    /// Of a packet that begins with its Ethernet header.
    #[inline]
    fn of(header: &[u8]) -> Head<'_> {
        let (mut at, mut tag) = (12, None);
        while matches!(word(header, at), 0x8100 | 0x88a8) {
            tag = tag.or_else(|| header.get(at + 3).map(|_| word(header, at + 2)));
            at += 4;
        }
        Head { header, tag, at }
    }

    fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        let ip = self.header.get(self.at + 2..)?;
        match word(self.header, self.at) {
            0x0800 => addresses::<4>(ip, 12),
            0x86dd => addresses::<16>(ip, 8),
            _ => None,
        }
    }

    fn tuple(&self) -> Option<Tuple> {
        Tuple::of(self.header, self.at)
    }
}

#[inline]
fn word(header: &[u8], at: usize) -> u16 {
    get_be16(header, at).unwrap_or(0)
}

/// Source and destination that lie one behind the other.
fn addresses<const N: usize>(ip: &[u8], at: usize) -> Option<(IpAddr, IpAddr)>
where
    IpAddr: From<[u8; N]>,
{
    let source = *ip.get(at..)?.first_chunk::<N>()?;
    let destination = *ip.get(at + N..)?.first_chunk::<N>()?;
    Some((source.into(), destination.into()))
}

/// VLANs in and out, if there is a tag.
fn switch(before: Option<u16>, after: Option<u16>) -> Option<ExtendedSwitch> {
    before.or(after)?;
    let parts = |tci: Option<u16>| {
        let tci = u32::from(tci.unwrap_or(0));
        (tci & 0xfff, tci >> 13)
    };
    let ((source_vlan, source_priority), (destination_vlan, destination_priority)) =
        (parts(before), parts(after));
    Some(ExtendedSwitch { source_vlan, source_priority, destination_vlan, destination_priority })
}

/// What a packet's addresses and ports were translated into, if they were.
fn translation(before: Tuple, after: Tuple) -> Option<(ExtendedNat, Option<ExtendedNatPort>)> {
    // Of a header that is cut off the ports are not known.
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

impl Service {
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

    /// Takes a sample of a worker's.
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
        // One that has waited for another worker may be older than one that has gone.
        port.pools[worker] = port.pools[worker].max(record.pool);
        let reported = &mut port.lost[worker];
        *reported += record.lost.wrapping_sub(*reported as u32).cast_signed().max(0) as u64;
        let (pool, drops) = (port.pools.iter().sum(), port.lost.iter().sum());
        let head = Head::of(header);
        let received = record.cause == Cause::Received;
        let mut records = std::mem::take(&mut self.records);
        records.clear();
        let (output, before, after) = match record.disposition {
            Disposition::Unknown | Disposition::Pending { .. } | Disposition::Elsewhere(_) => {
                (Interface::UNKNOWN, head.tag, None)
            }
            Disposition::Delivered => (Interface::INTERNAL, head.tag, None),
            Disposition::Several { outputs } => {
                (Interface::Multiple(outputs.into()), head.tag, None)
            }
            Disposition::Dropped(reason) => {
                let reason = self.setup.reasons.get(reason as usize);
                let code = reason.map_or(DiscardReason::UNKNOWN, |r| r.code);
                (Interface::Discarded(code.0), head.tag, None)
            }
            Disposition::Out { tx_if, entry, headers } => {
                let after = match headers {
                    Some(headers) => headers.tag,
                    // Routing makes another Ethernet header, which has no tag.
                    None if received && entry > 0 => None,
                    None => head.tag,
                };
                (interface(tx_if), head.tag.filter(|_| received), after)
            }
        };
        records.extend(switch(before, after).map(FlowRecord::Switch));
        if let Disposition::Out { entry, headers, .. } = record.disposition
            && (entry > 0 || headers.is_some())
        {
            let after = headers.and_then(|headers| headers.tuple);
            let translated = after.and_then(|after| translation(head.tuple()?, after));
            // It was routed to where it goes by then.
            let addresses = head.addresses().map(|(source, destination)| match &translated {
                Some((ExtendedNat { destination: Address(Some(new)), .. }, _)) => (source, *new),
                _ => (source, destination),
            });
            let router =
                guard.and_then(|guard| self.guide.router(guard, entry, record.rx_if, addresses));
            records.extend(router.map(FlowRecord::Router));
            if let Some((nat, ports)) = translated {
                records.push(FlowRecord::Nat(nat));
                records.extend(ports.map(FlowRecord::NatPort));
            }
        }
        let input = match interface(record.rx_if) {
            Interface::Index(index) => index,
            _ => 0,
        };
        let reported = self.netlink.sample(&Sampled {
            tx: !received,
            input: record.rx_if.get(),
            output: match output {
                Interface::Index(index) if output != Interface::INTERNAL => index,
                _ => 0,
            },
            rate: record.rate,
            frame_length: record.frame_length,
            header,
            source: record.sw_if.get(),
            generation: record.generation,
            drops,
        });
        let Some(agent) = self.exporter.agent() else {
            self.records = records;
            if reported {
                self.status.samples_sent += 1;
                self.status.sent_by_port[record.sw_if.index()] += 1;
            } else {
                self.status.samples_unwanted += 1;
            }
            return;
        };
        let packed = agent.flow_sample(
            now,
            &FlowSampleIn {
                source: DataSource::interface(record.sw_if.get()),
                rate: record.rate,
                pool,
                drops,
                input,
                output,
                protocol: HeaderProtocol::ETHERNET,
                frame_length: record.frame_length,
                stripped: FCS_BYTES,
                header,
                records: &records,
            },
        );
        self.records = records;
        if packed || reported {
            self.status.samples_sent += 1;
            self.status.sent_by_port[record.sw_if.index()] += 1;
        } else {
            self.status.samples_refused += 1;
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
        let port = self.ports.get(record.rx_if.index()).and_then(Option::as_ref);
        let reported = self.netlink.drop(&Dropped {
            input: record.rx_if.get(),
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
        let protocol = match header.first() {
            Some(first) if record.bare && first >> 4 == 6 => HeaderProtocol::IPV6,
            _ if record.bare => HeaderProtocol::IPV4,
            _ => HeaderProtocol::ETHERNET,
        };
        let packed = agent.discard(
            now,
            &DiscardIn {
                source: DataSource::NONE,
                drops: suppressed,
                input: record.rx_if.get(),
                output: 0,
                reason: reason.map_or(DiscardReason::UNKNOWN, |r| r.code),
                protocol,
                frame_length: record.frame_length,
                stripped: if record.bare { 0 } else { FCS_BYTES },
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
    use proptest::prelude::*;

    #[test]
    fn headers_are_read_behind_tags() {
        let mut frame = vec![0; 12];
        frame.extend([0x88, 0xa8, 0x20, 0x64, 0x81, 0x00, 0x00, 0x0a, 0x08, 0x00, 0x45]);
        frame.extend([0; 11]);
        frame.extend([192, 0, 2, 1, 198, 51, 100, 7]);
        let ip = |s: &str| s.parse::<IpAddr>().unwrap();
        let head = Head::of(&frame);
        assert_eq!(head.tag, Some(0x2064));
        assert_eq!(head.addresses(), Some((ip("192.0.2.1"), ip("198.51.100.7"))));
        let both = switch(head.tag, None).unwrap();
        assert_eq!((both.source_vlan, both.source_priority, both.destination_vlan), (100, 1, 0));
        assert_eq!(switch(None, None), None);
        let mut six = vec![0; 12];
        six.extend([0x86, 0xdd, 0x60]);
        six.extend([0; 7]);
        six.extend([1; 16]);
        assert_eq!(Head::of(&six).addresses(), None, "one address only");
        six.extend([2; 16]);
        assert_eq!(Head::of(&six).addresses(), Some(([1; 16].into(), [2; 16].into())));
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

    proptest! {
        #[test]
        fn any_bytes_are_a_header(header in prop::collection::vec(any::<u8>(), 0..256), tags: bool) {
            let mut header = header;
            if tags {
                for at in (12..header.len().saturating_sub(4)).step_by(4) {
                    header[at..at + 2].copy_from_slice(&[0x81, 0]);
                }
            }
            let _ = Head::of(&header);
        }
    }
}
