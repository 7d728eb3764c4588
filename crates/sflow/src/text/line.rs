//! A comma-separated line per flow or counter sample.

use std::io::Write;
use std::net::IpAddr;

use super::Beyond;
use super::notation;
use super::text_buf::TextBuf;
use crate::decode::{Datagram, FlowSample, Sample};
use crate::header::{Network, SampledHeader, Transport};
use crate::model::{CounterRecord, FlowRecord, InterfaceCounters, RawHeader};
use crate::xdr::DecodeError;

/// Fields of a FLOW line; zero where a sample does not have it.
#[derive(Default)]
struct Flow {
    source_mac: [u8; 6],
    destination_mac: [u8; 6],
    ether_type: u32,
    in_vlan: u32,
    out_vlan: u32,
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
    protocol: u32,
    tos: u32,
    ttl: u32,
    source_port: u32,
    destination_port: u32,
    tcp_flags: u32,
    frame_length: u32,
    stripped: u32,
    /// Offset of the IPv4 header. sflowtool keeps none for IPv6, and the size that it shows for
    /// IPv6 includes the link layer.
    ipv4_offset: u32,
}

impl Flow {
    fn raw_header(&mut self, raw: &RawHeader<'_>, beyond: Beyond<'_>) {
        let header = SampledHeader::parse(raw.protocol, raw.header);
        self.frame_length = raw.frame_length;
        self.stripped = raw.stripped;
        if let Some((destination, source)) = header.macs {
            self.source_mac = source;
            self.destination_mac = destination;
        }
        if let Some(tci) = header.vlans.as_slice().last() {
            self.in_vlan = (tci & 0xfff).into();
        }
        self.ether_type = header.ether_type.unwrap_or(0).into();
        match &header.network {
            Network::None => {}
            Network::V4(ip) => {
                self.addresses(ip.source.into(), ip.destination.into(), ip.protocol.into());
                self.tos = ip.tos.into();
                self.ttl = ip.ttl.into();
                self.ipv4_offset = header.ip_offset.unwrap_or(0) as u32;
            }
            Network::V6(ip) => {
                let protocol = ip.protocol.unwrap_or(0).into();
                self.addresses(ip.source.into(), ip.destination.into(), protocol);
                self.tos = (ip.traffic_class >> 4).into();
                self.ttl = ip.hop_limit.into();
            }
        }
        self.transport(header.transport(), raw, beyond);
    }

    fn transport(&mut self, transport: Transport, raw: &RawHeader<'_>, beyond: Beyond<'_>) {
        let (source, destination) = match transport {
            Transport::Icmp { kind, code } if self.protocol == 1 => (kind.into(), code.into()),
            Transport::None | Transport::Icmp { .. } => (0, 0),
            Transport::Tcp { source, destination, flags, flags_at } => {
                let flags = flags.or_else(|| beyond.byte(raw.header, flags_at));
                self.tcp_flags = flags.unwrap_or(0).into();
                (source, destination)
            }
            Transport::Udp { source, destination, .. } => (source, destination),
        };
        self.source_port = source.into();
        self.destination_port = destination.into();
    }

    fn addresses(&mut self, source: IpAddr, destination: IpAddr, protocol: u32) {
        self.source = Some(source);
        self.destination = Some(destination);
        self.protocol = protocol;
    }

    fn record(&mut self, record: &FlowRecord<'_>, beyond: Beyond<'_>) {
        match record {
            FlowRecord::RawHeader(raw) => self.raw_header(raw, beyond),
            FlowRecord::Switch(switch) => {
                self.in_vlan = switch.source_vlan;
                self.out_vlan = switch.destination_vlan;
            }
            FlowRecord::Ethernet(ethernet) => {
                self.source_mac = ethernet.source.0;
                self.destination_mac = ethernet.destination.0;
                self.ether_type = ethernet.ether_type;
            }
            FlowRecord::Ipv4(ip) => {
                self.addresses(ip.source.into(), ip.destination.into(), ip.protocol);
                (self.frame_length, self.tos) = (ip.length, ip.tos);
                (self.source_port, self.destination_port) = (ip.source_port, ip.destination_port);
                self.tcp_flags = ip.tcp_flags;
            }
            FlowRecord::Ipv6(ip) => {
                self.addresses(ip.source.into(), ip.destination.into(), ip.protocol);
                self.frame_length = ip.length;
                (self.source_port, self.destination_port) = (ip.source_port, ip.destination_port);
                self.tcp_flags = ip.tcp_flags;
            }
            _ => {}
        }
    }

