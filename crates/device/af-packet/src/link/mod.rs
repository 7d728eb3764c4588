//! Properties of devices, and events of their changes.

mod info;
mod monitor;

pub use info::IfInfo;
pub use monitor::{LinkEvent, LinkMonitor};
