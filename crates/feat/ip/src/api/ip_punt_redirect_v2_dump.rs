//! `ip_punt_redirect_v2_dump`: lists where punted packets go.

use crate::api_types::{describe_paths, redirects};
use crate::family::{Version, for_version};
use crate::message_types::{IP, IpPuntRedirectV2Details, IpPuntRedirectV2Dump, PuntRedirectV2};
use thalweg_api::types::AddressFamily;
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

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
