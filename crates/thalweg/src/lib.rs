//! `thalweg load`, which [`load`] is.

#![forbid(unsafe_code)]

pub mod load;

use thalweg_terminal::{FAILED, fail, put, report, say};
