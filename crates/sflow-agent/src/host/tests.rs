use super::*;
use crate::agent::{Agent, AgentConfig, Batch, Transport};
use thalweg_sflow::decode::{Datagram, Sample};
use thalweg_sflow::model::{DataSource, HostAdapter, Tag};
use thalweg_wire::ethernet::MacAddr;

/// Time limit of a reading, however busy the processors are.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn this_host_is_read() {
    let host = HostCounters::read(None);
    assert!(!host.hostname.is_empty() && !host.os_release.is_empty());
    let cpu = host.cpu.unwrap();
    assert!(cpu.cpus > 0 && cpu.uptime > 0 && cpu.idle > 0 && cpu.contexts > 0, "{cpu:?}");
    let memory = host.memory.unwrap();
    assert!(memory.total > memory.free && memory.free > 0, "{memory:?}");
    let disk = host.disk.unwrap();
    assert!(disk.total >= disk.free && disk.total > 0, "{disk:?}");
    assert_eq!(host.ip.unwrap().default_ttl, 64);
    assert!(host.tcp.is_some() && host.udp.is_some() && host.icmp.is_some());
    assert!(host.net.is_some());
    assert_eq!(host.records().len(), 10);
}

#[test]
fn a_host_without_files_has_a_name() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(HostCounters::read_files(root.path()), HostCounters::default());
    assert_eq!(HostCounters::default().records().len(), 2);
}

/// Fields that an older kernel lacks, or a newer one has in the middle, change nothing else.
#[test]
fn fields_are_found_by_name() {
    let text = "Ip: Forwarding DefaultTTL InReceives\nIp: 1 63 77\n\
        Icmp: InMsgs InErrors InCsumErrors InDestUnreachs\nIcmp: 9 8 7 6\n\
        IcmpMsg: InType3\nIcmpMsg: 5\nTcp: MaxConn InSegs\nTcp: -1 4294967300\nUdp: x\nUdp: y\n";
    let snmp = kernel::Snmp::parse(text);
    assert_eq!((snmp.ip().unwrap().default_ttl, snmp.ip().unwrap().in_receives), (63, 77));
    let icmp = snmp.icmp().unwrap();
    assert_eq!((icmp.in_messages, icmp.in_errors, icmp.in_unreachable), (9, 8, 6));
    let tcp = snmp.tcp().unwrap();
    assert_eq!((tcp.max_connections, tcp.in_segments), (u32::MAX, 4));
    assert_eq!(snmp.udp(), None);
}

#[test]
fn processor_and_memory_are_read() {
    let cpu = kernel::cpu(&kernel::CpuFiles {
        stat: "cpu  100 1 20 3000 4 5 6 7 8 9\ncpu0 1 1 1 1\ncpu1 1 1 1 1\nintr 1234 0 0\n\
               ctxt 5678\nprocs_running 3\n",
        loadavg: "0.50 0.25 1.00 3/456 7890\n",
        uptime: "1234.56 789.0\n",
        cpuinfo: "processor : 0\ncpu MHz\t\t: 2599.998\n",
        max_frequency: "",
        ticks: 100,
    })
    .unwrap();
    assert_eq!((cpu.load_one, cpu.load_five, cpu.load_fifteen), (0.5, 0.25, 1.0));
    assert_eq!((cpu.running, cpu.processes, cpu.cpus, cpu.speed), (3, 456, 2, 2599));
    assert_eq!((cpu.uptime, cpu.user, cpu.idle, cpu.io_wait), (1234, 1000, 30_000, 40));
    assert_eq!((cpu.interrupts, cpu.contexts), (1234, 5678));
    assert_eq!((cpu.steal, cpu.guest, cpu.guest_nice), (Some(70), Some(80), Some(90)));
    let memory = kernel::memory(
        "MemTotal: 1000 kB\nMemFree:  300 kB\nShmem: 5 kB\nCached: 7 kB\n",
        "pgpgin 11\npgpgout 12\npswpin 13\npswpout 14\n",
    )
    .unwrap();
    assert_eq!((memory.total, memory.free, memory.shared), (1_024_000, 307_200, 5120));
    assert_eq!((memory.page_in, memory.swap_out, memory.buffers), (11, 14, 0));
    assert_eq!(kernel::memory("", ""), None);
}

#[test]
fn uuids_are_read() {
    let bytes = parse_uuid("11111111-2222-3333-4444-555555555555").unwrap().0;
    assert_eq!((bytes[0], bytes[4], bytes[15]), (0x11, 0x22, 0x55));
    assert_eq!(parse_uuid("0123456789abcdef0123456789ABCDEF").unwrap().0[1], 0x23);
    for bad in ["", "00000000-0000-0000-0000-000000000000", "123", &"g".repeat(32), "+1"] {
        assert_eq!(parse_uuid(bad), None, "{bad}");
    }
}

