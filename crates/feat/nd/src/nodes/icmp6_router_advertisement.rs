//! `icmp6-router-advertisement`: reports other routers to the main thread (RFC 4861 section 6.3.4).
//!
//! Reads: rx interface, the Ethernet header before the packet. The packet ends here.

use crate::asker::Asker;
use crate::message::{self, Faults, Receive, Receiver};
use crate::reports::{HeardReporter, Prefixes, RouterHeard, RouterPrefix};
use std::any::Any;
use std::net::IpAddr;
use thalweg_buffer::PktMut;
use thalweg_feat_neighbor::{Origin, Reporter};
use thalweg_graph::{Built, NodeCx, NodeDecl, Verdict};
use thalweg_wire::MacAddr;
use thalweg_wire::nd::{Message, NdOption};

thalweg_graph::errors! {
    RECEIVED: Info, UNKNOWN, "router advertisements received";
    THROTTLED: Warning, UNKNOWN, "router advertisements not reported: rate limit";
    EVENTS_LOST: Warning, UNKNOWN, "router advertisements not reported: main thread busy";
    HOP_LIMIT: Error, IPV6_NDISC_HOP_LIMIT, "router advertisement with a hop limit below 255";
    CODE: Error, IPV6_NDISC_BAD_CODE, "router advertisement with a code";
    FRAGMENT: Error, IPV6_NDISC_FRAG, "router advertisement in a fragment";
    LENGTH: Error, IPV6_NDISC_BAD_OPTIONS, "router advertisement too short, or with malformed options";
    LABELS: Error, IPV6_NDISC_HOP_LIMIT, "router advertisement behind labels";
    BAD_SOURCE: Error, ICMP_PARSING, "router advertisement source not link-local";
    BAD_MAC: Error, SRC_MAC_IS_MULTICAST, "router advertisement with a MAC address that is not unicast";
    OWN: Error, UNKNOWN, "router advertisement from our own address";
}

/// Faults of messages of any kind.
const FAULTS: Faults =
    Faults { hop_limit: HOP_LIMIT, code: CODE, fragment: FRAGMENT, length: LENGTH, labels: LABELS };

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "icmp6-router-advertisement",
    errors: ERRORS,
    drop: "ip6-drop",
    build: |cx| {
        let (asker, reporter) = (Asker::new(cx), Reporter::new(cx));
        Built::node(Receiver(RouterAdvertisement {
            asker,
            reporter,
            heard: HeardReporter::new(cx),
        }))
    },
    ..NodeDecl::DEFAULT
};

struct RouterAdvertisement {
    asker: Asker,
    reporter: Reporter,
    heard: HeardReporter,
}

/// Contents of an advertisement, its prefixes, and the MAC address that it names.
type Read = (RouterHeard, Prefixes, Option<MacAddr>);

/// Reads a valid advertisement.
fn read(p: &PktMut<'_>) -> Result<Read, Verdict> {
    let received = message::read(p).map_err(|fault| fault.drops(FAULTS))?;
    let Message::RouterAdvertisement {
        hop_limit,
        flags,
        lifetime,
        reachable_ms,
        retransmit_ms,
        options,
    } = received.message
    else {
        return Err(Verdict::drop(LENGTH));
    };
    if !received.src.is_unicast_link_local() {
        return Err(Verdict::drop(BAD_SOURCE));
    }
    let (mut mtu, mut prefixes) = (0, Prefixes::new());
    for option in options.flatten() {
        match option {
            NdOption::Mtu(found) => mtu = found,
            NdOption::Prefix { prefix, length, flags, valid, preferred } if length <= 128 => {
                prefixes.push(RouterPrefix { prefix, len: length, flags, valid, preferred });
            }
            _ => {}
        }
    }
    let (sw_if, router) = (p.rx_if(), received.src);
    let heard = RouterHeard {
        sw_if,
        router,
        hop_limit,
        flags,
        lifetime,
        reachable_ms,
        retransmit_ms,
        mtu,
        prefixes: Vec::new(),
    };
    Ok((heard, prefixes, received.message.link_layer()))
}

impl Receive for RouterAdvertisement {
    fn receive(&mut self, cx: &mut NodeCx<'_>, p: &PktMut<'_>) -> Result<(), Verdict> {
        let (heard, prefixes, named) = read(p)?;
        if self.asker.addrs.load(cx.guard()).is_own(heard.sw_if, heard.router) {
            return Err(Verdict::drop(OWN));
        }
        if named.is_some_and(|mac| !mac.is_unicast()) {
            return Err(Verdict::drop(BAD_MAC));
        }
        cx.count(RECEIVED, 1);
        if let Some(mac) = named {
            // The router is reported even if it is not learned.
            let router = (IpAddr::V6(heard.router), mac);
            self.reporter.sender(cx, heard.sw_if, router, Origin::Request);
        }
        self.heard.report(cx, (&heard, &prefixes)).count(cx, THROTTLED, EVENTS_LOST);
        Ok(())
    }

    fn message(&mut self, message: &(dyn Any + Send)) {
        self.reporter.message(message);
    }
}
