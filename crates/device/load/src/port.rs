//! A port: what it sends, hosts hear.

use std::any::Any;

use thalweg_buffer::{FRAME_SIZE, Frame, Packet};
use thalweg_device::{
    Caps, Device, DeviceError, InterfaceSpec, MacAddr, SwIfIndex, Transmit, interface,
};
use thalweg_graph::{Built, Control, HandOff, Kind, NodeCx, NodeDecl, PerWorker, Runner};

use crate::hear;
use crate::hosts::All;

/// A port that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// More workers than plans have parts.
    #[error("{0} workers: the load tester has {most} at most", most = thalweg_load::MAX_PARTS)]
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
    /// The way to hosts of other workers, if there are any.
    queue: Option<HandOff>,
    /// Packets of a frame and whose they are, while it is dealt out.
    away: Vec<(usize, usize)>,
    packets: Vec<Packet>,
}

impl Tx {
    /// Hands packets of a frame to other workers; the others have been heard.
    #[cold]
    fn deal(&mut self, cx: &mut NodeCx<'_>, mut frame: Box<Frame>) -> Box<Frame> {
        let Some(queue) = &self.queue else { return frame };
        self.packets.extend(std::iter::from_fn(|| frame.pop()));
        let mut away = self.away.drain(..).peekable();
        // The last one comes first.
        for (at, mut packet) in self.packets.drain(..).rev().enumerate() {
            if let Some((_, worker)) = away.next_if(|(of, _)| *of == at) {
                packet.set_aux(self.sw_if.0);
                cx.hand_off(packet, queue, worker);
            } else if let Err(packet) = frame.push(packet) {
                cx.consume(packet);
            }
        }
        frame
    }
}

impl Runner for Tx {
    fn run(&mut self, cx: &mut NodeCx<'_>, frame: Box<Frame>) {
        cx.trace_frame(&frame, |f, i, out| {
            let _ = writeln!(out, "load tester, {} bytes", f.total_len(i));
        });
        if let Some(mut all) = cx.take_local(self.all) {
            let away = self.queue.is_some().then_some(&mut self.away);
            all.hear(cx, self.sw_if, (&frame, 0..frame.len()), away);
            cx.put_local(self.all, all);
        }
        if self.away.is_empty() {
            return cx.sent_frame(frame);
        }
        let rest = self.deal(cx, frame);
        match rest.is_empty() {
            true => cx.put_frame(rest),
            false => cx.sent_frame(rest),
        }
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

    fn set_mac(&self, _: &mut Control, _: MacAddr) -> Result<bool, DeviceError> {
        Ok(true)
    }

    fn set_mtu(&self, _: &mut Control, _: u32) -> Result<bool, DeviceError> {
        Ok(true)
    }
}

pub(crate) fn create(c: &mut Control, name: &str, mac: MacAddr) -> Result<SwIfIndex, PortError> {
    if c.workers() > thalweg_load::MAX_PARTS as usize {
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
        input: None,
    };
    let queues: Vec<Option<HandOff>> =
        (0..c.workers()).map(|worker| c.hand_off(hear::QUEUE, worker)).collect();
    let several = queues.len() > 1;
    let mut build = move |sw_if, worker: usize| {
        let queue = queues.get(worker).cloned().flatten().filter(|_| several);
        let room = if several { FRAME_SIZE } else { 0 };
        let (away, packets) = (Vec::with_capacity(room), Vec::with_capacity(room));
        Built::runner(Tx { sw_if, all, queue, away, packets })
    };
    let sw_if = interface::create(c, spec, Transmit::Own(&TX, &mut build))?;
    interface::set_admin(c, sw_if, true)?;
    Ok(sw_if)
}