#[derive(Default)]
struct Memory(Vec<Vec<u8>>);

impl Transport for Memory {
    fn send(&mut self, batch: &Batch, _now: Instant) {
        self.0.extend(batch.iter().map(<[u8]>::to_vec));
    }
}

fn tags(datagram: &[u8]) -> Vec<Vec<Tag>> {
    let datagram = Datagram::parse(datagram).unwrap();
    let sample = |sample| match sample {
        Ok(Sample::Counters(s)) => {
            assert_eq!(s.source, DataSource::HOST);
            s.records.map(|r| r.unwrap().tag()).collect()
        }
        other => panic!("{other:?}"),
    };
    datagram.samples().map(sample).collect()
}

/// The order on the wire is hsflowd's.
#[test]
fn a_host_sample_is_as_hsflowd_has_it() {
    let now = Instant::now();
    let config = AgentConfig::new("192.0.2.1".parse().unwrap());
    let mut agent = Agent::new(&config, now, Memory::default()).unwrap();
    let host = HostCounters::read(None);
    assert!(agent.host_counters(now, &host));
    agent.flush(now);
    let expected = [2001, 2010, 2009, 2008, 2007, 2005, 2004, 2003, 2006, 2000];
    let sent = agent.transport().0.clone();
    assert_eq!(tags(&sent[0]), [expected.map(|format| Tag::new(0, format))]);
    // Records follow the datagram's header and the sample's; each has the length of the standard.
    let word = |at: usize| u32::from_be_bytes(*sent[0][at..].first_chunk().unwrap());
    let (mut at, mut lengths) = (28 + 8 + 16, Vec::new());
    while at < sent[0].len() {
        lengths.push((word(at), word(at + 4)));
        at += 8 + word(at + 4) as usize;
    }
    assert_eq!(at, sent[0].len());
    let fixed = [
        (2010, 28),
        (2009, 60),
        (2008, 100),
        (2007, 76),
        (2005, 52),
        (2004, 72),
        (2003, 80),
        (2006, 40),
    ];
    assert_eq!(lengths[1..9], fixed);
}

/// A host with a thousand interfaces, and one with short datagrams, are still described: in as many
/// samples as it takes, with as many adapters as fit.
#[test]
fn a_host_sample_that_is_too_long_is_split() {
    let now = Instant::now();
    for (bytes, adapters) in [(1400, 1000), (200, 1), (400, 30), (1400, 0)] {
        let usual = AgentConfig::new("2001:db8::1".parse().unwrap());
        let config = AgentConfig { datagram_bytes: bytes, header_bytes: 64, ..usual };
        let mut agent = Agent::new(&config, now, Memory::default()).unwrap();
        let adapter = |index| HostAdapter { index, macs: vec![MacAddr([2; 6])] };
        let host = HostCounters {
            adapters: HostAdapters((1..=adapters).map(adapter).collect()),
            ..HostCounters::read(None)
        };
        assert!(agent.host_counters(now, &host), "{bytes}");
        agent.flush(now);
        assert_eq!(agent.stats().refused_samples, 0);
        let mut all: Vec<u32> =
            agent.transport().0.iter().flat_map(|d| tags(d)).flatten().map(Tag::format).collect();
        all.sort_unstable();
        assert_eq!(all, [2000, 2001, 2003, 2004, 2005, 2006, 2007, 2008, 2009, 2010]);
        assert!(agent.transport().0.iter().all(|d| d.len() <= bytes));
    }
}

#[test]
fn a_poller_reads_once_an_interval() {
    let start = Instant::now();
    let mut poller = HostPoller::default();
    assert_eq!((poller.deadline(start), poller.poll(start)), (None, None));
    let interval = Duration::from_secs(30);
    poller.configure(Some(interval), None, start);
    let mut now = poller.deadline(start).unwrap();
    assert!(now >= start && now < start + interval);
    for _ in 0..3 {
        let due = now;
        assert_eq!(poller.poll(due), None);
        let end = Instant::now() + LIMIT;
        while poller.poll(due).is_none() {
            assert!(poller.deadline(due).unwrap() > due);
            assert!(Instant::now() < end, "nothing is read");
            std::thread::yield_now();
        }
        now = poller.deadline(due).unwrap();
        assert_eq!(now, due + interval);
    }
    // After a long delay, missed ones are not repeated.
    let late = now + Duration::from_secs(600);
    assert_eq!(poller.poll(late), None);
    let end = Instant::now() + LIMIT;
    while poller.poll(late).is_none() {
        assert!(Instant::now() < end, "nothing is read");
        std::thread::yield_now();
    }
    assert_eq!(poller.deadline(late), Some(late + interval));
    poller.configure(None, None, late);
    assert_eq!(poller.deadline(late), None);
}
