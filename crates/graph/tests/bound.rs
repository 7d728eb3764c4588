//! Packets that go round in the graph: each ends, alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod lab;

use lab::{Lab, TO_NODE, TO_SINK};
use thalweg_buffer::{PktMut, SwIfIndex};
use thalweg_graph::{Built, HandOff, Node, NodeCx, NodeId, Verdict};

const CIRCLE: &str = "packet goes round in the graph";

/// Makes the splitter send packets of kind [`TO_NODE`] to a node.
fn lead_to(lab: &mut Lab, node: NodeId) {
    let split = lab.node("test-split");
    lab.c.message_all(split, |_| Box::new(node));
    lab.c.sync();
}

/// Returns how many packets went round for too long.
fn ended(lab: &Lab) -> u64 {
    lab.error("error-drop", CIRCLE)
}

/// Sends each packet back to the splitter, and a copy of it.
struct Doubler {
    back: NodeId,
    /// True if it asks before it copies.
    asks: bool,
}

impl Node for Doubler {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        if (!self.asks || cx.may_copy(p.meta_mut()))
            && let Some(copy) = cx.copy(&p)
        {
            cx.send(copy, Verdict::node(self.back));
        }
        Verdict::node(self.back)
    }
}

/// Lets four packets double; returns how many ended.
fn double(asks: bool) -> u64 {
    let mut lab = Lab::with_buffers(1, 4096);
    let back = lab.node("test-split");
    let build = |_| Built::node(Doubler { back, asks });
    let id = lab.c.add_node("test-double", &lab::RUNTIME, build).unwrap();
    lead_to(&mut lab, id);
    lab.make(0, SwIfIndex(1), vec![vec![TO_NODE; 4]]);
    lab.settle(4, 0);
    let visits = lab.c.worker_stats(0).node(back).vectors.get();
    assert!(visits < 100_000, "{visits}");
    let ended = ended(&lab);
    lab.close();
    ended
}

/// Sends each packet to the other worker.
struct Pong(HandOff);

impl Node for Pong {
    fn packet(&mut self, cx: &mut NodeCx<'_>, _: PktMut<'_>) -> Verdict {
        self.0.to(1 - cx.worker())
    }
}

#[test]
fn a_node_that_leads_to_itself_ends_its_packets_and_no_others() {
    let mut lab = Lab::new(1);
    let split = lab.node("test-split");
    lead_to(&mut lab, split);
    let frame: Vec<u8> = (0..256).map(|i| if i % 3 == 0 { TO_NODE } else { TO_SINK }).collect();
    lab.make(0, SwIfIndex(1), vec![frame; 50]);
    lab.settle(50 * 256, 0);
    assert_eq!((ended(&lab), lab.total(|t| t.tx.get())), (50 * 86, 50 * 170));
    assert_eq!(lab.c.worker_stats(0).interface(SwIfIndex(1)).drops.get(), 50 * 86);
    lab.close();
}

#[test]
fn a_lone_packet_goes_round_a_few_thousand_times() {
    let mut lab = Lab::new(1);
    let split = lab.node("test-split");
    lead_to(&mut lab, split);
    lab.make(0, SwIfIndex(1), vec![vec![TO_NODE]]);
    lab.settle(1, 0);
    let visits = lab.c.worker_stats(0).node(split).vectors.get();
    assert!((1000..5000).contains(&visits), "{visits}");
    lab.close();
}

#[test]
fn a_trace_tells_of_the_circle() {
    let mut lab = Lab::new(1);
    let split = lab.node("test-split");
    lead_to(&mut lab, split);
    let input = lab.node("test-input");
    lab.c.ask(move |core| core.trace_add(input, 1, None));
    lab.make(0, SwIfIndex(1), vec![vec![TO_NODE]]);
    lab.settle(1, 0);
    let traces = lab.c.ask(|core| core.traces()).remove(0).unwrap();
    let (steps, end) = (&traces[0].steps, lab.node("drop"));
    assert!(steps.iter().any(|s| s.node == split));
    let last = steps.last().unwrap();
    assert_eq!(last.node, end);
    lab.close();
}

#[test]
fn copies_that_double_at_each_step_end_in_bounded_time() {
    assert!(double(false) > 4);
}

#[test]
fn a_packet_is_copied_four_times_in_a_row() {
    assert_eq!(double(true), 4 << 4);
}

#[test]
fn a_packet_is_handed_over_a_limited_number_of_times() {
    let mut lab = Lab::new(2);
    lab.c.add_hand_off("test-pong-queue", "test-split").unwrap();
    let ends: Vec<HandOff> =
        (0..2).map(|w| lab.c.hand_off("test-pong-queue", w).unwrap()).collect();
    let build = |worker: usize| Built::node(Pong(ends[worker].clone()));
    let id = lab.c.add_node("test-pong", &lab::RUNTIME, build).unwrap();
    lead_to(&mut lab, id);
    lab.make(0, SwIfIndex(1), vec![vec![TO_NODE, TO_SINK, TO_NODE]]);
    lab.make(1, SwIfIndex(1), vec![vec![TO_NODE]]);
    lab.settle(4, 0);
    assert_eq!((ended(&lab), lab.total(|t| t.tx.get())), (3, 1));
    let all = lab.c.hand_off_views();
    let frames: u64 = all.iter().filter(|v| v.queue == "test-pong-queue").map(|v| v.frames).sum();
    assert!(frames < 2000, "{frames} hand-overs");
    lab.close();
}
