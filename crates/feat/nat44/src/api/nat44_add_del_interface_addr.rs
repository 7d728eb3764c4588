//! `nat44_add_del_interface_addr`: uses the addresses of an interface as pool addresses.

use crate::api_types::has;
use crate::message_types::{
    NAT44_ED, Nat44AddDelInterfaceAddr, Nat44AddDelInterfaceAddrReply, NatConfigFlags,
};
use crate::state;
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, Nat44AddDelInterfaceAddr, Nat44AddDelInterfaceAddrReply> =
    Call::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    rq: Nat44AddDelInterfaceAddr,
) -> Result<Nat44AddDelInterfaceAddrReply, Retval> {
    let twice = has(rq.flags, NatConfigFlags::TWICE_NAT);
    state::set_interface_address(c, SwIfIndex(rq.sw_if_index.0), twice, rq.is_add)?;
    Ok(Nat44AddDelInterfaceAddrReply)
}
