//! Events on the main thread about routers and tested addresses that workers learn of.

use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;
use thalweg_device::{SwIfIndex, interface};
use thalweg_graph::{BuildCx, Control, EVENT_BYTES, ErrorCode, Event, NodeCx, Topic, clock};
use thalweg_tables::limit::{RateLimit, Shares};
use thalweg_wire::MacAddr;
use thalweg_wire::mld::{MAX_LISTED, Query};

/// Most prefixes of an advertisement that are read.
pub const MAX_PREFIXES: usize = 16;

/// A host asks for the routers of a link, on which the router advertises itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouterSolicited {
    /// The interface.
    pub sw_if: SwIfIndex,
    /// Its address; unspecified if it has none yet.
    pub src: Ipv6Addr,
    /// Its MAC address.
    pub mac: MacAddr,
}

/// A prefix of a router's advertisement (RFC 4861 section 4.6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouterPrefix {
    /// The prefix; bits beyond the length are as they were sent.
    pub prefix: Ipv6Addr,
    /// Its length, 0 to 128.
    pub len: u8,
    /// Flags: on-link (0x80) and autonomous (0x40).
    pub flags: u8,
    /// Valid for this many seconds; all ones: for ever.
    pub valid: u32,
    /// Preferred for this many seconds; all ones: for ever.
    pub preferred: u32,
}

/// Prefixes of an advertisement as a worker reads them: it allocates nothing.
pub(crate) struct Prefixes {
    all: [RouterPrefix; MAX_PREFIXES],
    len: usize,
}

impl Prefixes {
    pub(crate) fn new() -> Prefixes {
        let prefix = Ipv6Addr::UNSPECIFIED;
        let none = RouterPrefix { prefix, len: 0, flags: 0, valid: 0, preferred: 0 };
        Prefixes { all: [none; MAX_PREFIXES], len: 0 }
    }

    /// Adds one, if there is room.
    pub(crate) fn push(&mut self, prefix: RouterPrefix) {
        if let Some(place) = self.all.get_mut(self.len) {
            *place = prefix;
            self.len += 1;
        }
    }

    fn as_slice(&self) -> &[RouterPrefix] {
        &self.all[..self.len]
    }
}

/// Another router advertises itself (RFC 4861 section 4.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouterHeard {
    /// The interface.
    pub sw_if: SwIfIndex,
    /// Its link-local address.
    pub router: Ipv6Addr,
    /// Hop limit for hosts, 0 for unspecified.
    pub hop_limit: u8,
    /// Managed (0x80), other (0x40), preference (0x18).
    pub flags: u8,
    /// Lifetime as a default router in seconds.
    pub lifetime: u16,
    /// Milliseconds that a neighbour stays reachable, 0 for unspecified.
    pub reachable_ms: u32,
    /// Milliseconds between solicitations, 0 for unspecified.
    pub retransmit_ms: u32,
    /// MTU of the link, 0 if it is not advertised.
    pub mtu: u32,
    /// Its prefixes, up to [`MAX_PREFIXES`].
    pub prefixes: Vec<RouterPrefix>,
}

/// Another host has an address of the router's that is still being tested, or tests it, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressUsed {
    /// The interface.
    pub sw_if: SwIfIndex,
    /// The address.
    pub ip: Ipv6Addr,
    /// The other host's MAC address.
    pub mac: MacAddr,
}

/// A router asks for the listeners of a link's groups (RFC 2710, RFC 3810).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListenersQueried {
    /// The interface.
    pub sw_if: SwIfIndex,
    /// The query.
    pub query: Query,
}

/// Topics of the workers' reports.
pub(crate) struct Topics {
    queried: Topic,
    solicited: Topic,
    heard: Topic,
    used: Topic,
}

/// Advertisements of which some parts are still to come: one per worker.
#[derive(Default)]
struct Partial(Vec<Option<(RouterHeard, usize)>>);

