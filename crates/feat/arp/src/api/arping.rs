//! `arping`: asks a link for an address and counts the replies.

use crate::api_types::{Asked, run};
use crate::message_types::{ARPING, Arping, ArpingReply};
use thalweg_api::{Call, Later};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, Arping, ArpingReply> = Call::later(&ARPING, handle);

fn handle(c: &mut Control, rq: Arping, later: Later<ArpingReply>) {
    let Arping { address, sw_if_index, is_garp, repeat, interval } = rq;
    let asked = Asked { address, sw_if_index, is_garp, repeat, interval };
    run(c, &asked, later, |(reply_count, _)| ArpingReply { reply_count });
}
