use super::*;
use crate::encode::{DatagramEncoder, FlowSampleOut};
use crate::header::HeaderProtocol;
use crate::model::{Interface, RawHeader};

const RATE: u32 = 100;

struct Feed {
    talkers: TopTalkers,
    encoder: DatagramEncoder,
    sequence: u32,
    pool: u32,
}

impl Feed {
    fn new(limit: usize) -> Self {
        Feed {
            talkers: TopTalkers::new(limit),
            encoder: DatagramEncoder::new("192.0.2.1".parse().unwrap(), 0, 1400),
            sequence: 0,
            pool: 0,
        }
    }

    fn deliver(&mut self) {
        let datagram = self.encoder.finish(0).unwrap();
        self.talkers.feed(&Datagram::parse(datagram).unwrap());
    }

    /// A packet from host `host` is sampled, and the sample arrives or is lost.
    fn packet(&mut self, host: u8, length: u32, arrives: bool) {
        self.sequence += 1;
        self.pool += RATE;
        if !arrives {
            return;
        }
        let mut header = vec![0; 34];
        header[12..14].copy_from_slice(&[8, 0]);
        header[14] = 0x45;
        header[23] = 17;
        header[26..30].copy_from_slice(&[10, 0, 0, host]);
        header[30..34].copy_from_slice(&[10, 0, 1, 1]);
        let raw = RawHeader {
            protocol: HeaderProtocol::ETHERNET,
            frame_length: length + 4,
            stripped: 4,
            header: &header,
        };
        let sample = FlowSampleOut {
            sequence: self.sequence,
            source: DataSource::interface(3),
            rate: RATE,
            pool: self.pool,
            drops: 0,
            input: Interface::Index(3),
            output: Interface::UNKNOWN,
        };
        let _ = self.encoder.flow_sample(&sample, Some(raw), &[]).unwrap();
        self.deliver();
    }

    fn counters(&mut self, packets: u32, octets: u64) {
        let counters = InterfaceCounters {
            index: 3,
            in_unicast: packets,
            in_multicast: u32::MAX,
            in_octets: octets,
            ..InterfaceCounters::default()
        };
        let record = [CounterRecord::Interface(counters)];
        let _ = self.encoder.counter_sample(1, DataSource::interface(3), &record).unwrap();
        self.deliver();
    }
}

fn host(talker: &Talker) -> u8 {
    match talker.key.source {
        IpAddr::V4(v4) => v4.octets()[3],
        IpAddr::V6(_) => 0,
    }
}

#[test]
fn talkers_are_ranked_and_scaled() {
    let mut feed = Feed::new(100);
    for i in 0..300 {
        feed.packet(if i % 3 == 0 { 1 } else { 2 }, if i % 3 == 0 { 1500 } else { 100 }, true);
    }
    let by_bytes = feed.talkers.top(10, Order::Bytes);
    assert_eq!(by_bytes.iter().map(host).collect::<Vec<_>>(), [1, 2]);
    let by_packets = feed.talkers.top(1, Order::Packets);
    assert_eq!(by_packets.iter().map(host).collect::<Vec<_>>(), [2]);
    assert_eq!(by_packets[0].packets.value, 20_000.0);
    assert_eq!(by_packets[0].packets.samples, 200);
    assert_eq!(by_bytes[0].bytes.value, 100.0 * 100.0 * 1500.0);
    let (packets, bytes) = feed.talkers.total();
    assert_eq!(packets.value, 30_000.0);
    assert_eq!(bytes.value, 100.0 * 100.0 * 1500.0 + 200.0 * 100.0 * 100.0);
    assert!(bytes.low < bytes.value && bytes.value < bytes.high);
}

#[test]
fn lost_samples_are_made_up_for() {
    let mut feed = Feed::new(100);
    for i in 0..400 {
        feed.packet(1, 1000, i % 4 != 1);
    }
    let report = feed.talkers.sources().next().unwrap();
    assert_eq!((report.samples, report.lost), (300, 100));
    assert_eq!(report.basis, ScaleBasis::Pool);
    let (packets, _) = feed.talkers.total();
    assert!((packets.value - 40_000.0).abs() < 1.0, "{packets:?}");
}

