//! `lcp_sync_unnumbered_get`: returns whether borrowed addresses are passed to twins.

use crate::message_types::{LCP, LcpSyncUnnumberedGet, LcpSyncUnnumberedGetReply};
use crate::options;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, LcpSyncUnnumberedGet, LcpSyncUnnumberedGetReply> =
    Call::new(&LCP, handle);

fn handle(c: &mut Control, _: LcpSyncUnnumberedGet) -> Result<LcpSyncUnnumberedGetReply, Retval> {
    Ok(LcpSyncUnnumberedGetReply { is_enable: options::get(c).sync_unnumbered })
}
