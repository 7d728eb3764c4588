//! `nat44_user_dump`: hosts inside that have sessions.

use crate::api_types::NAT44_ED;
use crate::view;
use std::collections::BTreeMap;
use thalweg_api::types::Ip4Address;
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Asks for them.
#[derive(Debug, Message)]
#[api(request)]
pub struct Nat44UserDump;

/// One of them.
#[derive(Debug, Message)]
#[api(details)]
pub struct Nat44UserDetails {
    /// Routing table; all ones for none.
    pub vrf_id: u32,
    /// The address.
    pub ip_address: Ip4Address,
    /// Its sessions.
    pub nsessions: u32,
    /// Its sessions of static mappings.
    pub nstaticsessions: u32,
}

/// The service.
pub static SERVICE: Dump<Control, Nat44UserDump, Nat44UserDetails> = Dump::new(&NAT44_ED, handle);

fn handle(c: &mut Control, _: Nat44UserDump, out: &mut Details<Nat44UserDetails>) {
    let mut users = BTreeMap::new();
    for s in view::all_sessions(c) {
        let n: &mut [u32; 2] = users.entry((s.inside.table, s.inside.src)).or_default();
        n[usize::from(s.is_static())] += 1;
    }
    for ((vrf_id, address), [nsessions, nstaticsessions]) in users {
        let ip_address = Ip4Address(address.octets());
        out.send(&Nat44UserDetails { vrf_id, ip_address, nsessions, nstaticsessions });
    }
}
