//! `sw_interface_ip6nd_ra_prefix`: a prefix that the router advertises on an interface.

use crate::api_types::IP6_ND;
use crate::config::{self, Lifetimes};
use std::net::IpAddr;
use thalweg_api::types::{InterfaceIndex, Prefix};
use thalweg_api::{Call, Message, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// Adds, changes or removes a prefix that the router advertises.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceIp6ndRaPrefix {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The prefix.
    pub prefix: Prefix,
    /// Default lifetimes instead of those below.
    pub use_default: bool,
    /// It is not sent.
    pub no_advertise: bool,
    /// Its addresses are not on the link.
    pub off_link: bool,
    /// Hosts make no addresses from it.
    pub no_autoconfig: bool,
    /// As `off_link`.
    pub no_onlink: bool,
    /// True to remove it.
    pub is_no: bool,
    /// Seconds that it is valid; all ones: for ever.
    pub val_lifetime: u32,
    /// Seconds that its addresses are preferred; all ones: for ever.
    pub pref_lifetime: u32,
}

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
        // Either for ever: both.
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
