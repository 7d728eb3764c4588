//! NAT44 end to end: the real features between test interfaces.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)]
#[path = "../../../ip4/tests/router/lab.rs"]
mod lab;

mod chaos;
mod kernels;
mod limits;
mod mappings;
mod matrix;
mod nat;
mod output;
mod owners;
mod protocols;
mod requirements;
mod rfc;
mod sessions;
mod store;
mod tables;
mod users;
mod vrfs;

/// Features of the lab in addition to IPv4.
const MORE: &[&thalweg_engine::Feature] = &[&thalweg_feat_nat44::FEATURE];
