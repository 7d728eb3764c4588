//! A million NAT44 sessions that a command ends while packets pass: how long it takes, and what the
//! worker's loops see of it.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use thalweg_bench_common::{Args, Loops, Report, Stalls};
use thalweg_bench_pg::paths::{self, PORTS, flow_packet, stream_of};
use thalweg_bench_pg::{Router, cores};
use thalweg_feat_nat44::view;

const COUNT: u32 = 1_000_000;
/// Flows that pass all the time: their sessions end with the others, and begin again.
const FLOWS: u32 = 1024;
/// Packets per loop. All of them may open a session at once, which takes up to 0.8 µs each while
/// memory is cold; with a frame of 256 that, and not expiry, would make the loop long.
const FRAME: u32 = 64;
const ROUNDS: usize = 10;
/// Time between two looks at their number.
const LOOK: Duration = Duration::from_millis(2);
/// The longest that anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The first packet of a flow, of one of 16 from a host inside.
fn packet(flow: u32) -> [u8; 64] {
    let host = Ipv4Addr::from_bits(0x0a40_0000 + flow / 16);
    let from = (host, 1024 + (flow % 16) as u16);
    flow_packet(from, (Ipv4Addr::new(48, 0, 0, 1), 443))
}

fn start(cpu: usize) -> Router {
    let mut r = Router::start(&[Some(cpu)]);
    r.cli(PORTS);
    paths::address(&mut r);
    r.cli(&format!(
        "ip route add 48.0.0.0/8 via 10.1.0.1 pg1
         nat44 plugin enable sessions {}
         nat44 add address 203.0.113.0 - 203.0.113.63
         set interface nat44 in pg0 out pg1",
        COUNT + COUNT / 8
    ));
    stream_of(&mut r, "all", 0, (0..COUNT).map(packet));
    stream_of(&mut r, "traffic", 0, (COUNT..COUNT + FLOWS).map(packet));
    // No session may be refused because there is no memory for it yet.
    r.cli(&format!("packet-generator configure all limit {COUNT} rate 2e6"));
    r.cli(&format!("packet-generator configure traffic maxframe {FRAME}"));
    r
}

/// Waits until there are as many sessions as `enough` says.
fn until(r: &mut Router, enough: impl Fn(u32) -> bool) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let sessions = view::workers(r.control())[0].sessions;
        if enough(sessions) {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{sessions} sessions");
        r.wait(LOOK);
    }
}

/// Takes all figures, and clears them.
fn clear(r: &mut Router) -> Result<(Loops, Duration)> {
    r.cli("packet-generator enable-stream all\npacket-generator enable-stream traffic");
    until(r, |n| n == COUNT + FLOWS)?;
    r.cli("packet-generator disable-stream all");
    r.wait(Duration::from_millis(200));
    let (begin, before) = (Instant::now(), Loops::so_far(r.control().worker_stats(0)));
    r.command("clear nat44 sessions");
    until(r, |n| n <= FLOWS)?;
    let (took, loops) = (begin.elapsed(), before.until_now(r.control().worker_stats(0)));
    r.cli("packet-generator disable-stream");
    Ok((loops, took))
}

fn main() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    let mut report = Report::start("sessions", "A million NAT44 sessions");
    report.about("One worker on a core of its own; the main thread has the other one.");
    let cpu = cores() - 1;
    let mut r = start(cpu);
    let mut memory = vec![1; COUNT as usize * 128 / size_of::<u64>()];
    let mut cleared = Stalls::on(cpu);
    for round in 0..ROUNDS {
        eprintln!("round {} of {ROUNDS}", round + 1);
        let went = clear(&mut r)?;
        cleared.round(went, Duration::ZERO, &mut memory);
    }
    r.stop();
    let mut table = Stalls::table("A million NAT44 sessions deleted at once");
    cleared.row(&mut table, "`clear nat44 sessions`");
    table.note(format!(
        "While packets of {FLOWS} sessions pass, {FRAME} in a loop, as fast as one worker takes them; these begin again. {}",
        Stalls::NOTE
    ));
    report.table(table);
    report.finish(&args)
}
