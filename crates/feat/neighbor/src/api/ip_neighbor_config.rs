//! `ip_neighbor_config`: sets limit and aging of the neighbour table.

use crate::api_types::{IP_NEIGHBOR, config};
use crate::{Config, neighbors};
use std::time::Duration;
use thalweg_api::types::AddressFamily;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Changes the settings.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct IpNeighborConfig {
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
