//! Helpers shared by NAT44 API messages.

use crate::NatError;
use crate::mapping::{Backend, Mapping, TwiceNat};
use crate::message_types::{Nat44LbAddrPort, NatConfigFlags};
use crate::state::{self, StaticMapping};
use crate::view::{Listing, Next, SessionFilter, SessionView};
use std::net::Ipv4Addr;
use thalweg_api::types::{InterfaceIndex, Ip4Address};
use thalweg_api::{Retval, Text};
use thalweg_device::SwIfIndex;
use thalweg_engine::setting::Refused;
use thalweg_fib::TableId;
use thalweg_graph::{Control, clock};
use thalweg_wire::ip::protocol as number;

impl Nat44LbAddrPort {
    pub(crate) fn of(b: &Backend) -> Self {
        let addr = Ip4Address(b.address.octets());
        Nat44LbAddrPort { addr, port: b.port, probability: b.share, vrf_id: b.table.get() }
    }
    pub(crate) fn backend(&self) -> Backend {
        let (address, share) = (self.addr.0.into(), self.probability.max(1));
        Backend { address, port: self.port, table: TableId(self.vrf_id), share }
    }
}

impl From<NatError> for Retval {
    fn from(error: NatError) -> Self {
        Refused::from(error).into()
    }
}

/// Capacity of the queues between workers in frames; 0 with a single worker.
pub(crate) fn queue_room(c: &Control) -> u32 {
    let all = c.hand_off_views();
    let ours = |queue: &str| crate::direction::QUEUES.iter().any(|(name, _)| *name == queue);
    all.iter().find(|q| ours(q.queue)).map_or(0, |q| q.room as u32)
}

/// Returns whether a flag is set.
pub(crate) fn has(flags: NatConfigFlags, bit: NatConfigFlags) -> bool {
    flags.0 & bit.0 != 0
}

/// Combines flags.
pub(crate) fn flags(bits: &[(bool, NatConfigFlags)]) -> NatConfigFlags {
    NatConfigFlags(bits.iter().fold(0, |all, (on, bit)| if *on { all | bit.0 } else { all }))
}

/// The flags of a mapping.
pub(crate) fn mapping_flags(m: &Mapping) -> NatConfigFlags {
    flags(&[
        (m.twice == TwiceNat::Always, NatConfigFlags::TWICE_NAT),
        (m.twice == TwiceNat::SelfOnly, NatConfigFlags::SELF_TWICE_NAT),
        (m.out2in_only, NatConfigFlags::OUT2IN_ONLY),
        (m.is_address_only(), NatConfigFlags::ADDR_ONLY),
    ])
}

/// Converts the fields of a message into a mapping.
pub(crate) fn mapping(
    c: &Control,
    bits: NatConfigFlags,
    local: (Ipv4Addr, u16),
    external: (Ipv4Addr, u16),
    external_if: InterfaceIndex,
    (protocol, vrf_id): (u8, u32),
    tag: &Text<64>,
) -> Result<StaticMapping, Retval> {
    let all = has(bits, NatConfigFlags::ADDR_ONLY) || protocol == 0;
    if !all && !matches!(protocol, number::TCP | number::UDP | number::ICMP) {
        return Err(Retval::INVALID_VALUE.because("TCP, UDP or ICMP expected"));
    }
    let port = |port: u16| if all { 0 } else { port };
    let twice = match () {
        () if has(bits, NatConfigFlags::TWICE_NAT) => TwiceNat::Always,
        () if has(bits, NatConfigFlags::SELF_TWICE_NAT) => TwiceNat::SelfOnly,
        () => TwiceNat::Never,
    };
    if all && twice != TwiceNat::Never {
        return Err(Retval::INVALID_VALUE.because("twice-nat requires a protocol and ports"));
    }
    let mapping = Mapping {
        protocol: if all { 0 } else { protocol },
        external: external.0,
        external_port: port(external.1),
        local: local.0,
        local_port: port(local.1),
        table: if vrf_id == u32::MAX { state::inside_vrf(c) } else { TableId(vrf_id) },
        twice,
        out2in_only: has(bits, NatConfigFlags::OUT2IN_ONLY),
        backends: Vec::new(),
        affinity: 0,
        exact: None,
    };
    let external_if = (external_if != InterfaceIndex::NONE).then_some(SwIfIndex(external_if.0));
    Ok(StaticMapping { mapping, external_if, identity: false, tag: tag.as_str().into() })
}

