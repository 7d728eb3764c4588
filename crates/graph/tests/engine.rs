//! Packets through the engine: nothing is lost, doubled or out of order.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod lab;

use lab::{Lab, Release, TO_DELIVER, TO_DROP, TO_KEEP, TO_NODE, TO_OTHER, TO_PANIC, TO_SINK};
use proptest::prelude::*;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use thalweg_buffer::SwIfIndex;
use thalweg_testkit::processor_time;

/// Kinds for a frame: a reproducible jumble of all that do not keep.
fn jumble(seed: usize, n: usize) -> Vec<u8> {
    let kinds = [TO_SINK, TO_OTHER, TO_DROP, TO_DELIVER];
    let mut x = seed as u32 ^ 0x9e37_79b9;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        kinds[x as usize % kinds.len()]
    };
    (0..n).map(|_| next()).collect()
}

fn count(frames: &[Vec<u8>], kind: u8) -> u64 {
    frames.iter().flatten().filter(|k| **k == kind).count() as u64
}

#[test]
fn accounting_adds_up_for_every_frame_size() {
    for workers in [1, 2] {
        let mut lab = Lab::new(workers);
        let mut sent: Vec<Vec<u8>> = Vec::new();
        for w in 0..workers {
            let frames: Vec<_> = (1..=256).map(|n| jumble(n * 7 + w, n)).collect();
            sent.extend(frames.clone());
            lab.make(w, SwIfIndex(1), frames);
        }
        let n: usize = sent.iter().map(Vec::len).sum();
        lab.settle(n as u64, 0);
        assert_eq!(lab.rx(), n as u64);
        assert_eq!(lab.total(|t| t.tx.get()), count(&sent, TO_SINK) + count(&sent, TO_OTHER));
        assert_eq!(lab.total(|t| t.delivered.get()), count(&sent, TO_DELIVER));
        assert_eq!(lab.total(|t| t.dropped.get()), count(&sent, TO_DROP));
        assert_eq!(lab.error("test-split", "the packet asked for it"), count(&sent, TO_DROP));
        let interface = lab.c.interface_totals(SwIfIndex(1));
        assert_eq!(interface.rx_packets, n as u64);
        assert_eq!(interface.rx_bytes, 60 * n as u64);
        assert_eq!(interface.drops, count(&sent, TO_DROP));
        for w in 0..workers {
            for sink in 0..3 {
                let order = lab.arrived(sink, w);
                assert!(order.is_sorted(), "sink {sink} of worker {w}: {order:?}");
            }
        }
        lab.close();
    }
}

#[test]
fn a_whole_frame_is_handed_over() {
    let mut lab = Lab::new(1);
    let mut n = 0;
    for size in [1, 2, 15, 16, 255, 256] {
        lab.make(0, SwIfIndex(1), vec![vec![TO_SINK; size]]);
        n += size as u64;
        lab.settle(n, 0);
    }
    assert_eq!(*lab.notes.frames.lock().unwrap(), [1, 2, 15, 16, 255, 256]);
    // The very frame that the input filled reaches the end.
    assert_eq!(*lab.notes.made_at.lock().unwrap(), *lab.notes.seen_at.lock().unwrap());
    lab.close();
}

#[test]
fn features_come_and_go_under_load_and_nothing_is_lost() {
    let mut lab = Lab::new(2);
    let (frames, size) = (2000, 48);
    for w in 0..2 {
        lab.make(w, SwIfIndex(1), (0..frames).map(|i| jumble(i + w, size)).collect());
        lab.make(w, SwIfIndex(2), (0..frames).map(|i| jumble(i * 3 + w, size)).collect());
    }
    let n = (2 * 2 * frames * size) as u64;
    let mut on = false;
    while lab.rx() < n {
        on = !on;
        lab.c.enable_feature("device-input", "test-feature", SwIfIndex(1), on).unwrap();
        lab.c.enable_feature("test-arc", "test-arc-feature", SwIfIndex(2), on).unwrap();
        lab.c.enable_feature("device-input", "test-tap", SwIfIndex(1), on).unwrap();
        lab.c.run_once(Some(Duration::from_micros(50)));
    }
    lab.settle(n, 0);
    let seen = lab.notes.feature.load(Relaxed);
    assert!(seen > 0 && seen < n / 2, "{seen} of {n}");
    assert!(lab.notes.arc_feature.load(Relaxed) < n / 2);
    for w in 0..2 {
        // Interfaces 1 and 2 share the sinks, and a feature's detour may let the other interface
        // pass; but no packet is missing or doubled.
        let mut all: Vec<u32> = (0..3).flat_map(|s| lab.arrived(s, w)).collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|p| p[0] < p[1]));
    }
    // Old tables are reclaimed once the workers moved on.
    lab.wait(|lab| lab.c.domain().pending() == 0);
    lab.close();
}

