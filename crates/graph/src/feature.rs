//! What a feature brings: the binary lists features, one line each.

use crate::control::Control;
use crate::decl::{ArcDecl, NodeDecl};
use thalweg_api::Service;
use thalweg_cli::Command;
use thalweg_config::declare::Section;

/// A feature, a device driver or the engine itself.
pub struct Feature {
    /// Its name, as `show plugins` prints it.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Its nodes.
    pub nodes: &'static [&'static NodeDecl],
    /// The arcs that it opens for others.
    pub arcs: &'static [&'static ArcDecl],
    /// Its commands.
    pub commands: &'static [&'static dyn Command<Control>],
    /// Its messages of the binary API.
    pub api: &'static [&'static dyn Service<Control>],
    /// Its parts of the declarative configuration. What a command sets, one of them dumps.
    pub settings: &'static [&'static dyn Section<Control>],
    /// Puts its state in place, before nodes are built.
    pub init: fn(&mut Control),
    /// Runs when the graph stands and workers run.
    pub ready: fn(&mut Control),
}

impl Feature {
    /// For `..Feature::DEFAULT`.
    pub const DEFAULT: Feature = Feature {
        name: "",
        about: "",
        nodes: &[],
        arcs: &[],
        commands: &[],
        api: &[],
        settings: &[],
        init: |_| {},
        ready: |_| {},
    };
}
