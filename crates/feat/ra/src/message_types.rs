//! Messages that the files of the folder `api` handle, and types of their fields.
//!
//! Written by `cargo xtask api` from VPP's descriptions, by which a unit test of `xtask` keeps it
//! current: add a file for a request, then run the command.
#![allow(missing_docs, reason = "VPP's `.api` files say what fields mean")]

use thalweg_api::schema::Module;
use thalweg_api::types::{InterfaceIndex, Ip6Address, Prefix};
use thalweg_api::{ApiType, Message};

/// Module `rd_cp`.
pub static RD_CP: Module = Module { name: "rd_cp", folder: "core", version: "1.0.1" };

/// Message `ip6_nd_address_autoconfig`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Ip6NdAddressAutoconfig {
    pub sw_if_index: InterfaceIndex,
    pub enable: bool,
    pub install_default_routes: bool,
}

/// Module `ip6_nd`.
pub static IP6_ND: Module = Module { name: "ip6_nd", folder: "core", version: "1.1.0" };

/// Message `ip6nd_send_router_solicitation`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct Ip6ndSendRouterSolicitation {
    pub irt: u32,
    pub mrt: u32,
    pub mrc: u32,
    pub mrd: u32,
    pub sw_if_index: InterfaceIndex,
    pub stop: bool,
}

/// Message `sw_interface_ip6nd_ra_config`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceIp6ndRaConfig {
    pub sw_if_index: InterfaceIndex,
    pub suppress: u8,
    pub managed: u8,
    pub other: u8,
    pub ll_option: u8,
    pub send_unicast: u8,
    pub cease: u8,
    pub is_no: bool,
    pub default_router: u8,
    pub max_interval: u32,
    pub min_interval: u32,
    pub lifetime: u32,
    pub initial_count: u32,
    pub initial_interval: u32,
}

/// Message `sw_interface_ip6nd_ra_dump`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, in_progress, vat_help = "[(<if-name>|sw_if_index <if-idx>)]")]
pub struct SwInterfaceIp6ndRaDump {
    pub sw_if_index: InterfaceIndex,
}

/// Type `ip6nd_ra_prefix`.
#[derive(Clone, Copy, Debug, Default, PartialEq, ApiType)]
pub struct Ip6ndRaPrefix {
    pub prefix: Prefix,
    pub onlink_flag: bool,
    pub autonomous_flag: bool,
    pub val_lifetime: u32,
    pub pref_lifetime: u32,
    pub valid_lifetime_expires: f64,
    pub pref_lifetime_expires: f64,
    pub decrement_lifetime_flag: bool,
    pub no_advertise: bool,
}

/// Message `sw_interface_ip6nd_ra_details`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(details, in_progress)]
pub struct SwInterfaceIp6ndRaDetails {
    pub sw_if_index: InterfaceIndex,
    pub cur_hop_limit: u8,
    pub adv_managed_flag: bool,
    pub adv_other_flag: bool,
    pub adv_router_lifetime: u16,
    pub adv_neighbor_reachable_time: u32,
    pub adv_retransmit_interval: u32,
    pub adv_link_mtu: u32,
    pub send_radv: bool,
    pub cease_radv: bool,
    pub send_unicast: bool,
    pub adv_link_layer_address: bool,
    pub max_radv_interval: f64,
    pub min_radv_interval: f64,
    pub last_radv_time: f64,
    pub last_multicast_time: f64,
    pub next_multicast_time: f64,
    pub initial_adverts_count: u32,
    pub initial_adverts_interval: f64,
    pub initial_adverts_sent: bool,
    pub n_advertisements_sent: u32,
    pub n_solicitations_rcvd: u32,
    pub n_solicitations_dropped: u32,
    #[api(count = "n_prefixes: u32")]
    pub prefixes: Vec<Ip6ndRaPrefix>,
}

/// Message `sw_interface_ip6nd_ra_prefix`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceIp6ndRaPrefix {
    pub sw_if_index: InterfaceIndex,
    pub prefix: Prefix,
    pub use_default: bool,
    pub no_advertise: bool,
    pub off_link: bool,
    pub no_autoconfig: bool,
    pub no_onlink: bool,
    pub is_no: bool,
    pub val_lifetime: u32,
    pub pref_lifetime: u32,
}

/// Message `want_ip6_ra_events`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(request, autoreply)]
pub struct WantIp6RaEvents {
    pub enable: bool,
    pub pid: u32,
}

/// Type `ip6_ra_prefix_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ApiType)]
pub struct Ip6RaPrefixInfo {
    pub prefix: Prefix,
    pub flags: u8,
    pub valid_time: u32,
    pub preferred_time: u32,
}

/// Message `ip6_ra_event`.
#[derive(Clone, Debug, Default, PartialEq, Message)]
#[api(event)]
pub struct Ip6RaEvent {
    pub pid: u32,
    pub sw_if_index: InterfaceIndex,
    pub router_addr: Ip6Address,
    pub current_hop_limit: u8,
    pub flags: u8,
    pub router_lifetime_in_sec: u16,
    pub neighbor_reachable_time_in_msec: u32,
    pub time_in_msec_between_retransmitted_neighbor_solicitations: u32,
    #[api(count = "n_prefixes: u32")]
    pub prefixes: Vec<Ip6RaPrefixInfo>,
}
