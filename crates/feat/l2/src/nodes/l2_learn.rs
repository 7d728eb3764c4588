//! `l2-learn`: learns the source MAC addresses of a bridge domain.
//!
//! Reads: rx interface, source address. Marks a known address as seen; reports an unknown or moved
//! one to the main thread; drops frames from one that may not come by this port. Next: `l2-fwd`.

use crate::L2Table;
use crate::bridges::PortFlags;
use crate::learning::{self, Learning};
use crate::table::Bridge;
use crate::trace::addresses;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Frame, Iface, PktMut, Rows};
use thalweg_device::SwIfIndex;
use thalweg_graph::trace::interface_token;
use thalweg_graph::{Built, FrameVerdict, Node, NodeCx, NodeDecl, Topic, Verdict, clock};
use thalweg_tables::mac::{MacBuckets, MacHash, MacKey, MacValue, Seen};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::next_nodes! { FORWARD => "l2-fwd" }
thalweg_graph::errors! {
    REPORTED: Info, UNKNOWN, "MAC addresses reported";
    SHORT: Error, PKT_TOO_SMALL, "frame too short";
    GROUP: Error, SRC_MAC_IS_MULTICAST, "multicast source MAC address";
    ZERO: Info, SRC_MAC_IS_MULTICAST, "source MAC address is zero: not learned";
    MOVED: Error, LOCKED_PORT, "L2 mac move violations";
    FILTERED: Error, DMAC_FILTER, "L2 filter mac drops";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "l2-learn",
    errors: ERRORS,
    next: NEXT_NODES,
    build: |cx| {
        let learning = cx.shared::<Learning>();
        let seen = match learning.worker() {
            Ok(seen) => seen,
            Err(e) => return Built::Refused(format!("marks of seen addresses: {e}")),
        };
        Built::node(L2Learn {
            table: cx.shared(),
            macs: cx.shared(),
            seen,
            topic: learning.topic,
            reported: Box::new([LastReport::default(); REPORT_SLOTS]),
            pause: clock::ticks_in(REPORT_INTERVAL),
        })
    },
    ..NodeDecl::DEFAULT
};

/// Reports remembered, so that a burst from a new host makes only one.
const REPORT_SLOTS: usize = 1024;

/// Minimum interval between reports of the same address.
const REPORT_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Default)]
struct LastReport {
    key: Option<(MacKey, u32)>,
    at: u64,
}

struct L2Learn {
    table: Arc<Snapshot<L2Table>>,
    macs: Arc<Snapshot<MacBuckets>>,
    seen: Arc<Seen>,
    topic: Topic,
    reported: Box<[LastReport; REPORT_SLOTS]>,
    /// `REPORT_INTERVAL` in ticks.
    pause: u64,
}

impl L2Learn {
    /// Returns whether the address is known on this port, and marks it as seen.
    #[inline(always)]
    fn is_known(&self, macs: &MacBuckets, key: MacKey, hash: MacHash, port: u32) -> bool {
        self.is_there(macs.find(key, hash), port)
    }

    /// Does the work of [`Self::is_known`] for an address already looked up.
    #[inline(always)]
    fn is_there(&self, found: Option<MacValue>, port: u32) -> bool {
        match found {
            Some(value) if value.port() == port => {
                self.seen.note(value.entry());
                true
            }
            _ => false,
        }
    }

    #[cold]
    fn report(&mut self, cx: &mut NodeCx<'_>, key: MacKey, hash: u64, port: u32) {
        let now = cx.now();
        let last = &mut self.reported[hash as usize % REPORT_SLOTS];
        let same = last.key == Some((key, port));
        if same && now.wrapping_sub(last.at) < self.pause {
            return;
        }
        if cx.event_if_room(learning::event(self.topic, key, port, now)) {
            *last = LastReport { key: Some((key, port)), at: now };
            cx.count(REPORTED, 1);
        }
    }
}

