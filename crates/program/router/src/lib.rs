//! The router as a program: `thalweg run`, and what is about its configuration and its binary API.
//!
//! * [`features`]: the features of the router, one line each;
//! * [`api`]: `thalweg api json`, and the API messages about the command line;
//! * [`metrics`]: counters over HTTP;
//! * [`vpp`]: diagnostics by VPP's words;
//! * [`run`]: `thalweg run`, the router;
//! * [`configuration`]: `thalweg config`, which checks documents and asks a running router.

#![forbid(unsafe_code)]

pub mod api;
pub mod configuration;
pub mod features;
pub mod metrics;
pub mod run;
pub mod vpp;

use thalweg_terminal::{FAILED, FAULT, USAGE, fail, say};
