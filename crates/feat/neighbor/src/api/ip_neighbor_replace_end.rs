//! `ip_neighbor_replace_end`: ends replacing all neighbours.

use crate::message_types::{IP_NEIGHBOR, IpNeighborReplaceEnd, IpNeighborReplaceEndReply};
use crate::neighbors;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, IpNeighborReplaceEnd, IpNeighborReplaceEndReply> =
    Call::new(&IP_NEIGHBOR, handle);

fn handle(c: &mut Control, _: IpNeighborReplaceEnd) -> Result<IpNeighborReplaceEndReply, Retval> {
    neighbors::finish_replacing(c);
    Ok(IpNeighborReplaceEndReply)
}
