//! `ip_neighbor_config_get`: returns limit and aging of the neighbour table.

use crate::api_types::config;
use crate::message_types::{IP_NEIGHBOR, IpNeighborConfigGet, IpNeighborConfigGetReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
