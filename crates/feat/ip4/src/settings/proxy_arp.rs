//! `set interface proxy-arp`.

use crate::cli_support::proxy_failed;
use crate::proxy_arp;
use thalweg_config::declare::rank;
use thalweg_device::setting::PerInterface;
use thalweg_engine::setting::{Rare, Switch};

/// Answers for other hosts on an interface.
pub static SETTING: PerInterface<Switch> = PerInterface {
    command: "set interface proxy-arp",
    usage: "<interface> enable|disable",
    help: "Answer ARP requests on an interface for the ranges of `set arp proxy', or not",
    form: Switch("switch"),
    key: "proxy-arp",
    rule: "thalweg.interfaces.*.proxy-arp",
    default: || false,
    all: |c| proxy_arp::interfaces(c).into_iter().map(|sw_if| (sw_if, true)).collect(),
    set: |c, sw_if, on| Ok(proxy_arp::set_interface(c, sw_if, on).map_err(proxy_failed)?),
    rare: Rare { rank: rank::ADDRESS, ..Rare::NONE },
};
