//! Packet generator ports: transmitted packets are counted, captured if enabled, and freed.

use crate::capture::Probe;
use crate::stream::{Mode, Pg};
use std::any::Any;
use std::time::SystemTime;
use thalweg_buffer::Frame;
use thalweg_device::{Device, DeviceError, MacAddr, SwIfIndex, interface};
use thalweg_graph::{Built, Control, Kind, NodeCx, NodeDecl, Runner, clock};
use thalweg_wire::fmt;

/// Declaration of a port's transmit node.
pub static TX: NodeDecl = NodeDecl { name: "pg-tx", kind: Kind::Tx, ..NodeDecl::DEFAULT };

/// Message to a transmit node: starts or ends capturing.
pub(crate) struct SetProbe(pub(crate) Option<Probe>);

struct PgTx {
    ip: bool,
    probe: Option<Probe>,
}

pub(crate) fn build_tx(mode: Mode) -> Built {
    Built::runner(PgTx { ip: mode != Mode::Ethernet, probe: None })
}

impl Runner for PgTx {
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        let ip = self.ip;
        cx.trace_frame(&frame, |f, i, out| {
            let _ = writeln!(out, "{} bytes", f.total_len(i));
            let _ = match ip {
                true => fmt::ip(f.data(i), out, 2),
                false => fmt::packet(f.data(i), out, 2),
            };
        });
        if let Some(probe) = &mut self.probe {
            let now = clock::wall(cx.now()).duration_since(SystemTime::UNIX_EPOCH);
            let micros = now.unwrap_or_default().as_micros() as u64;
            for i in 0..frame.len() {
                let i = i as u8;
                probe.packet(micros, frame.total_len(i), frame.segments(i));
            }
            probe.flush();
        }
        cx.sent_frame(frame);
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        let Ok(set) = message.downcast::<SetProbe>() else { return };
        if let Some(old) = std::mem::replace(&mut self.probe, set.0) {
            // The last owner of the ring unmaps it.
            cx.discard(Box::new(old));
        }
    }
}

/// Driver of a port on the main thread.
pub(crate) struct PgDevice {
    pub(crate) id: u32,
    pub(crate) mode: Mode,
}

impl Device for PgDevice {
    fn dev_type(&self) -> &'static str {
        "pg"
    }

    /// A port's link follows its administrative state, as in VPP: there is no peer to wait for.
    fn set_admin(&self, c: &mut Control, sw_if: SwIfIndex, up: bool) -> Result<(), DeviceError> {
        interface::set_link(c, sw_if, up)
    }

    fn set_mac(&self, _c: &mut Control, _mac: MacAddr) -> Result<bool, DeviceError> {
        Ok(self.mode == Mode::Ethernet)
    }

    fn set_mtu(&self, _c: &mut Control, _mtu: u32) -> Result<bool, DeviceError> {
        Ok(true)
    }

    fn hardware(&self, c: &Control, _verbose: bool) -> Vec<String> {
        let pg = c.state::<Pg>();
        let pg = pg.borrow();
        let mut lines = vec![format!("packet generator, {} mode", self.mode.word())];
        lines.extend(pg.port_streams(self.id).map(|name| format!("source of stream {name}")));
        lines.extend(pg.capture_text(self.id));
        lines
    }

    fn hardware_json(&self, c: &Control) -> serde_json::Value {
        let pg = c.state::<Pg>();
        let pg = pg.borrow();
        serde_json::json!({
            "mode": self.mode.word(),
            "streams": pg.port_streams(self.id).collect::<Vec<_>>(),
            "capture": pg.capture_json(self.id),
        })
    }
}

pub(crate) fn port_name(id: u32) -> String {
    format!("pg{id}")
}

/// Number in a port's name.
pub(crate) fn port_id(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("pg")?;
    let canonical = digits == "0" || !digits.starts_with('0');
    digits.parse().ok().filter(|_| canonical && !digits.starts_with('+'))
}

/// Starts or ends capturing in the transmit node of `sw_if` on each worker.
pub(crate) fn set_probes(c: &mut Control, sw_if: SwIfIndex, probes: Option<Vec<Probe>>) {
    let Some(node) = c.node(&format!("{}-tx", c.interface_name(sw_if))) else { return };
    let mut probes = probes.unwrap_or_default().into_iter();
    c.message_all(node, |_| Box::new(SetProbe(probes.next())));
}
