//! The pool, its caches and its frames, compared with a model and across threads.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use thalweg_buffer::{
    Cache, Deal, Flags, Frame, IcmpCause, Iface, LOCAL_IF, Packet, Pool, PoolConfig, Search,
    SwIfIndex,
};

fn pool(buffers: usize) -> Pool {
    Pool::new(&PoolConfig { buffers, data_size: 256, page_size: None }).unwrap()
}

fn all_home(pool: Pool) {
    let audit = pool.audit();
    assert_eq!(audit.in_use, 0, "{audit:?}");
    assert_eq!(audit.depot, audit.total);
}

fn text(p: &Packet) -> Vec<u8> {
    p.segments().flatten().copied().collect()
}

#[test]
fn bad_numbers_are_explained() {
    let e = Pool::new(&PoolConfig { buffers: 1, ..Default::default() }).err().unwrap();
    assert!(e.to_string().contains("buffers-per-numa must be between 64"), "{e}");
    let e = Pool::new(&PoolConfig { buffers: 1 << 25, data_size: 16384, page_size: None });
    let e = e.err().unwrap().to_string();
    assert!(e.contains("lower `buffers { buffers-per-numa }`"), "{e}");
    let c = PoolConfig { buffers: 64, data_size: 2048, page_size: Some(1 << 30) };
    if let Err(e) = Pool::new(&c) {
        assert!(e.to_string().contains("nr_hugepages"), "{e}");
    }
}

#[test]
fn exhaustion_is_no_disaster() {
    let pool = pool(100);
    let mut cache = Cache::new(pool);
    let held: Vec<_> = std::iter::from_fn(|| cache.alloc()).collect();
    assert_eq!(held.len(), 100);
    assert!(cache.misses() > 0);
    cache.publish();
    assert_eq!(pool.audit().in_use, 100);
    for p in held {
        cache.free(p);
    }
    drop(cache);
    all_home(pool);
}

/// A packet keeps its first bytes, whatever they are in, and can grow again.
#[test]
fn packets_are_truncated() {
    let pool = pool(100);
    let mut cache = Cache::new(pool);
    let bytes: Vec<u8> = (0..1500_u32).map(|i| i as u8).collect();
    for keep in [0, 1, 255, 256, 257, 512, 1024, 1499, 1500, 1501, 9000] {
        let mut p = cache.alloc().unwrap();
        assert!(p.append(&bytes, &mut cache));
        p.truncate(keep, &mut cache);
        let kept = &bytes[..keep.min(1500)];
        assert_eq!((text(&p), p.total_len()), (kept.to_vec(), kept.len()));
        assert!(p.append(&bytes, &mut cache));
        assert_eq!(text(&p), [kept, &bytes].concat());
        p.truncate(0, &mut cache);
        assert_eq!(p.segments().count(), 1);
        cache.free(p);
    }
    drop(cache);
    all_home(pool);
}

/// The buffers that a worker has in flight come back to it, and none keeps what others need.
#[test]
fn caches_share_half_of_the_pool() {
    let pool = pool(8192);
    let mut caches = [(); 2].map(|()| Cache::one_of(pool, 2));
    let [first, second] = &mut caches;
    let swing = |cache: &mut Cache, n: usize| {
        let held: Vec<_> = (0..n).map(|_| cache.alloc().unwrap()).collect();
        let depot = pool.audit().depot;
        held.into_iter().for_each(|p| cache.free(p));
        depot
    };
    // A quarter each: the first's second round needs nothing, nor returns anything.
    swing(first, 2048);
    let depot = pool.audit().depot;
    assert_eq!((swing(first, 2048), pool.audit().depot), (depot, depot));
    // More than that goes back to where the other finds it.
    swing(first, 6000);
    first.publish();
    assert!(pool.audit().cached <= 2048, "{:?}", pool.audit());
    swing(second, 6000);
    assert_eq!((first.misses(), second.misses()), (0, 0));
    drop(caches);
    all_home(pool);
}

