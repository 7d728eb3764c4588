use super::*;
use crate::agent::Batch;
use crate::conf::{DropmonConf, PsampleConf, VppConf};
use thalweg_sflow::decode::{CounterSample, Datagram, DiscardSample, FlowSample, Sample};
use thalweg_sflow::model::{CounterRecord, DiscardReason};
use thalweg_sflow::value::Text;

/// Keeps what is sent.
#[derive(Debug, Default)]
struct Memory(Vec<Vec<u8>>);

impl Transport for Memory {
    fn send(&mut self, batch: &Batch, _now: Instant) {
        self.0.extend(batch.iter().map(<[u8]>::to_vec));
    }
}

fn conf() -> HsflowdConf {
    let mut conf = HsflowdConf {
        polling: 0,
        psample: Some(PsampleConf { group: 1, ingress: true, egress: true }),
        vpp: Some(VppConf { os_index: false, if_offset: 1_000_000_000 }),
        dropmon: Some(DropmonConf { limit: 1000, ..DropmonConf::default() }),
        ..HsflowdConf::default()
    };
    conf.agent.address = Some("192.0.2.1".parse().unwrap());
    conf
}

struct Lab {
    relay: Relay<Memory>,
    now: Instant,
}

impl Lab {
    fn new(conf: HsflowdConf) -> Lab {
        let now = Instant::now();
        Lab { relay: Relay::new(conf, Memory::default(), now).unwrap(), now }
    }

    fn receive(&mut self, message: Message<'_>) {
        self.relay.handle(&message, self.now);
    }

    /// Returns the datagrams sent since the last time.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        self.relay.flush(self.now);
        std::mem::take(&mut self.relay.transport_mut().unwrap().0)
    }

    fn samples<T>(&mut self, pick: impl Fn(Sample<'_>) -> Option<T>) -> Vec<T> {
        let sent = self.sent();
        let datagrams = sent.iter().map(|bytes| Datagram::parse(bytes).unwrap());
        datagrams
            .flat_map(|d| d.samples().map(Result::unwrap).filter_map(&pick).collect::<Vec<_>>())
            .collect()
    }

    /// Source, sequence, pool, drops, input and output of each flow sample.
    fn flows(&mut self) -> Vec<[u32; 6]> {
        let values = |f: FlowSample<'_>| {
            let output = f.output.parts().1;
            let input = f.input.parts().1;
            [f.source.index, f.sequence, f.pool, f.drops, input, output]
        };
        self.samples(|s| if let Sample::Flow(f) = s { Some(values(f)) } else { None })
    }
}

fn sample(group: u32, sequence: u32, input: u32, output: u32) -> Message<'static> {
    Message::Sample(PacketSample {
        input,
        output,
        original_length: 60,
        group,
        group_sequence: sequence,
        rate: 100,
        data: &[0xab; 60],
        ..PacketSample::default()
    })
}

fn counters(index: u32, os_index: Option<u32>, octets: u64) -> Message<'static> {
    Message::Counters(PortCounters {
        name: Text(b"eth"),
        index,
        os_index,
        if_type: 6,
        speed: 10_000_000_000,
        direction: 1,
        oper_up: true,
        admin_up: true,
        rx_octets: octets,
        rx_packets: 100,
        rx_multicasts: 10,
        rx_broadcasts: 5,
        ..PortCounters::default()
    })
}

#[test]
fn samples_are_sent_on_with_what_was_lost() {
    let mut lab = Lab::new(conf());
    lab.receive(sample(3, 1, 1, 0));
    lab.receive(sample(4, 1, 1, 2));
    // Three of the group are missing: the next source gets them, and they are reported once.
    lab.receive(sample(3, 5, 1, 0));
    lab.receive(sample(3, 6, 1, 0));
    // The kernel's groups, and one that is not wanted.
    lab.receive(sample(1, 1, 70_000, 8));
    lab.receive(sample(2, 1, 0, 8));
    lab.receive(sample(9, 1, 1, 1));
    assert_eq!(
        lab.flows(),
        [
            [1, 1, 100, 0, 1, 0],
            [2, 1, 100, 0, 1, 2],
            [1, 2, 500, 3, 1, 0],
            [1, 3, 600, 3, 1, 0],
            [70_000, 1, 100, 0, 70_000, 8],
            [8, 1, 100, 0, 0, 8],
        ]
    );
    let stats = lab.relay.stats();
    assert_eq!((stats.samples, stats.lost, stats.other_groups), (6, 3, 1));
}

