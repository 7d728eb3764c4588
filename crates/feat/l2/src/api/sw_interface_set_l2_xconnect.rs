//! `sw_interface_set_l2_xconnect`: cross connects an interface to another.

use crate::message_types::{L2, SwInterfaceSetL2Xconnect, SwInterfaceSetL2XconnectReply};
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

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
