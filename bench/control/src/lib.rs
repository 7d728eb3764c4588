//! Tools of the control plane's benchmark: memory as the kernel counts it, and changes to make
//! while packets flow.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![forbid(unsafe_code)]

pub mod api;
pub mod churn;
pub mod memory;
pub mod steps;
