//! A router without traffic.

use std::time::Duration;

use anyhow::{Result, ensure};
use thalweg_smoke::{CpuClock, Delay, Router, host_pair, host_pair_with};
use thalweg_testkit::{Lab, LabOptions, lab_test};

lab_test! {
    /// No tick, no polling: an idle router uses less than a hundredth of one processor, whatever
    /// its interfaces and with sFlow on.
    fn an_idle_router_sleeps() {
        // All at the same time: each is measured by its own processor time.
        let mut idle = Vec::new();
        for (words, extra) in [
            ("", ""),
            ("v3", ""),
            ("", "sflow collector add 127.0.0.1\nsflow enable-disable host-eth0"),
        ] {
            let lab = Lab::build(&LabOptions::measured())?;
            let config = if words.is_empty() { host_pair() } else { host_pair_with(words) };
            let router = Router::start(&lab.router, &config.commands(extra))?;
            lab.ping_all()?;
            idle.push((format!("`{words}' and `{}'", extra.replace('\n', "; ")), router, lab));
        }
        idle.iter().try_for_each(|(_, router, _)| router.await_rest())?;
        // A tick or a poll costs the same each time; the machine's other programs do not.
        let mut least = [f64::MAX; 3];
        for _ in 0..3 {
            let clocks = idle.iter().map(|(_, router, _)| CpuClock::start(router.pid()));
            let clocks = clocks.collect::<Result<Vec<_>>>()?;
            Delay::measure_over(Duration::from_secs(5));
            for (least, clock) in least.iter_mut().zip(clocks) {
                *least = least.min(clock.percent()?);
            }
            println!("idle: {least:.2?} %");
            if least.iter().all(|percent| *percent < 1.0) {
                break;
            }
        }
        for ((what, router, _lab), percent) in idle.into_iter().zip(least) {
            ensure!(percent < 1.0, "{percent:.2} % of a processor while idle with {what}");
            router.stop()?;
        }
        Ok(())
    }
}
