//! `ip_neighbor_config_get`: returns limit and aging of the neighbour table.

use crate::api_types::{IP_NEIGHBOR, config};
use thalweg_api::types::AddressFamily;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Requests the settings.
#[derive(Debug, Message)]
#[api(request, in_progress)]
pub struct IpNeighborConfigGet {
    /// Address family.
    pub af: AddressFamily,
}

/// Reply to [`IpNeighborConfigGet`].
#[derive(Debug, Default, Message)]
#[api(reply, in_progress)]
pub struct IpNeighborConfigGetReply {
    /// Address family.
    pub af: AddressFamily,
    /// Maximum number of neighbours.
    pub max_number: u32,
    /// Age in seconds at which a neighbour is probed; 0 disables aging.
    pub max_age: u32,
    /// When the table is full, replace the oldest dynamic neighbour.
    pub recycle: bool,
}

/// The service.
pub static SERVICE: Call<Control, IpNeighborConfigGet, IpNeighborConfigGetReply> =
    Call::new(&IP_NEIGHBOR, handle);

fn handle(c: &mut Control, rq: IpNeighborConfigGet) -> Result<IpNeighborConfigGetReply, Retval> {
    let (_, now) = config(c, rq.af)?;
    Ok(IpNeighborConfigGetReply {
        af: rq.af,
        max_number: now.limit as u32,
        max_age: now.age.as_secs() as u32,
        recycle: now.recycle,
    })
}