#[test]
fn counters_decide_when_they_are_known() {
    let mut feed = Feed::new(100);
    feed.counters(5000, 0);
    for _ in 0..200 {
        feed.packet(1, 1000, true);
    }
    // 21000 packets where 200 samples at 1:100 suggest 20000, across the end of the counter.
    feed.counters(26_000, 21_000_000);
    let report = feed.talkers.sources().next().unwrap();
    assert_eq!((report.basis, report.scale), (ScaleBasis::Counters, 105.0));
    assert_eq!((report.counted_packets, report.sampled_packets), (Some(21_000), Some(20_000.0)));
    assert_eq!(feed.talkers.total().0.value, 21_000.0);
    // Counters that have nothing to do with the samples are not believed.
    let mut feed = Feed::new(100);
    feed.counters(0, 0);
    for _ in 0..200 {
        feed.packet(1, 1000, true);
    }
    feed.counters(3, 100);
    assert_eq!(feed.talkers.sources().next().unwrap().basis, ScaleBasis::Pool);
}

/// Some agents' counters take a GSO packet for one, while their pool counts its segments.
#[test]
fn a_pool_that_is_counted_outweighs_counters_of_something_else() {
    let mut feed = Feed::new(100);
    let pools = |feed: &mut Feed, counted_by_rate: bool| {
        feed.counters(0, 0);
        for _ in 0..1000 {
            feed.packet(1, 1000, true);
            feed.pool += u32::from(!counted_by_rate);
        }
        feed.counters(60_000, 60_000_000);
        let report = feed.talkers.sources().next().unwrap();
        (report.basis, feed.talkers.total().0.value.round())
    };
    assert_eq!(pools(&mut feed, false), (ScaleBasis::Pool, 100_999.0));
    // Pools that equal the rate times the samples add nothing.
    let mut feed = Feed::new(100);
    assert_eq!(pools(&mut feed, true), (ScaleBasis::Counters, 60_000.0));
}

#[test]
fn the_number_of_conversations_is_limited() {
    let mut feed = Feed::new(5);
    for i in 0..50 {
        feed.packet(i % 10, 1000, true);
    }
    assert_eq!(feed.talkers.len(), 5);
    assert_eq!(feed.talkers.other().0.samples, 25);
    assert_eq!(feed.talkers.total().0.samples, 50);
    feed.talkers.clear();
    assert!(feed.talkers.is_empty());
    assert_eq!(feed.talkers.total().0.samples, 0);
}

/// A sender of datagrams can make up any number of sources.
#[test]
fn the_number_of_sources_is_limited() {
    let mut feed = Feed::new(10);
    let mut encoder = DatagramEncoder::new("192.0.2.1".parse().unwrap(), 0, 1400);
    let mut header = vec![0; 34];
    header[12..15].copy_from_slice(&[8, 0, 0x45]);
    let raw = RawHeader {
        protocol: HeaderProtocol::ETHERNET,
        frame_length: 64,
        stripped: 4,
        header: &header,
    };
    let more = 100;
    for n in 0..MOST_SOURCES as u32 + more {
        let sample = FlowSampleOut {
            sequence: 1,
            source: DataSource::interface(n),
            rate: 1,
            pool: 1,
            drops: 0,
            input: Interface::Index(n),
            output: Interface::UNKNOWN,
        };
        let _ = encoder.flow_sample(&sample, Some(raw), &[]).unwrap();
        feed.talkers.feed(&Datagram::parse(encoder.finish(0).unwrap()).unwrap());
    }
    assert_eq!(feed.talkers.sources().count(), MOST_SOURCES);
    assert_eq!(feed.talkers.passed_over(), u64::from(more));
    assert_eq!((feed.talkers.len(), feed.talkers.tallies), (1, SOURCES_EACH * 10));
    assert_eq!(feed.talkers.total().0.value, MOST_SOURCES as f64);
}
