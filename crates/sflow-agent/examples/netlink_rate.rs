//! Measures how many samples go over netlink per second.
//!
//!     cargo run --release -p thalweg-sflow-agent --example netlink_rate
//!
//! A sender packs samples with 128 bytes of header as the router does; a listener on the other core
//! reads and decodes them, or there is none. The controller's group, which every kernel has, stands
//! in for PSAMPLE's; CAP_NET_ADMIN is needed. The median of five turns of half a second.

#![allow(clippy::expect_used)]

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use thalweg_netlink::Family;
use thalweg_sflow_agent::netlink::psample::RX_GROUP;
use thalweg_sflow_agent::netlink::receive::Joined;
use thalweg_sflow_agent::netlink::{Event, Gaps, Message, Multicast, Notice, PacketSample};

const TURN: Duration = Duration::from_millis(500);
/// Samples between two looks at the clock: what a service takes at a time.
const BATCH: u32 = 64;

/// One turn: samples sent and heard per second, both in thousands, and those lost.
fn turn(controller: &Family, limit: usize, listen: bool) -> (f64, f64, u64) {
    let stop = AtomicBool::new(!listen);
    let (heard, lost) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let mut joined = Joined::generic(controller, "notify").expect("a socket");
        if listen {
            let (stop, heard, lost) = (&stop, &heard, &lost);
            scope.spawn(move || {
                let mut gaps = Gaps::default();
                while !stop.load(Ordering::Relaxed) {
                    let _ = joined.read(Duration::from_millis(10), |event| {
                        match event {
                            Event::Message(Message::Sample(s)) => {
                                heard.fetch_add(1, Ordering::Relaxed);
                                let gap = gaps.lost(s.group, s.group_sequence);
                                lost.fetch_add(gap.into(), Ordering::Relaxed);
                            }
                            Event::Notice(Notice::Overrun(..)) | Event::Message(_) => {}
                            Event::Notice(notice) => eprintln!("{notice}"),
                        }
                        ControlFlow::Continue(())
                    });
                }
            });
        } else {
            drop(joined);
        }
        let mut sender = Multicast::generic(controller, "nlctrl", "notify").expect("a group");
        sender.set_limit(limit);
        let data = [7; 128];
        let (begin, mut n) = (Instant::now(), 0u32);
        while begin.elapsed() < TURN {
            for _ in 0..BATCH {
                n += 1;
                let sample = PacketSample {
                    input: 1,
                    original_length: 1000,
                    group: RX_GROUP,
                    group_sequence: n,
                    rate: 100,
                    data: &data,
                    protocol: Some(1),
                    ..PacketSample::default()
                };
                sender.push(|out, header| sample.encode(out, header));
            }
            sender.flush();
        }
        let seconds = begin.elapsed().as_secs_f64();
        assert_eq!(sender.stats().failed, 0, "{:?}", sender.stats().last_error);
        std::thread::sleep(Duration::from_millis(50));
        stop.store(true, Ordering::Relaxed);
        let rate = |count: u64| count as f64 / seconds / 1000.0;
        let heard = rate(heard.load(Ordering::Relaxed));
        (rate(sender.stats().sent), heard, lost.load(Ordering::Relaxed))
    })
}

fn main() {
    let controller = Family::resolve("nlctrl").expect("netlink").expect("every kernel has it");
    println!("datagram       listener   sent k/s   heard k/s   lost");
    for (name, limit) in [("one sample", 0), ("2 KiB", 2048), ("4 KiB", 4096), ("7 KiB", 7168)] {
        for listen in [false, true] {
            let mut turns: Vec<_> = (0..5).map(|_| turn(&controller, limit, listen)).collect();
            turns.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (sent, heard, lost) = turns[2];
            let listener = if listen { "yes" } else { "no" };
            println!("{name:12} {listener:>10} {sent:10.0} {heard:11.0} {lost:6}");
        }
    }
}
