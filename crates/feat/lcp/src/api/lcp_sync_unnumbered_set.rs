//! `lcp_sync_unnumbered_set`: sets whether borrowed addresses are passed to twins.

use crate::message_types::{LCP, LcpSyncUnnumberedSet, LcpSyncUnnumberedSetReply};
use crate::options;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, LcpSyncUnnumberedSet, LcpSyncUnnumberedSetReply> =
    Call::new(&LCP, handle);

fn handle(c: &mut Control, rq: LcpSyncUnnumberedSet) -> Result<LcpSyncUnnumberedSetReply, Retval> {
    options::change(c, |options| options.sync_unnumbered = rq.is_enable);
    Ok(LcpSyncUnnumberedSetReply)
}
