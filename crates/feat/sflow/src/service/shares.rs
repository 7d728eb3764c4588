//! Share that is taken of each worker's ring when all hold more than can be taken.
//!
//! Rings that are never empty would lose in proportion to their room, not to what comes: one with
//! half of the samples would keep as many as one with the other half and more, and lose next to
//! none. Each ring therefore gets turns in proportion to what its worker had to offer recently,
//! lost samples included, and all lose the same share.

use super::BATCH;
use crate::stats::TapStats;
use std::sync::Arc;

/// Total number of samples after which turns are reassigned.
const WINDOW: u64 = 16 * 1024;

/// Turns of workers.
#[derive(Debug)]
pub(super) struct Shares {
    taps: Vec<Arc<TapStats>>,
    /// Samples that each had offered when turns were last dealt.
    offered: Vec<u64>,
    /// Samples to take of each before the next one's turn.
    turns: Vec<usize>,
}

impl Shares {
    pub(super) fn new(taps: Vec<Arc<TapStats>>) -> Shares {
        let (offered, turns) = (vec![0; taps.len()], vec![BATCH; taps.len()]);
        Shares { taps, offered, turns }
    }

    /// Returns the number of samples to take of a worker in its turn.
    #[inline]
    pub(super) fn turn(&self, worker: usize) -> usize {
        self.turns[worker]
    }

