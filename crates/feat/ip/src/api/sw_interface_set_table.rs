//! `sw_interface_set_table`: moves an interface to another routing table.

use crate::address;
use crate::family::{Version, for_version, is_registered};
use crate::message_types::{INTERFACE, SwInterfaceSetTable, SwInterfaceSetTableReply};
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SwInterfaceSetTable, SwInterfaceSetTableReply> =
    Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: SwInterfaceSetTable) -> Result<SwInterfaceSetTableReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    let version = Version::of_flag(rq.is_ipv6);
    // Without the protocol it is in the default table anyway.
    if rq.vrf_id != 0 || is_registered(c, version) {
        for_version!(version, address::set_table(c, sw_if, TableId(rq.vrf_id)))?;
    }
    Ok(SwInterfaceSetTableReply)
}
