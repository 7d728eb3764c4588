//! `sw_interface_get_table`: an interface's routing table.

use crate::Ip4;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::api_types::{INTERFACE, view};
use thalweg_graph::Control;

/// Asks for an interface's table.
#[derive(Debug, Message)]
#[api(request)]
pub struct SwInterfaceGetTable {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// That of IPv6.
    pub is_ipv6: bool,
}

/// Answers [`SwInterfaceGetTable`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct SwInterfaceGetTableReply {
    /// The table.
    pub vrf_id: u32,
}

/// The service.
pub static SERVICE: Call<Control, SwInterfaceGetTable, SwInterfaceGetTableReply> =
    Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: SwInterfaceGetTable) -> Result<SwInterfaceGetTableReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    let vrf_id = if rq.is_ipv6 { 0 } else { c.state::<Ip4>().borrow().table_of(sw_if) };
    Ok(SwInterfaceGetTableReply { vrf_id })
}