#[test]
fn features_see_their_interface_only() {
    let mut lab = Lab::new(1);
    lab.c.enable_feature("device-input", "test-feature", SwIfIndex(1), true).unwrap();
    lab.c.enable_feature("test-arc", "test-arc-feature", SwIfIndex(2), true).unwrap();
    // Enabled twice, disabled once: still on, for the other owner.
    lab.c.enable_feature("test-arc", "test-arc-feature", SwIfIndex(2), true).unwrap();
    lab.c.enable_feature("test-arc", "test-arc-feature", SwIfIndex(2), false).unwrap();
    for sw_if in [1, 2, 3] {
        // Small frames, so that interfaces meet in one frame.
        lab.make(0, SwIfIndex(sw_if), (0..30).map(|i| jumble(i, 5)).collect());
    }
    lab.settle(450, 0);
    assert_eq!(lab.notes.feature.load(Relaxed), 150);
    assert_eq!(lab.notes.arc_feature.load(Relaxed), 150);
    assert_eq!(lab.c.enabled_features(SwIfIndex(2))[3], ("test-arc", vec!["test-arc-feature"]));
    for sw_if in [1, 2, 3] {
        let t = lab.c.interface_totals(SwIfIndex(sw_if));
        let frames: Vec<_> = (0..30).map(|i| jumble(i, 5)).collect();
        assert_eq!((t.rx_packets, t.drops), (150, count(&frames, TO_DROP)));
    }
    assert!(lab.c.enable_feature("no-arc", "test-feature", SwIfIndex(1), true).is_err());
    assert!(lab.c.enable_feature("device-input", "no-feature", SwIfIndex(1), true).is_err());
    lab.close();
}

#[test]
fn a_tap_sees_each_frame_once() {
    let mut lab = Lab::new(1);
    lab.c.enable_feature("device-input", "test-tap", SwIfIndex(1), true).unwrap();
    lab.c.enable_feature("error-drop", "test-drop-tap", SwIfIndex(1), true).unwrap();
    let frames: Vec<_> = (1..=100).map(|n| jumble(n, n)).collect();
    let (n, drops) = (frames.iter().map(Vec::len).sum::<usize>() as u64, count(&frames, TO_DROP));
    lab.make(0, SwIfIndex(1), frames.clone());
    lab.make(0, SwIfIndex(2), frames);
    lab.settle(2 * n, 0);
    assert_eq!(lab.notes.tap_frames.load(Relaxed), 100);
    assert_eq!(lab.notes.tap_packets.load(Relaxed), n);
    assert_eq!(lab.error("test-tap", "packets looked at"), n);
    // Drops of both interfaces may share a frame: the tap then sees the frame and asks by packet.
    let seen = lab.notes.drop_tap_packets.load(Relaxed);
    assert!((drops..=2 * drops).contains(&seen), "{seen} of {drops}");
    let stats = lab.c.worker_stats(0).node(lab.node("test-tap"));
    assert_eq!((stats.calls.get(), stats.vectors.get()), (100, n));
    assert!(stats.clocks.get() > 0);
    lab.close();
}