    fn write(&self, out: &mut TextBuf, agent: Option<IpAddr>, sample: &FlowSample<'_>) {
        out.text("FLOW,");
        notation::address(out, agent);
        columns(out, &[sample.input.parts().1, sample.output.parts().1]);
        for mac in [self.source_mac, self.destination_mac] {
            out.push(b',');
            out.hex(&mac);
        }
        out.text(",0x");
        // Four digits at least: agents send more than the sixteen bits of a type.
        let bytes = self.ether_type.to_be_bytes();
        match bytes {
            [0, 0, low @ ..] => out.hex(&low),
            // Writing to memory cannot fail.
            _ => drop(write!(out, "{:x}", self.ether_type)),
        }
        columns(out, &[self.in_vlan, self.out_vlan]);
        out.push(b',');
        notation::address(out, self.source);
        out.push(b',');
        notation::address(out, self.destination);
        columns(out, &[self.protocol]);
        byte(out, self.tos);
        columns(out, &[self.ttl, self.source_port, self.destination_port]);
        byte(out, self.tcp_flags);
        columns(out, &[self.frame_length]);
        let size = self.frame_length.wrapping_sub(self.stripped).wrapping_sub(self.ipv4_offset);
        // A size below zero is shown as such.
        out.push(b',');
        if (size as i32) < 0 {
            out.push(b'-');
        }
        out.decimal((size as i32).unsigned_abs().into());
        columns(out, &[sample.rate]);
        out.push(b'\n');
    }
}

fn columns(out: &mut TextBuf, numbers: &[u32]) {
    for number in numbers {
        out.push(b',');
        out.decimal((*number).into());
    }
}

/// Two hexadecimal digits, or more where an agent sends more than a byte.
fn byte(out: &mut TextBuf, value: u32) {
    out.text(",0x");
    match u8::try_from(value) {
        Ok(byte) => out.hex(&[byte]),
        Err(_) => drop(write!(out, "{value:x}")),
    }
}

fn write_counters(out: &mut TextBuf, agent: Option<IpAddr>, c: &InterfaceCounters) {
    out.text("CNTR,");
    notation::address(out, agent);
    let columns = [
        c.index.into(),
        c.network_type.into(),
        c.speed,
        c.direction.into(),
        c.status.into(),
        c.in_octets,
        c.in_unicast.into(),
        c.in_multicast.into(),
        c.in_broadcast.into(),
        c.in_discards.into(),
        c.in_errors.into(),
        c.in_unknown_protocols.into(),
        c.out_octets,
        c.out_unicast.into(),
        c.out_multicast.into(),
        c.out_broadcast.into(),
        c.out_discards.into(),
        c.out_errors.into(),
        c.promiscuous.into(),
    ];
    for column in columns {
        out.push(b',');
        out.decimal(column);
    }
    out.push(b'\n');
}

/// Counters without an interface record give a line of zeros, and discarded packets none, as in
/// sflowtool: readers count on the number of lines.
pub(super) fn print(
    out: &mut TextBuf,
    datagram: &Datagram<'_>,
    beyond: Beyond<'_>,
) -> Vec<DecodeError> {
    let mut errors = Vec::new();
    for sample in datagram.samples() {
        match sample {
            Ok(Sample::Flow(sample)) => {
                let mut flow = Flow::default();
                for record in sample.records.clone() {
                    match record {
                        Ok(record) => flow.record(&record, beyond),
                        Err(error) => errors.push(error),
                    }
                }
                flow.write(out, datagram.agent, &sample);
            }
            Ok(Sample::Counters(sample)) => {
                let mut counters = InterfaceCounters::default();
                for record in sample.records.clone() {
                    match record {
                        Ok(CounterRecord::Interface(found)) => counters = found,
                        Ok(_) => {}
                        Err(error) => errors.push(error),
                    }
                }
                write_counters(out, datagram.agent, &counters);
            }
            Ok(Sample::Discard(_) | Sample::Named(_) | Sample::Unknown(..)) => {}
            Err(error) => errors.push(error),
        }
    }
    errors
}
