//! Multicast listener discovery (MLD): the router reports the groups of a link that it listens to,
//! and answers those that ask (RFC 3810; RFC 2710 where an older router asks). Switches that look
//! into these messages would otherwise keep solicitations from it.
//!
//! Workers check and report queries ([`thalweg_feat_nd`], which knows the groups); all else is on
//! the main thread.
//!
//! * [`port`]: what an interface has to say, and when.
//! * [`listen`]: groups, timers and sending.
#![forbid(unsafe_code)]

mod cli;
pub mod listen;
mod packet;
pub mod port;

use thalweg_engine::Feature;

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "mld",
    about: "multicast listener discovery: reports the IPv6 groups of interfaces",
    needs: &[
        &thalweg_device::FEATURE,
        &thalweg_feat_neighbor::FEATURE,
        &thalweg_feat_nd::FEATURE,
        &thalweg_feat_ip6::FEATURE,
    ],
    commands: cli::COMMANDS,
    init: listen::init,
    ..Feature::DEFAULT
};

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