#[test]
fn a_node_removed_under_load_drops_by_name() {
    let mut lab = Lab::new(2);
    let build = lab::runtime(&lab.c);
    let id = lab.c.add_node("if7-output", &lab::RUNTIME, build).unwrap();
    let split = lab.node("test-split");
    lab.c.message_all(split, |_| Box::new(id));
    lab.c.sync();
    let frames = 1000;
    for w in 0..2 {
        lab.make(w, SwIfIndex(1), vec![vec![TO_NODE; 64]; frames]);
    }
    let n = 2 * 64 * frames as u64;
    lab.wait(|lab| lab.rx() > n / 10);
    lab.c.remove_node(id);
    lab.c.sync();
    for w in 0..2 {
        lab.make(w, SwIfIndex(1), vec![vec![TO_NODE; 64]; 10]);
    }
    let n = n + 2 * 64 * 10;
    lab.settle(n, 0);
    let (sent, gone) = (lab.total(|t| t.tx.get()), lab.error("error-drop", "interface is deleted"));
    assert_eq!(sent + gone, n);
    assert!(gone >= 1280 && sent > 0, "{sent} sent, {gone} dropped");
    // The same name may come back.
    let build = lab::runtime(&lab.c);
    assert_eq!(lab.c.add_node("if7-output", &lab::RUNTIME, build).unwrap(), id);
    lab.make(0, SwIfIndex(1), vec![vec![TO_NODE; 3]]);
    lab.settle(n + 3, 0);
    assert_eq!(lab.total(|t| t.tx.get()), sent + 3);
    lab.close();
}

#[test]
fn a_removed_input_is_polled_no_more() {
    let mut lab = Lab::new(1);
    let input = lab.node("test-input");
    lab.make(0, SwIfIndex(1), vec![vec![TO_SINK; 4]]);
    lab.settle(4, 0);
    lab.c.remove_node(input);
    lab.make(0, SwIfIndex(1), vec![vec![TO_SINK; 4]]);
    lab.c.sync();
    lab.c.sync();
    assert_eq!(lab.rx(), 4);
    lab.close();
}

#[test]
fn kept_packets_are_in_flight_until_released() {
    for (how, error) in
        [(Release::Send, 0), (Release::Drop, 60), (Release::Deliver, 0), (Release::Consume, 0)]
    {
        let mut lab = Lab::new(1);
        let mut frame = vec![TO_SINK; 30];
        // Kept packets are in the middle, at the ends, and fill a frame alone.
        for i in [0, 3, 4, 5, 29] {
            frame[i] = TO_KEEP;
        }
        lab.make(0, SwIfIndex(1), vec![frame; 12]);
        lab.make(0, SwIfIndex(1), vec![vec![TO_KEEP; 1]]);
        lab.settle(361, 61);
        assert!(lab.c.pool().audit().in_use >= 61);
        lab.release(how);
        lab.settle(361, 0);
        let drops = lab.error("test-keep", "the packet asked for it");
        assert_eq!(drops, if error > 0 { 61 } else { 0 });
        let sent = if how == Release::Send { 361 } else { 300 };
        assert_eq!(lab.total(|t| t.tx.get()), sent);
        lab.close();
    }
}

#[test]
fn kept_packets_return_to_the_pool_at_the_end() {
    let mut lab = Lab::new(1);
    lab.make(0, SwIfIndex(1), vec![vec![TO_KEEP; 100]]);
    lab.settle(100, 100);
    lab.close();
}

#[test]
fn an_exhausted_pool_recovers() {
    let mut lab = Lab::with_buffers(1, 256);
    lab.make(0, SwIfIndex(1), vec![vec![TO_KEEP; 250], vec![TO_SINK; 256], vec![TO_KEEP; 100]]);
    lab.wait(|lab| lab.error("test-input", "no buffer for a packet") > 3);
    assert!(lab.c.ask(|_| ())[0].is_some());
    // The 6 buffers that are left carry the sink's packets one after the other; then all are kept.
    assert_eq!((lab.rx(), lab.in_flight()), (512, 256));
    lab.release(Release::Deliver);
    lab.settle(606, 94);
    lab.release(Release::Send);
    lab.settle(606, 0);
    assert_eq!(lab.total(|t| t.tx.get()), 256 + 94);
    lab.close();
}

