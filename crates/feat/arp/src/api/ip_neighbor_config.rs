//! `ip_neighbor_config`: how the neighbour table behaves.

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
pub static SERVICE: Call<Control, IpNeighborConfig, IpNeighborConfigReply> =
    Call::new(&IP_NEIGHBOR, handle);

fn handle(c: &mut Control, rq: IpNeighborConfig) -> Result<IpNeighborConfigReply, Retval> {
    let new = Config {
        limit: rq.max_number as usize,
        age: Duration::from_secs(rq.max_age.into()),
        recycle: rq.recycle,
        ..config(c, rq.af)?
    };
    neighbors::set_config(c, new)?;
    Ok(IpNeighborConfigReply)
}