#[test]
fn long_frames_are_chains() {
    let pool = pool(512);
    let mut cache = Cache::new(pool);
    for len in [0, 1, 255, 256, 257, 384, 385, 9000, 65535] {
        let bytes: Vec<u8> = (0..len).map(|i| (i * 7 % 251) as u8).collect();
        let mut p = cache.alloc().unwrap();
        assert!(p.fill(&bytes, &mut cache));
        assert_eq!(p.total_len(), len);
        assert_eq!(text(&p), bytes);
        let mut f = Frame::new();
        f.push(p).ok().unwrap();
        assert_eq!(f.bytes(), len as u64);
        let cut = len * 2 / 3;
        f.pkt(0).truncate(cut, &mut cache);
        assert_eq!(f.total_len(0), cut);
        let p = f.pop().unwrap();
        assert_eq!(text(&p), bytes[..cut]);
        cache.free(p);
    }
    drop(cache);
    all_home(pool);
}

#[test]
fn headers_grow_into_the_headroom_only() {
    let pool = pool(64);
    let mut cache = Cache::new(pool);
    let mut p = cache.alloc().unwrap();
    assert!(p.fill(b"payload", &mut cache));
    assert!(p.pull(3) && p.data() == b"load");
    p.push(3).unwrap().copy_from_slice(b"PAY");
    assert_eq!(p.data(), b"PAYload");
    assert!(p.push(thalweg_buffer::HEADROOM).is_some());
    assert!(p.push(1).is_none());
    assert!(!p.pull(10_000));
    drop(p);
    drop(cache);
    all_home(pool);
    assert_eq!(pool.strays(), 1);
}

#[test]
fn interfaces_stay_uniform_while_they_can() {
    let pool = pool(64);
    let mut cache = Cache::new(pool);
    let mut f = Frame::new();
    let mut g = Frame::new();
    assert_eq!(cache.alloc_into(&mut f, 3, 60), 3);
    f.set_rx(SwIfIndex(7));
    assert_eq!(cache.alloc_into(&mut g, 2, 60), 2);
    g.set_rx(SwIfIndex(7));
    g.append_to(&mut f);
    assert_eq!(f.rx(), Iface::Uniform(SwIfIndex(7)));
    let mut p = cache.alloc().unwrap();
    p.set_rx_if(SwIfIndex(9));
    f.push(p).ok().unwrap();
    assert_eq!(f.rx(), Iface::Mixed);
    assert_eq!((f.rx_if(0), f.rx_if(4), f.rx_if(5)), (SwIfIndex(7), SwIfIndex(7), SwIfIndex(9)));
    assert_eq!(f.tx(), Iface::Uniform(LOCAL_IF));
    cache.free_frame(&mut f);
    assert!(f.is_empty() && g.is_empty());
    assert_eq!(f.rx(), Iface::Uniform(LOCAL_IF));
    drop(cache);
    all_home(pool);
}

/// Words that one node leaves in the meta stay when another one leaves something, in any order.
#[test]
fn words_of_the_meta_do_not_meet() {
    let pool = pool(64);
    let mut cache = Cache::new(pool);
    let cause = IcmpCause::frag_needed(1400);
    type Write = fn(&mut thalweg_buffer::Meta);
    let writes: [Write; 4] = [
        |m| m.icmp = IcmpCause::frag_needed(1400),
        |m| m.search = Search::Before,
        |m| m.sample_id = 7,
        |m| m.offload.gso_size = 9,
    ];
    for first in 0..4 {
        let mut f = Frame::new();
        assert_eq!(cache.alloc_into(&mut f, 1, 60), 1);
        for i in 0..4 {
            writes[(first + i) % 4](f.pkt(0).meta_mut());
        }
        let mut p = f.pkt(0);
        let m = p.meta();
        assert_eq!((m.icmp, m.search), (cause, Search::Before));
        assert_eq!((m.sample_id, m.offload.gso_size), (7, 9));
        assert_eq!(std::mem::take(&mut p.meta_mut().search), Search::Before);
        assert_eq!((p.meta().icmp, p.meta().search), (cause, Search::New));
        cache.free_frame(&mut f);
    }
    drop(cache);
    all_home(pool);
}

