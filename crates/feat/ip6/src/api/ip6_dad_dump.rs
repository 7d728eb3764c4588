//! `ip6_dad_dump`: how addresses are tested.

use crate::api_types::IP6_DAD;
use crate::dad;
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Asks how addresses are tested.
#[derive(Debug, Message)]
#[api(request)]
pub struct Ip6DadDump;

/// How addresses are tested.
#[derive(Debug, Message)]
#[api(details)]
pub struct Ip6DadDetails {
    /// They are.
    pub enabled: bool,
    /// Solicitations for each.
    pub dad_transmits: u8,
    /// Seconds between them.
    pub dad_retransmit_delay: f64,
}

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
