//! `lcp lcp-auto-subint`.

use crate::form::OnOff;
use crate::{options, startup};
use thalweg_engine::setting::{Global, Rare};

/// Sub-interfaces get twins when they are made.
pub static SETTING: Global<OnOff> = Global {
    command: "lcp lcp-auto-subint",
    help: "Give new sub-interfaces twins, named <twin of the parent>.<number>",
    form: OnOff("lcp-auto-subint"),
    key: "thalweg.lcp.auto-subint",
    default: || startup::defaults().auto_subint,
    get: |c| Some(options::get(c).auto_subint),
    set: |c, on| {
        options::change(c, |options| options.auto_subint = on);
        Ok(())
    },
    rare: Rare::NONE,
};
