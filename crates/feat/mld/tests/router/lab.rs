//! A router of the real features between test interfaces, and queries of another router.

use std::net::Ipv6Addr;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use thalweg_device::testing;
use thalweg_engine::Feature;
use thalweg_wire::MacAddr;
use thalweg_wire::icmpv6::{Icmp6View, fill_checksum};
use thalweg_wire::ipv6::{Ipv6Repr, Ipv6View};

pub fn at(text: &str) -> Ipv6Addr {
    text.parse().expect("an address")
}

/// The clock of timers is the process's: tests that move it run one after the other.
static CLOCK: Mutex<()> = Mutex::new(());

/// Interfaces `test0` and `test1`, with addresses of MAC addresses.
pub struct Lab(testing::Lab, #[expect(dead_code)] MutexGuard<'static, ()>);

impl Deref for Lab {
    type Target = testing::Lab;
    fn deref(&self) -> &testing::Lab {
        &self.0
    }
}

impl DerefMut for Lab {
    fn deref_mut(&mut self) -> &mut testing::Lab {
        &mut self.0
    }
}

/// What a message says: type, and records of a kind and a group, or the group alone.
#[derive(PartialEq, Eq, Debug)]
pub struct Said {
    pub kind: u8,
    pub src: Ipv6Addr,
    pub dst: Ipv6Addr,
    pub records: Vec<(u8, Ipv6Addr)>,
    /// Of all records.
    pub sources: Vec<Ipv6Addr>,
}

impl Lab {
    pub fn new() -> Lab {
        let features: [&Feature; 8] = [
            &thalweg_device::FEATURE,
            &thalweg_fib::FEATURE,
            &thalweg_feat_ethernet::FEATURE,
            &thalweg_feat_neighbor::FEATURE,
            &thalweg_feat_nd::FEATURE,
            &thalweg_feat_ip::FEATURE,
            &thalweg_feat_ip6::FEATURE,
            &thalweg_feat_mld::FEATURE,
        ];
        let alone = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
        Lab(testing::Lab::new(&features, 1, 2048, 2), alone)
    }

    /// Lets time pass, and all that is due then.
    pub fn wait(&mut self, ms: u64) {
        // Timers may arm others.
        for _ in 0..ms.div_ceil(500) {
            self.c.adjust_clock(Duration::from_millis(500.min(ms)));
            self.turn();
        }
    }

    /// Lets workers and the main thread do what is pending.
    pub fn turn(&mut self) {
        for _ in 0..6 {
            self.c.sync();
            self.c.run_once(Some(Duration::ZERO));
        }
        self.c.sync();
    }

    /// What `testN` has said since the last call.
    pub fn said(&mut self, n: u8) -> Vec<Said> {
        self.turn();
        let sw_if = self.sw_if(n);
        let sent = self.sent().into_iter().filter(|(i, _)| *i == sw_if);
        sent.filter_map(|(_, frame)| read(&frame)).collect()
    }

    /// The groups that `show ip6 mld` lists for `testN`.
    pub fn listed(&mut self, n: u8) -> Vec<String> {
        let text = self.cli(&format!("show ip6 mld test{n}"));
        let lines = text.lines().filter_map(|line| line.trim().strip_prefix("ff02::"));
        lines.map(str::to_owned).collect()
    }

    /// `testN` receives a message of another router.
    pub fn hear(&mut self, n: u8, dst: Ipv6Addr, message: &[u8]) {
        let frame = frame(at("fe80::9"), dst, 1, ALERT, message);
        self.receive(n, vec![frame]);
        self.turn();
    }

    /// Stops the router: all packets are accounted for, all buffers returned.
    pub fn close(self) {
        self.0.close();
    }
}

/// A hop-by-hop header with the router alert option.
pub const ALERT: &[u8] = &[58, 0, 5, 2, 0, 0, 1, 0];

/// A query of version 2, or with `old` of version 1.
pub fn query(group: Ipv6Addr, within_ms: u16, old: bool) -> Vec<u8> {
    let mut m = vec![130, 0, 0, 0];
    m.extend(within_ms.to_be_bytes());
    m.extend([0, 0]);
    m.extend(group.octets());
    if !old {
        m.extend([2, 20, 0, 0]);
    }
    m
}

pub fn frame(src: Ipv6Addr, dst: Ipv6Addr, hops: u8, options: &[u8], message: &[u8]) -> Vec<u8> {
    let mut message = message.to_vec();
    fill_checksum(&src, &dst, &mut message).expect("a message");
    let mut packet = vec![0; 40];
    let next = if options.is_empty() { 58 } else { 0 };
    let header = Ipv6Repr::new(src, dst, next, (options.len() + message.len()) as u16);
    Ipv6Repr { hop_limit: hops, ..header }.emit(&mut packet).expect("a header");
    let group = MacAddr::from_ipv6_multicast(dst);
    [&group.0[..], &[2, 0, 0, 0x99, 0, 9, 0x86, 0xdd], &packet, options, &message].concat()
}

/// Reads a message of a listener, which is sound.
fn read(frame: &[u8]) -> Option<Said> {
    let ip = Ipv6View::parse(frame.get(14..)?).ok()?;
    let transport = ip.transport().ok()?;
    let icmp = Icmp6View::parse(transport.payload).ok()?;
    let m = transport.payload;
    let group = |b: &[u8]| Ipv6Addr::from(*b.first_chunk::<16>().expect("a group"));
    let (mut records, mut sources) = (Vec::new(), Vec::new());
    match icmp.kind() {
        131 | 132 => records.push((0, group(&m[8..]))),
        143 => {
            let mut rest = &m[8..];
            for _ in 0..m[7] {
                let (record, behind) = rest.split_at(20);
                records.push((record[0], group(&record[4..])));
                let (listed, behind) = behind.split_at(16 * usize::from(record[3]));
                sources.extend(listed.chunks(16).map(group));
                rest = behind;
            }
            assert!(rest.is_empty());
        }
        _ => return None,
    }
    assert_eq!((ip.hop_limit(), ip.router_alert()), (1, Some(0)));
    assert!(icmp.checksum_ok(&ip.src(), &ip.dst()));
    assert_eq!(frame[..6], MacAddr::from_ipv6_multicast(ip.dst()).0);
    Some(Said { kind: icmp.kind(), src: ip.src(), dst: ip.dst(), records, sources })
}
