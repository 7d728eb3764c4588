//! `arping`: asks a link for an address and counts the replies.

use crate::api_types::{ARPING, Asked, run};
use thalweg_api::types::{Address, InterfaceIndex};
use thalweg_api::{Call, Later, Message};
use thalweg_graph::Control;

/// Requests ARP requests, or neighbour solicitations.
#[derive(Debug, Message)]
#[api(request, vat_help = "<address> <interface> [gratuitouss] [repeat <count>] [interval <sec>]")]
pub struct Arping {
    /// The address.
    pub address: Address,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Announces the address instead.
    pub is_garp: bool,
    /// Number of requests.
    #[api(default = 1)]
    pub repeat: u32,
    /// Interval between requests in seconds.
    #[api(default = 1.0)]
    pub interval: f64,
}

/// Reply to [`Arping`], a second after the last request at the latest.
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct ArpingReply {
    /// Replies received.
    pub reply_count: u32,
}

/// The service.
pub static SERVICE: Call<Control, Arping, ArpingReply> = Call::later(&ARPING, handle);

fn handle(c: &mut Control, rq: Arping, later: Later<ArpingReply>) {
    let Arping { address, sw_if_index, is_garp, repeat, interval } = rq;
    let asked = Asked { address, sw_if_index, is_garp, repeat, interval };
    run(c, &asked, later, |(reply_count, _)| ArpingReply { reply_count });
}
