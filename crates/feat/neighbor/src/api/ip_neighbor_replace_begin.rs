//! `ip_neighbor_replace_begin`: starts replacing all neighbours.

use crate::message_types::{IP_NEIGHBOR, IpNeighborReplaceBegin, IpNeighborReplaceBeginReply};
use crate::neighbors;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
