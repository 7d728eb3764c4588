//! `ip_punt_redirect_v2_dump`: lists where punted packets go.

use crate::api_types::{IP, PuntRedirectV2, describe_paths, redirects};
use crate::family::{Version, for_version};
use thalweg_api::types::{AddressFamily, InterfaceIndex};
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Requests redirects.
#[derive(Debug, Message)]
#[api(request)]
pub struct IpPuntRedirectV2Dump {
    /// Interface that receives the packets; all ones for all of them.
    pub sw_if_index: InterfaceIndex,
    /// Version of the packets.
    pub af: AddressFamily,
}

/// A redirect.
#[derive(Debug, Message)]
#[api(details)]
pub struct IpPuntRedirectV2Details {
    /// Whose packets go where.
    pub punt: PuntRedirectV2,
}

/// The service.
pub static SERVICE: Dump<Control, IpPuntRedirectV2Dump, IpPuntRedirectV2Details> =
    Dump::new(&IP, handle);

fn handle(c: &mut Control, rq: IpPuntRedirectV2Dump, out: &mut Details<IpPuntRedirectV2Details>) {
    let version = Version::of_flag(rq.af == AddressFamily::IP6);
    for (rx_sw_if_index, paths) in for_version!(version, redirects(c, rq.sw_if_index)) {
        let paths = describe_paths(&paths, version);
        out.send(&IpPuntRedirectV2Details {
            punt: PuntRedirectV2 { rx_sw_if_index, af: rq.af, paths },
        });
    }
}
