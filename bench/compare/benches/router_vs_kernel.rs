//! Two namespaces joined by Thalweg, and two joined by the kernel's own forwarding, measured in
//! turns: round trips at three paces, TCP with and without offloads, processor time when idle.
//!
//! Prints a table in Markdown; `--json FILE` writes the same as JSON. Needs root or user
//! namespaces, and the program: `cargo build --release --bins`.

use std::time::Duration;

use anyhow::{Context, Result};
use thalweg_bench_common::{Apart, Args, Cell, Column, Report, Rounds, Spread, Table};
use thalweg_smoke::{CpuClock, Delay, Router, host_pair, host_pair_with};
use thalweg_testkit::{
    IperfOptions, Lab, LabOptions, Middle, Offloads, PingOptions, Privilege, enter_user_namespace,
    iperf3, ping, require_tools,
};

const IDLE_SPAN: Duration = Duration::from_secs(5);

/// A pace of pings.
struct Pace {
    name: &'static str,
    interval: Duration,
    count: u32,
}

const PACES: &[Pace] = &[
    Pace { name: "1 s", interval: Duration::from_secs(1), count: 10 },
    Pace { name: "10 ms", interval: Duration::from_millis(10), count: 100 },
    Pace { name: "0.5 ms", interval: Duration::from_micros(500), count: 2000 },
];

/// A line of the table.
struct Line {
    what: String,
    unit: &'static str,
    ours: Spread,
    kernel: Option<Spread>,
    ratio: Option<Result<Spread, Apart>>,
    guide: Option<(&'static str, bool)>,
}

impl Line {
    fn compared(what: String, unit: &'static str, rounds: &Rounds) -> Line {
        Line {
            what,
            unit,
            ours: rounds.ours.spread(),
            kernel: Some(rounds.kernel.spread()),
            ratio: Some(rounds.ratio()),
            guide: None,
        }
    }

    fn guided(mut self, text: &'static str, holds: bool) -> Line {
        self.guide = Some((text, holds));
        self
    }

    fn cells(self) -> Vec<Cell> {
        vec![
            self.what.into(),
            self.unit.into(),
            Cell::Spread(self.ours, 2),
            self.kernel.map_or(Cell::None, |kernel| Cell::Spread(kernel, 2)),
            self.ratio.map_or(Cell::None, Cell::ratio),
            self.guide.map_or(Cell::None, |(text, holds)| Cell::Guide(text.into(), holds)),
        ]
    }
}

fn at_most(ratio: Result<Spread, Apart>, limit: f64) -> bool {
    ratio.is_ok_and(|ratio| ratio.median <= limit)
}

fn lab(middle: Middle, offloads: Offloads) -> Result<Lab> {
    Lab::build(&LabOptions { middle, offloads, ..LabOptions::default() })
}

fn rtts(lab: &Lab, pace: &Pace) -> Result<(f64, f64)> {
    let options =
        PingOptions { count: pace.count, interval: pace.interval, ..PingOptions::default() };
    let result = ping(&lab.left.ns, lab.right.addr, &options)?;
    result.all_answered()?;
    let of = |percent| result.percentile_us(percent).context("ping tells no times");
    Ok((of(50.0)?, of(99.0)?))
}

fn round_trips(ours: &Lab, kernel: &Lab, rounds: usize, how: &str) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for pace in PACES {
        let (mut medians, mut tails) = (Rounds::default(), Rounds::default());
        // Ten seconds of pings are one round.
        for _ in 0..if pace.interval < Duration::from_secs(1) { rounds } else { 1 } {
            let (theirs, own) = (rtts(kernel, pace)?, rtts(ours, pace)?);
            medians.push(own.0, theirs.0);
            tails.push(own.1, theirs.1);
        }
        let holds = at_most(medians.ratio(), 1.3);
        let what = format!("{how}ping every {}, median", pace.name);
        lines.push(Line::compared(what, "µs", &medians).guided("≤ 1.3 ×", holds));
        let what = format!("{how}ping every {}, 99 %", pace.name);
        lines.push(Line::compared(what, "µs", &tails));
    }
    Ok(lines)
}

/// A worker that never sleeps, for those who have a processor to spare.
fn polling(router: &Router, ours: &Lab, kernel: &Lab, rounds: usize) -> Result<Vec<Line>> {
    let set = |mode: &str| -> Result<()> {
        for interface in ["host-eth0", "host-eth1"] {
            router.cli(&format!("set interface rx-mode {interface} {mode}"))?;
        }
        Ok(())
    };
    set("polling")?;
    let lines = round_trips(ours, kernel, rounds, "polling: ")?;
    set("adaptive")?;
    Ok(lines)
}

