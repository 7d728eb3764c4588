//! `ip6_dad_enable_disable`: tests addresses before they are used.

use crate::dad::{self, DELAYS, MAX_TRANSMITS};
use crate::message_types::{IP6_DAD, Ip6DadEnableDisable, Ip6DadEnableDisableReply};
use std::time::Duration;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
