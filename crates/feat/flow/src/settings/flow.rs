//! `set interface flow`.

use thalweg_cli::CliError;
use thalweg_config::declare::rank;
use thalweg_device::setting::PerInterface;
use thalweg_engine::setting::{Number, Optional, Rare};

/// The set of rules for packets that an interface receives.
pub static SETTING: PerInterface<Optional<Number>> = PerInterface {
    command: "set interface flow",
    usage: "<interface> <set> | <interface> disable",
    help: "Apply a set of rules (`flow add`) to packets received on an interface. A set without \
           rules drops everything.",
    form: Optional {
        usage: "<set> | disable",
        none: "disable",
        form: Number { usage: "<set>", name: "set of rules", range: (0, u32::MAX) },
    },
    key: "flow",
    rule: "thalweg.interfaces.*.flow",
    default: || None,
    all: |c| crate::attached(c).into_iter().map(|(sw_if, set)| (sw_if, Some(set))).collect(),
    set: |c, sw_if, set| Ok(crate::attach(c, sw_if, set).map_err(CliError::failed)?),
    rare: Rare { rank: rank::BIND, ..Rare::NONE },
};
