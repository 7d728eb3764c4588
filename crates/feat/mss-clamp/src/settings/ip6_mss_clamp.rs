//! Limit of the MSS of connections over IPv6.

use crate::form::ClampForm;
use thalweg_config::declare::rank;
use thalweg_device::setting::PerInterface;

/// `ip6-mss-clamp` of an interface.
pub static SETTING: PerInterface<ClampForm> = PerInterface {
    command: "set interface tcp-mss-clamp",
    help: "",
    form: ClampForm("ip6"),
    none: "ip6 disable",
    key: "ip6-mss-clamp",
    rule: "thalweg.interfaces.*.ip6-mss-clamp",
    rank: rank::ADDRESS,
    all: |c| crate::all_of(c, |limits| limits.ip6),
    set: |c, sw_if, clamp| crate::change(c, sw_if, |limits| limits.ip6 = clamp),
    by_hand: true,
};
