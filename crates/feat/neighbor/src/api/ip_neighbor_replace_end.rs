//! `ip_neighbor_replace_end`: ends replacing all neighbours.

use crate::api_types::IP_NEIGHBOR;
use crate::neighbors;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Deletes the neighbours that were neither added nor heard since `ip_neighbor_replace_begin`.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct IpNeighborReplaceEnd;

/// The service.
pub static SERVICE: Call<Control, IpNeighborReplaceEnd, IpNeighborReplaceEndReply> =
    Call::new(&IP_NEIGHBOR, handle);

fn handle(c: &mut Control, _: IpNeighborReplaceEnd) -> Result<IpNeighborReplaceEndReply, Retval> {
    neighbors::finish_replacing(c);
    Ok(IpNeighborReplaceEndReply)
}
