//! `lcp lcp-sync`.

use crate::form::OnOff;
use crate::{options, startup};
use thalweg_engine::setting::{Global, Rare};

/// The router's state is passed to twins.
pub static SETTING: Global<OnOff> = Global {
    command: "lcp lcp-sync",
    help: "Pass state, MTU and addresses of interfaces to their twins",
    form: OnOff("lcp-sync"),
    key: "thalweg.lcp.sync",
    default: || startup::defaults().sync,
    get: |c| Some(options::get(c).sync),
    set: |c, on| {
        crate::sync::set(c, on);
        Ok(())
    },
    rare: Rare::NONE,
};
