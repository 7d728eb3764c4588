//! Stateless streams: trials, and what they find.

mod report;
mod trial;

pub(super) use report::{json, lines};
pub(super) use trial::{StreamTester, StreamTrial};