/// A packet made of another one is what that one is, and has nothing that is its alone.
#[test]
fn packets_inherit_what_they_descend_from() {
    let pool = pool(64);
    let mut cache = Cache::new(pool);
    for own in [
        Flags::empty(),
        Flags::LOCAL,
        Flags::MULTICAST,
        Flags::RETAGGED,
        Flags::of_priority(0xb00a),
    ] {
        let mut old = cache.alloc().unwrap();
        old.mark(own.union(Flags::TRACED).union(Flags::OFFLOAD).union(Flags::SAMPLED));
        old.meta_mut().icmp = IcmpCause::NET_UNREACHABLE;
        old.set_rx_if(SwIfIndex(3));
        old.set_tx_if(SwIfIndex(4));
        old.set_aux(5);
        let mut from_packet = cache.alloc().unwrap();
        from_packet.inherit(old.lineage());
        let mut f = Frame::new();
        f.push(old).ok().unwrap();
        let mut from_frame = cache.alloc().unwrap();
        from_frame.inherit(f.pkt(0).lineage());
        for new in [from_packet, from_frame] {
            assert_eq!((new.rx_if(), new.tx_if(), new.aux()), (SwIfIndex(3), SwIfIndex(4), 5));
            assert_eq!(new.meta().flags(), own);
            assert_eq!(new.meta().icmp, IcmpCause::default());
            cache.free(new);
        }
        cache.free_frame(&mut f);
    }
    drop(cache);
    all_home(pool);
}

#[test]
fn marks_reach_the_frame_and_leave_with_the_buffer() {
    let pool = pool(64);
    let mut cache = Cache::new(pool);
    let mut f = Frame::new();
    cache.alloc_into(&mut f, 4, 60);
    assert!(f.flags().is_empty());
    f.pkt(2).mark(Flags::TRACED);
    f.pkt(2).meta_mut().trace = 5;
    assert!(f.flags().contains(Flags::TRACED));
    assert_eq!(f.meta(2).trace, 5);
    cache.free_frame(&mut f);
    assert!(f.flags().is_empty());
    for _ in 0..64 {
        let Some(p) = cache.alloc() else { break };
        assert!(p.meta().flags().is_empty() && p.meta().trace == 0);
        f.push(p).ok().unwrap();
    }
    cache.free_frame(&mut f);
    drop((f, cache));
    all_home(pool);
}

#[test]
fn a_sampled_packet_keeps_its_mark_wherever_it_goes() {
    let pool = pool(64);
    let mut cache = Cache::new(pool);
    let mut f = Frame::new();
    cache.alloc_into(&mut f, 8, 60);
    f.mark_sampled(2);
    f.pkt(6).mark(Flags::SAMPLED);
    let (two, six) = (f.key(2), f.key(6));
    let rows = |f: &Frame| {
        let rows: Vec<u8> = f.sampled().iter().collect();
        assert_eq!(f.sampled_packets(), rows.len());
        rows
    };
    assert_eq!(rows(&f), [2, 6]);
    f.mark_sampled(2);
    assert_eq!(rows(&f), [2, 6]);
    assert!(f.pkt(2).flags().contains(Flags::SAMPLED) && f.pkt(3).flags().is_empty());
    assert!(f.meta(2).flags().is_empty(), "the buffer was touched");
    // Held outside of frames, it carries the mark itself.
    let held = f.pkt(2).take();
    assert!(held.meta().flags().contains(Flags::SAMPLED) && held.key() == two);
    let gone = f.pkt(0).take();
    f.compact(());
    assert_eq!((rows(&f), f.key(4)), (vec![4], six));
    assert!(f.push(held).is_ok());
    assert_eq!(rows(&f), [4, 6]);
    assert!(f.meta(6).flags().is_empty());
    // Dealt, merged, popped.
    let (mut a, mut b) = (Frame::new(), Frame::new());
    struct Two<'f>(&'f mut Frame, &'f mut Frame);
    impl Deal for Two<'_> {
        fn frame_for(&mut self, key: u32) -> &mut Frame {
            if key == 0 { self.0 } else { self.1 }
        }
    }
    let mut keys = [0; 256];
    (keys[4], keys[1]) = (1, 1);
    f.deal(&keys, &mut Two(&mut a, &mut b));
    assert_eq!((rows(&a), rows(&b), f.sampled().is_empty()), (vec![4], vec![1], true));
    assert!(a.flags().contains(Flags::SAMPLED) && b.flags().contains(Flags::SAMPLED));
    assert_eq!((a.key(4), b.key(1)), (two, six));
    b.append_to(&mut a);
    assert_eq!(rows(&a), [4, 6]);
    let last = a.pop().unwrap();
    assert!(last.meta().flags().contains(Flags::SAMPLED) && last.key() == six);
    assert_eq!(rows(&a), [4]);
    a.pkt(4).unmark(Flags::SAMPLED);
    assert!(rows(&a).is_empty());
    for p in [last, gone] {
        cache.free(p);
    }
    cache.free_frame(&mut a);
    for _ in 0..16 {
        let p = cache.alloc().unwrap();
        assert!(p.meta().flags().is_empty());
        f.push(p).ok().unwrap();
    }
    assert!(f.sampled().is_empty() && f.flags().is_empty());
    cache.free_frame(&mut f);
    drop((f, a, b, cache));
    all_home(pool);
}

