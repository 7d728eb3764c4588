//! `sflow_enable_disable`: samples an interface's packets.

use crate::message_types::{SFLOW, SflowEnableDisable, SflowEnableDisableReply};
use crate::state;
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SflowEnableDisable, SflowEnableDisableReply> =
    Call::new(&SFLOW, handle);

fn handle(c: &mut Control, rq: SflowEnableDisable) -> Result<SflowEnableDisableReply, Retval> {
    let sw_if = rq.hw_if_index.0;
    // The command line takes this as a wish for another rate; a message has none to say.
    let enabled =
        c.state::<state::SFlow>().borrow().ports().any(|(port, _)| port == SwIfIndex(sw_if));
    match (rq.enable_disable, enabled) {
        (true, true) => return Err(Retval::VALUE_EXIST),
        (true, false) => state::enable(c, SwIfIndex(sw_if), state::Rate::Kept)?,
        (false, _) => state::disable(c, SwIfIndex(sw_if))?,
    }
    Ok(SflowEnableDisableReply)
}
