//! `ip_neighbor_config`: sets limit and aging of the neighbour table.

use crate::api_types::config;
use crate::message_types::{IP_NEIGHBOR, IpNeighborConfig, IpNeighborConfigReply};
use crate::{Config, neighbors};
use std::time::Duration;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, IpNeighborConfig, IpNeighborConfigReply> =
    Call::new(&IP_NEIGHBOR, handle);

fn handle(c: &mut Control, rq: IpNeighborConfig) -> Result<IpNeighborConfigReply, Retval> {
    let (family, old) = config(c, rq.af)?;
    let new = Config {
        limit: rq.max_number as usize,
        age: Duration::from_secs(rq.max_age.into()),
        recycle: rq.recycle,
        ..old
    };
    neighbors::set_config(c, family, new)?;
    Ok(IpNeighborConfigReply)
}
