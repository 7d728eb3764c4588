//! Pings through the router, to it, and from it.

use std::time::Duration;

use anyhow::{Context, ensure};
use thalweg_smoke::{Router, host_pair};
use thalweg_testkit::{Lab, PingOptions, lab_test, ping};

lab_test! {
    /// Nobody knows anybody's hardware address when the first packet comes: it waits inside the
    /// router for the answer to the router's question, and is not lost.
    fn not_even_the_first_ping_is_lost() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        let once = PingOptions { count: 1, ..PingOptions::default() };
        ping(&lab.left.ns, lab.right.addr, &once)?.all_answered()?;
        let result = ping(&lab.right.ns, lab.left.addr, &PingOptions::default())?;
        result.all_answered()?;
        ensure!(result.ttls.iter().all(|ttl| *ttl == 63), "ttl {:?}", result.ttls);
        router.stop().map(drop)
    }

    fn pings_of_every_size_and_many_at_once() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        for size in [0, 1, 18, 56, 64, 511, 1472] {
            let options =
                PingOptions { size, interval: Duration::from_millis(2), ..PingOptions::default() };
            let result = ping(&lab.left.ns, lab.right.addr, &options)?;
            result.all_answered().with_context(|| format!("{size} bytes"))?;
        }
        let many = PingOptions {
            count: 2000,
            interval: Duration::from_micros(500),
            ..PingOptions::default()
        };
        ping(&lab.left.ns, lab.right.addr, &many)?.all_answered()?;
        router.stop().map(drop)
    }

    fn the_router_answers_on_all_its_addresses() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        for (from, to) in [
            (&lab.left.ns, lab.left.gateway),
            (&lab.left.ns, lab.right.gateway),
            (&lab.right.ns, lab.right.gateway),
            (&lab.right.ns, lab.left.gateway),
        ] {
            let result = ping(from, to, &PingOptions::default())?;
            result.all_answered().with_context(|| format!("{} pings {to}", from.label()))?;
            ensure!(result.ttls.iter().all(|ttl| *ttl == 64), "ttl {:?}", result.ttls);
        }
        router.stop().map(drop)
    }

    /// The router's own ping, with the lines that its users know.
    fn the_router_pings() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        let text = router.cli("ping 10.10.2.2 repeat 5 interval 0.01")?;
        let mut lines = text.lines().filter(|line| !line.is_empty());
        for seq in 1..=5 {
            let line = lines.next().context("too few lines")?;
            let head = format!("116 bytes from 10.10.2.2: icmp_seq={seq} ttl=64 time=");
            let time = line.strip_prefix(&head).and_then(|rest| rest.strip_suffix(" ms"));
            let time = time.with_context(|| format!("line {seq} of:\n{text}"))?;
            let ms: f64 = time.parse().with_context(|| format!("time {time}"))?;
            ensure!(ms > 0.0 && ms < 1000.0, "{ms} ms");
        }
        let last = lines.next();
        ensure!(last == Some("Statistics: 5 sent, 5 received, 0% packet loss"), "{text}");
        ensure!(lines.next().is_none(), "{text}");

        let long = router.cli("ping 10.10.1.2 repeat 2 interval 0.01 size 1400 source host-eth0")?;
        ensure!(long.contains("1416 bytes from 10.10.1.2: icmp_seq=2"), "{long}");
        let quick = router.cli("ping 10.10.1.2 repeat 200 interval 0.0005")?;
        ensure!(quick.contains("200 sent, 200 received, 0% packet loss"), "{quick}");
        let own = router.cli("ping 10.10.1.1 repeat 2 interval 0.01")?;
        ensure!(own.contains("2 sent, 2 received"), "{own}");
        let nobody = router.cli("ping 10.10.2.77 repeat 2 interval 0.01")?;
        ensure!(nobody.contains("2 sent, 0 received, 100% packet loss"), "{nobody}");
        let nowhere = router.refused("ping 192.0.2.1 repeat 1")?;
        ensure!(nowhere.contains("192.0.2.1") || nowhere.contains("egress"), "{nowhere}");
        router.stop().map(drop)
    }
}
