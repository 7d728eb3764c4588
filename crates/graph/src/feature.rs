//! What a feature contributes: the binary lists features, one line each.

use crate::control::Control;
use crate::decl::{ArcDecl, NodeDecl};
use thalweg_api::Service;
use thalweg_cli::Command;
use thalweg_config::declare::Section;

/// A feature, a device driver or the engine itself.
pub struct Feature {
    /// Name that `show plugins` prints.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// Its nodes.
    pub nodes: &'static [&'static NodeDecl],
    /// Arcs that it defines for others.
    pub arcs: &'static [&'static ArcDecl],
    /// Its commands.
    pub commands: &'static [&'static dyn Command<Control>],
    /// Its binary API messages.
    pub api: &'static [&'static dyn Service<Control>],
    /// Its sections of the declarative configuration. What a command sets, one of them dumps.
    pub settings: &'static [&'static dyn Section<Control>],
    /// Inserts its state, before nodes are built.
    pub init: fn(&mut Control),
    /// Runs once the graph is built and workers run.
    pub ready: fn(&mut Control),
}

impl Feature {
    /// Defaults, for `..Feature::DEFAULT`.
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
