//! `sflow sub-agent`.

use crate::exporting::set_sub_agent;
use crate::state::{Settings, values};
use thalweg_engine::setting::{Global, Number, Rare};

/// The sub-agent id.
pub static SETTING: Global<Number> = Global {
    command: "sflow sub-agent",
    help: "Set the sub-agent id, which distinguishes agents with the same address\n\
           The default is 100000. When it changes, sequence numbers restart.",
    form: Number { usage: "<number>", name: "number", range: (0, u32::MAX) },
    key: "thalweg.sflow.sub-agent",
    default: || Settings::default().export.sub_agent,
    get: |c| values(c, |all| all.export.sub_agent),
    set: |c, number| {
        set_sub_agent(c, number);
        Ok(())
    },
    rare: Rare::NONE,
};