/// Numbers of interfaces have 32 bits from the sender's attribute to the collector.
#[test]
fn numbers_of_interfaces_keep_their_32_bits() {
    let mut lab = Lab::new(conf());
    for (sequence, index) in (1..).zip([65_535, 65_536, 65_537, 0x0102_0304, 0x3fff_fffe]) {
        lab.receive(sample(3, sequence, index, 0));
        lab.receive(sample(1, sequence, index, 7));
        lab.receive(sample(4, sequence, 5, index));
        let seen: Vec<_> = lab.flows().iter().map(|f| (f[0], f[4], f[5])).collect();
        assert_eq!(seen, [(index, index, 0), (index, index, 7), (index, 5, index)]);
    }
}

/// Losses of a full socket are reported with the samples that follow: for packets, as many as their
/// numbers show, once; for discards, a datagram each.
#[test]
fn overruns_are_in_the_drops_of_what_follows() {
    let mut lab = Lab::new(conf());
    lab.receive(sample(3, 1, 1, 0));
    // Two datagrams of three samples each.
    lab.relay.overrun(Channel::Psample, 2);
    lab.receive(sample(3, 8, 1, 0));
    lab.receive(sample(3, 9, 1, 0));
    let drops: Vec<_> = lab.flows().iter().map(|f| (f[3], f[2])).collect();
    assert_eq!(drops, [(0, 100), (6, 800), (6, 900)]);
    lab.receive(dropped("", "NO_SOCKET"));
    lab.relay.overrun(Channel::Dropmon, 4);
    lab.receive(dropped("", "NO_SOCKET"));
    let drops = lab.samples(|s| match s {
        Sample::Discard(DiscardSample { drops, .. }) => Some(drops),
        _ => None,
    });
    assert_eq!(drops, [0, 4]);
    let stats = lab.relay.stats();
    assert_eq!((stats.lost, stats.overruns, stats.suppressed), (6, 6, 0));
}

/// A router that says again and again that it has lost five samples has lost five.
#[test]
fn a_count_of_drops_is_not_added_again_and_again() {
    let mut lab = Lab::new(conf());
    let status = |uptime_s, drops| Message::Status(Status { uptime_s, drops, ..Status::default() });
    let mut drops = Vec::new();
    for (uptime, count) in [(1, 2), (2, 5), (3, 5), (4, 6), (1, 1), (2, 1)] {
        lab.receive(status(uptime, count));
        lab.receive(sample(3, drops.len() as u32 + 1, 1, 0));
        drops.push(lab.flows()[0][3]);
    }
    // Losses before the first are not ours; a restart starts from zero.
    assert_eq!(drops, [0, 3, 3, 4, 5, 5]);
    assert_eq!(lab.relay.stats().lost, 5);
}

#[test]
fn numbers_are_those_of_the_system_where_they_are_told() {
    let mut on = conf();
    on.vpp = Some(VppConf { os_index: true, if_offset: 1_000_000_000 });
    let mut lab = Lab::new(on.clone());
    lab.receive(sample(3, 1, 1, 0));
    lab.receive(counters(1, Some(7), 1));
    lab.receive(counters(2, None, 1));
    lab.receive(sample(3, 2, 1, 0));
    lab.receive(sample(4, 1, 1, 2));
    let indexes = |lab: &mut Lab| {
        lab.samples(|s| match s {
            Sample::Flow(f) => Some((f.source.index, f.input.parts().1)),
            Sample::Counters(c) => Some((c.source.index, 0)),
            _ => None,
        })
    };
    assert_eq!(indexes(&mut lab), [(7, 0), (1_000_000_002, 0), (7, 7)]);
    assert_eq!(lab.relay.stats().unmapped, 2);
    // A number that is taken away is one no more.
    lab.receive(counters(1, None, 1));
    lab.receive(sample(3, 3, 1, 0));
    assert_eq!(indexes(&mut lab), [(1_000_000_001, 0)]);
    // Without an offset, the router's own numbers pass.
    on.vpp = Some(VppConf { os_index: true, if_offset: 0 });
    lab.relay.configure(on, lab.now).unwrap();
    lab.receive(counters(2, None, 1));
    lab.receive(sample(4, 2, 1, 2));
    assert_eq!(indexes(&mut lab), [(2, 0), (2, 1)]);
}

