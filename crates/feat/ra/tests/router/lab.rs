//! A router of the real features between test interfaces, and messages of other hosts.

use std::net::Ipv6Addr;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use thalweg_device::testing;
use thalweg_engine::Feature;
use thalweg_wire::MacAddr;
use thalweg_wire::icmpv6::{Icmp6View, fill_checksum};
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::{Ipv6Repr, Ipv6View};

pub fn at(text: &str) -> Ipv6Addr {
    text.parse().expect("an address")
}

/// The MAC address of the host.
pub const HOST: MacAddr = MacAddr([2, 0, 0, 0x99, 0, 9]);

/// The clock of timers is the process's: tests that move it run one after the other.
static CLOCK: Mutex<()> = Mutex::new(());

/// Three interfaces.
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

impl Lab {
    /// Interfaces `test0` to `test2` that are up and speak IPv6.
    pub fn new() -> Lab {
        let features: [&Feature; 8] = [
            &thalweg_device::FEATURE,
            &thalweg_fib::FEATURE,
            &thalweg_feat_ethernet::FEATURE,
            &thalweg_feat_neighbor::FEATURE,
            &thalweg_feat_nd::FEATURE,
            &thalweg_feat_ip::FEATURE,
            &thalweg_feat_ip6::FEATURE,
            &thalweg_feat_ra::FEATURE,
        ];
        let alone = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lab = Lab(testing::Lab::new(&features, 1, 2048, 3), alone);
        for n in 0..3 {
            lab.ok(&format!("enable ip6 interface test{n}"));
        }
        lab
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

    /// A message of a host is received by `testN`.
    pub fn hear(&mut self, n: u8, src: Ipv6Addr, dst: Ipv6Addr, message: &[u8]) {
        self.receive(n, vec![frame(src, dst, 255, message)]);
        self.turn();
    }

    /// Frames sent by `testN` since the last call that are ICMPv6 messages of a type.
    pub fn messages(&mut self, n: u8, kind: u8) -> Vec<Vec<u8>> {
        let sw_if = self.sw_if(n);
        let sent = self.sent().into_iter().filter(|(i, _)| *i == sw_if).map(|(_, frame)| frame);
        sent.filter(|frame| frame.get(20) == Some(&58) && frame.get(54) == Some(&kind)).collect()
    }

    /// Stops the router: all packets are accounted for, all buffers returned.
    pub fn close(self) {
        self.0.close();
    }
}

/// An ICMPv6 message of the host, whose checksum is set.
pub fn frame(src: Ipv6Addr, dst: Ipv6Addr, hops: u8, message: &[u8]) -> Vec<u8> {
    let mut message = message.to_vec();
    fill_checksum(&src, &dst, &mut message).expect("a message");
    let mut packet = vec![0; 40];
    let header = Ipv6Repr::new(src, dst, protocol::ICMPV6, message.len() as u16);
    Ipv6Repr { hop_limit: hops, ..header }.emit(&mut packet).expect("a header");
    let group = MacAddr::from_ipv6_multicast(dst);
    [&group.0[..], &HOST.0, &[0x86, 0xdd], &packet, &message].concat()
}

/// The ICMPv6 message of a frame, whose checksum is right: its source and bytes.
pub fn message(frame: &[u8]) -> (Ipv6Addr, Vec<u8>) {
    let ip = Ipv6View::parse(&frame[14..]).expect("a sound header");
    assert_eq!(ip.hop_limit(), 255);
    let icmp = Icmp6View::parse(ip.payload()).expect("icmp");
    assert!(icmp.checksum_ok(&ip.src(), &ip.dst()));
    (ip.src(), ip.payload().to_vec())
}
