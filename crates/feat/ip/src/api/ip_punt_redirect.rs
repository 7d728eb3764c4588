//! `ip_punt_redirect`: sends punted packets elsewhere, by one path.

use crate::Path;
use crate::api_types::{put_redirect, rx_of};
use crate::family::{Version, for_version};
use crate::message_types::{IP, IpPuntRedirect, IpPuntRedirectReply};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, IpPuntRedirect, IpPuntRedirectReply> = Call::new(&IP, handle);

fn handle(c: &mut Control, rq: IpPuntRedirect) -> Result<IpPuntRedirectReply, Retval> {
    let rx_if = rx_of(c, rq.punt.rx_sw_if_index)?;
    let next_hop = rq.punt.nh.ip()?;
    let mut paths = Vec::new();
    if rq.is_add {
        let sw_if = match rq.punt.tx_sw_if_index {
            InterfaceIndex::NONE => None,
            one => Some(view(c, one)?.sw_if),
        };
        let next_hop = Some(next_hop).filter(|ip| !ip.is_unspecified());
        paths.push(Path { next_hop, sw_if, ..Path::special(crate::PathKind::Normal) });
    }
    let version = Version::of_ip(next_hop);
    for_version!(version, put_redirect(c, rx_if, rq.is_add, paths))?;
    Ok(IpPuntRedirectReply)
}
