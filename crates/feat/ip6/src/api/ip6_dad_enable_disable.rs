//! `ip6_dad_enable_disable`: tests addresses before they are used.

use crate::api_types::IP6_DAD;
use crate::dad::{self, DELAYS, MAX_TRANSMITS};
use std::time::Duration;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Tests addresses before they are used, or not.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct Ip6DadEnableDisable {
    /// True to test them.
    #[api(default = "true")]
    pub enable: bool,
    /// Solicitations for each, 1 to 10; 0 leaves it.
    #[api(default = 1)]
    pub dad_transmits: u8,
    /// Seconds between them, 0.1 to 10; 0 leaves it.
    #[api(default = 1.0)]
    pub dad_retransmit_delay: f64,
}

/// The service.
pub static SERVICE: Call<Control, Ip6DadEnableDisable, Ip6DadEnableDisableReply> =
    Call::new(&IP6_DAD, handle);

fn handle(c: &mut Control, rq: Ip6DadEnableDisable) -> Result<Ip6DadEnableDisableReply, Retval> {
    let mut config = dad::config(c).unwrap_or_default();
    if rq.dad_transmits > MAX_TRANSMITS {
        return Err(Retval::INVALID_VALUE.because("1 to 10 solicitations expected"));
    }
    if rq.dad_transmits != 0 {
        config.transmits = rq.dad_transmits;
    }
    if rq.dad_retransmit_delay != 0.0 {
        let delay = Duration::try_from_secs_f64(rq.dad_retransmit_delay).unwrap_or_default();
        if !DELAYS.contains(&delay) {
            return Err(Retval::INVALID_VALUE_2.because("a delay of 0.1 to 10 seconds expected"));
        }
        config.delay = Duration::from_millis(delay.as_millis() as u64);
    }
    dad::set(c, rq.enable.then_some(config));
    Ok(Ip6DadEnableDisableReply)
}
