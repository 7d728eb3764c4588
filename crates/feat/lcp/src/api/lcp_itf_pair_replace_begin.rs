//! `lcp_itf_pair_replace_begin`: begins a replacement of all pairs.

use crate::message_types::{LCP, LcpItfPairReplaceBegin, LcpItfPairReplaceBeginReply};
use crate::pairs::Pairs;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, LcpItfPairReplaceBegin, LcpItfPairReplaceBeginReply> =
    Call::new(&LCP, handle);

fn handle(
    c: &mut Control,
    _: LcpItfPairReplaceBegin,
) -> Result<LcpItfPairReplaceBeginReply, Retval> {
    c.state::<Pairs>().borrow_mut().begin_replacing();
    Ok(LcpItfPairReplaceBeginReply)
}
