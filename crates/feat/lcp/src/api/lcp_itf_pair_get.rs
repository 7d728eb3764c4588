//! `lcp_itf_pair_get`: lists pairs.

use crate::api_types::{LCP, LcpItfPairDetails, send};
use crate::pairs;
use thalweg_api::{Details, Message, Stream};
use thalweg_graph::Control;

/// Asks for pairs.
#[derive(Debug, Message)]
#[api(request)]
pub struct LcpItfPairGet {
    /// Where to go on; 0 at first.
    pub cursor: u32,
}

/// Answers [`LcpItfPairGet`].
#[derive(Debug, Message)]
#[api(reply)]
pub struct LcpItfPairGetReply {
    /// Where to go on; all ones at the end.
    pub cursor: u32,
}

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
