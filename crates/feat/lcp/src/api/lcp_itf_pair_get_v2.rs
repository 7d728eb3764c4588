//! `lcp_itf_pair_get_v2`: lists pairs.

use crate::api_types::send;
use crate::message_types::{LCP, LcpItfPairDetails, LcpItfPairGetV2, LcpItfPairGetV2Reply};
use crate::pairs;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Stream};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

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
