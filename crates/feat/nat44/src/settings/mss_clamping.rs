//! `nat mss-clamping`.

use crate::section::{tuned, tuning};
use crate::state::{MIN_MSS, set_mss};
use thalweg_engine::setting::{Global, Number, Optional};

/// The largest MSS of TCP connections through NAT44.
pub static SETTING: Global<Optional<Number>> = Global {
    command: "nat mss-clamping",
    help: "Limit the MSS of TCP connections through NAT44",
    form: Optional {
        usage: "<bytes> | disable",
        none: "disable",
        form: Number { usage: "<bytes>", name: "segment size", range: (MIN_MSS as u32, 65_535) },
    },
    key: "thalweg.nat44.mss-clamping",
    default: || None,
    get: |c| tuned(c, |nat| Some(u32::from(nat.mss())).filter(|mss| *mss != 0)),
    set: |c, mss| Ok(set_mss(c, mss.unwrap_or_default() as u16)?),
    rare: tuning(),
};
