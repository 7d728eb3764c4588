//! `sw_interface_ip6nd_ra_config`: what the router advertises on an interface.

use crate::config::{self, Config, RaError};
use crate::message_types::{IP6_ND, SwInterfaceIp6ndRaConfig, SwInterfaceIp6ndRaConfigReply};
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SwInterfaceIp6ndRaConfig, SwInterfaceIp6ndRaConfigReply> =
    Call::new(&IP6_ND, handle);

fn small<T: TryFrom<u32>>(n: u32) -> Result<T, RaError> {
    T::try_from(n).map_err(|_| RaError::Range("an interval, count or lifetime is too large"))
}

fn apply(rq: &SwInterfaceIp6ndRaConfig, config: &mut Config) -> Result<(), RaError> {
    let (no, default) = (rq.is_no, Config::default());
    config.send = true;
    for (given, setting, on) in [
        (rq.suppress, &mut config.send, false),
        (rq.managed, &mut config.managed, true),
        (rq.other, &mut config.other, true),
        (rq.ll_option, &mut config.link_layer, false),
        (rq.send_unicast, &mut config.unicast, true),
        (rq.cease, &mut config.cease, true),
    ] {
        if given != 0 {
            *setting = on != no;
        }
    }
    if rq.default_router != 0 {
        config.lifetime = if no { default.lifetime } else { small(rq.lifetime)? };
    }
    if rq.max_interval != 0 {
        let shortest = match rq.min_interval {
            0 => rq.max_interval / 4 * 3 + rq.max_interval % 4 * 3 / 4,
            n => n,
        };
        config.interval = match no {
            true => default.interval,
            false => (small(rq.max_interval)?, small(shortest)?),
        };
    }
    if rq.initial_count != 0 {
        config.initial.0 = if no { default.initial.0 } else { small(rq.initial_count)? };
    }
    if rq.initial_interval != 0 {
        config.initial.1 = if no { default.initial.1 } else { small(rq.initial_interval)? };
    }
    Ok(())
}

fn handle(
    c: &mut Control,
    rq: SwInterfaceIp6ndRaConfig,
) -> Result<SwInterfaceIp6ndRaConfigReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    config::change(c, sw_if, |config| apply(&rq, config))?;
    Ok(SwInterfaceIp6ndRaConfigReply)
}
