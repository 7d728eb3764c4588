//! `sflow host-interval`.

use crate::exporting::set_host_interval;
use crate::state::{Settings, values};
use thalweg_engine::setting::{Global, Number, Rare};

/// Interval of the host's counters in seconds; 0 sends none.
pub static SETTING: Global<Number> = Global {
    command: "sflow host-interval",
    help: "Set the polling interval of host counters in seconds\n\
           CPU, memory, disk and protocol counters (sFlow host structures). The default is 30; 0\n\
           disables them. They are sent while sFlow is enabled on an interface.",
    form: Number { usage: "<seconds>", name: "seconds", range: (0, 86_400) },
    key: "thalweg.sflow.host-interval",
    default: || Settings::default().export.host_interval,
    get: |c| values(c, |all| all.export.host_interval),
    set: |c, seconds| {
        set_host_interval(c, seconds);
        Ok(())
    },
    rare: Rare::NONE,
};