#[test]
fn batches_cross_threads() {
    let pool = pool(4096);
    let (to, from) = std::sync::mpsc::sync_channel::<Box<Frame>>(8);
    let maker = std::thread::spawn(move || {
        let mut cache = Cache::new(pool);
        let mut made = 0u64;
        while made < 200_000 {
            let mut f = Frame::new();
            let n = cache.alloc_into(&mut f, 200, 60);
            made += n as u64;
            if n > 0 {
                to.send(f).unwrap();
            }
        }
        made
    });
    let taker = std::thread::spawn(move || {
        let mut cache = Cache::new(pool);
        let mut seen = 0u64;
        while let Ok(mut f) = from.recv() {
            seen += f.len() as u64;
            cache.free_frame(&mut f);
        }
        seen
    });
    assert_eq!(maker.join().unwrap(), taker.join().unwrap());
    all_home(pool);
}

/// A pile per key, and a new frame when the last of the pile is full.
struct Piles([Vec<Box<Frame>>; KEYS]);

/// More than are moved together.
const KEYS: usize = 11;

impl thalweg_buffer::Deal for Piles {
    fn frame_for(&mut self, key: u32) -> &mut Frame {
        let pile = &mut self.0[key as usize];
        if pile.last().is_none_or(|f| f.room() == 0) {
            pile.push(Frame::new());
        }
        pile.last_mut().unwrap()
    }
}