fn tcp(ours: &Lab, kernel: &Lab, count: usize, what: &str) -> Result<Line> {
    let options = IperfOptions { duration: Duration::from_secs(2), ..IperfOptions::default() };
    let mut rounds = Rounds::default();
    for _ in 0..count {
        let rate = |lab: &Lab| -> Result<f64> {
            let result = iperf3(&lab.left.ns, &lab.right.ns, lab.right.addr, &options)?;
            Ok(result.bits_per_s / 1e9)
        };
        let theirs = rate(kernel)?;
        rounds.push(rate(ours)?, theirs);
    }
    let holds = rounds.ratio().is_ok_and(|ratio| ratio.median >= 0.8);
    Ok(Line::compared(format!("TCP, {what}"), "Gbit/s", &rounds).guided("≥ 0.8 ×", holds))
}

fn idle(router: &Router, what: &str) -> Result<Line> {
    router.await_rest()?;
    let clock = CpuClock::start(router.pid())?;
    Delay::measure_over(IDLE_SPAN);
    let ours = Spread::of(&[clock.percent()?]);
    let guide = Some(("< 1", ours.median < 1.0));
    let what = format!("idle, {what}");
    Ok(Line { what, unit: "% of a processor", ours, kernel: None, ratio: None, guide })
}

/// TPACKET_V3 hands over a part-filled block after 1 ms: what it costs a ping.
fn version_3(kernel: &Lab, rounds: usize) -> Result<Vec<Line>> {
    let ours = lab(Middle::Router, Offloads::ON)?;
    let router = Router::start(&ours.router, &host_pair_with("v3"))?;
    ours.ping_all()?;
    let (mut medians, mut tails) = (Rounds::default(), Rounds::default());
    let pace = &PACES[1];
    for _ in 0..rounds {
        let (theirs, own) = (rtts(kernel, pace)?, rtts(&ours, pace)?);
        medians.push(own.0, theirs.0);
        tails.push(own.1, theirs.1);
    }
    let holds = tails.ours.spread().median <= 1200.0;
    let lines = vec![
        Line::compared("v3: ping every 10 ms, median".into(), "µs", &medians),
        Line::compared("v3: ping every 10 ms, 99 %".into(), "µs", &tails)
            .guided("≤ 1200 µs", holds),
        tcp(&ours, kernel, rounds, "v3, offloads on")?,
        idle(&router, "v3")?,
    ];
    router.stop()?;
    Ok(lines)
}

fn measure(rounds: usize) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (offloads, name) in [(Offloads::ON, "offloads on"), (Offloads::OFF, "offloads off")] {
        let kernel = lab(Middle::KernelRouter, offloads)?;
        let ours = lab(Middle::Router, offloads)?;
        let router = Router::start(&ours.router, &host_pair())?;
        kernel.ping_all()?;
        ours.ping_all()?;
        if offloads == Offloads::ON {
            lines.extend(round_trips(&ours, &kernel, rounds, "")?);
            lines.extend(polling(&router, &ours, &kernel, rounds)?);
        }
        lines.push(tcp(&ours, &kernel, rounds, name)?);
        if offloads == Offloads::ON {
            lines.push(idle(&router, "v2")?);
            router.stop()?;
            lines.extend(version_3(&kernel, rounds)?);
        } else {
            router.stop()?;
        }
    }
    Ok(lines)
}

fn main() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    if Privilege::check() == Privilege::UserNamespaces {
        enter_user_namespace()?;
    }
    require_tools(&["ip", "ping", "iperf3", "setpriv"])?;
    thalweg_smoke::thalweg()?;
    let mut report = Report::start("router_vs_kernel", "Thalweg and the kernel's forwarding");
    report.about(format!(
        "Medians of up to {} rounds taken in turns, with the least and the greatest.",
        args.rounds()
    ));
    let columns = vec![
        Column::text("what"),
        Column::text("unit"),
        Column::values("thalweg", ""),
        Column::values("kernel", ""),
        Column::values("ratio", ""),
        Column::values("guide", ""),
    ];
    let mut table = Table::new("Round trips, TCP, processor time when idle", columns);
    measure(args.rounds())?.into_iter().for_each(|line| table.row(line.cells()));
    report.table(table);
    report.finish(&args)
}