#[test]
fn injected_packets_count_as_originated() {
    let mut lab = Lab::new(1);
    let node = lab.node("test-split");
    for (i, kind) in [TO_SINK, TO_DROP, TO_SINK].into_iter().enumerate() {
        // Larger than a buffer, so that it is chained.
        let mut bytes = vec![0; 60 + 700 * i];
        bytes[0] = kind;
        bytes[7] = i as u8;
        lab.c.inject(
            0,
            thalweg_graph::Inject { node, bytes, rx_if: SwIfIndex(0), tx_if: SwIfIndex(4), aux: 0 },
        );
    }
    lab.wait(|lab| lab.total(|t| t.originated.get()) == 3 && lab.in_flight() == 0);
    assert_eq!(lab.arrived(0, 0), [0, 2]);
    assert_eq!(lab.total(|t| t.dropped.get()), 1);
    lab.close();
}

#[test]
fn after_two_syncs_injected_packets_are_through() {
    let mut lab = Lab::new(1);
    let node = lab.node("test-split");
    for n in 1..=3000 {
        let mut bytes = vec![0; 60];
        bytes[0] = TO_DROP;
        lab.c.inject(0, thalweg_graph::Inject { node, bytes, ..Default::default() });
        lab.c.sync();
        lab.c.sync();
        assert_eq!(lab.total(|t| t.dropped.get()), n);
    }
    lab.close();
}

#[test]
fn traces_show_each_step_and_the_reason_of_a_drop() {
    let mut lab = Lab::new(1);
    let input = lab.node("test-input");
    lab.c.ask(move |core| core.trace_add(input, 3, None));
    lab.make(0, SwIfIndex(1), vec![vec![TO_SINK], vec![TO_DROP], vec![TO_KEEP], vec![TO_SINK]]);
    lab.settle(4, 1);
    let traces = lab.c.ask(|core| core.traces())[0].clone().unwrap();
    assert_eq!(traces.len(), 3);
    let words = |i: usize| -> Vec<(String, String)> {
        let name = |id: thalweg_graph::NodeId| lab.c.nodes()[id.0 as usize].name.to_string();
        let text = |t: &str| {
            let error = |e| format!("error {}", lab.c.errors()[e as usize].1.text);
            thalweg_graph::trace::resolve_tokens(t, |i| format!("if{i}"), error)
        };
        traces[i].steps.iter().map(|s| (name(s.node), text(&s.text))).collect()
    };
    let step = |node: &str, text: &str| (node.to_owned(), format!("{text}\n"));
    assert_eq!(
        words(0),
        [
            step("test-input", "test packet of kind 0"),
            step("ethernet-input", "from if1"),
            step("test-split", "kind 0"),
            step("test-sink", "the end"),
        ]
    );
    assert_eq!(
        words(1)[2..],
        [
            step("test-split", "kind 2"),
            step("error-drop", "rx:if1"),
            step("drop", "error the packet asked for it"),
        ]
    );
    assert_eq!(words(2)[3], step("test-keep", "kept"));
    assert!(traces.iter().all(|t| t.steps.is_sorted_by_key(|s| s.at)));
    // Packets marked before a clear write into no later packet's trace.
    lab.c.ask(|core| core.trace_clear());
    lab.c.ask(move |core| core.trace_add(input, 1, None));
    lab.make(0, SwIfIndex(1), vec![vec![TO_DELIVER]]);
    lab.settle(5, 1);
    lab.release(Release::Send);
    lab.settle(5, 0);
    let traces = lab.c.ask(|core| core.traces())[0].clone().unwrap();
    assert_eq!((traces.len(), traces[0].steps.len()), (1, 4));
    lab.close();
}

