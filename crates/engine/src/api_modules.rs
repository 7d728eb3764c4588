//! Modules that group the engine's API messages.

use thalweg_api::schema::Module;

/// Nodes, threads and the command line.
pub static VLIB: Module = Module { name: "vlib", folder: "core", version: "1.0.0" };

/// The program as a whole.
pub static VPE: Module = Module { name: "vpe", folder: "core", version: "1.7.0" };

/// Packet traces.
pub static TRACEDUMP: Module = Module { name: "tracedump", folder: "plugins", version: "0.2.0" };

/// The node graph.
pub static GRAPH: Module = Module { name: "graph", folder: "plugins", version: "1.0.0" };

/// Classifier tables.
pub static CLASSIFY: Module = Module { name: "classify", folder: "core", version: "3.1.0" };
