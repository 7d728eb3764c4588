//! `set interface ip directed-broadcast`.

use crate::directed;
use thalweg_config::declare::rank;
use thalweg_device::setting::PerInterface;
use thalweg_engine::setting::{Rare, Switch};
use thalweg_feat_ip::address_failed;

/// Packets from elsewhere to a subnet's broadcast address.
pub static SETTING: PerInterface<Switch> = PerInterface {
    command: "set interface ip directed-broadcast",
    usage: "<interface> enable|disable",
    help: "Send packets from elsewhere to the broadcast addresses of an interface's subnets, or not\n\
           By default they are dropped (RFC 2644).",
    form: Switch("switch"),
    key: "directed-broadcast",
    rule: "thalweg.interfaces.*.directed-broadcast",
    default: || false,
    all: |c| directed::all(c).into_iter().map(|sw_if| (sw_if, true)).collect(),
    set: |c, sw_if, on| Ok(directed::set(c, sw_if, on).map_err(address_failed)?),
    rare: Rare { rank: rank::ADDRESS, ..Rare::NONE },
};
