//! `lcp fpm`.

use crate::form::FpmAddress;
use crate::{options, routes, startup};
use thalweg_engine::setting::{Global, Rare};

/// The router listens to FRRouting's `zebra`, which sends its routes.
pub static SETTING: Global<FpmAddress> = Global {
    command: "lcp fpm",
    help: "Take routes that FRRouting's zebra sends itself (zebra -M dplane_fpm_nl)\n\
           The router listens at the address in each namespace with twins; `enable' is \
           127.0.0.1:2620, for `fpm address 127.0.0.1' of zebra.",
    form: FpmAddress,
    key: "thalweg.lcp.fpm",
    default: || startup::defaults().fpm,
    get: |c| Some(options::get(c).fpm),
    set: |c, address| {
        routes::set_fpm(c, address);
        Ok(())
    },
    rare: Rare::NONE,
};
