//! A small router for this crate's tests: one interface that records its packets, and stand-ins for
//! the features around ARP.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::any::Any;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use thalweg_buffer::{IcmpCause, PktMut};
use thalweg_device::SwIfIndex;
use thalweg_device::testing::Lab;
use thalweg_engine::Feature;
use thalweg_feat_neighbor::{self as neighbor, Config, Neighbors, Version};
use thalweg_fib::{Dpo, DpoTable, Forwarding, LinkType};
use thalweg_graph::{
    Built, ErrorCode, ErrorDecl, Inject, InputNode, Kind, Node, NodeCx, NodeDecl, NodeId, Poll,
    Severity, Verdict,
};
use thalweg_wire::MacAddr;
use thalweg_wire::arp::{ArpRepr, ArpView, Operation};
use thalweg_wire::build::Packet as Build;

/// The router's MAC address, that of `test0`.
pub(crate) const US: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x10]);
/// The router's address.
pub(crate) const OUR_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// The MAC address of the test's neighbour `n`.
pub(crate) fn mac(n: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, n])
}

/// The address of the test's neighbour `n`.
pub(crate) fn ip(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n)
}

static ETHERNET: NodeDecl = NodeDecl {
    name: "ethernet-input",
    next: &["arp-input"],
    build: |_| Built::node(Ethernet),
    ..NodeDecl::DEFAULT
};
struct Ethernet;
impl Node for Ethernet {
    fn packet(&mut self, _cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let n = p.len().min(14);
        p.pull(n);
        Verdict::next(0)
    }
}

static IP4_DROP: NodeDecl = NodeDecl {
    name: "ip4-drop",
    next: &["error-drop"],
    build: |_| Built::node(Pass),
    ..NodeDecl::DEFAULT
};
static IP4_ICMP_ERROR: NodeDecl = NodeDecl {
    name: "ip4-icmp-error",
    next: &["ip4-drop"],
    errors: ICMP_ERRORS,
    build: |_| Built::node(IcmpError),
    ..NodeDecl::DEFAULT
};
static ICMP_ERRORS: &[ErrorDecl] =
    &[ErrorDecl { name: "ASKED", text: "asked", severity: Severity::Info, discard: 256 }];
struct IcmpError;
impl Node for IcmpError {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        cx.count(ErrorCode(0), u64::from(p.meta().icmp == IcmpCause::HOST_UNREACHABLE));
        Verdict::next(0)
    }
}
struct Pass;
impl Node for Pass {
    fn packet(&mut self, _cx: &mut NodeCx<'_>, _p: PktMut<'_>) -> Verdict {
        Verdict::next(0)
    }
}

static IP4_REWRITE: NodeDecl = NodeDecl {
    name: "ip4-rewrite",
    next: &["ip4-arp"],
    build: |cx| Built::node(Rewrite { dpos: cx.shared() }),
    ..NodeDecl::DEFAULT
};
struct Rewrite {
    dpos: Arc<DpoTable>,
}
impl Node for Rewrite {
    fn packet(&mut self, _cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let entry = self.dpos.get(Dpo(p.aux()));
        let state = entry.state();
        if state.kind != thalweg_fib::Kind::REWRITE {
            return Verdict::next(0);
        }
        let n = usize::from(state.len);
        p.push(n).unwrap().copy_from_slice(&entry.rewrite()[..n]);
        Verdict::node(NodeId(entry.next() as u16))
    }
}

/// Sends the configured number of requests, each from another sender.
static FLOOD: NodeDecl = NodeDecl {
    name: "flood",
    kind: Kind::Input,
    build: |_| Built::input(Flood { sw_if: SwIfIndex(0), left: 0, seed: 1 }),
    ..NodeDecl::DEFAULT
};
struct Flood {
    sw_if: SwIfIndex,
    left: u32,
    seed: u64,
}
impl InputNode for Flood {
    fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll {
        if self.left == 0 {
            return Poll::Idle;
        }
        let mut frame = cx.alloc_frame(256.min(self.left as usize), 60);
        for i in 0..frame.len() {
            self.seed = thalweg_tables::hash::mix64(self.seed + 1);
            let [a, b, c, d, e, f, _, _] = self.seed.to_be_bytes();
            let sender =
                ArpRepr::request(MacAddr([2, a, b, c, d, e]), Ipv4Addr::new(10, c, d, f), OUR_IP);
            let bytes =
                Build::new().ether(sender.sender_mac, MacAddr::BROADCAST).arp(sender).build();
            frame.pkt(i as u8).data_mut()[..bytes.len()].copy_from_slice(&bytes);
        }
        self.left -= frame.len() as u32;
        let n = frame.len();
        cx.device_input(frame, self.sw_if, |_, _, _| {});
        Poll::Busy(n)
    }
    fn message(&mut self, _cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        (self.sw_if, self.left) = *message.downcast::<(SwIfIndex, u32)>().unwrap();
    }
}

static STAND_INS: Feature = Feature {
    name: "stand-ins",
    about: "what surrounds ARP",
    nodes: &[&ETHERNET, &IP4_DROP, &IP4_ICMP_ERROR, &IP4_REWRITE, &FLOOD],
    ..Feature::DEFAULT
};

