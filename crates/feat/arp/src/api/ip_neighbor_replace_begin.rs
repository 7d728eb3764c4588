//! `ip_neighbor_replace_begin`: begins to set all neighbours anew.

use crate::api_types::IP_NEIGHBOR;
use crate::neighbors;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// From now on, neighbours that are known go with `ip_neighbor_replace_end`, unless they are added or
/// heard of again.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct IpNeighborReplaceBegin;

/// The service.
pub static SERVICE: Call<Control, IpNeighborReplaceBegin, IpNeighborReplaceBeginReply> =
    Call::new(&IP_NEIGHBOR, handle);

fn handle(
    c: &mut Control,
    _: IpNeighborReplaceBegin,
) -> Result<IpNeighborReplaceBeginReply, Retval> {
    neighbors::begin_replacing(c);
    Ok(IpNeighborReplaceBeginReply)
}