impl L2Learn {
    /// Decides about a frame from an address that is not known on this port; `found` is what is
    /// known of it.
    #[cold]
    #[inline(never)]
    fn not_there(
        &mut self,
        cx: &mut NodeCx<'_>,
        port: SwIfIndex,
        from: MacKey,
        (found, hash): (Option<MacValue>, u64),
    ) -> Verdict {
        let table = self.table.load(cx.guard());
        let of = table.port(port);
        let Bridge { learn, room, .. } = *table.bridge(of.bridge);
        match found {
            Some(value) if value.is_filter() => return Verdict::drop(FILTERED),
            // The entry of a port that has left is about to go.
            Some(value) if value.stays() && is_port(table, value, of.bridge) => {
                return Verdict::drop(MOVED);
            }
            _ => {}
        }
        if from.mac() == [0; 6] {
            cx.count(ZERO, 1);
            return FORWARD;
        }
        // Once the table is full, only moves are reported.
        let news = learn && of.flags.has(PortFlags::LEARN) && (room || found.is_some());
        if news {
            self.report(cx, from, hash, port.get());
        }
        FORWARD
    }
}

/// Returns whether the port of an entry belongs to a bridge domain.
fn is_port(table: &L2Table, value: MacValue, bridge: u16) -> bool {
    table.bridge_of(SwIfIndex(value.port())) == bridge
}

impl L2Learn {
    /// Does the kernel's work for a frame of several ports of one bridge domain.
    #[inline(never)]
    fn mixed(&self, cx: &NodeCx<'_>, frame: &Frame, each: &mut [Verdict]) -> FrameVerdict {
        let guard = cx.guard();
        let table = self.table.load(guard);
        let Some(number) = table.bridge_of_all(frame) else { return FrameVerdict::PerPacket };
        let Some(heads) = frame.long_heads::<12>() else { return FrameVerdict::PerPacket };
        let macs = self.macs.load(guard);
        let mut keys = [MacKey::new(0, [0; 6]); 256];
        for (key, head) in keys.iter_mut().zip(heads) {
            *key = MacKey::pair(number, head).1;
        }
        let (keys, each) = (&keys[..frame.len()], &mut each[..frame.len()]);
        let mut rest = Rows::NONE;
        macs.find_each(keys, |i, _, found| {
            if !self.is_there(found, frame.rx_if(i as u8).get()) {
                rest.insert(i as u8);
            }
        });
        each.fill(FORWARD);
        FrameVerdict::Each(rest)
    }
}

impl Node for L2Learn {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let port = p.rx_if();
        let Some(header) = p.data().first_chunk() else { return Verdict::drop(SHORT) };
        let guard = cx.guard();
        let table = self.table.load(guard);
        let number = table.bridge_of(port);
        let (_, from) = MacKey::pair(number, header);
        if from.is_multicast() {
            return Verdict::drop(GROUP);
        }
        let macs = self.macs.load(guard);
        let hash = macs.hash(from);
        let found = macs.find(from, hash);
        match self.is_there(found, port.get()) {
            true => FORWARD,
            false => self.not_there(cx, port, from, (found, hash.number())),
        }
    }

    /// Fast path: every frame's source is known on its port.
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let Iface::Uniform(port) = frame.rx() else { return self.mixed(cx, frame, each) };
        let Some(heads) = frame.long_heads::<12>() else { return FrameVerdict::PerPacket };
        let guard = cx.guard();
        let number = self.table.load(guard).bridge_of(port);
        let macs = self.macs.load(guard);
        let mut keys = [MacKey::new(0, [0; 6]); 256];
        let mut differ = false;
        let mut n = 0;
        for (key, head) in keys.iter_mut().zip(heads) {
            *key = MacKey::pair(number, head).1;
            n += 1;
        }
        for key in &keys[..n] {
            differ |= *key != keys[0];
        }
        if !differ {
            let known = n > 0 && self.is_known(macs, keys[0], macs.hash(keys[0]), port.get());
            return if known { FrameVerdict::Whole(FORWARD) } else { FrameVerdict::PerPacket };
        }
        let mut rest = Rows::NONE;
        macs.find_each(&keys[..n], |i, _, found| {
            if !self.is_there(found, port.get()) {
                rest.insert(i as u8);
            }
        });
        if rest.is_empty() {
            return FrameVerdict::Whole(FORWARD);
        }
        each[..n].fill(FORWARD);
        FrameVerdict::Each(rest)
    }

    fn trace(&self, cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let (rx_if, rx) = (frame.rx_if(i), interface_token(frame.rx_if(i)));
        let index = self.table.load(cx.guard()).bridge_of(rx_if);
        let _ = writeln!(out, "l2-learn: {rx} {} bd_index {index}", addresses(frame, i));
    }
}
