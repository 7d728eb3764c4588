//! `sw_interface_set_l2_xconnect`: cross connects an interface to another.

use crate::api_module::L2;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Cross connects an interface, or returns it to layer 3.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetL2Xconnect {
    /// Receiving interface.
    pub rx_sw_if_index: InterfaceIndex,
    /// Sending interface.
    pub tx_sw_if_index: InterfaceIndex,
    /// True to connect, false to return to layer 3.
    #[api(default = "true")]
    pub enable: bool,
}

/// The service.
pub static SERVICE: Call<Control, SwInterfaceSetL2Xconnect, SwInterfaceSetL2XconnectReply> =
    Call::new(&L2, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceSetL2Xconnect,
) -> Result<SwInterfaceSetL2XconnectReply, Retval> {
    match rq.enable {
        true => {
            crate::set_xconnect(c, SwIfIndex(rq.rx_sw_if_index.0), SwIfIndex(rq.tx_sw_if_index.0))?
        }
        false => crate::set_l3(c, SwIfIndex(rq.rx_sw_if_index.0))?,
    }
    Ok(SwInterfaceSetL2XconnectReply)
}
