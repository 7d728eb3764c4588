//! `lcp fpm-hold`.

use crate::options::{self, FPM_HOLD};
use crate::routes;
use thalweg_engine::setting::{Global, Number, Rare};

/// Time for which routes of a lost connection of `zebra` stay.
pub static SETTING: Global<Number> = Global {
    command: "lcp fpm-hold",
    help: "Keep routes for N seconds after the connection of zebra was lost\n\
           Those that a new connection has not announced by then go, counted from its begin.",
    form: Number { usage: "<seconds>", name: "seconds", range: (1, 3600) },
    key: "thalweg.lcp.fpm-hold",
    default: || FPM_HOLD,
    get: |c| Some(options::get(c).fpm_hold),
    set: |c, seconds| {
        routes::set_fpm_hold(c, seconds);
        Ok(())
    },
    rare: Rare::NONE,
};
