//! Packets of sub-interfaces on their way through `ethernet-input`.

use thalweg_buffer::{FRAME_SIZE, Frame, PktMut};
use thalweg_device::SwIfIndex;
use thalweg_graph::{NodeCx, Verdict};

/// Successive packets of one sub-interface, which are counted together. If a tap of it is due, or
/// it has features for what it receives, they move to a frame of their own, which these see and
/// which comes to the node again.
#[derive(Default)]
pub(crate) struct Run {
    /// The sub-interface; 0 if there are no packets yet.
    sw_if: SwIfIndex,
    packets: u64,
    bytes: u64,
    apart: Option<Box<Frame>>,
}

impl Run {
    /// Adds a packet. Returns true if it has to be [taken](Self::take).
    #[inline]
    pub(crate) fn add(&mut self, cx: &mut NodeCx<'_>, sw_if: SwIfIndex, bytes: usize) -> bool {
        if sw_if != self.sw_if {
            self.end(cx);
            self.sw_if = sw_if;
            let has_features = cx.are_input_features() && cx.has_input_features(sw_if);
            if has_features || cx.input_taps_wait(sw_if, FRAME_SIZE as u64) {
                self.apart = Some(cx.new_frame());
            }
        }
        self.packets += 1;
        self.bytes += bytes as u64;
        self.apart.is_some()
    }

    /// Takes the packet that was just added.
    #[cold]
    pub(crate) fn take(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let (packet, verdict) = cx.take(p);
        match &mut self.apart {
            // The frame has room for a whole frame, which this is a part of.
            Some(apart) => {
                if let Err(packet) = apart.push(packet) {
                    cx.consume(packet);
                }
            }
            None => cx.consume(packet),
        }
        verdict
    }

    /// Counts the packets, or passes the frame of their own on.
    #[inline]
    pub(crate) fn end(&mut self, cx: &mut NodeCx<'_>) {
        if let Some(apart) = self.apart.take() {
            cx.enter_interface(apart, self.sw_if);
        } else if self.packets > 0 {
            cx.count_input(self.sw_if, self.packets, self.bytes);
        }
        *self = Run::default();
    }
}
