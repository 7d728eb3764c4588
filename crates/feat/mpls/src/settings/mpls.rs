//! `set interface mpls`.

use crate::Mpls;
use thalweg_cli::CliError;
use thalweg_config::declare::rank;
use thalweg_device::setting::PerInterface;
use thalweg_engine::setting::{Rare, Switch};

/// Labelled packets that an interface takes.
pub static SETTING: PerInterface<Switch> = PerInterface {
    command: "set interface mpls",
    usage: "<interface> enable|disable",
    help: "Take labelled packets from an interface, or drop them",
    form: Switch("switch"),
    key: "mpls",
    rule: "thalweg.interfaces.*.mpls",
    default: || false,
    all: |c| c.state::<Mpls>().borrow().enabled().map(|sw_if| (sw_if, true)).collect(),
    set: |c, sw_if, on| Ok(crate::set_enabled(c, sw_if, on).map_err(CliError::from)?),
    // No interface can be enabled without the default table.
    rare: Rare { rank: rank::BIND, needs: Some(crate::section::DEFAULT_TABLE), ..Rare::NONE },
};
