//! `nat44_user_session_v3_dump`: sessions of a host inside.

use crate::api_types::{NAT44_ED, NatConfigFlags, sessions_of};
use crate::view::Cursor;
use thalweg_api::types::Ip4Address;
use thalweg_api::{Details, Dump, Message, Walk};
use thalweg_graph::Control;

/// Asks for them.
#[derive(Debug, Message)]
#[api(request)]
pub struct Nat44UserSessionV3Dump {
    /// The address.
    pub ip_address: Ip4Address,
    /// Routing table; all ones for none.
    pub vrf_id: u32,
}

/// One of them.
#[derive(Debug, Message)]
#[api(details)]
pub struct Nat44UserSessionV3Details {
    /// Address outside.
    pub outside_ip_address: Ip4Address,
    /// Port outside.
    pub outside_port: u16,
    /// Address inside.
    pub inside_ip_address: Ip4Address,
    /// Port inside.
    pub inside_port: u16,
    /// IP protocol.
    pub protocol: u16,
    /// Qualities.
    pub flags: NatConfigFlags,
    /// Seconds since the start when a packet came last.
    pub last_heard: u64,
    /// Seconds since a packet came.
    pub time_since_last_heard: u64,
    /// Bytes of both directions.
    pub total_bytes: u64,
    /// Packets of both directions.
    pub total_pkts: u32,
    /// Address of the host outside.
    pub ext_host_address: Ip4Address,
    /// Port of the host outside.
    pub ext_host_port: u16,
    /// Address of the host outside as the inside sees it.
    pub ext_host_nat_address: Ip4Address,
    /// Its port as the inside sees it.
    pub ext_host_nat_port: u16,
    /// Whether its end has come.
    pub is_timed_out: bool,
}

/// The service.
pub static SERVICE: Dump<Control, Nat44UserSessionV3Dump, Nat44UserSessionV3Details> =
    Dump::slices(&NAT44_ED, handle);

fn handle(
    _: &mut Control,
    rq: Nat44UserSessionV3Dump,
    mut out: Details<Nat44UserSessionV3Details>,
) -> Walk<Control> {
    let mut at = Cursor::default();
    Box::new(move |c| {
        let (some, more) = sessions_of(c, rq.ip_address, rq.vrf_id, &mut at);
        for s in some {
            out.send(&Nat44UserSessionV3Details {
                outside_ip_address: s.outside.0,
                outside_port: s.outside.1,
                inside_ip_address: s.inside.0,
                inside_port: s.inside.1,
                protocol: s.protocol,
                flags: s.flags,
                last_heard: s.heard,
                time_since_last_heard: s.idle,
                total_bytes: s.bytes,
                total_pkts: s.packets,
                ext_host_address: s.external.0,
                ext_host_port: s.external.1,
                ext_host_nat_address: s.seen.0,
                ext_host_nat_port: s.seen.1,
                is_timed_out: false,
            });
        }
        more
    })
}