pub(crate) fn init(c: &mut Control) {
    c.insert(Partial::default());
    let solicited = c.topic("icmp6-router-solicitation", |c, event| {
        if let Some((src, mac)) = decode_host(event.bytes())
            && interface::is_current(c, event.sw_if, event.at)
        {
            c.publish(RouterSolicited { sw_if: event.sw_if, src, mac });
        }
    });
    let heard = c.topic("icmp6-router-advertisement", |c, event| {
        if let Some(whole) = assemble(c, event)
            && interface::is_current(c, event.sw_if, event.at)
        {
            c.publish(whole);
        }
    });
    let used = c.topic("icmp6-address-used", |c, event| {
        if let Some((ip, mac)) = decode_host(event.bytes())
            && interface::is_current(c, event.sw_if, event.at)
        {
            c.publish(AddressUsed { sw_if: event.sw_if, ip, mac });
        }
    });
    let queried = c.topic("icmp6-mld-query", |c, event| {
        if let Some(query) = decode_query(event.bytes())
            && interface::is_current(c, event.sw_if, event.at)
        {
            c.publish(ListenersQueried { sw_if: event.sw_if, query });
        }
    });
    c.share(Arc::new(Topics { queried, solicited, heard, used }));
}

/// Bytes of a query without its sources, and with them.
const QUERY_HEAD: usize = 28;
const QUERY: usize = QUERY_HEAD + 16 * MAX_LISTED;
const _: () = assert!(QUERY <= EVENT_BYTES);

fn encode_query(q: &Query) -> [u8; QUERY] {
    let mut b = [0; QUERY];
    b[..16].copy_from_slice(&q.group.octets());
    (b[16], b[17]) = (q.version, q.robustness);
    // The longest times that a query can tell fit.
    b[18..22].copy_from_slice(&(q.within.as_millis() as u32).to_be_bytes());
    b[22..26].copy_from_slice(&(q.interval.as_secs() as u32).to_be_bytes());
    b[26..QUERY_HEAD].copy_from_slice(&q.sources.to_be_bytes());
    for (to, from) in b[QUERY_HEAD..].as_chunks_mut().0.iter_mut().zip(q.first) {
        *to = from.octets();
    }
    b
}

fn decode_query(b: &[u8]) -> Option<Query> {
    let b: &[u8; QUERY] = b.first_chunk()?;
    let mut first = [Ipv6Addr::UNSPECIFIED; MAX_LISTED];
    for (to, from) in first.iter_mut().zip(b[QUERY_HEAD..].as_chunks().0) {
        *to = Ipv6Addr::from(*from);
    }
    Some(Query {
        version: b[16],
        within: Duration::from_millis(word(b, 18).into()),
        group: Ipv6Addr::from(*b.first_chunk::<16>()?),
        robustness: b[17],
        interval: Duration::from_secs(word(b, 22).into()),
        sources: u16::from_be_bytes([b[26], b[27]]),
        first,
    })
}

fn encode_host(ip: Ipv6Addr, mac: MacAddr) -> [u8; 22] {
    let mut bytes = [0; 22];
    bytes[..16].copy_from_slice(&ip.octets());
    bytes[16..].copy_from_slice(&mac.0);
    bytes
}

fn decode_host(bytes: &[u8]) -> Option<(Ipv6Addr, MacAddr)> {
    let (ip, mac) = bytes.split_first_chunk::<16>()?;
    Some((Ipv6Addr::from(*ip), MacAddr(*mac.first_chunk::<6>()?)))
}

/// Bytes of the first part of an advertisement, of which the first byte says how many prefixes
/// come, and of a prefix.
const HEAD: usize = 37;
const PREFIX: usize = 26;
/// Prefixes in each of the parts that follow, behind a byte that is [`MORE`].
const PER_PART: usize = 4;
const MORE: u8 = u8::MAX;

fn encode_head(heard: &RouterHeard, prefixes: usize) -> [u8; HEAD] {
    let mut b = [0; HEAD];
    b[0] = prefixes.min(MAX_PREFIXES) as u8;
    b[1..17].copy_from_slice(&heard.router.octets());
    (b[17], b[18]) = (heard.hop_limit, heard.flags);
    b[19..21].copy_from_slice(&heard.lifetime.to_be_bytes());
    for (at, word) in [(21, heard.reachable_ms), (25, heard.retransmit_ms), (29, heard.mtu)] {
        b[at..at + 4].copy_from_slice(&word.to_be_bytes());
    }
    b
}

fn word(b: &[u8], at: usize) -> u32 {
    b.get(at..).and_then(<[u8]>::first_chunk::<4>).map_or(0, |w| u32::from_be_bytes(*w))
}

