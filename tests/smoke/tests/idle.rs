//! A router without traffic.

use std::time::Duration;

use anyhow::ensure;
use thalweg_smoke::{CpuClock, Delay, Router, host_pair, host_pair_with};
use thalweg_testkit::{Lab, LabOptions, lab_test};

lab_test! {
    /// No tick, no polling: an idle router uses less than a hundredth of one processor, whatever
    /// its interfaces and with sFlow on.
    fn an_idle_router_sleeps() {
        for (words, extra) in [
            ("", ""),
            ("v3", ""),
            ("", "sflow collector add 127.0.0.1\nsflow enable-disable host-eth0"),
        ] {
            let lab = Lab::build(&LabOptions::measured())?;
            let config = if words.is_empty() { host_pair() } else { host_pair_with(words) };
            let router = Router::start(&lab.router, &config.commands(extra))?;
            lab.ping_all()?;
            router.await_rest()?;
            // Whatever ticks or polls does so each time; what the machine's other programs cost it
            // does not.
            let mut least = f64::MAX;
            for _ in 0..3 {
                let clock = CpuClock::start(router.pid())?;
                Delay::measure_over(Duration::from_secs(5));
                least = least.min(clock.percent()?);
                println!("idle with `{words}' and `{}': {least:.2} %", extra.replace('\n', "; "));
                if least < 1.0 {
                    break;
                }
            }
            ensure!(least < 1.0, "{least:.2} % of a processor while idle ({words} {extra})");
            router.stop()?;
        }
        Ok(())
    }
}
