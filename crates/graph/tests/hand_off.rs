//! Packets that workers hand to each other.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod lab;

use lab::{Lab, QUEUE, TO_DROP, TO_SINK, to_worker};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Barrier};
use thalweg_buffer::SwIfIndex;
use thalweg_graph::HandOffView;

const FULL: &str = "congestion drop";

fn pair(lab: &Lab, from: usize, to: usize) -> HandOffView {
    pair_of(lab, QUEUE, from, to)
}

fn pair_of(lab: &Lab, queue: &str, from: usize, to: usize) -> HandOffView {
    let views = lab.c.hand_off_views();
    let of = |v: &&HandOffView| (v.queue, v.from, v.to) == (queue, from, to);
    views.iter().find(of).expect("a pair").clone()
}

#[test]
fn whole_frames_go_by_pointer_and_frames_come_back() {
    let mut lab = Lab::new(2);
    for round in 0..200 {
        lab.make(0, SwIfIndex(1), vec![vec![to_worker(1); 256]]);
        lab.settle(256 * (round + 1), 0);
    }
    let made = std::mem::take(&mut *lab.notes.made_at.lock().unwrap());
    let seen = std::mem::take(&mut *lab.notes.seen_at.lock().unwrap());
    assert_eq!(made, seen);
    // The ring's slots fill with frames that the other worker is done with, so that none has to be
    // allocated after the first round.
    let mut later = made[100..].to_vec();
    later.sort_unstable();
    later.dedup();
    assert!(later.len() < 80, "{} frames in 100 rounds", later.len());
    let v = pair(&lab, 0, 1);
    assert_eq!((v.frames, v.packets, v.drops, v.depth), (200, 200 * 256, 0, 0));
    assert_eq!(pair(&lab, 1, 0).packets, 0);
    assert_eq!(lab.arrived(0, 1), (0..200 * 256).collect::<Vec<_>>());
    lab.close();
}

/// Returns the arrivals at the sink on a worker, by the worker that had received them.
fn by_source(lab: &Lab, worker: usize) -> BTreeMap<u32, Vec<u32>> {
    let mut all: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for seq in lab.arrived(0, worker) {
        all.entry(seq >> 24).or_default().push(seq & 0xff_ffff);
    }
    all
}

#[test]
fn under_load_everything_arrives_once_and_in_order() {
    const FRAMES: usize = 400;
    let mut lab = Lab::with_buffers(2, 4096);
    // Numbers by source and destination.
    let mut expected = BTreeMap::<(usize, usize), u64>::new();
    let mut total = 0;
    // Frames of all sizes: whole ones for one worker, and mixed ones that split. First as many as
    // the rings take, then more than they take.
    let frame = |f: usize| -> Vec<u8> {
        let owner = |i: usize| match f % 3 {
            0 => 0,
            1 => 1,
            _ => u8::from(i.is_multiple_of(1 + f % 7)),
        };
        (0..1 + f * 37 % 256).map(|i| to_worker(owner(i))).collect()
    };
    let frames: Vec<_> = (0..FRAMES).map(frame).collect();
    let few = frames.chunks(12).take(30);
    for batch in few.chain([&frames[..]]) {
        for w in 0..2 {
            for kind in batch.iter().flatten() {
                *expected.entry((w, usize::from(kind >> 4))).or_default() += 1;
                total += 1;
            }
            lab.make(w, SwIfIndex(1), batch.to_vec());
        }
        lab.settle(total, 0);
    }
    let mut arrived = 0;
    for to in 0..2 {
        for (from, seqs) in by_source(&lab, to) {
            assert!(seqs.windows(2).all(|w| w[0] < w[1]), "out of order from {from} to {to}");
            arrived += seqs.len() as u64;
            let from = from as usize;
            let lost = if from == to { 0 } else { pair(&lab, from, to).drops };
            assert_eq!(seqs.len() as u64 + lost, expected[&(from, to)], "from {from} to {to}");
        }
    }
    let (there, back) = (pair(&lab, 0, 1), pair(&lab, 1, 0));
    assert_eq!(there.packets + there.drops, expected[&(0, 1)]);
    assert_eq!(back.packets + back.drops, expected[&(1, 0)]);
    assert_eq!(arrived + there.drops + back.drops, total);
    assert_eq!(lab.error("error-drop", FULL), there.drops + back.drops);
    let handed = there.packets + back.packets;
    assert_eq!(lab.total(|t| t.handed_out.get()), handed);
    assert_eq!(lab.total(|t| t.handed_in.get()), handed);
    assert!(handed > total / 4, "{handed} of {total} handed over");
    // The mark of a sampled packet crosses, and only that of those: every fourth number.
    let marked = lab.notes.arrived.lock().unwrap().iter().filter(|a| a.2.is_multiple_of(4)).count();
    assert_eq!(lab.notes.sampled.load(Relaxed), marked as u64);
    lab.close();
}

