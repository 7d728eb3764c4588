//! `lcp param del-dynamic-on-link-down`.

use crate::form::OnOff;
use crate::{options, startup};
use thalweg_engine::setting::{Global, Rare};

/// Routes of protocols by an interface whose link goes down are removed.
pub static SETTING: Global<OnOff> = Global {
    command: "lcp param del-dynamic-on-link-down",
    help: "",
    form: OnOff("del-dynamic-on-link-down"),
    key: "thalweg.lcp.del-dynamic-on-link-down",
    default: || startup::defaults().del_dynamic,
    get: |c| Some(options::get(c).del_dynamic),
    set: |c, on| {
        options::change(c, |options| options.del_dynamic = on);
        Ok(())
    },
    rare: Rare { by_hand: true, ..Rare::NONE },
};
