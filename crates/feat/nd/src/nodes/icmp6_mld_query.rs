//! `icmp6-mld-query`: reports routers that ask for the listeners of a link's groups to the main
//! thread, which answers (RFC 3810 section 6.2).
//!
//! Reads: rx interface. The packet ends here.

use crate::addrs::IfAddrs;
use crate::message::{Receive, Receiver};
use crate::reports::QueriedReporter;
use std::sync::Arc;
use thalweg_buffer::PktMut;
use thalweg_graph::{Built, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::icmpv6::Icmp6View;
use thalweg_wire::ipv6::Ipv6View;
use thalweg_wire::mld::{HOP_LIMIT as HOPS, Query};

thalweg_graph::errors! {
    RECEIVED: Info, UNKNOWN, "multicast listener queries received";
    THROTTLED: Warning, UNKNOWN, "multicast listener queries not answered: rate limit";
    EVENTS_LOST: Warning, UNKNOWN, "multicast listener queries not answered: main thread busy";
    HOP_LIMIT: Error, ICMP_PARSING, "multicast listener query with a hop limit other than 1";
    LENGTH: Error, ICMP_PARSING, "multicast listener query of a length that no version has";
    BAD_SOURCE: Error, ICMP_PARSING, "multicast listener query source not link-local";
    NO_ALERT: Error, ICMP_PARSING, "multicast listener query without router alert option";
    BAD_GROUP: Error, ICMP_PARSING, "multicast listener query for a unicast address";
    OWN: Error, UNKNOWN, "multicast listener query from our own address";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "icmp6-mld-query",
    errors: ERRORS,
    drop: "ip6-drop",
    build: |cx| {
        let (addrs, queried) = (cx.shared(), QueriedReporter::new(cx));
        Built::node(Receiver(MldQuery { addrs, queried }))
    },
    ..NodeDecl::DEFAULT
};

struct MldQuery {
    addrs: Arc<Snapshot<IfAddrs>>,
    queried: QueriedReporter,
}

/// Reads a valid query, and its source.
fn read(packet: &[u8]) -> Result<(std::net::Ipv6Addr, Query), Verdict> {
    let length = |_| Verdict::drop(LENGTH);
    let ip = Ipv6View::parse_prefix(packet).map_err(length)?;
    if ip.hop_limit() != HOPS {
        return Err(Verdict::drop(HOP_LIMIT));
    }
    if !ip.src().is_unicast_link_local() {
        return Err(Verdict::drop(BAD_SOURCE));
    }
    if ip.router_alert() != Some(0) {
        return Err(Verdict::drop(NO_ALERT));
    }
    let icmp = Icmp6View::parse(ip.transport().map_err(length)?.payload).map_err(length)?;
    let Some(Ok(query)) = Query::parse(&icmp) else { return Err(Verdict::drop(LENGTH)) };
    if !query.group.is_multicast() && !query.group.is_unspecified() {
        return Err(Verdict::drop(BAD_GROUP));
    }
    Ok((ip.src(), query))
}

impl Receive for MldQuery {
    fn receive(&mut self, cx: &mut NodeCx<'_>, p: &PktMut<'_>) -> Result<(), Verdict> {
        let ((src, query), rx_if) = (read(p.data())?, p.rx_if());
        if self.addrs.load(cx.guard()).is_own(rx_if, src) {
            return Err(Verdict::drop(OWN));
        }
        cx.count(RECEIVED, 1);
        self.queried.report(cx, rx_if, &query).count(cx, THROTTLED, EVENTS_LOST);
        Ok(())
    }
}
