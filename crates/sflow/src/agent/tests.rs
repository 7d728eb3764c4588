use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::decode::{Datagram, Sample};
use crate::model::{ExtendedSwitch, Tag, Timestamp};

type Sent = Rc<RefCell<Vec<Vec<u8>>>>;

/// Keeps what is sent, and fails as it is told to.
struct Memory {
    sent: Sent,
    fail: Rc<RefCell<Vec<SendError>>>,
}

impl Transport for Memory {
    fn send(&mut self, datagram: &[u8], _now: Instant) -> Result<(), SendError> {
        if let Some(error) = self.fail.borrow_mut().pop() {
            return Err(error);
        }
        self.sent.borrow_mut().push(datagram.to_vec());
        Ok(())
    }
}

fn config(collectors: usize) -> AgentConfig {
    let collector = CollectorConfig::from("192.0.2.99:6343".parse::<SocketAddr>().unwrap());
    AgentConfig {
        collectors: vec![collector; collectors],
        ..AgentConfig::new("192.0.2.1".parse().unwrap())
    }
}

fn agent(now: Instant) -> (Agent<Memory>, Sent) {
    let sent = Sent::default();
    let make = |_: &CollectorConfig| Memory { sent: sent.clone(), fail: Rc::default() };
    (Agent::with_transport(&config(1), now, make).unwrap(), sent)
}

fn sample(index: u32, pool: u64, drops: u64) -> FlowSampleIn<'static> {
    FlowSampleIn {
        source: DataSource::interface(index),
        rate: 100,
        pool,
        drops,
        input: index,
        output: Interface::Index(9),
        protocol: HeaderProtocol::ETHERNET,
        frame_length: 60,
        stripped: FCS_BYTES,
        header: &[0xab; 200],
        records: &[],
    }
}

