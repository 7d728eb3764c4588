//! `ip_neighbor_replace_begin`: starts replacing all neighbours.

use crate::api_types::IP_NEIGHBOR;
use crate::neighbors;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Marks all neighbours. `ip_neighbor_replace_end` deletes those that were neither added nor heard
/// since.
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
