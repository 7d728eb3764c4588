//! `sflow_drop_monitoring_get`: asks for whether dropped packets are sampled.

use crate::message_types::{SFLOW, SflowDropMonitoringGet, SflowDropMonitoringGetReply};
use crate::state::SFlow;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SflowDropMonitoringGet, SflowDropMonitoringGetReply> =
    Call::new(&SFLOW, handle);

fn handle(
    c: &mut Control,
    _: SflowDropMonitoringGet,
) -> Result<SflowDropMonitoringGetReply, Retval> {
    let state = c.state::<SFlow>();
    let drop_m = u32::from(state.borrow().settings().drop_monitoring);
    Ok(SflowDropMonitoringGetReply { drop_m })
}
