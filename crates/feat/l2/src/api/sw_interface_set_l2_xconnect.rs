//! `sw_interface_set_l2_xconnect`: sends an interface's frames out by another.

use crate::api_module::L2;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Connects an interface, or takes it out of layer 2.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetL2Xconnect {
    /// Where frames come from.
    pub rx_sw_if_index: InterfaceIndex,
    /// Where they go.
    pub tx_sw_if_index: InterfaceIndex,
    /// Whether they are to.
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
        true => crate::set_xconnect(c, rq.rx_sw_if_index.0, rq.tx_sw_if_index.0)?,
        false => crate::set_l3(c, rq.rx_sw_if_index.0)?,
    }
    Ok(SwInterfaceSetL2XconnectReply)
}
