//! A feature's contribution to the graph.

use crate::control::Control;
use crate::decl::{ArcDecl, NodeDecl};

/// Nodes, arcs and state of a feature, a device driver or the engine itself.
#[derive(Clone, Copy)]
pub struct Part {
    /// Its name, for errors.
    pub name: &'static str,
    /// Its nodes.
    pub nodes: &'static [&'static NodeDecl],
    /// Arcs that it defines for others.
    pub arcs: &'static [&'static ArcDecl],
    /// Inserts its state, before nodes are built.
    pub init: fn(&mut Control),
    /// Runs once the graph is built and workers run.
    pub ready: fn(&mut Control),
}

impl Part {
    /// Defaults, for `..Part::DEFAULT`.
    pub const DEFAULT: Part = Part { name: "", nodes: &[], arcs: &[], init: |_| {}, ready: |_| {} };
}