/// Traces asked for at a node end with it: its number may be another one's later, and a node of its
/// name is another interface's.
#[test]
fn traces_that_were_asked_for_end_with_their_node() {
    let mut lab = Lab::new(1);
    let build = lab::runtime(&lab.c);
    let first = lab.c.add_node("if1-output", &lab::RUNTIME, build).expect("room");
    let inject = |lab: &mut Lab, node| {
        lab.c.inject(0, thalweg_graph::Inject { node, bytes: vec![0; 64], ..Default::default() });
        lab.c.sync();
        lab.c.ask(|core| core.traces())[0].clone().expect("an answer").len()
    };
    lab.c.ask(move |core| core.trace_add(first, 9, None));
    assert_eq!(inject(&mut lab, first), 1);
    lab.c.remove_node(first);
    assert_eq!(inject(&mut lab, first), 1);
    let build = lab::runtime(&lab.c);
    assert_eq!(lab.c.add_node("if1-output", &lab::RUNTIME, build).expect("room"), first);
    assert_eq!(inject(&mut lab, first), 1);
    lab.c.ask(move |core| core.trace_add(first, 9, None));
    lab.c.remove_node(first);
    // Others come and go until one has the number.
    for n in 2.. {
        let build = lab::runtime(&lab.c);
        let id = lab.c.add_node(&format!("if{n}-output"), &lab::RUNTIME, build).expect("room");
        if id == first {
            break;
        }
        lab.c.remove_node(id);
        lab.c.sync();
    }
    assert_eq!(inject(&mut lab, first), 1);
    lab.close();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Any frames of any kinds: each packet ends once, in the place its kind says, in order.
    #[test]
    fn any_traffic_ends_where_it_should(
        frames in prop::collection::vec(
            prop::collection::vec(0u8..=TO_NODE, 1..=256), 1..20),
        features in any::<[bool; 4]>(),
    ) {
        let mut lab = Lab::with_buffers(1, 8192);
        for (arc, name, on) in [
            ("device-input", "test-feature", features[0]),
            ("test-arc", "test-arc-feature", features[1]),
            ("device-input", "test-tap", features[2]),
            ("error-drop", "test-drop-tap", features[3]),
        ] {
            lab.c.enable_feature(arc, name, SwIfIndex(1), on).unwrap();
        }
        let n = frames.iter().map(Vec::len).sum::<usize>() as u64;
        let kept = count(&frames, TO_KEEP);
        // The splitter was not given a node: it drops.
        let drops = count(&frames, TO_DROP) + count(&frames, TO_NODE);
        lab.make(0, SwIfIndex(1), frames.clone());
        lab.settle(n, kept as i64);
        prop_assert_eq!(lab.total(|t| t.dropped.get()), drops);
        prop_assert_eq!(lab.total(|t| t.delivered.get()), count(&frames, TO_DELIVER));
        let all: Vec<u8> = frames.concat();
        for (sink, kind) in [(0, TO_SINK), (1, TO_OTHER), (2, TO_DELIVER)] {
            let want: Vec<u32> =
                (0..all.len() as u32).filter(|i| all[*i as usize] == kind).collect();
            prop_assert_eq!(lab.arrived(sink, 0), want);
        }
        if features[3] {
            prop_assert_eq!(lab.notes.drop_tap_packets.load(Relaxed), drops);
        }
        lab.close();
    }
}

/// The child process of the test below: it panics.
#[test]
fn child_that_panics() {
    let Some(file) = std::env::var_os("THALWEG_TEST_PANIC") else { return };
    thalweg_graph::control::on_panic(move |context| std::fs::write(&file, context).unwrap());
    let mut lab = Lab::new(1);
    lab.make(0, SwIfIndex(1), vec![vec![TO_SINK, TO_SINK, TO_PANIC, TO_SINK]]);
    lab.wait(|_| false);
    unreachable!("the worker's panic ends the process");
}

#[test]
fn a_panic_ends_the_process_and_names_node_and_packet() {
    let kept = std::env::temp_dir().join(format!("thalweg-panic-{}", std::process::id()));
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_panics", "--nocapture"])
        .env("THALWEG_TEST_PANIC", &kept)
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert_eq!(child.status.code(), Some(70), "{said}");
    assert!(said.contains("worker 0 panicked in node `test-split`"), "{said}");
    assert!(said.contains("packet of 60 bytes: 0600000000000002000000"), "{said}");
    // The hook that keeps it gets the same before the process ends.
    let context = std::fs::read_to_string(&kept).unwrap();
    std::fs::remove_file(&kept).unwrap();
    assert!(context.contains("worker 0 panicked in node `test-split`; packet of 60"), "{context}");
    assert!(said.contains(context.trim()), "{context}\n{said}");
}