/// Adds or deletes a mapping.
pub(crate) fn add_del(c: &mut Control, m: StaticMapping, add: bool) -> Result<(), Retval> {
    let done = if add { state::add_mapping(c, m) } else { state::del_mapping(c, &m) };
    Ok(done?)
}

/// A session in the form that messages report.
pub(crate) struct SessionFields {
    pub(crate) outside: (Ip4Address, u16),
    pub(crate) inside: (Ip4Address, u16),
    pub(crate) external: (Ip4Address, u16),
    pub(crate) seen: (Ip4Address, u16),
    pub(crate) protocol: u16,
    pub(crate) flags: NatConfigFlags,
    pub(crate) heard: u64,
    pub(crate) idle: u64,
    pub(crate) bytes: u64,
    pub(crate) packets: u32,
}

/// The next sessions of an inside host, and whether there may be more.
pub(crate) fn sessions_of(
    c: &mut Control,
    host: Ip4Address,
    table: TableId,
    listing: &mut Option<Listing>,
) -> (Vec<SessionFields>, bool) {
    let timeouts = c.state::<crate::Nat44>().borrow().timeouts();
    let now = clock::now_seconds() as u64;
    let fields = |s: SessionView| {
        let end = |(address, port): (Ipv4Addr, u16)| (Ip4Address(address.octets()), port);
        let twice = s.marks & crate::session::TWICE != 0;
        let idle = u64::from((timeouts.of(s.class) * 1000).saturating_sub(s.left) / 1000);
        SessionFields {
            outside: end(s.mapped()),
            inside: end((s.inside.src, s.inside.sport)),
            external: end(s.external()),
            seen: if twice { end((s.inside.dst, s.inside.dport)) } else { Default::default() },
            protocol: u16::from(s.inside.protocol),
            flags: flags(&[
                (s.is_static(), NatConfigFlags::STATIC),
                (twice, NatConfigFlags::TWICE_NAT),
                (true, NatConfigFlags::EXT_HOST_VALID),
            ]),
            heard: now.saturating_sub(idle),
            idle,
            bytes: s.bytes,
            packets: s.packets.min(u64::from(u32::MAX)) as u32,
        }
    };
    let table = (table != TableId::MAX).then_some(table);
    let filter = SessionFilter { host: Some(host.0.into()), table, ..SessionFilter::default() };
    match listing.get_or_insert_with(|| Listing::new(filter)).next(c) {
        Next::Some(slice) => (slice.sessions.into_iter().map(fields).collect(), true),
        Next::Late => (Vec::new(), true),
        Next::End => (Vec::new(), false),
    }
}

/// Defines the handler of a dump of the sessions of an inside host. In brackets: names of fields
/// that only some versions have.
macro_rules! session_dump {
    (
        $request:ident, $details:ident, [$($idle:ident)?], [$($over:ident)?]
    ) => {
        use crate::api_types::sessions_of;
        use crate::message_types::{$details, $request, NAT44_ED};
        use thalweg_api::{Details, Dump, Walk};
        use thalweg_graph::Control;

        fn handle(_: &mut Control, rq: $request, mut out: Details<$details>) -> Walk<Control> {
            let mut listing = None;
            Box::new(move |c| {
                let (some, more) = sessions_of(c, rq.ip_address, thalweg_fib::TableId(rq.vrf_id), &mut listing);
                for s in some {
                    out.send(&$details {
                        outside_ip_address: s.outside.0,
                        outside_port: s.outside.1,
                        inside_ip_address: s.inside.0,
                        inside_port: s.inside.1,
                        protocol: s.protocol,
                        flags: s.flags,
                        last_heard: s.heard,
                        $($idle: s.idle,)?
                        total_bytes: s.bytes,
                        total_pkts: s.packets,
                        ext_host_address: s.external.0,
                        ext_host_port: s.external.1,
                        ext_host_nat_address: s.seen.0,
                        ext_host_nat_port: s.seen.1,
                        // Expired sessions are not listed.
                        $($over: false,)?
                    });
                }
                more
            })
        }
    };
}
pub(crate) use session_dump;
