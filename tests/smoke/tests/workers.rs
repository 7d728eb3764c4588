//! Many more workers than processors.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use thalweg_smoke::{Config, Router};
use thalweg_testkit::{Netns, lab_test, wait_until_seen};

const WORKERS: u64 = 64;
/// Packets that each worker generates: one of each flow.
const EACH: u64 = 250;

/// Inside and outside of a translation, and a stream on each worker whose flows belong to all.
fn translating() -> Config {
    let config = Config::empty()
        .stanza(&format!("cpu {{ workers {WORKERS} }}"))
        .stanza("buffers { buffers-per-numa 65536 }")
        .commands(
            "create packet-generator interface pg0
             create packet-generator interface pg1
             set interface state pg0 up
             set interface state pg1 up
             set interface ip address pg0 10.0.0.1/16
             set interface ip address pg1 192.0.2.1/24
             set ip neighbor pg1 192.0.2.2 02:00:00:00:00:02
             nat44 plugin enable sessions 1024
             nat44 add address 192.0.2.100-192.0.2.163
             set interface nat44 in pg0 out pg1",
        );
    let stream = |worker| {
        format!(
            "packet-generator new {{ name s{worker} limit {EACH} size 60-60 interface pg0 \
             worker {worker} node ethernet-input data {{ IP4: 0200.0000.0001 -> 02fe.0000.0000 \
             UDP: 10.0.{worker}.1 - 10.0.{worker}.250 -> 192.0.2.2 UDP: 1000 -> 53 \
             incrementing 18 }} }}"
        )
    };
    let streams: String = (0..WORKERS).map(|worker| stream(worker) + "\n").collect();
    config.commands(&streams)
}

/// Sums a field of all ways from worker to worker.
fn handed(router: &Router, field: &str) -> Result<u64> {
    let shown = router.json("show handoff")?;
    let rows = shown.as_array().context("a list of ways")?;
    Ok(rows.iter().filter_map(|row| row[field].as_u64()).sum())
}

lab_test! {
    /// All hand to all, interfaces come and go meanwhile, and all of them end.
    fn sixty_four_workers_hand_over_delete_and_stop() {
        let ns = Netns::new("workers")?;
        let router = Router::start(&ns, &translating())?;
        let mac = router.mac("pg0")?;
        ensure!(mac.to_string().starts_with("02:fe"), "{mac}");
        router.cli("packet-generator enable-stream")?;
        wait_until_seen(thalweg_testkit::WAIT_LIMIT, "all packets to leave", || {
            let sent = router.interface_counter("pg1", "tx_packets");
            let lost = handed(&router, "drops");
            match (sent, lost) {
                (Ok(sent), Ok(lost)) if sent + lost == WORKERS * EACH => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })?;
        let (packets, lost) = (handed(&router, "packets")?, handed(&router, "drops")?);
        // Each worker has a 64th of the flows of its own.
        let all = WORKERS * EACH;
        ensure!(packets + lost > all * 9 / 10, "{packets} of {all} handed over");
        ensure!(lost < all / 10, "{lost} of {all} lost between workers");
        router.await_rest()?;
        // Interfaces come and go while packets are under way.
        router.cli("packet-generator delete all")
            .or_else(|_| router.cli("packet-generator disable-stream"))?;
        for n in 0..20 {
            router.cli(&format!("create sub-interfaces pg1 {}", 100 + n))?;
            router.cli(&format!("delete sub-interface pg1.{}", 100 + n))?;
        }
        router.cli("nat44 plugin disable")?;
        let began = Instant::now();
        router.stop_busy()?;
        ensure!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        Ok(())
    }
}
