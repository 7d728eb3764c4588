//! `add_del_ip_punt_redirect_v2`: sends punted packets elsewhere.

use crate::api_types::{IP, PuntRedirectV2, put_redirect_v2};
use crate::family::for_version;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Adds or removes a redirect.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct AddDelIpPuntRedirectV2 {
    /// True to add, false to remove.
    #[api(default = "true")]
    pub is_add: bool,
    /// Whose packets go where.
    pub punt: PuntRedirectV2,
}

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
