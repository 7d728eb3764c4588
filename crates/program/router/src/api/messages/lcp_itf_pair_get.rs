//! `lcp_itf_pair_get`: pairs of an interface and its twin in the kernel, of which there are none.

use crate::api::message_types::{LCP, LcpItfPairDetails, LcpItfPairGet, LcpItfPairGetReply};
use thalweg_api::Stream;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Stream<Control, LcpItfPairGet, LcpItfPairDetails, LcpItfPairGetReply> =
    Stream::new(&LCP, |_, _, _| (0, LcpItfPairGetReply { cursor: u32::MAX }));