#[test]
fn counters_are_sent_at_once_and_restarts_are_told() {
    let mut lab = Lab::new(conf());
    for octets in [1000, 2000, 500, 600] {
        lab.receive(counters(3, None, octets));
    }
    let all = lab.samples(|s| match s {
        Sample::Counters(CounterSample { sequence, records, .. }) => {
            let records: Vec<_> = records.map(Result::unwrap).collect();
            assert_eq!(records[0].tag().format(), 1005);
            let CounterRecord::Interface(c) = &records[1] else { panic!("{records:?}") };
            assert_eq!((c.speed, c.status, c.in_unicast), (10_000_000_000, 3, 85));
            Some((sequence, c.in_octets))
        }
        _ => None,
    });
    assert_eq!(all, [(1, 1000), (2, 2000), (1, 500), (2, 600)]);
}

/// A router that starts again counts from 0: if its counters pass what they were before they are
/// heard, the numbers of its messages, or its uptime, still tell.
#[test]
fn a_restart_is_told_though_counters_have_grown() {
    let numbered = |octets, sequence| {
        let Message::Counters(c) = counters(3, None, octets) else { panic!("counters") };
        Message::Counters(PortCounters { sequence: Some(sequence), ..c })
    };
    let status =
        |uptime_s, sequence| Message::Status(Status { uptime_s, sequence, ..Status::default() });
    let sequences = |messages: Vec<Message<'static>>| {
        let mut lab = Lab::new(conf());
        messages.into_iter().for_each(|message| lab.receive(message));
        lab.samples(|s| match s {
            Sample::Counters(CounterSample { sequence, .. }) => Some(sequence),
            _ => None,
        })
    };
    let by_number = vec![numbered(1000, u32::MAX), numbered(2000, 1), numbered(3000, 2)];
    assert_eq!(sequences(by_number), [1, 2, 3], "numbers go round");
    let by_number = vec![numbered(1000, 50), numbered(2000, 51), numbered(5000, 2)];
    assert_eq!(sequences(by_number), [1, 2, 1]);
    let both = vec![
        numbered(1000, 50),
        status(60, Some(51)),
        numbered(2000, 52),
        status(1, Some(1)),
        numbered(5000, 2),
        numbered(6000, 3),
    ];
    assert_eq!(sequences(both), [1, 2, 1, 2]);
    let by_uptime =
        vec![counters(3, None, 1000), status(60, None), status(2, None), counters(3, None, 5000)];
    assert_eq!(sequences(by_uptime), [1, 1]);
}

fn dropped(trap: &'static str, reason: &'static str) -> Message<'static> {
    let text = |t: &'static str| (!t.is_empty()).then(|| Text::from(t));
    Message::Drop(PacketDrop {
        input: 4,
        protocol: 0x800,
        data: &[1; 60],
        original_length: Some(60),
        trap_group: text(trap).map(|_| Text(b"vpp_ip4-input")),
        trap: text(trap),
        reason: text(reason),
        timestamp_ns: Some(1),
        ..PacketDrop::default()
    })
}

#[test]
fn discards_have_reasons_and_a_limit() {
    let mut with = conf();
    with.dropmon =
        Some(DropmonConf { limit: 20, hide: Some("^TCP_".into()), ..DropmonConf::default() });
    let mut lab = Lab::new(with);
    lab.receive(dropped("vpp_ip4_ttl_<=_1", ""));
    lab.receive(dropped("", "TCP_OLD_DATA"));
    lab.receive(dropped("not_known", ""));
    for _ in 0..5 {
        lab.receive(dropped("", "NO_SOCKET"));
    }
    lab.now += Duration::from_millis(100);
    lab.receive(dropped("", "NO_SOCKET"));
    let seen = lab.samples(|s| match s {
        Sample::Discard(DiscardSample { source, drops, input, reason, records, .. }) => {
            assert_eq!((source, input), (DataSource::NONE, 4));
            let tags: Vec<_> = records.map(|r| r.unwrap().tag().format()).collect();
            Some((reason, drops, tags))
        }
        _ => None,
    });
    let port = DiscardReason::PORT_UNREACHABLE;
    let expected = [
        (DiscardReason::TTL_EXCEEDED, 0, vec![1043, 1041, 1]),
        (port, 0, vec![1043, 1042, 1]),
        (port, 4, vec![1043, 1042, 1]),
    ];
    assert_eq!(seen, expected);
    let stats = lab.relay.stats();
    assert_eq!((stats.hidden, stats.suppressed, stats.discards), (2, 4, 3));
}

