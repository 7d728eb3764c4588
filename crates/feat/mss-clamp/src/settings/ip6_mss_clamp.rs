//! Limit of the MSS of connections over IPv6.

use crate::form::ClampForm;
use thalweg_config::declare::rank;
use thalweg_device::setting::PerInterface;
use thalweg_engine::setting::{Optional, Rare};

/// `ip6-mss-clamp` of an interface.
pub static SETTING: PerInterface<Optional<ClampForm>> = PerInterface {
    command: "set interface tcp-mss-clamp",
    usage: "",
    help: "",
    form: Optional { usage: "", none: "ip6 disable", form: ClampForm("ip6") },
    key: "ip6-mss-clamp",
    rule: "thalweg.interfaces.*.ip6-mss-clamp",
    default: || None,
    all: |c| crate::all_of(c, |limits| limits.ip6),
    set: |c, sw_if, clamp| crate::change(c, sw_if, |limits| limits.ip6 = clamp),
    rare: Rare { by_hand: true, rank: rank::ADDRESS, ..Rare::NONE },
};
