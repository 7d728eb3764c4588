//! `sflow_drop_monitoring_get`: asks for whether dropped packets are sampled.

use crate::api_module::SFLOW;
use crate::state::SFlow;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Asks for whether dropped packets are sampled.
#[derive(Debug, Message)]
#[api(request)]
pub struct SflowDropMonitoringGet;

/// Answers [`SflowDropMonitoringGet`].
#[derive(Debug, Default, Message)]
#[api(details, in_progress)]
pub struct SflowDropMonitoringGetReply {
    /// 1 if they are.
    #[api(name = "drop_M")]
    pub drop_m: u32,
}

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
