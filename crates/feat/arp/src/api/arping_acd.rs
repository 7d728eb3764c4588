//! `arping_acd`: as `arping`, and says who answered: for clients that check if an address is taken.

use crate::api_types::{Asked, run};
use crate::message_types::{ARPING, ArpingAcd, ArpingAcdReply};
use thalweg_api::{Call, Later};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, ArpingAcd, ArpingAcdReply> = Call::later(&ARPING, handle);

fn handle(c: &mut Control, rq: ArpingAcd, later: Later<ArpingAcdReply>) {
    let ArpingAcd { address, sw_if_index, is_garp, repeat, interval } = rq;
    let asked = Asked { address, sw_if_index, is_garp, repeat, interval };
    run(c, &asked, later, |(reply_count, mac_address)| ArpingAcdReply { reply_count, mac_address });
}
