//! Cost of packing samples into datagrams, and of finding them there.
//!
//! `cargo bench -p thalweg-sflow --bench codec`

use std::net::{IpAddr, Ipv4Addr};

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use thalweg_sflow::encode::{DEFAULT_DATAGRAM_BYTES, DatagramEncoder, FlowSampleOut, Push};
use thalweg_sflow::header::{HeaderProtocol, SampledHeader};
use thalweg_sflow::model::{ExtendedRouter, FlowRecord, RawHeader};
use thalweg_sflow::text::{Arrival, Format, Moment, Printer};
use thalweg_sflow::value::Address;
use thalweg_sflow::{DataSource, Datagram, Interface, Sample};

fn main() {
    divan::main();
}

/// A packet's first bytes: Ethernet, IPv4, TCP.
fn header() -> [u8; 128] {
    let mut header = [0; 128];
    header[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 110, 0, 0, 0, 0, 64, 6]);
    header[26..34].copy_from_slice(&[192, 0, 2, 1, 198, 51, 100, 7]);
    header[46] = 0x50;
    header
}

/// Packs as many samples of routed packets as fit; returns their number.
fn pack(encoder: &mut DatagramEncoder, header: &[u8]) -> u32 {
    let source = DataSource { class: 0, index: 1 };
    let next_hop = Address(Some(Ipv4Addr::new(10, 0, 0, 1).into()));
    let route = ExtendedRouter { next_hop, source_mask: 24, destination_mask: 24 };
    let mut sample = FlowSampleOut {
        sequence: 0,
        source,
        rate: 1000,
        pool: 0,
        drops: 0,
        input: Interface::Index(1),
        output: Interface::Index(2),
    };
    loop {
        sample.sequence += 1;
        sample.pool += sample.rate;
        let raw = RawHeader {
            protocol: HeaderProtocol::ETHERNET,
            frame_length: 128,
            stripped: 4,
            header,
        };
        let pushed =
            encoder.flow_sample(black_box(&sample), Some(raw), &[FlowRecord::Router(route)]);
        if pushed != Ok(Push::Added) {
            return sample.sequence - 1;
        }
    }
}

fn encoder() -> DatagramEncoder {
    DatagramEncoder::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0, DEFAULT_DATAGRAM_BYTES)
}

/// A full datagram, and its samples.
fn datagram() -> (Vec<u8>, u32) {
    let mut encoder = encoder();
    let samples = pack(&mut encoder, &header());
    (encoder.finish(1).unwrap_or_default().to_vec(), samples)
}

#[divan::bench]
fn flow_samples_packed(bencher: Bencher<'_, '_>) {
    let (header, (_, samples)) = (header(), datagram());
    let mut encoder = encoder();
    bencher.counter(ItemsCount::new(samples)).bench_local(|| {
        pack(&mut encoder, &header);
        encoder.finish(1).map(<[u8]>::len)
    });
}

#[divan::bench]
fn flow_samples_found(bencher: Bencher<'_, '_>) {
    let (datagram, samples) = datagram();
    bencher.counter(ItemsCount::new(samples)).bench(|| {
        let datagram = Datagram::parse(black_box(&datagram)).ok()?;
        let mut packets = 0;
        for sample in datagram.samples() {
            let Ok(Sample::Flow(flow)) = sample else { return None };
            for record in flow.records {
                if let Ok(FlowRecord::RawHeader(raw)) = record {
                    let header = SampledHeader::parse(raw.protocol, raw.header);
                    packets += u32::from(header.addresses().is_some());
                }
            }
        }
        Some(packets)
    });
}

#[divan::bench(args = ["text", "line", "json"])]
fn flow_samples_printed(bencher: Bencher<'_, '_>, format: &str) {
    let (datagram, samples) = datagram();
    let mut printer = Printer::new(match format {
        "text" => Format::Text,
        "line" => Format::Line,
        _ => Format::Json,
    });
    let arrival = Arrival::live(Ipv4Addr::LOCALHOST.into(), Moment::default());
    bencher.counter(ItemsCount::new(samples)).bench_local(|| {
        printer.clear();
        printer.append(&arrival, black_box(&datagram)).len()
    });
}
