//! What a device is, and when it changes.

mod codec;
mod info;
mod monitor;

pub use info::{IfInfo, Mac};
pub use monitor::{LinkEvent, LinkMonitor};
