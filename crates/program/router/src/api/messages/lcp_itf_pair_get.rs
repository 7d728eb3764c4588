//! `lcp_itf_pair_get`: pairs of an interface and its twin in the kernel, of which there are none.

use thalweg_api::schema::Module;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Message, Stream, Text, api_enum};
use thalweg_graph::Control;

static LCP: Module = Module { name: "lcp", folder: "plugins", version: "1.0.0" };

api_enum! {
    /// What the kernel has.
    pub struct LcpItfHostType: u8 = "lcp_itf_host_type" {
        /// An Ethernet device.
        TAP = 0, "LCP_API_ITF_HOST_TAP";
        /// A device without Ethernet headers.
        TUN = 1, "LCP_API_ITF_HOST_TUN";
    }
}

/// Asks for pairs.
#[derive(Debug, Message)]
#[api(request)]
pub struct LcpItfPairGet {
    /// Where to go on; 0 at first.
    pub cursor: u32,
}

/// A pair.
#[derive(Debug, Message)]
#[api(details, in_progress)]
pub struct LcpItfPairDetails {
    /// The router's interface.
    pub phy_sw_if_index: InterfaceIndex,
    /// The router's end of the kernel's device.
    pub host_sw_if_index: InterfaceIndex,
    /// The kernel's index.
    pub vif_index: u32,
    /// The kernel's name.
    pub host_if_name: Text<16>,
    /// What the kernel has.
    pub host_if_type: LcpItfHostType,
    /// Its network namespace.
    pub netns: Text<32>,
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
    Stream::new(&LCP, |_, _, _| (0, LcpItfPairGetReply { cursor: u32::MAX }));