fn flows(sent: &Sent) -> Vec<(u32, u32, u32, u32)> {
    let sent = sent.borrow();
    let samples = sent.iter().flat_map(|d| Datagram::parse(d).unwrap().samples());
    samples
        .map(|sample| match sample.unwrap() {
            Sample::Flow(f) => (f.source.index, f.sequence, f.pool, f.drops),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn samples_are_numbered_per_source_and_counters_become_deltas() {
    let now = Instant::now();
    let (mut agent, sent) = agent(now);
    agent.flow_sample(now, &sample(1, 1000, 0));
    agent.flow_sample(now, &sample(2, 50, 0));
    agent.flow_sample(now, &sample(1, 1100, 5));
    agent.flow_sample(now, &sample(1, 1200, 5));
    // The source starts again: what it has counted since is added.
    agent.flow_sample(now, &sample(1, 30, 1));
    // And beyond 32 bits the number wraps.
    agent.flow_sample(now, &sample(2, (1 << 32) + 40, 0));
    agent.flush(now);
    let expected = [
        (1, 1, 1000, 0),
        (2, 1, 50, 0),
        (1, 2, 1100, 5),
        (1, 3, 1200, 5),
        (1, 4, 1230, 6),
        (2, 2, 40, 0),
    ];
    assert_eq!(flows(&sent), expected);
    assert_eq!(agent.stats().sources, 2);
}

#[test]
fn lengths_and_records_are_as_hsflowd_has_them() {
    let now = Instant::now();
    let (mut agent, sent) = agent(now);
    let switch = ExtendedSwitch { source_vlan: 10, ..ExtendedSwitch::default() };
    let records = [FlowRecord::Switch(switch), FlowRecord::Timestamp(Timestamp { nanoseconds: 1 })];
    agent.flow_sample(now, &FlowSampleIn { records: &records, ..sample(1, 100, 0) });
    let discard = DiscardIn {
        source: DataSource::NONE,
        drops: 0,
        input: 1,
        output: 0,
        reason: DiscardReason::TTL_EXCEEDED,
        protocol: HeaderProtocol::ETHERNET,
        frame_length: 60,
        stripped: FCS_BYTES,
        header: &[1; 60],
        records: &[],
    };
    agent.discard(now, &discard);
    let interface = InterfaceCountersIn {
        counters: InterfaceCounters { index: 1, ..InterfaceCounters::default() },
        name: Some("eth0"),
        ethernet: Some(EthernetCounters::default()),
    };
    agent.interface_counters(now, &interface);
    agent.flush(now + Duration::from_millis(1500));
    let sent = sent.borrow();
    let datagram = Datagram::parse(&sent[0]).unwrap();
    assert_eq!((datagram.sequence, datagram.uptime_ms), (1, 1500));
    assert_eq!((datagram.sub_agent, datagram.sample_count), (100_000, 3));
    let samples: Vec<_> = datagram.samples().map(Result::unwrap).collect();
    let [Sample::Flow(flow), Sample::Discard(discard), Sample::Counters(counters)] = &samples[..]
    else {
        panic!("{samples:?}")
    };
    let records: Vec<_> = flow.records.clone().map(Result::unwrap).collect();
    assert!(matches!(records[0], FlowRecord::Timestamp(_)));
    assert!(matches!(records[1], FlowRecord::Switch(_)));
    let FlowRecord::RawHeader(raw) = &records[2] else { panic!("{records:?}") };
    assert_eq!((raw.frame_length, raw.stripped, raw.header.len()), (64, 4, 128));
    let FlowRecord::RawHeader(raw) = discard.records.clone().next().unwrap().unwrap() else {
        panic!("{discard:?}")
    };
    assert_eq!((raw.frame_length, raw.stripped, raw.header.len()), (60, 4, 60));
    let tags: Vec<_> = counters.records.clone().map(|r| r.unwrap().tag()).collect();
    assert_eq!(tags, [Tag::new(0, 2), Tag::new(0, 1005), Tag::new(0, 1)]);
}

#[test]
fn full_datagrams_are_sent_and_others_wait_their_time() {
    let now = Instant::now();
    let (mut agent, sent) = agent(now);
    assert_eq!(agent.deadline(), None);
    for i in 0..20 {
        agent.flow_sample(now, &sample(1, i * 100, 0));
    }
    // Six samples of 204 bytes and a header of 28.
    assert_eq!(sent.borrow().len(), 3);
    assert!(sent.borrow().iter().all(|d| d.len() == 28 + 6 * 204));
    agent.tick(now + Duration::from_millis(999));
    assert_eq!(sent.borrow().len(), 3);
    assert_eq!(agent.deadline(), Some(now + Duration::from_secs(1)));
    agent.tick(now + Duration::from_secs(1));
    assert_eq!(sent.borrow().len(), 4);
    assert_eq!(agent.deadline(), None);
    agent.flush(now);
    assert_eq!(sent.borrow().len(), 4);
    assert_eq!(flows(&sent).len(), 20);
    let sequences: Vec<_> =
        sent.borrow().iter().map(|d| Datagram::parse(d).unwrap().sequence).collect();
    assert_eq!(sequences, [1, 2, 3, 4]);
    assert_eq!(agent.stats().datagrams, 4);
}

#[test]
fn a_failing_collector_does_not_disturb_the_others() {
    let now = Instant::now();
    let sent = Sent::default();
    let failures = Rc::new(RefCell::new(Vec::new()));
    let mut first = true;
    let mut agent = Agent::with_transport(&config(2), now, |_| {
        let fail = if first { failures.clone() } else { Rc::default() };
        let sent = if first { Sent::default() } else { sent.clone() };
        first = false;
        Memory { sent, fail }
    })
    .unwrap();
    let send = |agent: &mut Agent<Memory>, errors: Vec<SendError>| {
        failures.borrow_mut().extend(errors);
        agent.flow_sample(now, &sample(1, 1, 0));
        agent.flush(now);
    };
    send(&mut agent, vec![SendError::WouldBlock]);
    // An answer to an earlier datagram: this one is sent after all.
    send(&mut agent, vec![SendError::Refused]);
    send(&mut agent, vec![SendError::Refused, SendError::Refused]);
    assert_eq!(sent.borrow().len(), 3);
    let stats: Vec<_> = agent.collectors().map(|(_, stats)| stats.clone()).collect();
    assert_eq!((stats[0].datagrams, stats[0].send_errors), (1, 2));
    assert_eq!((stats[0].would_block, stats[0].refused), (1, 2));
    assert!(stats[0].last_error.as_ref().unwrap().contains("nothing listens"));
    assert_eq!((stats[1].datagrams, stats[1].send_errors), (3, 0));
}

#[test]
fn counters_start_again() {
    let now = Instant::now();
    let (mut agent, sent) = agent(now);
    for _ in 0..2 {
        agent.counters(now, DataSource::HOST, &[]);
    }
    agent.reset_counters(DataSource::HOST);
    agent.counters(now, DataSource::HOST, &[]);
    agent.flush(now);
    let sent = sent.borrow();
    let sequences: Vec<_> = Datagram::parse(&sent[0])
        .unwrap()
        .samples()
        .map(|s| match s.unwrap() {
            Sample::Counters(c) => c.sequence,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sequences, [1, 2, 1]);
}

#[test]
fn a_sample_that_is_too_long_is_refused() {
    let now = Instant::now();
    let (mut agent, sent) = agent(now);
    let long = "x".repeat(1400);
    let name = CounterRecord::PortName(PortName { name: Text::from(long.as_str()) });
    agent.counters(now, DataSource::interface(1), &[name]);
    agent.flush(now);
    assert_eq!((agent.stats().refused_samples, agent.stats().counter_samples), (1, 0));
    assert!(sent.borrow().is_empty());
}

#[test]
fn impossible_settings_are_refused() {
    let check = |change: fn(&mut AgentConfig)| {
        let mut config = config(1);
        change(&mut config);
        config.check().unwrap_err().to_string()
    };
    let error = check(|c| c.agent_address = "0.0.0.0".parse().unwrap());
    assert_eq!(error, "agent address 0.0.0.0 names no host: give an address of this one");
    let error = check(|c| c.datagram_bytes = 100);
    assert_eq!(error, "datagrams of 100 bytes are out of range: 200 to 65507 are possible");
    let error = check(|c| c.header_bytes = 1400);
    assert_eq!(error, "headers of 1400 bytes do not fit into datagrams of 1400 bytes");
    let error = check(|c| c.collectors[0].addr.set_port(0));
    assert!(error.starts_with("collector 192.0.2.99:0 cannot be sent to"));
}

#[test]
fn datagrams_arrive_over_udp_and_a_missing_collector_is_counted() {
    let now = Instant::now();
    for local in ["127.0.0.1", "::1"] {
        let local: IpAddr = local.parse().unwrap();
        let Ok(receiver) = std::net::UdpSocket::bind((local, 0)) else {
            assert!(local.is_ipv6(), "IPv4 is missing");
            continue;
        };
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let away = std::net::UdpSocket::bind((local, 0)).unwrap().local_addr().unwrap();
        let here = receiver.local_addr().unwrap();
        let config =
            AgentConfig { collectors: vec![away.into(), here.into()], ..AgentConfig::new(local) };
        let mut agent = Agent::new(&config, now).unwrap();
        let mut buf = [0; 2000];
        for i in 1..=3 {
            agent.flow_sample(now, &sample(1, 100, 0));
            agent.flush(now);
            let length = receiver.recv(&mut buf).unwrap();
            let datagram = Datagram::parse(&buf[..length]).unwrap();
            assert_eq!((datagram.sequence, datagram.agent), (i, Some(local)));
        }
        let stats: Vec<_> = agent.collectors().map(|(_, stats)| stats.clone()).collect();
        assert!(stats[0].refused >= 1, "{stats:?}");
        assert_eq!((stats[1].datagrams, stats[1].send_errors), (3, 0));
    }
}
