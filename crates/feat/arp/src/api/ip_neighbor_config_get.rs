//! `ip_neighbor_config_get`: asks how the neighbour table behaves.

use crate::api_types::{IP_NEIGHBOR, config};
use thalweg_api::types::AddressFamily;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Asks for the settings.
#[derive(Debug, Message)]
#[api(request, in_progress)]
pub struct IpNeighborConfigGet {
    /// Of IPv4 or IPv6.
    pub af: AddressFamily,
}

/// Answers [`IpNeighborConfigGet`].
#[derive(Debug, Default, Message)]
#[api(reply, in_progress)]
pub struct IpNeighborConfigGetReply {
    /// Of IPv4 or IPv6.
    pub af: AddressFamily,
    /// Most neighbours.
    pub max_number: u32,
    /// Seconds after which a neighbour is probed; 0 for never.
    pub max_age: u32,
    /// When the table is full, the oldest gives way.
    pub recycle: bool,
}

/// The service.
pub static SERVICE: Call<Control, IpNeighborConfigGet, IpNeighborConfigGetReply> =
    Call::new(&IP_NEIGHBOR, handle);

fn handle(c: &mut Control, rq: IpNeighborConfigGet) -> Result<IpNeighborConfigGetReply, Retval> {
    let now = config(c, rq.af)?;
    Ok(IpNeighborConfigGetReply {
        af: rq.af,
        max_number: now.limit as u32,
        max_age: now.age.as_secs() as u32,
        recycle: now.recycle,
    })
}
