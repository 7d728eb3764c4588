//! `nat44_ed_plugin_enable_disable`: enables the translator, or disables it.

use crate::api_types::{NAT44_ED, Nat44ConfigFlags};
use crate::state;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Enables or disables it.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct Nat44EdPluginEnableDisable {
    /// Not used: each interface has its table.
    pub inside_vrf: u32,
    /// Not used: each interface has its table.
    pub outside_vrf: u32,
    /// Sessions of each worker; 0 for the default.
    pub sessions: u32,
    /// Not used.
    pub session_memory: u32,
    /// Whether it is to be.
    pub enable: bool,
    /// Qualities.
    pub flags: Nat44ConfigFlags,
}

/// The service.
pub static SERVICE: Call<Control, Nat44EdPluginEnableDisable, Nat44EdPluginEnableDisableReply> =
    Call::new(&NAT44_ED, handle);

fn handle(
    c: &mut Control,
    rq: Nat44EdPluginEnableDisable,
) -> Result<Nat44EdPluginEnableDisableReply, Retval> {
    if rq.enable {
        let sessions = (rq.sessions != 0).then_some(rq.sessions);
        state::enable(c, sessions)?;
    } else {
        state::disable(c);
    }
    Ok(Nat44EdPluginEnableDisableReply)
}
