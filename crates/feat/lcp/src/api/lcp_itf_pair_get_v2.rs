//! `lcp_itf_pair_get_v2`: lists pairs.

use crate::api_types::{LCP, LcpItfPairDetails, send};
use crate::pairs;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Message, Stream};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// Asks for pairs.
#[derive(Debug, Message)]
#[api(request)]
pub struct LcpItfPairGetV2 {
    /// Where to go on; 0 at first.
    pub cursor: u32,
    /// The interface; all ones for all.
    pub sw_if_index: InterfaceIndex,
}

/// Answers [`LcpItfPairGetV2`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct LcpItfPairGetV2Reply {
    /// Where to go on; all ones at the end.
    pub cursor: u32,
}

/// The service.
pub static SERVICE: Stream<Control, LcpItfPairGetV2, LcpItfPairDetails, LcpItfPairGetV2Reply> =
    Stream::new(&LCP, handle);

fn handle(
    c: &mut Control,
    rq: LcpItfPairGetV2,
    out: &mut Details<LcpItfPairDetails>,
) -> (i32, LcpItfPairGetV2Reply) {
    let all = match rq.sw_if_index {
        InterfaceIndex::NONE => pairs::all(c),
        one => match view(c, one).map(|view| pairs::get(c, view.sw_if)) {
            Err(retval) => return (retval.0, LcpItfPairGetV2Reply { cursor: u32::MAX }),
            Ok(found) => found.into_iter().collect(),
        },
    };
    let (retval, cursor) = send(&all, rq.cursor, out);
    (retval.0, LcpItfPairGetV2Reply { cursor })
}
