//! `load-witness`: notes which packets of the load tester the graph drops, where, and of which
//! interface.
//!
//! A tap on `error-drop`, enabled only during trials of the load tester: in its own graph, and in
//! a router of its lab. Reads packet bytes. A counter says how many were dropped; only this says
//! which: so the first packet that a stream lost has a node and a reason, whatever else the device
//! drops at the time.

use std::any::Any;
use std::collections::HashMap;
use std::sync::mpsc::Sender;

use thalweg_buffer::{Frame, Iface};
use thalweg_device::SwIfIndex;
use thalweg_device::link_header::stepped_over;
use thalweg_graph::{Built, FeatureDecl, Kind, NodeDecl, Tap, TapCx};
use thalweg_load::stream::{Tag, find_tag};
use thalweg_load::talk::{Flow, Incoming};

/// The node's declaration.
pub(crate) static NODE: NodeDecl = NodeDecl {
    name: "load-witness",
    kind: Kind::Tap,
    feature: Some(FeatureDecl::on("error-drop")),
    build: |_| Built::tap(Witness::default()),
    ..NodeDecl::DEFAULT
};

/// Packets noted of a reason in all, and of each of its streams: the first ones of the window, for
/// those are the ones that are asked for.
const OF_REASON: usize = 64;
const OF_STREAM: usize = 4;
/// Packets of conversations noted per reason. The same number of other packets is looked at.
const OF_TALKS: usize = 16;
/// Packets noted in all, of streams and of conversations.
const MOST: usize = 4096;
const MOST_TALKS: usize = 512;

/// A packet of the load tester that was dropped in the window of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Packet that was dropped.
    pub what: What,
    /// Number of the reason, among all reasons of the graph.
    pub reason: u32,
    /// Interface that received it.
    pub rx: SwIfIndex,
    /// Time of the drop, in ticks of the machine's clock.
    pub at: u64,
}

/// Packet that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// One of a stream, by its tag.
    Stream(Tag),
    /// One of a conversation.
    Talk(Flow),
}

/// Messages from the main thread.
pub(crate) enum Ask {
    /// A trial begins: this one has nothing noted yet.
    Begin(Box<Witness>),
    /// Its window begins: packets of conversations, which have no tags, are noted from now on.
    Talks,
    /// Returns what was noted since then, and stops noting. The asker may be gone.
    Tell(Sender<Vec<Dropped>>),
}

/// Packets noted, and the kinds that still are.
#[derive(Default)]
pub(crate) struct Witness {
    seed: u64,
    trial: u8,
    /// True if packets of streams are noted, and of conversations.
    streams_on: bool,
    talks_on: bool,
    noted: Vec<Dropped>,
    /// Number that are noted, by reason; and by stream and side, too.
    reasons: HashMap<u32, usize>,
    streams: HashMap<(u32, u16, bool), usize>,
    /// Number of packets of conversations that are noted, and of those that were looked at, by
    /// reason.
    talks: usize,
    looked_at: HashMap<u32, (usize, usize)>,
    /// A packet in several buffers, or with the headers that nodes have stepped over.
    whole: Vec<u8>,
}

/// Longest packet that is looked at.
const LONGEST: usize = 9300;

impl Witness {
    /// One for packets with tags of a trial and a seed. Its memory is that of all that it can note:
    /// a worker allocates none.
    pub(crate) fn new(trial: u8, seed: u64) -> Witness {
        Witness {
            seed,
            trial: trial & 0x3f,
            streams_on: true,
            talks_on: false,
            noted: Vec::with_capacity(MOST + MOST_TALKS),
            reasons: HashMap::with_capacity(MOST),
            streams: HashMap::with_capacity(MOST),
            talks: 0,
            looked_at: HashMap::with_capacity(MOST_TALKS),
            whole: Vec::with_capacity(LONGEST),
        }
    }

    fn tag(&mut self, frame: &Frame, i: u8) -> Option<Tag> {
        let data = frame.data(i);
        if data.len() == frame.total_len(i) {
            return find_tag(self.seed, data);
        }
        self.gather(&[], frame, i)?;
        find_tag(self.seed, &self.whole)
    }

