//! `lcp lcp-sync-unnumbered`.

use crate::form::OnOff;
use crate::options;
use thalweg_engine::setting::{Global, Rare};

/// Addresses that an interface borrows are passed, too.
pub static SETTING: Global<OnOff> = Global {
    command: "lcp lcp-sync-unnumbered",
    help: "Pass borrowed addresses, too",
    form: OnOff("lcp-sync-unnumbered"),
    key: "thalweg.lcp.sync-unnumbered",
    default: || true,
    get: |c| Some(options::get(c).sync_unnumbered),
    set: |c, on| {
        crate::sync::set_unnumbered(c, on);
        Ok(())
    },
    rare: Rare::NONE,
};
