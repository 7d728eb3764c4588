//! Taps that skip packets, and what they are notified of about packets that they have marked.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod lab;

use lab::{Lab, Release, TO_DELIVER, TO_DROP, TO_KEEP, TO_SINK};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use thalweg_buffer::{Frame, Iface, PacketKey, SwIfIndex};
use thalweg_graph::{Built, ERROR_DROP, Fate, FeatureDecl, Kind, NodeDecl, Part, Tap, TapCx};

/// The tap wants each packet with this number, counted by interface from 1.
static EVERY: AtomicU64 = AtomicU64::new(0);

#[derive(Default)]
struct Seen {
    frames: AtomicU64,
    packets: AtomicU64,
    passed: AtomicU64,
    wanted: AtomicU64,
    dropped: AtomicU64,
    delivered: AtomicU64,
    settled: AtomicU64,
}

static NODE: NodeDecl = NodeDecl {
    name: "skip-tap",
    kind: Kind::Tap,
    feature: Some(FeatureDecl::on("device-input")),
    also_on: &["error-drop"],
    build: |cx| {
        let seen = cx.shared::<Shared>().0.clone();
        Built::tap(Rests { seen, left: [0; 8], every: EVERY.load(Relaxed) })
    },
    ..NodeDecl::DEFAULT
};

const RESTS: Part = Part {
    name: "rests",
    nodes: &[&NODE],
    init: |c| c.share(Arc::new(Shared::default())),
    ..Part::DEFAULT
};

#[derive(Default)]
struct Shared(Arc<Seen>);

struct Rests {
    seen: Arc<Seen>,
    /// Packets up to and including the next that it wants.
    left: [u64; 8],
    every: u64,
}

impl Tap for Rests {
    fn frame(&mut self, cx: &mut TapCx, frame: &mut Frame, on: Iface) {
        if cx.arc() == ERROR_DROP {
            return;
        }
        let Iface::Uniform(sw_if) = on else { panic!("frames of a device have one interface") };
        let (left, n) = (&mut self.left[sw_if.index()], frame.len() as u64);
        if *left == 0 {
            *left = self.every;
        }
        self.seen.frames.fetch_add(1, Relaxed);
        self.seen.packets.fetch_add(n, Relaxed);
        while *left <= n {
            frame.mark_sampled((*left - 1) as u8);
            self.seen.wanted.fetch_add(1, Relaxed);
            *left += self.every;
        }
        *left -= n;
        cx.skip_packets(*left - 1);
    }

    fn passed(&mut self, _: &mut TapCx, sw_if: SwIfIndex, packets: u64) {
        let left = &mut self.left[sw_if.index()];
        assert!(packets < *left, "{packets} passed, {left} to go");
        *left -= packets;
        self.seen.passed.fetch_add(packets, Relaxed);
    }

    fn marks(&self) -> bool {
        true
    }

    fn ends(&mut self, frame: &Frame, fate: Fate) {
        let n = frame.sampled().len() as u64;
        match fate {
            Fate::Dropped => self.seen.dropped.fetch_add(n, Relaxed),
            Fate::Delivered => self.seen.delivered.fetch_add(n, Relaxed),
            Fate::Sent(_) | Fate::SentEach | Fate::HandedOver => {
                panic!("no interface here, nor another worker")
            }
        };
    }

    fn delivered(&mut self, _: PacketKey, _: u32) {
        self.seen.delivered.fetch_add(1, Relaxed);
    }

    fn settle(&mut self, _: &mut TapCx) {
        self.seen.settled.fetch_add(1, Relaxed);
    }

    fn message(&mut self, message: Box<dyn Any + Send>) {
        self.every = *message.downcast::<u64>().expect("a number");
        // Inspect a frame sooner than announced.
        self.left = [0; 8];
    }
}

fn start(every: u64) -> (Lab, Arc<Seen>) {
    EVERY.store(every, Relaxed);
    let lab = Lab::with_parts(1, 4096, &[RESTS]);
    let seen = lab.c.shared::<Shared>().0.clone();
    (lab, seen)
}

/// All in one test: the rate that taps are built with is a global of the process.
#[test]
fn taps_see_the_packets_they_want_and_are_notified_of_the_others() {
    for every in [1, 7, 100, 256, 5000] {
        let (mut lab, seen) = start(every);
        lab.c.enable_feature("device-input", "skip-tap", SwIfIndex(1), true).unwrap();
        lab.c.enable_feature("device-input", "skip-tap", SwIfIndex(3), true).unwrap();
        lab.c.sync();
        let mut sent = 0;
        let mut watched = 0u64;
        for round in 0..6 {
            for sw_if in [1, 2, 3] {
                let frames: Vec<_> = [200, 1, 33, 256, 100].map(|n| vec![TO_SINK; n]).into();
                let n: usize = frames.iter().map(Vec::len).sum();
                lab.make(0, SwIfIndex(sw_if), frames);
                sent += n as u64;
                watched += if sw_if == 2 { 0 } else { n as u64 };
            }
            lab.settle(sent, 0);
            let all = seen.packets.load(Relaxed) + seen.passed.load(Relaxed);
            assert_eq!(all, watched, "every {every}, round {round}");
            let each = watched / 2;
            assert_eq!(seen.wanted.load(Relaxed), each / every * 2, "every {every}");
        }
        let frames = seen.frames.load(Relaxed);
        assert!(frames <= 2 * 30 && (every < 5000 || frames < 6), "{frames} frames were shown");
        assert!(seen.settled.load(Relaxed) > 0);
        // Disabled: nothing more is seen, and what was skipped until then was reported.
        lab.c.enable_feature("device-input", "skip-tap", SwIfIndex(1), false).unwrap();
        lab.make(0, SwIfIndex(1), vec![vec![TO_SINK; 100]]);
        lab.settle(sent + 100, 0);
        let all = seen.packets.load(Relaxed) + seen.passed.load(Relaxed);
        assert_eq!(all, watched);
        // A message may make it look sooner.
        let node = lab.node("skip-tap");
        lab.c.message_all(node, |_| Box::new(50u64));
        lab.make(0, SwIfIndex(3), vec![vec![TO_SINK; 100]]);
        lab.settle(sent + 200, 0);
        let all = seen.packets.load(Relaxed) + seen.passed.load(Relaxed);
        assert_eq!(all, watched + 100);
        lab.close();
    }
    marked_packets_are_followed();
}

fn marked_packets_are_followed() {
    let (mut lab, seen) = start(1);
    lab.c.enable_feature("device-input", "skip-tap", SwIfIndex(1), true).unwrap();
    let frame = [vec![TO_DROP; 50], vec![TO_DELIVER; 30], vec![TO_KEEP; 7], vec![TO_SINK; 9]];
    lab.make(0, SwIfIndex(1), vec![frame.concat()]);
    lab.settle(96, 7);
    assert_eq!(seen.wanted.load(Relaxed), 96);
    assert_eq!(seen.dropped.load(Relaxed), 50);
    assert_eq!(seen.delivered.load(Relaxed), 30);
    // A held packet keeps its mark.
    lab.release(Release::Drop);
    lab.settle(96, 0);
    assert_eq!(seen.dropped.load(Relaxed), 57);
    lab.close();
}