    /// Puts a packet together, with what was before it; `None` if it is too long.
    fn gather(&mut self, before: &[u8], frame: &Frame, i: u8) -> Option<()> {
        self.whole.clear();
        if before.len() + frame.total_len(i) > self.whole.capacity() {
            return None;
        }
        self.whole.extend_from_slice(before);
        frame.segments(i).for_each(|segment| self.whole.extend_from_slice(segment));
        Some(())
    }

    fn note(&mut self, tag: Tag, dropped: Dropped) {
        let reason = dropped.reason;
        let streams = self.noted.len() - self.talks;
        if !tag.judged || tag.trial != self.trial || streams >= MOST {
            return;
        }
        let side = tag.side == thalweg_load::stream::Side::B;
        let of_reason = self.reasons.entry(reason).or_default();
        let of_stream = self.streams.entry((reason, tag.stream, side)).or_default();
        if *of_reason < OF_REASON || *of_stream < OF_STREAM {
            *of_reason += 1;
            *of_stream += 1;
            self.noted.push(dropped);
        }
    }

    fn note_talk(&mut self, frame: &Frame, i: u8, (reason, rx, at): (u32, SwIfIndex, u64)) {
        let known = self.looked_at.len();
        let (noted, others) = match self.looked_at.get_mut(&reason) {
            Some(counts) => counts,
            None if known < MOST_TALKS => self.looked_at.entry(reason).or_default(),
            None => return,
        };
        if *noted >= OF_TALKS || *others >= OF_TALKS || self.talks >= MOST_TALKS {
            return;
        }
        // Malformed and foreign packets are looked at only up to a limit.
        *others += 1;
        let before = frame.before(i, stepped_over(frame, i));
        if self.gather(before, frame, i).is_none() {
            return;
        }
        let Some(flow) = Incoming::read(&self.whole).flow() else { return };
        if let Some((noted, others)) = self.looked_at.get_mut(&reason) {
            *noted += 1;
            *others -= 1;
        }
        self.talks += 1;
        self.noted.push(Dropped { what: What::Talk(flow), reason, rx, at });
    }
}

impl Tap for Witness {
    fn frame(&mut self, cx: &mut TapCx, frame: &mut Frame, _: Iface) {
        if !self.streams_on && !self.talks_on {
            return;
        }
        let at = cx.now();
        for i in 0..frame.len() {
            let Some(reason) = frame.aux().get(i).copied() else { continue };
            let i = i as u8;
            let rx = frame.rx_if(i);
            match self.tag(frame, i) {
                Some(tag) => self.note(tag, Dropped { what: What::Stream(tag), reason, rx, at }),
                None if self.talks_on => self.note_talk(frame, i, (reason, rx, at)),
                None => {}
            }
        }
    }

    fn message(&mut self, message: Box<dyn Any + Send>) {
        let Ok(message) = message.downcast::<Ask>() else { return };
        match *message {
            Ask::Begin(new) => *self = *new,
            // Without a trial there is no memory to note them in.
            Ask::Talks => self.talks_on = self.streams_on,
            Ask::Tell(answer) => {
                (self.streams_on, self.talks_on) = (false, false);
                let _ = answer.send(std::mem::take(&mut self.noted));
                self.talks = 0;
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
        let note = |witness: &mut Witness, tag: Tag, reason: u32| {
            let rx = SwIfIndex::default();
            witness.note(tag, Dropped { what: What::Stream(tag), reason, rx, at: 0 });
        };
        note(&mut witness, tag(0, 1, false), 7);
        note(&mut witness, Tag { trial: 2, ..tag(0, 2, true) }, 7);
        assert!(witness.noted.is_empty(), "not of the window, and of another trial");
        (0..1000).for_each(|n| note(&mut witness, tag(0, n, true), 7));
        // Another stream and another reason are not crowded out.
        note(&mut witness, tag(1, 5, true), 7);
        note(&mut witness, tag(0, 2000, true), 8);
        assert_eq!(witness.noted.len(), OF_REASON + 2);
        let What::Stream(first) = witness.noted[0].what else { panic!("{:?}", witness.noted[0]) };
        assert_eq!(first.sequence, 0);
        for stream in 0..10_000u16 {
            note(&mut witness, tag(stream, 0, true), 9);
        }
        assert_eq!(witness.noted.len(), MOST, "bounded");
    }
}
