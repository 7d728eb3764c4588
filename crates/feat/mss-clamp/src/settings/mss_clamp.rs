//! Limit of the MSS of connections over IPv4.

use crate::form::ClampForm;
use thalweg_config::declare::rank;
use thalweg_device::setting::PerInterface;

/// `mss-clamp` of an interface.
pub static SETTING: PerInterface<ClampForm> = PerInterface {
    command: "set interface tcp-mss-clamp",
    help: "",
    form: ClampForm("ip4"),
    none: "ip4 disable",
    key: "mss-clamp",
    rule: "thalweg.interfaces.*.mss-clamp",
    rank: rank::ADDRESS,
    all: |c| crate::all_of(c, |limits| limits.ip4),
    set: |c, sw_if, clamp| crate::change(c, sw_if, |limits| limits.ip4 = clamp),
    by_hand: true,
};
