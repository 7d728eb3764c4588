//! Limits of this machine's processor: DPDK's testpmd between null devices, next to the router
//! between its packet generator's interfaces.
//!
//! `--json FILE` writes a report. For the rows of testpmd: `scripts/setup.sh bench`.

use std::time::Duration;

use anyhow::Result;
use thalweg_bench_common::{Args, Cell, Column, Machine, Report, Series, Table};
use thalweg_bench_compare::Testpmd;
use thalweg_bench_pg::Router;
use thalweg_bench_pg::paths::Case;

const WINDOW: Duration = Duration::from_millis(500);
const WARM_UP: Duration = Duration::from_millis(150);
/// Ways of testpmd to forward, from nothing at all to the swap of addresses and ports.
const MODES: [&str; 4] = ["io", "mac", "macswap", "5tswap"];

struct Ours {
    name: &'static str,
    router: Router,
    mpps: Series,
    without_input: Series,
}

impl Ours {
    fn start(case: Case, core: usize) -> Ours {
        let mut router = Router::start(&[Some(core)]);
        case.set_up(&mut router);
        Ours {
            name: case.name(),
            router,
            mpps: Series::default(),
            without_input: Series::default(),
        }
    }

    fn round(&mut self) {
        self.router.cli("packet-generator enable-stream");
        self.router.wait(WARM_UP);
        let window = self.router.measure(WINDOW);
        // Its worker sleeps while others are measured.
        self.router.settle();
        self.mpps.push(window.tx_pps / 1e6);
        self.without_input.push(window.clocks_without_input());
    }
}

/// Clocks that a processor has per packet at each of these rates.
fn clocks(mpps: &Series, mhz: f64) -> Cell {
    let values: Vec<f64> = mpps.values().iter().map(|rate| mhz / rate).collect();
    Cell::Spread(thalweg_bench_common::Spread::of(&values), 1)
}

fn measure(
    rounds: usize,
    ours: &mut [Ours],
    theirs: &mut Option<Testpmd>,
    rates: &mut [Series],
) -> Result<()> {
    for round in 0..rounds {
        eprintln!("calibration: round {} of {rounds}", round + 1);
        ours.iter_mut().for_each(Ours::round);
        let Some(testpmd) = theirs else { continue };
        for (mode, rate) in MODES.iter().zip(rates.iter_mut()) {
            rate.push(testpmd.rate(mode, WARM_UP, WINDOW)? / 1e6);
        }
    }
    Ok(())
}

fn ratios(ours: &[Ours], rates: &[Series]) -> Table {
    let mut columns = vec![Column::text("Thalweg over")];
    columns.extend(ours.iter().map(|o| Column::values(o.name, "")));
    let mut table = Table::new("Rates: Thalweg and testpmd", columns);
    for (mode, rate) in MODES.iter().zip(rates).filter(|(_, rate)| !rate.values().is_empty()) {
        let mut row = vec![format!("testpmd, {mode}").into()];
        row.extend(ours.iter().map(|o| Cell::ratio(o.mpps.over(rate))));
        table.row(row);
    }
    table
}

fn main() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    let machine = Machine::here();
    let core = machine.cores - 1;
    let mut report = Report::start("calibration", "Thalweg and DPDK's testpmd, on one processor");
    report.about(format!(
        "64-byte packets that no device brings; all take turns in each of {} rounds.",
        args.rounds()
    ));
    let (mut theirs, missing) = match Testpmd::start(0, core) {
        Ok(testpmd) => (Some(testpmd), None),
        Err(error) => (None, Some(format!("not available: {error:#}").replace('\n', " "))),
    };
    let mut ours: Vec<Ours> =
        [Case::L2, Case::OneFlow, Case::HostRoutes].map(|case| Ours::start(case, core)).into();
    let mut rates: Vec<Series> = MODES.iter().map(|_| Series::default()).collect();
    measure(args.rounds(), &mut ours, &mut theirs, &mut rates)?;

    let mut table = Table::new(
        "testpmd and Thalweg",
        vec![
            Column::text("who"),
            Column::values("rate", "Mpps"),
            Column::values("clocks/packet", ""),
            Column::values("without the generator's input", "clocks/packet"),
        ],
    );
    for o in &ours {
        table.row(vec![
            format!("Thalweg, {}", o.name).into(),
            Cell::series(&o.mpps, 2),
            clocks(&o.mpps, machine.tsc_mhz),
            Cell::series(&o.without_input, 1),
        ]);
    }
    for (mode, rate) in MODES.iter().zip(&rates) {
        let mut row = vec![format!("testpmd, {mode}").into()];
        match &missing {
            Some(why) => row.push(Cell::Missing(why.clone())),
            None => row.extend([Cell::series(rate, 2), clocks(rate, machine.tsc_mhz)]),
        }
        table.row(row);
    }
    table.note(
        "Clocks per packet are the processor's clocks divided by its packets, input and all. testpmd \
         has pages of 4 KiB and 16,384 buffers; its null device takes a buffer per packet and writes \
         nothing into it, io touches no packet, mac and macswap write Ethernet addresses, and so does \
         5tswap, which finds no IP header in what that device makes.",
    );
    report.table(table);
    report.table(ratios(&ours, &rates));
    ours.into_iter().for_each(|o| o.router.stop());
    if let Some(testpmd) = theirs {
        testpmd.stop()?;
    }
    report.finish(&args)
}
