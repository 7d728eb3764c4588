//! The module that describes layer 2's API messages.

use thalweg_api::schema::Module;

/// Layer 2.
pub static L2: Module = Module { name: "l2", folder: "core", version: "3.3.0" };
