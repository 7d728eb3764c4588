//! `nat44_add_del_address_range`: adds or deletes pool addresses.

use crate::api_types::{NAT44_ED, NatConfigFlags, has};
use crate::state;
use thalweg_api::types::Ip4Address;
use thalweg_api::{Call, Message, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct Nat44AddDelAddressRange {
    /// First address.
    pub first_ip_address: Ip4Address,
    /// Last address.
    pub last_ip_address: Ip4Address,
    /// Routing table; all ones for none.
    pub vrf_id: u32,
    /// Add or delete.
    pub is_add: bool,
    /// Flags.
    pub flags: NatConfigFlags,
}

/// The service.
pub static SERVICE: Call<Control, Nat44AddDelAddressRange, Nat44AddDelAddressRangeReply> =
    Call::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    rq: Nat44AddDelAddressRange,
) -> Result<Nat44AddDelAddressRangeReply, Retval> {
    let table = (rq.vrf_id != u32::MAX).then_some(TableId(rq.vrf_id));
    let range = (rq.first_ip_address.0.into(), rq.last_ip_address.0.into());
    let twice = has(rq.flags, NatConfigFlags::TWICE_NAT);
    state::set_addresses(c, range, table, twice, rq.is_add)?;
    Ok(Nat44AddDelAddressRangeReply)
}
