//! `lcp_sync_unnumbered_get`: returns whether borrowed addresses are passed to twins.

use crate::api_types::LCP;
use crate::options;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Returns whether borrowed addresses are passed to twins.
#[derive(Debug, Message)]
#[api(request)]
pub struct LcpSyncUnnumberedGet;

/// Reply to [`LcpSyncUnnumberedGet`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct LcpSyncUnnumberedGetReply {
    /// They are.
    pub is_enable: bool,
}

/// The service.
pub static SERVICE: Call<Control, LcpSyncUnnumberedGet, LcpSyncUnnumberedGetReply> =
    Call::new(&LCP, handle);

fn handle(c: &mut Control, _: LcpSyncUnnumberedGet) -> Result<LcpSyncUnnumberedGetReply, Retval> {
    Ok(LcpSyncUnnumberedGetReply { is_enable: options::get(c).sync_unnumbered })
}
