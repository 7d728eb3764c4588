//! A port: what it sends, hosts hear.

use std::any::Any;

use thalweg_buffer::Frame;
use thalweg_device::{Caps, Device, DeviceError, InterfaceSpec, MacAddr, SwIfIndex, interface};
use thalweg_graph::{Built, Control, Kind, NodeCx, NodeDecl, PerWorker, Runner};

use crate::hosts::All;

/// A port that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// Hosts hear and speak in one worker.
    #[error("{0} workers: a device that shares a process with the load tester has one")]
    Workers(usize),
    /// The interface.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Declaration of a port's transmit node.
static TX: NodeDecl = NodeDecl { name: "load-tx", kind: Kind::Tx, ..NodeDecl::DEFAULT };

/// Largest frame that a port takes.
const MTU: u32 = 9000;

struct Tx {
    sw_if: SwIfIndex,
    all: PerWorker<All>,
}

impl Runner for Tx {
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        cx.trace_frame(&frame, |f, i, out| {
            let _ = writeln!(out, "load tester, {} bytes", f.total_len(i));
        });
        if let Some(mut all) = cx.take_local(self.all) {
            all.hear(cx, self.sw_if, &frame);
            cx.put_local(self.all, all);
        }
        cx.sent_frame(frame);
    }

    fn message(&mut self, _: &mut NodeCx<'_>, _: Box<dyn Any + Send>) {}
}

struct Port;

/// The device type of ports.
pub(crate) const DEV_TYPE: &str = "load tester";

impl Device for Port {
    fn dev_type(&self) -> &'static str {
        DEV_TYPE
    }

    fn set_mac(&mut self, _: &mut Control, _: MacAddr) -> Result<bool, DeviceError> {
        Ok(true)
    }

    fn set_mtu(&mut self, _: &mut Control, _: u32) -> Result<bool, DeviceError> {
        Ok(true)
    }
}

pub(crate) fn create(c: &mut Control, name: &str, mac: MacAddr) -> Result<SwIfIndex, PortError> {
    if c.workers() != 1 {
        return Err(PortError::Workers(c.workers()));
    }
    let all = c.per_worker::<All>();
    let spec = InterfaceSpec {
        name: name.into(),
        mac,
        mtu: MTU,
        speed_kbps: 0,
        link_up: true,
        caps: Caps::default(),
        device: Box::new(Port),
        tx: &TX,
        input: None,
    };
    let build = move |sw_if, _| Built::runner(Tx { sw_if, all });
    let sw_if = interface::create(c, spec, build)?;
    interface::set_admin(c, sw_if, true)?;
    Ok(sw_if)
}
