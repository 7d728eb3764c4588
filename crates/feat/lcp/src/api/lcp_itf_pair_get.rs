//! `lcp_itf_pair_get`: lists pairs.

use crate::api_types::send;
use crate::message_types::{LCP, LcpItfPairDetails, LcpItfPairGet, LcpItfPairGetReply};
use crate::pairs;
use thalweg_api::{Details, Stream};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Stream<Control, LcpItfPairGet, LcpItfPairDetails, LcpItfPairGetReply> =
    Stream::new(&LCP, handle);

fn handle(
    c: &mut Control,
    rq: LcpItfPairGet,
    out: &mut Details<LcpItfPairDetails>,
) -> (i32, LcpItfPairGetReply) {
    let all = pairs::all(c);
    let (retval, cursor) = send(&all, rq.cursor, out);
    (retval.0, LcpItfPairGetReply { cursor })
}
