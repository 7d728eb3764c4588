//! `sw_interface_ip6nd_ra_config`: what the router advertises on an interface.

use crate::api_types::IP6_ND;
use crate::config::{self, Config, RaError};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// Changes what the router advertises on an interface, and has it advertise. A field of 0 leaves
/// its setting; with `is_no`, fields that are not 0 take theirs back to the default.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceIp6ndRaConfig {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Advertisements are not sent.
    pub suppress: u8,
    /// Hosts get addresses by DHCPv6.
    pub managed: u8,
    /// Hosts get other settings by DHCPv6.
    pub other: u8,
    /// The router's MAC address is not included.
    pub ll_option: u8,
    /// Hosts with an address are answered alone.
    pub send_unicast: u8,
    /// The router says that it is none any more.
    pub cease: u8,
    /// Back to defaults.
    pub is_no: bool,
    /// `lifetime` holds.
    pub default_router: u8,
    /// Longest interval in seconds.
    pub max_interval: u32,
    /// Shortest interval in seconds; 0: three quarters of the longest.
    pub min_interval: u32,
    /// Lifetime as a default router in seconds.
    pub lifetime: u32,
    /// Number of advertisements at first.
    pub initial_count: u32,
    /// Longest interval of these in seconds.
    pub initial_interval: u32,
}

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
