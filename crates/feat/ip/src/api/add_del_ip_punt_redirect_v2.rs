//! `add_del_ip_punt_redirect_v2`: sends punted packets elsewhere.

use crate::api_types::put_redirect_v2;
use crate::family::for_version;
use crate::message_types::{AddDelIpPuntRedirectV2, AddDelIpPuntRedirectV2Reply, IP};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, AddDelIpPuntRedirectV2, AddDelIpPuntRedirectV2Reply> =
    Call::new(&IP, handle);

fn handle(
    c: &mut Control,
    rq: AddDelIpPuntRedirectV2,
) -> Result<AddDelIpPuntRedirectV2Reply, Retval> {
    for_version!(rq.punt.version()?, put_redirect_v2(c, rq.is_add, &rq.punt))?;
    Ok(AddDelIpPuntRedirectV2Reply)
}