/// Nodes of interfaces that come and go under ever new names.
#[test]
fn ids_and_counters_of_nodes_return() {
    let mut lab = Lab::new(2);
    let (nodes, errors) = (lab.c.nodes().len(), lab.c.errors().len());
    let (split, decls) = (lab.node("test-split"), [&lab::RUNTIME, &lab::COUNTING]);
    let mut last = None;
    for n in 0..10_000 {
        let build = lab::runtime(&lab.c);
        let decl = decls[usize::from(n % 7 < 3)];
        let id = lab.c.add_node(&format!("if{n}-tx"), decl, build).unwrap();
        assert_eq!(lab.c.node_counts(0, id), [0; 4], "{n}");
        let base = lab.c.nodes()[usize::from(id.0)].error_base;
        for error in base..base + decl.errors.len() as u32 {
            assert_eq!(lab.c.error_count(0, error), 0, "{n}");
        }
        if n % 100 == 0 {
            lab.c.message_all(split, |_| Box::new(id));
            let rx = lab.rx();
            lab.make(0, SwIfIndex(1), vec![vec![TO_NODE; 5]]);
            lab.settle(rx + 5, 0);
            assert_eq!(lab.c.node_counts(0, id)[1], 5);
        }
        for error in base..base + decl.errors.len() as u32 {
            // Counts as its worker does, which rests.
            lab.c.worker_stats(0).error(error).add(1);
        }
        // A counter that has counted belongs to the node that it is shown with.
        for (at, (of, _)) in lab.c.errors().iter().enumerate().skip(errors) {
            let of = &lab.c.nodes()[usize::from(of.0)];
            let own = of.error_base as usize..of.error_base as usize + of.errors.len();
            assert!(own.contains(&at) || lab.c.error_count(0, at as u32) == 0, "{n}: {at}");
        }
        lab.c.remove_node(id);
        lab.c.sync();
        last = Some(id);
    }
    let (more_nodes, more_errors) = (lab.c.nodes().len() - nodes, lab.c.errors().len() - errors);
    assert!(more_nodes < 100 && more_errors < 200, "{more_nodes} nodes, {more_errors} counters");
    // One that has ended comes back by its name, with its counters; no other name is taken over.
    let build = lab::runtime(&lab.c);
    assert_eq!(lab.c.add_node("if9999-tx", decls[usize::from(9999 % 7 < 3)], build).ok(), last);
    for taken in ["if9999-tx", "error-drop", "test-split"] {
        let build = lab::runtime(&lab.c);
        let refused = lab.c.add_node(taken, &lab::RUNTIME, build).unwrap_err();
        assert!(refused.to_string().contains(taken), "{refused}");
    }
    lab.close();
}

/// Nodes of interfaces that stay: one more takes as long as the first, plus some nanoseconds for
/// each node in the order of all. Putting all in order again would take milliseconds.
#[test]
fn one_more_node_of_many_costs_what_the_first_did() {
    let mut lab = Lab::new(1);
    let mut shortest = |nodes: std::ops::Range<u32>| {
        let add = |n: u32| {
            let build = lab::runtime(&lab.c);
            let began = processor_time();
            lab.c.add_node(&format!("if{n}-tx"), &lab::RUNTIME, build).unwrap();
            let took = processor_time() - began;
            lab.c.sync();
            took
        };
        nodes.map(add).min().unwrap()
    };
    let few = shortest(0..50);
    shortest(50..2000);
    let many = shortest(2000..2050);
    let in_order = std::time::Duration::from_micros(100);
    assert!(many < 10 * few + in_order, "{few:?}, with many {many:?}");
    lab.close();
}
