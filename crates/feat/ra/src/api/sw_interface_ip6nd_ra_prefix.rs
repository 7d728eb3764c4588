//! `sw_interface_ip6nd_ra_prefix`: a prefix that the router advertises on an interface.

use crate::config::{self, Lifetimes};
use crate::message_types::{IP6_ND, SwInterfaceIp6ndRaPrefix, SwInterfaceIp6ndRaPrefixReply};
use std::net::IpAddr;
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SwInterfaceIp6ndRaPrefix, SwInterfaceIp6ndRaPrefixReply> =
    Call::new(&IP6_ND, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceIp6ndRaPrefix,
) -> Result<SwInterfaceIp6ndRaPrefixReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    let (IpAddr::V6(ip), len) = rq.prefix.parts()? else {
        return Err(Retval::INVALID_ADDRESS_FAMILY);
    };
    if rq.is_no {
        config::remove_prefix(c, sw_if, ip, len)?;
        return Ok(SwInterfaceIp6ndRaPrefixReply);
    }
    let (valid, preferred) = (rq.val_lifetime, rq.pref_lifetime);
    let lifetimes = match rq.use_default {
        true => Lifetimes::default(),
        // One lifetime without end makes both so.
        false if valid == u32::MAX || preferred == u32::MAX => {
            Lifetimes { valid: u32::MAX, preferred: u32::MAX }
        }
        false => Lifetimes { valid, preferred },
    };
    let prefix = config::Prefix {
        lifetimes,
        autonomous: !rq.no_autoconfig,
        on_link: !rq.off_link && !rq.no_onlink,
        advertised: !rq.no_advertise,
        ..config::Prefix::new(ip, len)
    };
    config::add_prefix(c, sw_if, prefix)?;
    Ok(SwInterfaceIp6ndRaPrefixReply)
}
