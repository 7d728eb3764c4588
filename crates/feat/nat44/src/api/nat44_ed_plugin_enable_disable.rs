//! `nat44_ed_plugin_enable_disable`: enables or disables NAT44.

use crate::message_types::{
    NAT44_ED, Nat44ConfigFlags, Nat44EdPluginEnableDisable, Nat44EdPluginEnableDisableReply,
};
use crate::state::{self, DefaultVrfs};
use thalweg_api::{Call, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, Nat44EdPluginEnableDisable, Nat44EdPluginEnableDisableReply> =
    Call::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    rq: Nat44EdPluginEnableDisable,
) -> Result<Nat44EdPluginEnableDisableReply, Retval> {
    if rq.enable {
        if rq.flags.0 & !Nat44ConfigFlags::ENDPOINT_DEPENDENT.0 != 0 {
            let text = "only endpoint-dependent nat44 with connection tracking is supported";
            return Err(Retval::UNSUPPORTED.because(text));
        }
        let sessions = (rq.sessions != 0).then_some(rq.sessions);
        let vrfs = DefaultVrfs { inside: TableId(rq.inside_vrf), outside: TableId(rq.outside_vrf) };
        state::enable(c, sessions, Some(vrfs))?;
    } else {
        state::disable(c);
    }
    Ok(Nat44EdPluginEnableDisableReply)
}