#[test]
fn packets_without_room_are_dropped_and_counted() {
    let mut lab = Lab::with_buffers(2, 16384);
    lab.c.add_hand_off("late", "test-other").expect("a queue");
    let barrier = Arc::new(Barrier::new(2));
    let sink = lab.node("test-sink");
    lab.c.message(1, sink, Box::new(barrier.clone()));
    barrier.wait();
    let frames = 48u64;
    lab.make(0, SwIfIndex(1), vec![vec![to_worker(1); 256]; frames as usize]);
    lab.wait(|lab| lab.rx() == 256 * frames && lab.total(|t| t.dropped.get()) > 0);
    lab.wait(|lab| pair(lab, 0, 1).frames + pair(lab, 0, 1).drops / 256 == frames);
    let v = pair(&lab, 0, 1);
    // A queue has seven eighths of the room for 8,192 packets; the rest is for others.
    assert_eq!((v.depth, v.room, v.frames), (28, 32, 28));
    assert_eq!((v.packets, v.drops), (28 * 256, 20 * 256));
    let (owner, end) = (lab.node("test-owner"), lab.c.hand_off("late", 0).expect("an end"));
    lab.c.message(0, owner, Box::new(end));
    lab.make(0, SwIfIndex(1), vec![vec![to_worker(1); 256]; 5]);
    let late = |lab: &Lab| pair_of(lab, "late", 0, 1);
    lab.wait(|lab| late(lab).packets + late(lab).drops == 5 * 256);
    assert_eq!((late(&lab).packets, late(&lab).drops), (4 * 256, 256));
    let (owner, end) = (lab.node("test-owner"), lab.c.hand_off(QUEUE, 0).expect("an end"));
    lab.c.message(0, owner, Box::new(end));
    barrier.wait();
    let frames = frames + 5;
    lab.settle(256 * frames, 0);
    assert_eq!(lab.error("error-drop", FULL), 21 * 256);
    assert_eq!(lab.arrived(0, 1), (0..28 * 256).collect::<Vec<_>>());
    // The worker goes on.
    lab.make(0, SwIfIndex(1), vec![vec![to_worker(1); 10]]);
    lab.settle(256 * frames + 10, 0);
    assert_eq!(pair(&lab, 0, 1).depth, 0);
    lab.close();
}

/// A worker that receives few packets at a time loses none while another one is away for a moment.
#[test]
fn packets_gather_while_the_other_worker_is_away() {
    let mut lab = Lab::with_buffers(2, 16384);
    let barrier = Arc::new(Barrier::new(2));
    let sink = lab.node("test-sink");
    lab.c.message(1, sink, Box::new(barrier.clone()));
    barrier.wait();
    const ONES: u64 = 2000;
    for n in 1..=ONES {
        lab.make(0, SwIfIndex(1), vec![vec![to_worker(1)]]);
        lab.wait(|lab| lab.rx() == n);
    }
    let v = pair(&lab, 0, 1);
    assert_eq!((v.drops, v.depth), (0, v.frames as usize));
    assert!(v.frames < 32, "{v:?}");
    barrier.wait();
    // A caller that waits for what is being handed over finds it there.
    lab.c.sync();
    lab.c.await_handed_over();
    lab.c.sync();
    assert_eq!(lab.arrived(0, 1), (0..ONES as u32).collect::<Vec<_>>());
    lab.settle(ONES, 0);
    lab.close();
}

#[test]
fn a_sleeping_worker_is_woken() {
    let mut lab = Lab::new(2);
    for round in 1..=20 {
        lab.wait(|lab| lab.c.worker_sleeps(0) && lab.c.worker_sleeps(1));
        lab.make(0, SwIfIndex(1), vec![vec![to_worker(1)]]);
        lab.settle(round, 0);
    }
    assert_eq!(lab.arrived(0, 1).len(), 20);
    lab.close();
}

