//! `lcp_itf_pair_replace_end`: ends a replacement of all pairs: those that it has not named are
//! deleted.

use crate::message_types::{LCP, LcpItfPairReplaceEnd, LcpItfPairReplaceEndReply};
use crate::pairs::Pairs;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, LcpItfPairReplaceEnd, LcpItfPairReplaceEndReply> =
    Call::new(&LCP, handle);

fn handle(c: &mut Control, _: LcpItfPairReplaceEnd) -> Result<LcpItfPairReplaceEndReply, Retval> {
    let stale = c.state::<Pairs>().borrow().stale();
    for phy in stale {
        // One may have gone with that of its parent.
        let _ = crate::delete(c, phy);
    }
    Ok(LcpItfPairReplaceEndReply)
}
