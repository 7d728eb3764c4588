//! `ip6_dad_dump`: how addresses are tested.

use crate::dad;
use crate::message_types::{IP6_DAD, Ip6DadDetails, Ip6DadDump};
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, Ip6DadDump, Ip6DadDetails> = Dump::new(&IP6_DAD, handle);

fn handle(c: &mut Control, _: Ip6DadDump, out: &mut Details<Ip6DadDetails>) {
    let now = dad::config(c);
    let config = now.unwrap_or_default();
    out.send(&Ip6DadDetails {
        enabled: now.is_some(),
        dad_transmits: config.transmits,
        dad_retransmit_delay: config.delay.as_secs_f64(),
    });
}