/// A running router with one interface, `test0`, at 10.0.0.1/24.
pub(crate) struct Bench {
    pub(crate) lab: Lab,
    pub(crate) sw_if: SwIfIndex,
    pub(crate) glean: Dpo,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        let setup = Lab::of(&crate::FEATURE).with(&neighbor::BY_CLOCK).with(&STAND_INS);
        let mut lab = setup.interfaces(1).start();
        let sw_if = lab.sw_if(0);
        crate::set_addresses(&mut lab.c, sw_if, &[(OUR_IP, 24)]);
        let forwarding = lab.c.state::<Forwarding>();
        let glean = forwarding.borrow_mut().glean(&lab.c, sw_if, LinkType::Ip4).unwrap();
        let mut bench = Bench { lab, sw_if, glean };
        bench.settle();
        bench
    }

    /// Shortens the retry interval.
    pub(crate) fn quick(&mut self, retry: Duration) {
        self.configure(|config| config.retry = retry);
    }

    /// Changes the settings of IPv4 neighbours.
    pub(crate) fn configure(&mut self, f: impl FnOnce(&mut Config)) {
        let mut config = self.lab.c.state::<Neighbors>().borrow().config(Version::V4).unwrap();
        f(&mut config);
        neighbor::set_config(&mut self.lab.c, Version::V4, config).unwrap();
    }

    /// Output of a command, or its error.
    pub(crate) fn cli(&mut self, line: &str) -> String {
        self.lab.cli(line)
    }

    /// Lets worker and main thread finish their pending work.
    pub(crate) fn settle(&mut self) {
        self.lab.turn();
    }

    /// Runs the main loop until `done`.
    pub(crate) fn until(&mut self, what: &str, mut done: impl FnMut(&mut Bench) -> bool) {
        let deadline = std::time::Instant::now() + thalweg_testkit::WAIT_LIMIT;
        while !done(self) {
            assert!(std::time::Instant::now() < deadline, "timed out waiting for {what}");
            self.lab.c.run_once(Some(Duration::from_millis(2)));
        }
    }

    fn inject(&mut self, node: &str, bytes: Vec<u8>, aux: u32) {
        let node = self.lab.c.node(node).unwrap();
        self.lab.c.inject(0, Inject { node, bytes, rx_if: self.sw_if, tx_if: SwIfIndex(0), aux });
    }

    /// Receives a frame, and does what follows from it.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.lab.deliver(0, vec![bytes.to_vec()]);
        self.settle();
    }

    /// Injects an ARP packet from its sender.
    pub(crate) fn arp(&mut self, arp: ArpRepr) {
        let dst = if arp.target_mac.is_zero() { MacAddr::BROADCAST } else { MacAddr(US.0) };
        let bytes = Build::new().ether(arp.sender_mac, dst).arp(arp).padded().build();
        self.receive(&bytes);
    }

    /// Neighbour `n` sends a request for our address.
    pub(crate) fn request_from(&mut self, n: u8) {
        self.arp(ArpRepr::request(MacAddr(mac(n).0), ip(n), OUR_IP));
    }

    /// Neighbour `n` sends a reply to us.
    pub(crate) fn reply_from(&mut self, n: u8) {
        self.arp(reply(mac(n), ip(n)));
    }

    /// Injects a packet for `dst` at `node`, marked by `mark` in its last byte.
    pub(crate) fn packet(&mut self, node: &str, dpo: Dpo, dst: Ipv4Addr, mark: u8) {
        let bytes =
            Build::new().ipv4(Ipv4Addr::new(192, 0, 2, 1), dst).udp(1, 2).payload(&[mark]).build();
        self.inject(node, bytes, dpo.get());
    }

    /// Takes the frames sent since the last call.
    pub(crate) fn sent(&mut self) -> Vec<Vec<u8>> {
        self.lab.sent().into_iter().map(|(_, frame)| frame).collect()
    }

    /// Takes the ARP packets among the sent frames, with their Ethernet destinations; drops others.
    pub(crate) fn sent_arp(&mut self) -> Vec<(MacAddr, ArpRepr)> {
        let sent = self.sent();
        let arp = sent.iter().filter(|f| f[12..14] == [8, 6]);
        arp.map(|f| (MacAddr(*f.first_chunk().unwrap()), ArpView::parse(&f[14..]).unwrap().repr()))
            .collect()
    }

    /// Sum of a counter over all workers.
    pub(crate) fn count(&self, node: &str, name: &str) -> u64 {
        let id = self.lab.c.node(node).unwrap();
        let found = self.lab.c.errors().iter().position(|(n, e)| *n == id && e.name == name);
        let i = found.unwrap_or_else(|| panic!("no counter {node} {name}")) as u32;
        (0..self.lab.c.workers()).map(|w| self.lab.c.worker_stats(w).error(i).get()).sum()
    }

    /// MAC address of neighbour `n`, if resolved.
    pub(crate) fn known(&self, n: u8) -> Option<MacAddr> {
        self.lab.c.state::<Neighbors>().borrow().find(self.sw_if, ip(n).into()).and_then(|n| n.mac)
    }

    /// Stops the router and checks that no packet is missing.
    pub(crate) fn finish(mut self) {
        let stats = self.lab.c.worker_stats(0).clone();
        let audit = self.lab.c.shut_down();
        assert_eq!(audit.in_use, 0, "packets leaked");
        let t = &stats.totals;
        let ended = t.tx.get() + t.delivered.get() + t.dropped.get() + t.consumed.get();
        assert!(ended <= t.rx.get() + t.originated.get(), "packets counted twice");
    }
}

/// An ARP reply to us from `ip` at `mac`.
pub(crate) fn reply(mac: MacAddr, ip: Ipv4Addr) -> ArpRepr {
    ArpRepr {
        operation: Operation::Reply,
        sender_mac: MacAddr(mac.0),
        sender_ip: ip,
        target_mac: MacAddr(US.0),
        target_ip: OUR_IP,
    }
}
