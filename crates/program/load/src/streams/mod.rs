//! Stateless streams: what a trial of them found.

mod report;
mod trial;

pub(super) use report::{damaged, lines};
pub(super) use trial::{First, StreamTrial};