    /// Reassigns turns once enough samples have come.
    pub(super) fn settle(&mut self) {
        let now = |tap: &Arc<TapStats>| tap.all.taken.get() + tap.all.dropped.get();
        let came = |(tap, before): (_, &u64)| now(tap).saturating_sub(*before);
        let all: u64 = self.taps.iter().zip(&self.offered).map(came).sum();
        if all < WINDOW {
            return;
        }
        let together = (BATCH * self.turns.len()) as u128;
        for ((turn, before), tap) in self.turns.iter_mut().zip(&mut self.offered).zip(&self.taps) {
            let total = now(tap);
            let came = total.saturating_sub(*before);
            *before = total;
            let part = (together * u128::from(came) + u128::from(all) / 2) / u128::from(all);
            // A worker with few has a turn, too.
            *turn = (part as usize).clamp(1, BATCH * self.taps.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;
    use crate::ring::{self, SampleWriter};
    use thalweg_buffer::PoolConfig;
    use thalweg_device::SwIfIndex;
    use thalweg_device::{Caps, Mode, Mtu, Tags, interface};
    use thalweg_graph::{EngineConfig, NodeId};
    use thalweg_wire::MacAddr;

    /// A worker's feed of its ring: samples of ports, in this order again and again.
    struct Feed {
        writer: SampleWriter,
        ports: &'static [u32],
        per_tick: usize,
        stats: Arc<TapStats>,
    }

    /// Samples of a port.
    #[derive(Clone, Copy, Default)]
    struct Fate {
        offered: u64,
        lost: u64,
    }

    impl Fate {
        fn share(&self) -> f64 {
            self.lost as f64 / self.offered as f64
        }
    }

    impl Feed {
        fn tick(&mut self, fates: &mut [Fate], times: usize) {
            for port in self.ports.iter().cycle().take(times) {
                let fate = &mut fates[*port as usize];
                fate.offered += 1;
                let record = SampleRecord {
                    sw_if: SwIfIndex(*port),
                    rx_if: SwIfIndex(*port),
                    generation: 1,
                    rate: 1,
                    pool: fate.offered,
                    lost: fate.lost as u32,
                    ..SampleRecord::default()
                };
                let all = &self.stats.all;
                match self.writer.push(&record, &[1; 64]) {
                    Some(_) => all.taken.set(all.taken.get() + 1),
                    None => {
                        fate.lost += 1;
                        all.dropped.set(all.dropped.get() + 1);
                    }
                }
                self.writer.publish();
            }
        }
    }

    fn port(sw_if: SwIfIndex) -> PortSetup {
        let view = InterfaceView {
            sw_if,
            name: format!("pg{sw_if}"),
            kind: interface::Kind::Hardware,
            dev_type: "pg",
            mac: MacAddr([2; 6]),
            secondary_macs: std::sync::Arc::default(),
            admin_up: true,
            link_up: true,
            state_since: 0,
            link_mtu: 9000,
            mtu: Mtu { l3: 9000, ..Mtu::default() },
            speed_kbps: 0,
            promiscuous: false,
            caps: Caps::default(),
            output: NodeId(0),
            shares_output: false,
            ethernet: true,
            tag: String::new(),
            mode: Mode::Routed,
            parent: None,
            sub: None,
            tags: Tags::NONE,
            rewrite: thalweg_device::TagRewrite::NONE,
            twin: None,
        };
        PortSetup {
            view,
            enabled: true,
            generation: 1,
            born: IfTotals::default(),
            os_index: Some(sw_if.get()),
        }
    }

    /// One interface changes at a time, and the others stay as they are.
    #[test]
    fn interfaces_come_and_go_one_by_one() {
        let pool = PoolConfig { buffers: 512, ..PoolConfig::default() };
        let c = Control::new(EngineConfig { pool, ..EngineConfig::default() }).unwrap();
        let guide = Guide::new(&c);
        let mut service =
            Service::new(Vec::new(), Vec::new(), Vec::new(), guide, None, Arc::default());
        let ports: Vec<_> = (1..=3).map(SwIfIndex).map(port).collect();
        service.apply(Setup { polling_interval: 60, ports, ..Setup::default() });
        service.status.sent_by_port = vec![0, 7, 8, 9];
        let there = |service: &Service| {
            let all = service.ports.iter().flatten();
            all.map(|port| port.setup.view.sw_if.get()).collect::<Vec<_>>()
        };
        service.follow(SwIfIndex(2), None);
        service.follow(SwIfIndex(9), None);
        service.follow(SwIfIndex(5), Some(port(SwIfIndex(5))));
        assert_eq!((there(&service), service.enabled), (vec![1, 3, 5], true));
        // The next one of an index begins at zero, and a change of the same one does not.
        service.follow(SwIfIndex(1), Some(PortSetup { generation: 2, ..port(SwIfIndex(1)) }));
        service.follow(SwIfIndex(3), Some(PortSetup { enabled: false, ..port(SwIfIndex(3)) }));
        assert_eq!(service.status.sent_by_port, [0, 0, 0, 9, 0, 0]);
        assert_eq!(service.sampled, 2);
        [1, 5].into_iter().for_each(|i| service.follow(SwIfIndex(i), None));
        assert_eq!((there(&service), service.enabled), (vec![3], false));
        assert!(service.linger_until.is_some());
    }

    /// Three workers that sample 3 to 9 to 4, the first of them on two interfaces, three times as
    /// fast as samples are taken, beginning with none taken: each worker and each interface loses
    /// the same share, and each loss is reported.
    #[test]
    fn beyond_what_is_taken_all_lose_the_same_share() {
        let pool = PoolConfig { buffers: 512, ..PoolConfig::default() };
        let c = Control::new(EngineConfig { pool, ..EngineConfig::default() }).unwrap();
        let (writers, rings): (Vec<_>, Vec<_>) =
            (0..3).map(|_| ring::channel(ring::Bell::default()).unwrap()).unzip();
        let guide = Guide::new(&c);
        let taps: Vec<Arc<TapStats>> = (0..3).map(|_| Arc::default()).collect();
        let stats = taps.clone();
        let mut service = Service::new(rings, taps, Vec::new(), guide, None, Arc::default());
        let ports: Vec<_> = (1..=4).map(SwIfIndex).map(port).collect();
        service.apply(Setup { polling_interval: 60, ports, ..Setup::default() });
        let work: [(&[u32], usize); 3] = [(&[1, 2, 2], 3), (&[3], 9), (&[4], 4)];
        let feeds = writers.into_iter().zip(work).zip(stats);
        let mut feeds: Vec<_> = feeds
            .map(|((writer, (ports, weight)), stats)| Feed {
                writer,
                ports,
                per_tick: 96 * weight,
                stats,
            })
            .collect();
        let mut fates = [Fate::default(); 5];
        let mut ticks = |service: &mut Service, fates: &mut [Fate; 5], ticks, most| {
            for _ in 0..ticks {
                feeds.iter_mut().for_each(|feed| feed.tick(fates, feed.per_tick));
                if most > 0 {
                    service.drain_rings(most);
                }
            }
        };
        ticks(&mut service, &mut fates, 200, 0);
        // Rings are full by then, and turns find their lengths.
        ticks(&mut service, &mut fates, 100, 512);
        let before = fates;
        ticks(&mut service, &mut fates, 600, 512);
        let of = |port: usize| Fate {
            offered: fates[port].offered - before[port].offered,
            lost: fates[port].lost - before[port].lost,
        };
        let all = (1..5).map(of).fold(Fate::default(), |a, b| Fate {
            offered: a.offered + b.offered,
            lost: a.lost + b.lost,
        });
        assert!((0.5..0.8).contains(&all.share()), "{}", all.share());
        let burdens: Vec<_> = (1..5).map(|port| of(port).share() / all.share()).collect();
        assert!(burdens.iter().all(|b| (b - 1.0).abs() < 0.03), "{burdens:?}");
        // Once there is room again, the next sample reports all losses.
        while service.drain_rings(ROUND) > 0 {}
        let lost: Vec<_> = fates[1..].iter().map(|fate| fate.lost).collect();
        for feed in &mut feeds {
            feed.tick(&mut fates, 3);
        }
        while service.drain_rings(ROUND) > 0 {}
        let reported = service.ports[1..].iter().flatten().map(|port| port.lost.iter().sum());
        assert_eq!(reported.collect::<Vec<u64>>(), lost);
    }

    #[test]
    fn turns_follow_what_comes() {
        let taps: Vec<Arc<TapStats>> = (0..3).map(|_| Arc::default()).collect();
        let mut shares = Shares::new(taps.clone());
        shares.settle();
        assert_eq!([0, 1, 2].map(|w| shares.turn(w)), [BATCH; 3]);
        let offer = |shares: &mut Shares, parts: [u64; 3]| {
            for (tap, part) in taps.iter().zip(parts) {
                tap.all.taken.set(tap.all.taken.get() + part * WINDOW / 30);
                tap.all.dropped.set(tap.all.dropped.get() + part * WINDOW / 15);
            }
            shares.settle();
            [0, 1, 2].map(|w| shares.turn(w))
        };
        assert_eq!(offer(&mut shares, [10, 20, 50]), [24, 48, 120]);
        assert_eq!(offer(&mut shares, [1, 1, 1]), [24, 48, 120], "too few to tell");
        assert_eq!(offer(&mut shares, [9, 9, 9]), [BATCH; 3]);
        assert_eq!(offer(&mut shares, [0, 0, 90]), [1, 1, 3 * BATCH]);
    }
}