#[test]
fn too_many_discards_are_not_listened_to() {
    let mut with = conf();
    let drops = DropmonConf { limit: 5, max: 10, max_trip: 2, ..DropmonConf::default() };
    with.dropmon = Some(drops);
    let mut lab = Lab::new(with.clone());
    for _ in 0..2 {
        assert!(!lab.relay.drops_too_many());
        (0..11).for_each(|_| lab.receive(dropped("", "NO_SOCKET")));
        lab.now += Duration::from_secs(1);
    }
    assert!(lab.relay.drops_too_many());
    lab.receive(dropped("", "NO_SOCKET"));
    assert_eq!((lab.relay.stats().discards, lab.relay.stats().suppressed), (10, 13));
    lab.relay.configure(with, lab.now).unwrap();
    assert!(!lab.relay.drops_too_many());
    lab.receive(dropped("", "NO_SOCKET"));
    assert_eq!(lab.relay.stats().discards, 11);
}

/// Sequence numbers go on over changes of everything but the agent's name.
#[test]
fn a_new_configuration_does_not_restart_numbers() {
    let mut lab = Lab::new(conf());
    let mut all = Vec::new();
    let mut changed = conf();
    for i in 0..4 {
        lab.receive(sample(3, i + 1, 1, 0));
        let bytes = lab.sent().remove(0);
        let datagram = Datagram::parse(&bytes).unwrap();
        all.push((datagram.sequence, datagram.sub_agent));
        match i {
            0 => (changed.header_bytes, changed.datagram_bytes) = (64, 300),
            1 => changed.polling = 30,
            _ => changed.sub_agent = Some(7),
        }
        lab.relay.configure(changed.clone(), lab.now).unwrap();
    }
    assert_eq!(all, [(1, 100_000), (2, 100_000), (3, 100_000), (1, 7)]);
    changed.header_bytes = 256;
    let error = lab.relay.configure(changed, lab.now).unwrap_err();
    assert!(error.to_string().contains("do not fit"), "{error}");
    lab.receive(sample(3, 5, 1, 0));
    assert_eq!(lab.sent().len(), 1);
}

/// Interfaces of the kernel's are polled from their first sample on; lo is there in every test.
#[test]
fn interfaces_of_the_kernel_are_polled() {
    let mut with = conf();
    with.polling = 10;
    let mut lab = Lab::new(with);
    let lo = nix::net::if_::if_nametoindex("lo").unwrap();
    lab.receive(sample(1, 1, lo, 0));
    lab.receive(sample(1, 2, 65_000, 0));
    let start = lab.now;
    for second in 0..=20 {
        lab.now = start + Duration::from_secs(second);
        lab.relay.poll_linux(lab.now);
    }
    let polled = lab.samples(|s| match s {
        Sample::Counters(c) => Some((c.source, c.sequence)),
        _ => None,
    });
    let lo = DataSource::interface(lo);
    assert_eq!(polled, [(lo, 1), (lo, 2)]);
    // The other one does not exist.
    assert_eq!(lab.relay.ports.len(), 1);
}

#[test]
fn only_what_is_configured_is_listened_to() {
    let channels = |conf: &HsflowdConf| listen_to(conf).channels;
    assert_eq!(channels(&conf()), Channel::ALL);
    let none = HsflowdConf::default();
    assert_eq!(
        (channels(&none), config(&none, [192, 0, 2, 1].into()).sub_agent_id),
        (vec![], 100_001)
    );
    let vpp = HsflowdConf { vpp: Some(VppConf::default()), ..none };
    assert_eq!(channels(&vpp), [Channel::Psample, Channel::Usersock]);
    let mut passive = conf();
    let drops = passive.dropmon.as_mut().unwrap();
    (drops.software_passive, drops.hardware_passive) = (true, true);
    assert_eq!(listen_to(&passive).start_drops, None);
    assert!(listen_to(&conf()).start_drops.unwrap().software);
}
