//! `nat44_add_del_address_range`: adds or deletes pool addresses.

use crate::api_types::has;
use crate::message_types::{
    NAT44_ED, Nat44AddDelAddressRange, Nat44AddDelAddressRangeReply, NatConfigFlags,
};
use crate::state;
use thalweg_api::{Call, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;

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
