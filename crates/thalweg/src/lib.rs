//! The programs `thalweg` and `thalctl`: arguments, what they start, what they print when
//! they cannot.
//!
//! * [`features`]: the features of the router, one line each;
//! * [`api`]: `thalweg api json`, and the API messages about the command line;
//! * [`metrics`]: counters over HTTP;
//! * [`vpp`]: diagnostics by VPP's words;
//! * [`run`]: `thalweg run`, the router;
//! * [`configuration`]: `thalweg config`, which checks documents and asks a running router.
//!
//! `thalctl` is [`thalweg_ctl`].

#![forbid(unsafe_code)]

pub mod api;
pub mod configuration;
pub mod features;
pub mod load;
pub mod metrics;
pub mod run;
pub mod vpp;

use thalweg_terminal::{FAILED, FAULT, USAGE, fail, put, report, say};
