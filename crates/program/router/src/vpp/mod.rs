//! Diagnostics by VPP's words: figures that several features have, and words whose answer is that
//! there is nothing to show. `docs/vpp-differences.md` lists all words, with a verdict each.

pub mod cli;
mod words;

pub use words::{WORDS, Word};

use thalweg_engine::Feature;

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "vpp-words",
    about: "diagnostics by VPP's words",
    needs: &[
        &thalweg_device::FEATURE,
        &thalweg_feat_l2::FEATURE,
        &thalweg_feat_flow::FEATURE,
        &thalweg_feat_neighbor::FEATURE,
        &thalweg_feat_ip::FEATURE,
        &thalweg_feat_nat44::FEATURE,
    ],
    commands: cli::COMMANDS,
    ..Feature::DEFAULT
};

/// The words that have nothing to show, as a feature of their own.
pub static NOTHING: Feature = Feature {
    name: "vpp-nothing",
    about: "VPP's words for what this router does not have",
    commands: words::COMMANDS,
    ..Feature::DEFAULT
};

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::GeneratedList {
            dir: concat!(env!("CARGO_MANIFEST_DIR"), "/src/vpp/cli"),
            what: "command",
            list: "COMMANDS",
            element: "&dyn thalweg_cli::Command<thalweg_graph::Control>",
            item: "COMMAND",
        }
        .check();
    }
}
