//! `ip_punt_redirect_dump`: lists where punted packets go, by the first path.

use crate::api_types::redirects;
use crate::family::{Version, for_version};
use crate::message_types::{IP, IpPuntRedirectDetails, IpPuntRedirectDump, PuntRedirect};
use thalweg_api::types::{Address, InterfaceIndex};
use thalweg_api::{Details, Dump};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, IpPuntRedirectDump, IpPuntRedirectDetails> =
    Dump::new(&IP, handle);

fn handle(c: &mut Control, rq: IpPuntRedirectDump, out: &mut Details<IpPuntRedirectDetails>) {
    let version = Version::of_flag(rq.is_ipv6);
    for (rx_sw_if_index, paths) in for_version!(version, redirects(c, rq.sw_if_index)) {
        for path in paths.iter().take(1) {
            let nh = Address::from(path.next_hop.unwrap_or_else(|| version.unspecified()));
            let tx_sw_if_index = InterfaceIndex(path.sw_if.map_or(u32::MAX, SwIfIndex::get));
            out.send(&IpPuntRedirectDetails {
                punt: PuntRedirect { rx_sw_if_index, tx_sw_if_index, nh },
            });
        }
    }
}
