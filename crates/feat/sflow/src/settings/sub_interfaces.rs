//! `sflow sub-interfaces`.

use crate::state::{set_sub_interfaces, values};
use thalweg_engine::setting::{Global, Rare, Switch};

/// Naming of sub-interfaces in samples.
pub static SETTING: Global<Switch> = Global {
    command: "sflow sub-interfaces",
    help: "Name sub-interfaces in samples, in place of their ports\n\
           Ports are sampled in any case: this is about where a sampled packet came in and went out.",
    form: Switch("sub-interfaces in samples"),
    key: "thalweg.sflow.sub-interfaces",
    default: || false,
    get: |c| values(c, |all| all.sub_interfaces),
    set: |c, on| Ok(set_sub_interfaces(c, on)?),
    rare: Rare::NONE,
};
