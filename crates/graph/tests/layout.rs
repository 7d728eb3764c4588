//! No cache line that a worker writes all the time is shared with another thread. Hardware counters
//! that would show it are not available everywhere; addresses are.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod lab;

use lab::{Lab, to_worker};
use std::ops::Range;
use thalweg_buffer::{Frame, SwIfIndex};
use thalweg_graph::NodeId;
use thalweg_graph::stats::{MAX_ERRORS, MAX_INTERFACES, MAX_NODES};

const LINE: usize = 64;

fn at<T>(thing: &T) -> usize {
    std::ptr::from_ref(thing).addr()
}

#[test]
fn counters_of_two_workers_share_no_line() {
    let mut lab = Lab::new(2);
    let stats = [0, 1].map(|w| lab.c.worker_stats(w).clone());
    let written: Vec<Range<usize>> = stats.iter().flat_map(|s| s.written()).collect();
    for range in &written {
        assert!(range.start.is_multiple_of(LINE) && range.end.is_multiple_of(LINE), "{range:x?}");
    }
    for s in &stats {
        let own = s.written();
        let mut all = vec![at(&s.totals), at(&s.loops), at(&s.long_loops)];
        all.extend((0..MAX_NODES).map(|i| at(s.node(NodeId(i as u16)))));
        all.extend((0..MAX_ERRORS).map(|i| at(s.error(i as u32))));
        all.extend((0..MAX_INTERFACES).map(|i| at(s.interface(SwIfIndex(i as u32)))));
        assert!(all.iter().all(|a| own.iter().any(|range| range.contains(a))));
    }
    // The counters are written here.
    lab.make(1, SwIfIndex(7), vec![vec![lab::TO_DROP; 3]]);
    lab.settle(3, 0);
    assert_eq!((stats[0].totals.rx.get(), stats[1].totals.rx.get()), (0, 3));
    assert_eq!(stats[1].interface(SwIfIndex(7)).rx_packets.get(), 3);
    lab.close();
}

#[test]
fn ways_between_workers_share_lines_only_where_they_must() {
    let mut lab = Lab::new(3);
    lab.c.add_hand_off("another", "test-other").expect("a queue");
    let views = lab.c.hand_off_views();
    let mut lines: Vec<usize> = views.iter().flat_map(|v| v.lines).collect();
    assert_eq!(lines.len(), 2 * 6 * 3);
    assert!(lines.iter().all(|l| l.is_multiple_of(2 * LINE)));
    lines.sort_unstable();
    lines.dedup();
    // Two positions a ring, which the queues share, and the counters of each queue.
    assert_eq!(lines.len(), 6 * 2 + 2 * 6, "two share a line");
    lab.close();
}

/// A frame that was handed over is another worker's; its neighbours in memory are not.
#[test]
fn frames_have_their_lines_for_themselves() {
    assert_eq!((align_of::<Frame>() % LINE, size_of::<Frame>() % LINE), (0, 0));
    let mut lab = Lab::new(2);
    lab.make(0, SwIfIndex(1), vec![vec![to_worker(1); 256]; 8]);
    lab.settle(8 * 256, 0);
    assert!(lab.notes.seen_at.lock().unwrap().iter().all(|a| a.is_multiple_of(LINE)));
    lab.close();
}

/// The workers themselves: each on lines of its own, wherever its thread keeps it.
#[test]
fn workers_are_apart() {
    let mut lab = Lab::new(2);
    let cores = lab.c.ask(|core| at(core)..at(core) + size_of_val(core));
    let [Some(a), Some(b)] = &cores[..] else { panic!("no answer") };
    assert!(a.end + LINE <= b.start || b.end + LINE <= a.start, "{cores:x?}");
    lab.close();
}
