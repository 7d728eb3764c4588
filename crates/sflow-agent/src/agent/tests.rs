use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use thalweg_sflow::decode::{Datagram, Sample};
use thalweg_sflow::model::{ExtendedSwitch, Tag, Timestamp};

type Sent = Rc<RefCell<Vec<Vec<u8>>>>;

/// Keeps what is sent.
struct Memory(Sent);

impl Transport for Memory {
    fn send(&mut self, batch: &Batch, _now: Instant) {
        self.0.borrow_mut().extend(batch.iter().map(<[u8]>::to_vec));
    }
}

fn config() -> AgentConfig {
    AgentConfig::new("192.0.2.1".parse().unwrap())
}

fn agent(now: Instant) -> (Agent<Memory>, Sent) {
    let sent = Sent::default();
    (Agent::new(&config(), now, Memory(sent.clone())).unwrap(), sent)
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
    // The number wraps beyond 32 bits.
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
    assert_eq!(agent.sources(), 2);
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
    // Six samples of 204 bytes and a header of 28. They leave together at the end of the round.
    assert_eq!((sent.borrow().len(), agent.deadline()), (0, Some(now)));
    agent.tick(now);
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

/// A round of more samples than a batch holds is not kept waiting.
#[test]
fn a_full_batch_is_sent_at_once() {
    let now = Instant::now();
    let (mut agent, sent) = agent(now);
    let mut batches = 0;
    for i in 0..1000 {
        let before = sent.borrow().len();
        assert!(agent.flow_sample(now, &sample(1, i, 0)));
        batches += usize::from(sent.borrow().len() > before);
    }
    // 64,000 bytes are 51 datagrams of 1252, of six samples each.
    assert_eq!((batches, sent.borrow().len()), (3, 153));
    agent.flush(now);
    assert_eq!(flows(&sent).len(), 1000);
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
        let mut config = config();
        change(&mut config);
        config.check().unwrap_err().to_string()
    };
    let error = check(|c| c.agent_address = "0.0.0.0".parse().unwrap());
    assert_eq!(
        error,
        "agent address 0.0.0.0 is not a valid agent address: give a unicast address of this host"
    );
    let error = check(|c| c.datagram_bytes = 100);
    assert_eq!(error, "datagrams of 100 bytes are out of range: 200 to 65507 are possible");
    let error = check(|c| c.header_bytes = 1400);
    assert_eq!(
        error,
        "headers of 1400 bytes do not fit into datagrams of 1400 bytes: these need 1528 or more"
    );
}

/// Numbers as a collector checks them: by what they count.
#[derive(Default)]
struct Numbers {
    datagram: u32,
    samples: HashMap<(u32, DataSource), u32>,
}

impl Numbers {
    fn check(&mut self, bytes: &[u8]) {
        let datagram = Datagram::parse(bytes).unwrap();
        self.datagram += 1;
        assert_eq!(datagram.sequence, self.datagram);
        for sample in datagram.samples() {
            let (kind, source, sequence) = match sample.unwrap() {
                Sample::Flow(s) => (0, s.source, s.sequence),
                Sample::Counters(s) => (1, s.source, s.sequence),
                Sample::Discard(s) => (2, s.source, s.sequence),
                other => panic!("{other:?}"),
            };
            let last = self.samples.entry((kind, source)).or_default();
            *last += 1;
            assert_eq!(sequence, *last, "{kind} {source}");
        }
        datagram.check_end().unwrap();
    }
}

/// A day of 86,400 seconds: packet samples each second except while sampling is off, which it is
/// for a minute in each hour, interface counters every 20 seconds, the host's every 30. No number
/// is left out or used twice.
#[test]
fn a_day_of_numbers_has_no_gap() {
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let start = Instant::now();
    let mut collectors = Collectors::new();
    collectors.configure(&[receiver.local_addr().unwrap().into()], start);
    let mut agent = Agent::new(&config(), start, collectors).unwrap();
    let mut numbers = Numbers::default();
    let mut buf = [0; 2000];
    for second in 0..86_400_u32 {
        let now = start + Duration::from_secs(second.into());
        // Sampling restarts with counters at zero.
        let since = u64::from(second % 3600);
        for index in [1, 2, 77] {
            if since >= 60 {
                agent.flow_sample(now, &sample(index, since * 100, since / 100));
            }
        }
        for index in (1..=50).filter(|index| second % 20 == index % 20) {
            let counters = InterfaceCounters { index, ..InterfaceCounters::default() };
            let counters = InterfaceCountersIn { counters, name: None, ethernet: None };
            agent.interface_counters(now, &counters);
        }
        if second % 30 == 7 {
            agent.counters(now, DataSource::HOST, &[]);
        }
        let before = agent.stats().datagrams;
        agent.flush(now);
        for _ in before..agent.stats().datagrams {
            let length = receiver.recv(&mut buf).unwrap();
            numbers.check(&buf[..length]);
        }
    }
    assert_eq!(agent.stats().datagrams, u64::from(numbers.datagram));
    assert_eq!(numbers.samples[&(0, DataSource::interface(77))], 24 * 3540);
    assert_eq!(numbers.samples[&(1, DataSource::interface(50))], 4320);
    assert_eq!(numbers.samples[&(1, DataSource::HOST)], 2880);
}

