//! `lcp param del-static-on-link-down`.

use crate::form::OnOff;
use crate::{options, startup};
use thalweg_engine::setting::{Global, Rare};

/// Static routes by an interface whose link goes down are removed.
pub static SETTING: Global<OnOff> = Global {
    command: "lcp param del-static-on-link-down",
    help: "",
    form: OnOff("del-static-on-link-down"),
    key: "thalweg.lcp.del-static-on-link-down",
    default: || startup::defaults().del_static,
    get: |c| Some(options::get(c).del_static),
    set: |c, on| {
        options::change(c, |options| options.del_static = on);
        Ok(())
    },
    rare: Rare { by_hand: true, ..Rare::NONE },
};
