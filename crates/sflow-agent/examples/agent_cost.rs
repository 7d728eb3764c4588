//! Cost of a sample for the agent, and of sending a datagram.
//!
//!     cargo run --release -p thalweg-sflow-agent --example agent_cost

#![allow(clippy::expect_used)]
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use thalweg_sflow::header::HeaderProtocol;
use thalweg_sflow::model::{ExtendedRouter, ExtendedSwitch};
use thalweg_sflow::value::Address;
use thalweg_sflow::{DataSource, FlowRecord, Interface};
use thalweg_sflow_agent::agent::{
    Agent, AgentConfig, Batch, Collectors, FCS_BYTES, FlowSampleIn, Transport,
};

/// Goes nowhere.
struct Nowhere;

impl Transport for Nowhere {
    fn send(&mut self, batch: &Batch, _now: Instant) {
        black_box(batch.len());
    }
}

const SAMPLES: u64 = 4_000_000;
const ROUND: u64 = 1024;

fn run<T: Transport>(agent: &mut Agent<T>, header: &[u8], records: &[FlowRecord<'_>]) -> Duration {
    let start = Instant::now();
    for i in 0..SAMPLES {
        let port = 1 + (i & 1) as u32;
        agent.flow_sample(
            start,
            &FlowSampleIn {
                source: DataSource::interface(port),
                rate: 100,
                pool: i * 100,
                drops: 0,
                input: port,
                output: Interface::Index(3 - port),
                protocol: HeaderProtocol::ETHERNET,
                frame_length: 1000 + (i % 400) as u32,
                stripped: FCS_BYTES,
                header: black_box(header),
                records,
            },
        );
        if i % ROUND == ROUND - 1 {
            agent.tick(start);
        }
    }
    agent.flush(start);
    start.elapsed()
}

fn each(time: Duration, count: u64) -> f64 {
    time.as_nanos() as f64 / count as f64
}

fn main() {
    let config = AgentConfig::new("192.0.2.1".parse().expect("an address"));
    let switch = ExtendedSwitch { source_vlan: 10, destination_vlan: 10, ..Default::default() };
    let hop = Address(Some("192.0.2.254".parse().expect("an address")));
    let router = ExtendedRouter { next_hop: hop, source_mask: 24, destination_mask: 16 };
    let two = [FlowRecord::Switch(switch), FlowRecord::Router(router)];
    let now = Instant::now();
    let none = || Agent::new(&config, now, Nowhere).expect("an agent");
    for length in [64, 128] {
        let header = vec![0xab; length];
        let bare = (0..5).map(|_| run(&mut none(), &header, &[])).min().unwrap_or_default();
        let rich = (0..5).map(|_| run(&mut none(), &header, &two)).min().unwrap_or_default();
        println!(
            "{length}-byte headers: {:.1} ns to pack a sample, {:.1} ns with two records",
            each(bare, SAMPLES),
            each(rich, SAMPLES)
        );
        // Nothing reads: the kernel drops what exceeds the receive buffer.
        let sink = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let mut collectors = Collectors::new();
        collectors.configure(&[sink.local_addr().expect("an address").into()], now);
        let mut agent = Agent::new(&config, now, collectors).expect("an agent");
        let time = run(&mut agent, &header, &[]);
        let datagrams = agent.stats().datagrams;
        println!(
            "  with sending over the loopback: {:.1} ns a sample, {:.0} ns a datagram, {:.2} million \
             samples/s; {:?}",
            each(time, SAMPLES),
            each(time, datagrams) - each(bare, datagrams),
            1000.0 / each(time, SAMPLES),
            agent.transport().stats().map(|(_, s)| s.send_errors).collect::<Vec<_>>(),
        );
    }
}