#[test]
fn traces_go_on_at_the_other_worker() {
    let mut lab = Lab::new(2);
    let input = lab.node("test-input");
    // The other worker has traces of its own.
    lab.c.ask(move |core| core.trace_add(input, 3, None));
    lab.make(1, SwIfIndex(1), vec![vec![TO_SINK; 2]]);
    lab.settle(2, 0);
    lab.make(0, SwIfIndex(1), vec![vec![to_worker(1), TO_DROP, to_worker(1), to_worker(1)]]);
    lab.settle(6, 0);
    let traces = lab.c.ask(|core| core.traces());
    let [Some(here), Some(there)] = &traces[..] else { panic!("no answer") };
    let words = |t: &thalweg_graph::trace::PacketTrace| -> Vec<(String, String)> {
        let name = |id: thalweg_graph::NodeId| lab.c.nodes()[id.0 as usize].name.to_string();
        t.steps.iter().map(|s| (name(s.node), s.text.trim_end().to_owned())).collect()
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!((here.len(), there.len()), (3, 4));
    for one in [&here[0], &here[2]] {
        assert_eq!(words(one).last(), Some(&pair("test-queue-wk1", "to worker 1")));
    }
    assert_eq!(words(&here[1]).last().expect("steps").0, "drop");
    for one in &there[2..] {
        let words = words(one);
        assert_eq!(words[0].0, "test-input");
        assert_eq!(
            words[words.len() - 4..],
            [
                pair("test-owner", "owned by 1"),
                pair("test-queue-wk1", "to worker 1"),
                pair("test-queue-wk1", "from worker 0"),
                pair("test-sink", "the end"),
            ]
        );
        assert!(one.steps.windows(2).all(|w| w[0].at <= w[1].at));
    }
    lab.close();
}

/// A mark whose trace was cleared on the way must not write into another packet's.
#[test]
fn cleared_traces_stay_cleared() {
    let mut lab = Lab::new(2);
    let (input, sink) = (lab.node("test-input"), lab.node("test-sink"));
    lab.c.ask(move |core| core.trace_add(input, 1, None));
    let barrier = Arc::new(Barrier::new(2));
    lab.c.message(1, sink, Box::new(barrier.clone()));
    barrier.wait();
    lab.make(0, SwIfIndex(1), vec![vec![to_worker(1)]]);
    lab.wait(|lab| pair(lab, 0, 1).packets == 1);
    barrier.wait();
    lab.settle(1, 0);
    lab.c.ask(|core| core.trace_clear());
    lab.c.ask(move |core| core.trace_add(input, 1, None));
    lab.make(0, SwIfIndex(1), vec![vec![to_worker(1)]]);
    lab.settle(2, 0);
    let traces = lab.c.ask(|core| core.traces());
    let lens: Vec<_> = traces.iter().map(|t| t.as_ref().map(Vec::len)).collect();
    assert_eq!(lens, [Some(1), Some(1)]);
    lab.close();
}

#[test]
fn queues_may_come_later_and_one_worker_needs_none() {
    let mut lab = Lab::new(2);
    lab.c.add_hand_off("late", "test-other").expect("a queue");
    let error = lab.c.add_hand_off("late", "test-other").expect_err("the name is taken");
    assert!(error.to_string().contains("duplicate hand-off name `late`"), "{error}");
    let error = lab.c.add_hand_off("later", "nowhere").expect_err("no such node");
    assert!(error.to_string().contains("leads to unknown node `nowhere`"), "{error}");
    let owner = lab.node("test-owner");
    for worker in 0..2 {
        let end = lab.c.hand_off("late", worker).expect("an end");
        lab.c.message(worker, owner, Box::new(end));
    }
    lab.make(
        0,
        SwIfIndex(1),
        vec![vec![to_worker(1); 5], vec![to_worker(0); 3], vec![to_worker(9); 2]],
    );
    lab.settle(10, 0);
    assert_eq!((lab.arrived(1, 1).len(), lab.arrived(1, 0).len()), (5, 5));
    assert_eq!(lab.c.hand_off_views().len(), 4);
    lab.close();

    let mut lab = Lab::new(1);
    assert!(lab.c.hand_off_views().is_empty() && lab.c.node("test-queue-wk0").is_none());
    lab.make(0, SwIfIndex(1), vec![vec![to_worker(0); 5]]);
    lab.settle(5, 0);
    assert_eq!(lab.arrived(0, 0).len(), 5);
    lab.close();
}

/// More workers than processors: all hand to all, all at once.
#[test]
fn sixty_four_workers_hand_to_each_other_and_end() {
    const WORKERS: usize = 64;
    let mut lab = Lab::with_buffers(WORKERS, 64 * 1024);
    let owners: Vec<u8> = (0..16).map(to_worker).collect();
    for w in 0..WORKERS {
        lab.make(w, SwIfIndex(1), vec![owners.clone(); 4]);
    }
    let total = (WORKERS * 4 * 16) as u64;
    lab.settle(total, 0);
    let views = lab.c.hand_off_views();
    assert_eq!(views.len(), WORKERS * (WORKERS - 1));
    assert!(views.iter().all(|v| v.room == 4 && v.drops == 0 && v.depth == 0));
    // Packets went to each of 16 workers, from all others.
    assert_eq!(views.iter().map(|v| v.packets).sum::<u64>(), 16 * 63 * 4);
    lab.close();
}

/// Buffers under way to a worker do not grow with the number of those that send to it.
#[test]
fn room_is_shared_by_the_senders() {
    let mut lab = Lab::with_buffers(9, 64 * 1024);
    let barrier = Arc::new(Barrier::new(2));
    let sink = lab.node("test-sink");
    lab.c.message(0, sink, Box::new(barrier.clone()));
    barrier.wait();
    for w in 1..9 {
        lab.make(w, SwIfIndex(1), vec![vec![to_worker(0); 256]; 8]);
    }
    let done = |lab: &Lab, w| pair(lab, w, 0).packets + pair(lab, w, 0).drops;
    lab.wait(|lab| (1..9).all(|w| done(lab, w) == 8 * 256));
    let sent: Vec<u64> = (1..9).map(|w| pair(&lab, w, 0).packets).collect();
    // Seven eighths of an eighth of 8,192, in whole frames.
    assert_eq!(sent, [3 * 256; 8]);
    barrier.wait();
    lab.settle(8 * 8 * 256, 0);
    lab.close();
}

/// Nor do they if each sender's share would be less than a frame.
#[test]
fn room_is_shared_by_very_many_senders() {
    const WORKERS: usize = 64;
    let mut lab = Lab::with_buffers(WORKERS, 64 * 1024);
    let barrier = Arc::new(Barrier::new(2));
    let sink = lab.node("test-sink");
    lab.c.message(0, sink, Box::new(barrier.clone()));
    barrier.wait();
    for w in 1..WORKERS {
        lab.make(w, SwIfIndex(1), vec![vec![to_worker(0); 256]; 2]);
    }
    let sent = |lab: &Lab| (1..WORKERS).map(|w| pair(lab, w, 0).packets).sum::<u64>();
    let done = |lab: &Lab, w| pair(lab, w, 0).packets + pair(lab, w, 0).drops;
    lab.wait(|lab| (1..WORKERS).all(|w| done(lab, w) == 2 * 256));
    // Whole frames are half of 8,192 packets at most; senders that come at once may be refused.
    let frames = sent(&lab);
    assert!((256..=4096).contains(&frames) && frames % 256 == 0, "{frames}");
    // Small ones have room in the share of each that has sent none.
    for w in 1..WORKERS {
        lab.make(w, SwIfIndex(1), vec![vec![to_worker(0); 50]]);
    }
    lab.wait(|lab| (1..WORKERS).all(|w| done(lab, w) == 2 * 256 + 50));
    assert_eq!(sent(&lab) - frames, 50 * (63 - frames / 256));
    barrier.wait();
    lab.settle(63 * (2 * 256 + 50), 0);
    // Frames that have arrived leave their room to the next.
    let before = pair(&lab, 1, 0).packets;
    lab.make(1, SwIfIndex(1), vec![vec![to_worker(0); 256]]);
    lab.settle(63 * (2 * 256 + 50) + 256, 0);
    assert_eq!(pair(&lab, 1, 0).packets - before, 256);
    lab.close();
}

#[test]
fn packets_in_flight_return_to_the_pool_at_the_end() {
    for _ in 0..20 {
        let mut lab = Lab::new(2);
        for w in 0..2 {
            lab.make(w, SwIfIndex(1), vec![vec![to_worker(1 - w as u8); 200]; 100]);
        }
        lab.wait(|lab| lab.rx() > 1000);
        lab.close();
    }
}

#[test]
fn owners_have_even_shares() {
    let lab = Lab::new(3);
    let end = lab.c.hand_off(QUEUE, 0).expect("an end");
    let mut shares = [0; 3];
    for i in 0..30_000u32 {
        shares[end.owner(i.wrapping_mul(0x9e37_79b1))] += 1;
    }
    assert!(shares.iter().all(|n| (9_900..10_100).contains(n)), "{shares:?}");
    assert_eq!((end.owner(0), end.owner(u32::MAX)), (0, 2));
    lab.close();
}
