//! `set interface l2 efp-filter`.

use crate::{L2, set_efp_filter};
use thalweg_config::declare::rank;
use thalweg_device::setting::PerInterface;
use thalweg_engine::setting::{Rare, Switch};

/// Frames with tags that an interface would not receive, as it sends them.
pub static SETTING: PerInterface<Switch> = PerInterface {
    command: "set interface l2 efp-filter",
    usage: "<interface> [enable|disable]",
    help: "Have an interface in layer 2 send only frames that it would receive\n\
           Frames whose tags, as they leave, belong to another sub-interface or to none are \
           dropped;\n\
           if it rewrites tags, those without the tags that it gives to frames, too.",
    form: Switch("filter"),
    key: "efp-filter",
    rule: "thalweg.interfaces.*.efp-filter",
    default: || false,
    all: |c| c.state::<L2>().borrow().efp_filters.iter().map(|sw_if| (*sw_if, true)).collect(),
    set: |c, sw_if, on| Ok(set_efp_filter(c, sw_if, on)?),
    rare: Rare { bare: Some(|| true), rank: rank::L2, order: 1, attribute: true, ..Rare::NONE },
};
