//! The modules that describe the engine's API messages.

use thalweg_api::schema::Module;

/// Nodes, threads, the command line.
pub static VLIB: Module = Module { name: "vlib", folder: "core", version: "1.0.0" };

/// The program as a whole.
pub static VPE: Module = Module { name: "vpe", folder: "core", version: "1.7.0" };