fn decode_head(sw_if: SwIfIndex, b: &[u8]) -> Option<(RouterHeard, usize)> {
    let b: &[u8; HEAD] = b.first_chunk()?;
    let router = Ipv6Addr::from(*b[1..].first_chunk::<16>()?);
    let heard = RouterHeard {
        sw_if,
        router,
        hop_limit: b[17],
        flags: b[18],
        lifetime: u16::from_be_bytes([b[19], b[20]]),
        reachable_ms: word(b, 21),
        retransmit_ms: word(b, 25),
        mtu: word(b, 29),
        prefixes: Vec::new(),
    };
    Some((heard, usize::from(b[0])))
}

fn encode_prefix(p: &RouterPrefix) -> [u8; PREFIX] {
    let mut b = [0; PREFIX];
    b[..16].copy_from_slice(&p.prefix.octets());
    (b[16], b[17]) = (p.len, p.flags);
    b[18..22].copy_from_slice(&p.valid.to_be_bytes());
    b[22..].copy_from_slice(&p.preferred.to_be_bytes());
    b
}

fn decode_prefix(b: &[u8]) -> Option<RouterPrefix> {
    let b: &[u8; PREFIX] = b.first_chunk()?;
    Some(RouterPrefix {
        prefix: Ipv6Addr::from(*b.first_chunk::<16>()?),
        len: b[16],
        flags: b[17],
        valid: word(b, 18),
        preferred: word(b, 22),
    })
}

/// Adds a part of an advertisement to those before it; returns it once it is whole. A part that was
/// lost makes it never whole: the next advertisement takes its place.
fn assemble(c: &Control, event: &Event) -> Option<RouterHeard> {
    let state = c.state::<Partial>();
    let all = &mut state.borrow_mut().0;
    let worker = usize::from(event.worker);
    if all.len() <= worker {
        all.resize(worker + 1, None);
    }
    let (place, bytes) = (&mut all[worker], event.bytes());
    match bytes.split_first()? {
        (&MORE, rest) => {
            let (heard, _) = place.as_mut().filter(|(heard, _)| heard.sw_if == event.sw_if)?;
            heard.prefixes.extend(rest.chunks_exact(PREFIX).filter_map(decode_prefix));
        }
        _ => *place = decode_head(event.sw_if, bytes),
    }
    let (heard, due) = place.take()?;
    if heard.prefixes.len() >= due {
        return Some(heard);
    }
    *place = Some((heard, due));
    None
}

/// A limit of reports for each interface.
fn limit(rate: u32, burst: u32) -> Shares {
    Shares::of(&RateLimit::steady(rate, burst, clock::hz() as u64))
}

/// Outcome of a worker's report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sent {
    Reported,
    Throttled,
    Busy,
}

impl Sent {
    /// Counts a report that was not sent, by why.
    pub(crate) fn count(self, cx: &mut NodeCx<'_>, throttled: ErrorCode, lost: ErrorCode) {
        match self {
            Sent::Reported => {}
            Sent::Throttled => cx.count(throttled, 1),
            Sent::Busy => cx.count(lost, 1),
        }
    }
}

fn outcome(sent: bool) -> Sent {
    if sent { Sent::Reported } else { Sent::Busy }
}

/// Reports hosts that ask for routers.
pub(crate) struct SolicitedReporter {
    topics: Arc<Topics>,
    limit: Shares,
}

impl SolicitedReporter {
    pub(crate) fn new(cx: &BuildCx<'_>) -> Self {
        SolicitedReporter { topics: cx.shared(), limit: limit(500, 100) }
    }

    pub(crate) fn report(
        &mut self,
        cx: &mut NodeCx<'_>,
        sw_if: SwIfIndex,
        src: Ipv6Addr,
        mac: MacAddr,
    ) -> Sent {
        let now = cx.now();
        if !self.limit.allow(sw_if.get(), now) {
            return Sent::Throttled;
        }
        let bytes = encode_host(src, mac);
        outcome(cx.event(Event::new(self.topics.solicited, sw_if, now, &bytes)))
    }
}

/// Reports routers.
pub(crate) struct HeardReporter {
    topics: Arc<Topics>,
    limit: Shares,
}

impl HeardReporter {
    pub(crate) fn new(cx: &BuildCx<'_>) -> Self {
        HeardReporter { topics: cx.shared(), limit: limit(100, 50) }
    }