/// Beyond 4,294,967,295 numbers, pools and drops go on at 0, each on its own, and differences stay
/// right.
#[test]
fn numbers_go_round() {
    let now = Instant::now();
    let (mut agent, sent) = agent(now);
    let source = DataSource::interface(5);
    let last = u32::MAX - 40;
    agent.encoder.set_sequence(last);
    let mut pool = u64::from(last);
    agent.flow_sample(now, &sample(5, pool, 0));
    let state = agent.sources.known(source).unwrap();
    (state.flow_sequence, state.counter_sequence) = (last, last);
    agent.flush(now);
    sent.borrow_mut().clear();
    for n in 0..100 {
        pool += 10;
        agent.flow_sample(now, &sample(5, pool, n));
        agent.counters(now, source, &[]);
        agent.flush(now);
    }
    let mut expected = last;
    for bytes in sent.borrow().iter() {
        let datagram = Datagram::parse(bytes).unwrap();
        expected = expected.wrapping_add(1);
        // The first one has reported the sample before.
        assert_eq!(datagram.sequence, expected.wrapping_add(1));
        for sample in datagram.samples() {
            match sample.unwrap() {
                Sample::Flow(s) => {
                    let n = expected.wrapping_sub(last);
                    assert_eq!(
                        (s.sequence, s.pool, s.drops),
                        (expected, last.wrapping_add(10 * n), n - 1)
                    );
                }
                Sample::Counters(s) => assert_eq!(s.sequence, expected),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(expected, 59);
}

#[test]
fn a_name_that_comes_back_goes_on_with_its_numbers() {
    let now = Instant::now();
    let (mut agent, sent) = agent(now);
    let named = |n: u8| AgentConfig { sub_agent_id: n.into(), ..config() };
    let run = |agent: &mut Agent<Memory>, pool: u64| {
        assert!(agent.flow_sample(now, &sample(1, pool, 0)));
        agent.flush(now);
        let datagram = sent.borrow().last().unwrap().clone();
        let datagram = Datagram::parse(&datagram).unwrap();
        let (_, sequence, pool, _) = *flows(&sent).last().unwrap();
        (datagram.sub_agent, datagram.sequence, sequence, pool)
    };
    let first = config().sub_agent_id;
    assert_eq!(run(&mut agent, 100), (first, 1, 1, 100));
    assert_eq!(run(&mut agent, 200), (first, 2, 2, 200));
    // Waiting samples have the old name.
    assert!(agent.flow_sample(now, &sample(1, 250, 0)));
    agent.reconfigure(&named(77), now).unwrap();
    assert_eq!(run(&mut agent, 300), (77, 1, 1, 300));
    agent.reconfigure(&config(), now).unwrap();
    assert_eq!(run(&mut agent, 400), (first, 4, 4, 400));
    agent.reconfigure(&named(77), now).unwrap();
    // An interface that is gone is gone under all names.
    agent.remove_source(DataSource::interface(1));
    assert_eq!(run(&mut agent, 7), (77, 2, 1, 7));
    // Names are not kept without end.
    for n in 100..100 + FORMER_NAMES as u8 {
        agent.reconfigure(&named(n), now).unwrap();
    }
    assert_eq!(agent.former.len(), FORMER_NAMES);
    agent.reconfigure(&config(), now).unwrap();
    assert_eq!(run(&mut agent, 9), (first, 1, 1, 9));
}

#[test]
fn sources_are_limited_and_may_be_reused() {
    let now = Instant::now();
    let (mut agent, _sent) = agent(now);
    for index in 0..MAX_SOURCES as u32 {
        // Some beyond what is found by index.
        let source = DataSource { class: index % 3, index: index * 2 };
        assert!(agent.counters(now, source, &[]));
    }
    assert!(!agent.counters(now, DataSource::interface(3), &[]));
    assert_eq!((agent.sources(), agent.stats().refused_samples), (MAX_SOURCES, 1));
    agent.remove_source(DataSource::interface(6));
    agent.remove_source(DataSource::interface(6));
    assert!(agent.counters(now, DataSource::interface(3), &[]));
    assert_eq!(agent.sources(), MAX_SOURCES);
}
