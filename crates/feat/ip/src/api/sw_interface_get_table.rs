//! `sw_interface_get_table`: returns an interface's routing table.

use crate::message_types::{INTERFACE, SwInterfaceGetTable, SwInterfaceGetTableReply};
use crate::{Ip4, Ip6};
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SwInterfaceGetTable, SwInterfaceGetTableReply> =
    Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: SwInterfaceGetTable) -> Result<SwInterfaceGetTableReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    let vrf_id = match rq.is_ipv6 {
        false => c.state::<Ip4>().borrow().table_of(sw_if),
        true => c.state::<Ip6>().borrow().table_of(sw_if),
    };
    Ok(SwInterfaceGetTableReply { vrf_id: vrf_id.get() })
}
