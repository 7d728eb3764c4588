//! `lcp_sync_unnumbered_set`: sets whether borrowed addresses are passed to twins.

use crate::api_types::LCP;
use crate::options;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Sets whether borrowed addresses are passed to twins.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct LcpSyncUnnumberedSet {
    /// They are.
    pub is_enable: bool,
}

/// The service.
pub static SERVICE: Call<Control, LcpSyncUnnumberedSet, LcpSyncUnnumberedSetReply> =
    Call::new(&LCP, handle);

fn handle(c: &mut Control, rq: LcpSyncUnnumberedSet) -> Result<LcpSyncUnnumberedSetReply, Retval> {
    options::change(c, |options| options.sync_unnumbered = rq.is_enable);
    Ok(LcpSyncUnnumberedSetReply)
}
