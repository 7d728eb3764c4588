//! `load-witness`: notes which packets of streams the graph drops, where, and of which interface.
//!
//! A tap on `error-drop`, enabled only for ports of the load tester. Reads packet bytes. A counter
//! says how many were dropped; only this says which: so the first packet that a stream lost has a
//! node and a reason, whatever else the device drops at the time.

use std::any::Any;
use std::collections::HashMap;
use std::sync::mpsc::Sender;

use thalweg_buffer::{Frame, Iface};
use thalweg_device::SwIfIndex;
use thalweg_graph::{Built, FeatureDecl, Kind, NodeDecl, Tap, TapCx};
use thalweg_load::stream::{Tag, find_tag};

/// The node's declaration.
pub(crate) static NODE: NodeDecl = NodeDecl {
    name: "load-witness",
    kind: Kind::Tap,
    feature: Some(FeatureDecl { arc: "error-drop", before: &[], after: &[] }),
    build: |_| Built::tap(Witness::default()),
    ..NodeDecl::DEFAULT
};

/// Packets noted of a reason in all, and of each of its streams: the first ones of the window, for
/// those are the ones that are asked for.
const OF_REASON: usize = 64;
const OF_STREAM: usize = 4;
/// Packets noted in all.
const MOST: usize = 4096;

/// A packet of a stream that was dropped in the window of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Its tag.
    pub tag: Tag,
    /// Number of the reason, among all reasons of the graph.
    pub reason: u32,
    /// Interface that received it.
    pub rx: SwIfIndex,
}

/// Messages from the main thread.
pub(crate) enum Ask {
    /// A trial begins: this one has nothing noted yet.
    Begin(Box<Witness>),
    /// What was noted since then. Whoever asked may be gone.
    Tell(Sender<Vec<Dropped>>),
}

/// What was noted, and what still is.
#[derive(Default)]
pub(crate) struct Witness {
    seed: u64,
    trial: u8,
    noted: Vec<Dropped>,
    /// How many are noted, by reason; and by stream and side, too.
    reasons: HashMap<u32, usize>,
    streams: HashMap<(u32, u16, bool), usize>,
    /// A packet in several buffers.
    whole: Vec<u8>,
}

impl Witness {
    /// One for packets with tags of a trial and a seed. Its memory is that of all that it can note:
    /// a worker allocates none.
    pub(crate) fn new(trial: u8, seed: u64) -> Witness {
        Witness {
            seed,
            trial: trial & 0x3f,
            noted: Vec::with_capacity(MOST),
            reasons: HashMap::with_capacity(MOST),
            streams: HashMap::with_capacity(MOST),
            whole: Vec::new(),
        }
    }

    fn tag(&mut self, frame: &Frame, i: u8) -> Option<Tag> {
        let data = frame.data(i);
        if data.len() == frame.total_len(i) {
            return find_tag(self.seed, data);
        }
        self.whole.clear();
        frame.segments(i).for_each(|segment| self.whole.extend_from_slice(segment));
        find_tag(self.seed, &self.whole)
    }

    fn note(&mut self, tag: Tag, reason: u32, rx: SwIfIndex) {
        if !tag.judged || tag.trial != self.trial || self.noted.len() >= MOST {
            return;
        }
        let side = tag.side == thalweg_load::stream::Side::B;
        let of_reason = self.reasons.entry(reason).or_default();
        let of_stream = self.streams.entry((reason, tag.stream, side)).or_default();
        if *of_reason < OF_REASON || *of_stream < OF_STREAM {
            *of_reason += 1;
            *of_stream += 1;
            self.noted.push(Dropped { tag, reason, rx });
        }
    }
}

impl Tap for Witness {
    fn frame(&mut self, _: &mut TapCx, frame: &mut Frame, _: Iface) {
        for i in 0..frame.len() {
            let Some(reason) = frame.aux().get(i).copied() else { continue };
            let i = i as u8;
            let rx = frame.rx_if(i);
            if let Some(tag) = self.tag(frame, i) {
                self.note(tag, reason, rx);
            }
        }
    }

    fn message(&mut self, message: Box<dyn Any + Send>) {
        let Ok(message) = message.downcast::<Ask>() else { return };
        match *message {
            Ask::Begin(new) => *self = *new,
            Ask::Tell(answer) => {
                let _ = answer.send(std::mem::take(&mut self.noted));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_load::stream::Side;

    fn tag(stream: u16, sequence: u32, judged: bool) -> Tag {
        Tag { stream, trial: 1, side: Side::A, judged, sequence, due: 0, bits: (32, 48) }
    }

    #[test]
    fn first_packets_of_each_stream_and_reason_are_noted() {
        let mut witness = Witness::new(1, 7);
        let port = SwIfIndex::default();
        witness.note(tag(0, 1, false), 7, port);
        witness.note(Tag { trial: 2, ..tag(0, 2, true) }, 7, port);
        assert!(witness.noted.is_empty(), "not of the window, and of another trial");
        (0..1000).for_each(|n| witness.note(tag(0, n, true), 7, port));
        // Another stream and another reason are not crowded out.
        witness.note(tag(1, 5, true), 7, port);
        witness.note(tag(0, 2000, true), 8, port);
        assert_eq!(witness.noted.len(), OF_REASON + 2);
        assert_eq!(witness.noted[0].tag.sequence, 0);
        for stream in 0..10_000u16 {
            witness.note(tag(stream, 0, true), 9, port);
        }
        assert_eq!(witness.noted.len(), MOST, "bounded");
    }
}
