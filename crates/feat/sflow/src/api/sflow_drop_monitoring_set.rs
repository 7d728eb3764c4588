//! `sflow_drop_monitoring_set`: sets whether dropped packets are sampled.

use crate::message_types::{SFLOW, SflowDropMonitoringSet, SflowDropMonitoringSetReply};
use crate::state;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SflowDropMonitoringSet, SflowDropMonitoringSetReply> =
    Call::new(&SFLOW, handle);

fn handle(
    c: &mut Control,
    rq: SflowDropMonitoringSet,
) -> Result<SflowDropMonitoringSetReply, Retval> {
    // Messages know no limit: it stays.
    let limit = c.state::<state::SFlow>().borrow().settings().drop_limit;
    state::set_drop_monitoring(c, rq.drop_m != 0, limit)?;
    Ok(SflowDropMonitoringSetReply)
}
