//! `sflow polling-interval`.

use crate::state::{DEFAULT_POLLING, set_polling_interval, values};
use thalweg_engine::setting::{Global, Number, Rare};

/// Interval of an interface's counters in seconds.
pub static SETTING: Global<Number> = Global {
    command: "sflow polling-interval",
    help: "Send each interface's counters every S seconds\n\
           Interfaces are polled one after another within the interval. The default is 20.",
    form: Number { usage: "<S>", name: "polling interval", range: (1, u32::MAX) },
    key: "thalweg.sflow.polling-interval",
    default: || DEFAULT_POLLING,
    get: |c| values(c, |all| all.polling_interval),
    set: |c, seconds| Ok(set_polling_interval(c, seconds)?),
    rare: Rare { vppcfg: Some("sflow.polling-interval"), ..Rare::NONE },
};
