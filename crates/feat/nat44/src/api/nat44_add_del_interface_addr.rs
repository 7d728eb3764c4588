//! `nat44_add_del_interface_addr`: uses the addresses of an interface as pool addresses.

use crate::api_types::{NAT44_ED, NatConfigFlags, has};
use crate::state;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Request.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct Nat44AddDelInterfaceAddr {
    /// Add or delete.
    pub is_add: bool,
    /// Interface.
    pub sw_if_index: InterfaceIndex,
    /// Flags.
    pub flags: NatConfigFlags,
}

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
