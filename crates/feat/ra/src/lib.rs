//! Router advertisements (RFC 4861 section 6, RFC 4191, RFC 8106): the router advertises itself to
//! hosts, and learns addresses and default routes from other routers (RFC 4862).
//!
//! Workers check and report messages ([`thalweg_feat_nd`]); all else is on the main thread.
//!
//! * [`config`]: what is advertised by interface.
//! * [`advertise`]: when, and answers to solicitations.
//! * [`packet`]: an advertisement, and a solicitation.
//! * [`autoconfig`]: addresses and default routes by other routers.
//! * [`solicit`]: the router's own solicitations.
#![forbid(unsafe_code)]

pub mod advertise;
pub mod api;
mod api_types;
pub mod autoconfig;
mod cli;
pub mod config;
pub mod message_types;
pub mod packet;
mod section;
pub mod settings;
mod show;
pub mod solicit;

pub use config::{Config, Lifetimes, Prefix, RaError};

use thalweg_engine::Feature;

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "ra",
    about: "IPv6 router advertisements and autoconfiguration",
    needs: &[
        &thalweg_device::FEATURE,
        &thalweg_feat_neighbor::FEATURE,
        &thalweg_feat_nd::FEATURE,
        &thalweg_feat_ip::FEATURE,
        &thalweg_feat_ip6::FEATURE,
    ],
    commands: cli::COMMANDS,
    api: api::SERVICES,
    settings: &[&section::SETTINGS],
    declared: settings::SETTINGS,
    init: |c| {
        config::init(c);
        advertise::init(c);
        autoconfig::init(c);
        solicit::init(c);
        api_types::init(c);
        thalweg_feat_ip6::show::add(c, show::part);
    },
    ..Feature::DEFAULT
};

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
