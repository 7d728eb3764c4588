//! `arping_acd`: as `arping`, and says who answered: for who wants to know if an address is taken.

use crate::api_types::{ARPING, Asked, run};
use thalweg_api::types::{Address, InterfaceIndex, MacAddr};
use thalweg_api::{Call, Later, Message};
use thalweg_graph::Control;

/// Requests ARP requests, or neighbour solicitations.
#[derive(Debug, Message)]
#[api(request)]
pub struct ArpingAcd {
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

/// Reply to [`ArpingAcd`], a second after the last request at the latest.
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct ArpingAcdReply {
    /// Replies received.
    pub reply_count: u32,
    /// Sender of the last reply.
    pub mac_address: MacAddr,
}

/// The service.
pub static SERVICE: Call<Control, ArpingAcd, ArpingAcdReply> = Call::later(&ARPING, handle);

fn handle(c: &mut Control, rq: ArpingAcd, later: Later<ArpingAcdReply>) {
    let ArpingAcd { address, sw_if_index, is_garp, repeat, interval } = rq;
    let asked = Asked { address, sw_if_index, is_garp, repeat, interval };
    run(c, &asked, later, |(reply_count, mac_address)| ArpingAcdReply { reply_count, mac_address });
}