#[derive(Clone, Debug)]
enum Op {
    Push(usize, u32),
    Pop(usize),
    Merge(usize, usize),
    Take(usize, u8),
    Deal(usize),
    Mark(usize, u8),
    Free(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let f = 0usize..4;
    prop_oneof![
        4 => (f.clone(), 0u32..3).prop_map(|(f, i)| Op::Push(f, i)),
        1 => f.clone().prop_map(Op::Pop),
        1 => (f.clone(), 0usize..4).prop_map(|(a, b)| Op::Merge(a, b)),
        1 => (f.clone(), any::<u8>()).prop_map(|(a, b)| Op::Take(a, b)),
        1 => f.clone().prop_map(Op::Deal),
        1 => (f.clone(), any::<u8>()).prop_map(|(a, b)| Op::Mark(a, b)),
        1 => f.prop_map(Op::Free),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn frames_behave_as_lists(ops in prop::collection::vec(op(), 1..400)) {
        let pool = pool(512);
        let mut cache = Cache::new(pool);
        let mut frames: Vec<Box<Frame>> = (0..4).map(|_| Frame::new()).collect();
        // Side column, interface, trace number.
        let mut model: Vec<Vec<(u32, u32, u16)>> = vec![Vec::new(); 4];
        let mut serial = 0u32;
        for op in ops {
            match op {
                Op::Push(f, rx) => {
                    let Some(mut p) = cache.alloc() else { continue };
                    serial += 1;
                    // No meta outlives its packet, whatever was marked.
                    prop_assert!(p.meta().flags().is_empty() && p.meta().trace == 0);
                    assert!(p.fill(&serial.to_be_bytes(), &mut cache));
                    p.set_rx_if(SwIfIndex(rx));
                    p.set_aux(serial);
                    match frames[f].push(p) {
                        Ok(()) => model[f].push((serial, rx, 0)),
                        Err(p) => { prop_assert_eq!(model[f].len(), 256); cache.free(p) }
                    }
                }
                Op::Pop(f) => {
                    let got = frames[f].pop().map(|p| {
                        let row = (p.aux(), p.rx_if().0, p.meta().trace);
                        assert_eq!(p.data(), row.0.to_be_bytes());
                        cache.free(p);
                        row
                    });
                    prop_assert_eq!(got, model[f].pop());
                }
                Op::Merge(a, b) if a != b && frames[b].room() >= frames[a].len() => {
                    let mut from = std::mem::take(&mut frames[a]);
                    from.append_to(&mut frames[b]);
                    frames[a] = from;
                    let rows = std::mem::take(&mut model[a]);
                    model[b].extend(rows);
                }
                Op::Take(f, i) if (i as usize) < frames[f].len() => {
                    let p = frames[f].pkt(i).take();
                    let row = model[f].remove(i as usize);
                    prop_assert_eq!((p.aux(), p.rx_if().0, p.meta().trace), row);
                    cache.free(p);
                    frames[f].compact(());
                }
                Op::Deal(f) => {
                    let mut keys = [u32::MAX; 256];
                    for (i, key) in keys.iter_mut().enumerate().take(frames[f].len()) {
                        *key = (i % KEYS) as u32;
                    }
                    let mut piles = Piles([const { Vec::new() }; KEYS]);
                    // One pile has a packet already.
                    if let Some(p) = cache.alloc() {
                        let mut first = Frame::new();
                        first.push(p).ok().unwrap();
                        piles.0[1].push(first);
                    }
                    let had = piles.0[1].iter().map(|f| f.len()).sum::<usize>();
                    frames[f].deal(&keys, &mut piles);
                    prop_assert!(frames[f].is_empty());
                    for (k, pile) in piles.0.iter_mut().enumerate() {
                        for (nth, part) in pile.iter_mut().enumerate() {
                            if k == 1 && nth == 0 && had == 1 {
                                // The existing packet stays the first.
                                let rest: Vec<_> =
                                    std::iter::from_fn(|| part.pop()).collect();
                                for p in rest.into_iter().rev().skip(1) {
                                    frames[f].push(p).ok().unwrap();
                                }
                            } else {
                                part.append_to(&mut frames[f]);
                            }
                        }
                    }
                    let rows = std::mem::take(&mut model[f]);
                    for k in 0..KEYS {
                        model[f].extend(rows.iter().skip(k).step_by(KEYS));
                    }
                }
                Op::Mark(f, i) if (i as usize) < frames[f].len() => {
                    frames[f].pkt(i).meta_mut().trace = 1;
                    model[f][i as usize].2 = 1;
                }
                Op::Free(f) => { cache.free_frame(&mut frames[f]); model[f].clear(); }
                _ => {}
            }
            for (f, m) in frames.iter().zip(&model) {
                prop_assert_eq!(f.len(), m.len());
                for (i, row) in m.iter().enumerate() {
                    let i8 = i as u8;
                    prop_assert_eq!((f.aux()[i], f.rx_if(i8).0, f.meta(i8).trace), *row);
                    prop_assert!(f.meta(i8).flags().is_empty() || f.flags().contains(Flags::META));
                    prop_assert_eq!(f.data(i8), &row.0.to_be_bytes()[..]);
                }
            }
        }
        drop((frames, cache));
        all_home(pool);
    }
}

/// Only packets that were sampled are marked as translated, and they stay so outside of frames.
#[test]
fn sampled_packets_know_that_they_were_translated() {
    let pool = pool(64);
    let mut cache = Cache::new(pool);
    let mut frame = Frame::new();
    for _ in 0..4 {
        assert!(frame.push(cache.alloc().unwrap()).is_ok());
    }
    frame.note_translations();
    frame.pkt(0).note_translation();
    assert!(frame.flags().is_empty());
    frame.mark_sampled(1);
    frame.mark_sampled(3);
    frame.pkt(0).note_translation();
    frame.pkt(1).note_translation();
    let marked = |frame: &mut Frame| {
        (0..4).filter(|i| frame.pkt(*i).flags().contains(Flags::TRANSLATED)).collect::<Vec<_>>()
    };
    assert_eq!(marked(&mut frame), [1]);
    frame.note_translations();
    assert_eq!(marked(&mut frame), [1, 3]);
    assert!(frame.flags().contains(Flags::TRANSLATED));
    let taken = frame.pkt(3).take();
    assert!(taken.meta().flags().contains(Flags::TRANSLATED.union(Flags::SAMPLED)));
    cache.free(taken);
    frame.compact(());
    cache.free_frame(&mut frame);
    // The next owner of the buffers finds no mark.
    let fresh: Vec<_> = std::iter::from_fn(|| cache.alloc()).collect();
    assert!(fresh.iter().all(|p| p.meta().flags().is_empty()));
    fresh.into_iter().for_each(|p| cache.free(p));
    drop((frame, cache));
    all_home(pool);
}