    /// Reports a router, and its prefixes.
    pub(crate) fn report(
        &mut self,
        cx: &mut NodeCx<'_>,
        (heard, prefixes): (&RouterHeard, &Prefixes),
    ) -> Sent {
        let (now, sw_if) = (cx.now(), heard.sw_if);
        if !self.limit.allow(sw_if.get(), now) {
            return Sent::Throttled;
        }
        let topic = self.topics.heard;
        let prefixes = prefixes.as_slice();
        let mut sent = cx.event(Event::new(topic, sw_if, now, &encode_head(heard, prefixes.len())));
        for some in prefixes.chunks(PER_PART) {
            let mut bytes = [0; 1 + PER_PART * PREFIX];
            bytes[0] = MORE;
            let places = bytes[1..].chunks_exact_mut(PREFIX);
            places.zip(some).for_each(|(place, p)| place.copy_from_slice(&encode_prefix(p)));
            let used = 1 + some.len() * PREFIX;
            sent = sent && cx.event(Event::new(topic, sw_if, now, &bytes[..used]));
        }
        outcome(sent)
    }
}

/// Reports queries for listeners.
pub(crate) struct QueriedReporter {
    topics: Arc<Topics>,
    limit: Shares,
}

impl QueriedReporter {
    pub(crate) fn new(cx: &BuildCx<'_>) -> Self {
        QueriedReporter { topics: cx.shared(), limit: limit(100, 50) }
    }

    pub(crate) fn report(&mut self, cx: &mut NodeCx<'_>, sw_if: SwIfIndex, query: &Query) -> Sent {
        let now = cx.now();
        if !self.limit.allow(sw_if.get(), now) {
            return Sent::Throttled;
        }
        outcome(cx.event(Event::new(self.topics.queried, sw_if, now, &encode_query(query))))
    }
}

/// Reports other hosts that have an address that is being tested.
pub(crate) struct UsedReporter {
    topics: Arc<Topics>,
    limit: Shares,
}

impl UsedReporter {
    pub(crate) fn new(cx: &BuildCx<'_>) -> Self {
        UsedReporter { topics: cx.shared(), limit: limit(100, 50) }
    }

    pub(crate) fn report(
        &mut self,
        cx: &mut NodeCx<'_>,
        sw_if: SwIfIndex,
        ip: Ipv6Addr,
        mac: MacAddr,
    ) {
        let now = cx.now();
        // The address is tested for longer than a report may be late: the next one is as good.
        if self.limit.allow(sw_if.get(), now) {
            cx.event(Event::new(self.topics.used, sw_if, now, &encode_host(ip, mac)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_they_were_written() {
        let prefix = RouterPrefix {
            prefix: "2001:db8::".parse().unwrap(),
            len: 64,
            flags: 0xc0,
            valid: u32::MAX,
            preferred: 7,
        };
        assert_eq!(decode_prefix(&encode_prefix(&prefix)), Some(prefix));
        let heard = RouterHeard {
            sw_if: SwIfIndex(3),
            router: "fe80::7".parse().unwrap(),
            hop_limit: 64,
            flags: 0x88,
            lifetime: 1800,
            reachable_ms: 30_000,
            retransmit_ms: 1000,
            mtu: 1492,
            prefixes: vec![prefix; 3],
        };
        let (head, due) = decode_head(SwIfIndex(3), &encode_head(&heard, 3)).unwrap();
        assert_eq!(due, 3);
        assert_eq!(RouterHeard { prefixes: heard.prefixes.clone(), ..head }, heard);
        let query = Query {
            version: 2,
            within: Duration::from_millis(8_387_584),
            group: "ff02::1:ff00:1".parse().unwrap(),
            robustness: 7,
            interval: Duration::from_secs(31_744),
            sources: 3,
            first: [1, 2, 3, 0, 0].map(Ipv6Addr::from_bits),
        };
        assert_eq!(decode_query(&encode_query(&query)), Some(query));
        let host = (heard.router, MacAddr([2, 0, 0, 0, 0, 9]));
        assert_eq!(decode_host(&encode_host(host.0, host.1)), Some(host));
        let mut prefixes = Prefixes::new();
        (0..20).for_each(|_| prefixes.push(prefix));
        assert_eq!(prefixes.as_slice(), [prefix; MAX_PREFIXES]);
        const { assert!(PER_PART * PREFIX < thalweg_graph::EVENT_BYTES) };
    }
}
