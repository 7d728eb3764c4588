//! The sampling rate of interfaces without one of their own.

use crate::state::{DEFAULT_RATE, set_sampling_rate, values};
use thalweg_engine::setting::{Global, Number, Rare};

/// One packet in N is sampled; 0 for none. The command has a speed, too, and a parser by hand.
pub static SETTING: Global<Number> = Global {
    command: "sflow sampling-rate",
    help: "",
    form: Number { usage: "<N>", name: "sampling rate", range: (0, u32::MAX) },
    key: "thalweg.sflow.sampling-rate",
    default: || DEFAULT_RATE,
    get: |c| values(c, |all| all.sampling_rate),
    set: |c, rate| {
        set_sampling_rate(c, rate);
        Ok(())
    },
    rare: Rare { vppcfg: Some("sflow.sampling-rate"), by_hand: true, ..Rare::NONE },
};
