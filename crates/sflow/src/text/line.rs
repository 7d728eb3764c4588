//! A comma-separated line per flow or counter sample.

use std::io::Write;
use std::net::IpAddr;

use super::Beyond;
use super::notation;
use crate::decode::{Datagram, FlowSample, Sample};
use crate::header::{Network, SampledHeader, Transport};
use crate::model::{CounterRecord, FlowRecord, InterfaceCounters, RawHeader};
use crate::value::Value;
use crate::xdr::DecodeError;

/// What a FLOW line shows; zero where a sample does not tell.
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

    fn write(&self, out: &mut Vec<u8>, agent: Option<IpAddr>, sample: &FlowSample<'_>) {
        let mac = |out: &mut Vec<u8>, mac| {
            notation::value(out, Value::Mac(mac), notation::Escape::Line);
            out.push(b',');
        };
        out.extend(b"FLOW,");
        notation::address(out, agent);
        // Writing to a vector cannot fail.
        let _ = write!(out, ",{},{},", sample.input.parts().1, sample.output.parts().1);
        mac(out, self.source_mac);
        mac(out, self.destination_mac);
        let _ = write!(out, "0x{:04x},{},{},", self.ether_type, self.in_vlan, self.out_vlan);
        notation::address(out, self.source);
        out.push(b',');
        notation::address(out, self.destination);
        let _ = write!(out, ",{},0x{:02x},{}", self.protocol, self.tos, self.ttl);
        let _ = write!(out, ",{},{}", self.source_port, self.destination_port);
        let size = self.frame_length.wrapping_sub(self.stripped).wrapping_sub(self.ipv4_offset);
        let frame = self.frame_length;
        let _ = writeln!(out, ",0x{:02x},{frame},{},{}", self.tcp_flags, size as i32, sample.rate);
    }
}

fn write_counters(out: &mut Vec<u8>, agent: Option<IpAddr>, c: &InterfaceCounters) {
    out.extend(b"CNTR,");
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
        notation::decimal(out, column);
    }
    out.push(b'\n');
}

/// Counters without an interface record give a line of zeros, and discarded packets none, as in
/// sflowtool: readers count on the number of lines.
pub(super) fn print(
    out: &mut Vec<u8>,
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
