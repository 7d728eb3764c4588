//! The first packet after a pause: how long it takes from the veth on which it comes to the one by
//! which it leaves, through Thalweg and through the kernel's forwarding, in turns; and what Thalweg
//! costs while nothing comes.
//!
//! `--json FILE` writes a report, `--full` takes twice as many rounds, and words such as `10 ms` or
//! `idle` select. Needs root or user namespaces, and the program: `cargo build
//! --release --bins`.

use std::time::Duration;

use anyhow::Result;
use thalweg_bench_common::{Args, Cell, Column, Report, Series, Table};
use thalweg_bench_compare::{Latencies, Lone};
use thalweg_smoke::{ActivityClock, Delay, Router, host_pair};
use thalweg_testkit::{Lab, LabOptions, Middle, Privilege, enter_user_namespace, require_tools};

const IDLE_SPAN: Duration = Duration::from_secs(5);

/// A pause before each packet, and packets per round.
struct Pause {
    name: &'static str,
    length: Duration,
    packets: u64,
}

const PAUSES: [Pause; 4] = [
    Pause { name: "1 ms", length: Duration::from_millis(1), packets: 600 },
    Pause { name: "10 ms", length: Duration::from_millis(10), packets: 100 },
    Pause { name: "100 ms", length: Duration::from_millis(100), packets: 15 },
    Pause { name: "1 s", length: Duration::from_secs(1), packets: 3 },
];

/// The forwarder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Kernel,
    Adaptive,
    Polling,
}

const ALL: [Who; 3] = [Who::Kernel, Who::Adaptive, Who::Polling];

impl Who {
    fn name(self) -> &'static str {
        match self {
            Who::Kernel => "kernel",
            Who::Adaptive => "Thalweg",
            Who::Polling => "Thalweg, polling",
        }
    }
}

struct Labs {
    kernel: Lone,
    ours: Lone,
    router: Router,
    // Namespaces live as long as these.
    _kernel: Lab,
    _ours: Lab,
}

impl Labs {
    fn start() -> Result<Labs> {
        let (address, mac) = Lone::sink();
        let build = |middle| Lab::build(&LabOptions { middle, ..LabOptions::default() });
        let kernel = build(Middle::KernelRouter)?;
        let dev = kernel.right.router_dev;
        kernel.router.ip(&format!("neighbour add {address} lladdr {mac} dev {dev}"))?;
        let ours = build(Middle::Router)?;
        let neighbour = format!("set ip neighbor host-eth1 {address} {mac} static");
        let router = Router::start(&ours.router, &host_pair().commands(&neighbour))?;
        Ok(Labs {
            kernel: Lone::new(&kernel, kernel.left.router_mac)?,
            ours: Lone::new(&ours, &router.mac("host-eth0")?.to_string())?,
            router,
            _kernel: kernel,
            _ours: ours,
        })
    }

    fn set_mode(&self, mode: &str) -> Result<()> {
        for interface in ["host-eth0", "host-eth1"] {
            self.router.cli(&format!("set interface rx-mode {interface} {mode}"))?;
        }
        Ok(())
    }

    /// One turn, after a few packets at the same pace that are not counted.
    fn turn(&mut self, who: Who, pause: &Pause) -> Result<Latencies> {
        if who == Who::Polling {
            self.set_mode("polling")?;
        }
        let lone = if who == Who::Kernel { &mut self.kernel } else { &mut self.ours };
        lone.send(pause.length, (pause.packets / 10).clamp(1, 20))?;
        let got = lone.send(pause.length, pause.packets)?;
        if who == Who::Polling {
            self.set_mode("adaptive")?;
        }
        Ok(got)
    }

    /// The share of a processor, and sleeps a second, while nothing comes.
    fn idle(&self) -> Result<(f64, f64)> {
        self.router.await_rest()?;
        let clock = ActivityClock::start(self.router.pid())?;
        Delay::measure_over(IDLE_SPAN);
        clock.rates()
    }
}

/// All rounds of one pause, by forwarder.
#[derive(Default)]
struct Measured {
    all: [Latencies; 3],
    medians: [Series; 3],
}

fn measure(labs: &mut Labs, args: &Args) -> Result<[Measured; PAUSES.len()]> {
    let mut measured: [Measured; PAUSES.len()] = Default::default();
    let rounds = args.rounds();
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        for (pause, m) in PAUSES.iter().zip(&mut measured).filter(|(p, _)| args.wants(p.name)) {
            for (i, who) in ALL.into_iter().enumerate() {
                let got = labs.turn(who, pause)?;
                m.medians[i].push(got.quantile(0.5).unwrap_or(0.0));
                m.all[i].add(&got);
            }
        }
    }
    Ok(measured)
}

fn latencies(measured: &[Measured]) -> Table {
    let columns = vec![
        Column::text("pause"),
        Column::text("forwarder"),
        Column::values("packets", ""),
        Column::values("50 %", "µs"),
        Column::values("90 %", "µs"),
        Column::values("99 %", "µs"),
        Column::values("99.9 %", "µs"),
        Column::values("longest", "µs"),
        Column::values("median of rounds", "µs"),
        Column::values("over the kernel's", ""),
    ];
    let mut table = Table::new("First packet after a pause", columns);
    let us = |value: Option<f64>| value.map_or(Cell::None, |us| Cell::Number(us, 1));
    for (pause, m) in PAUSES.iter().zip(measured).filter(|(_, m)| m.all[0].count() > 0) {
        for (i, who) in ALL.into_iter().enumerate() {
            let all = &m.all[i];
            let mut row = vec![pause.name.into(), who.name().into()];
            row.push(Cell::Number(all.count() as f64, 0));
            row.extend([0.5, 0.9, 0.99, 0.999].map(|part| us(all.quantile(part))));
            row.push(us(all.most()));
            row.push(Cell::series(&m.medians[i], 1));
            row.push(match who {
                Who::Kernel => Cell::None,
                _ => Cell::ratio(m.medians[i].over(&m.medians[0])),
            });
            table.row(row);
        }
    }
    table.note(
        "From the stamp that the kernel gives a packet as it comes to the forwarder's veth to the one \
         it gives it behind the other veth. Pauses vary by half of their length. A quantile is shown \
         where at least one packet in the run is expected beyond it; the ratio is of the medians of \
         a round.",
    );
    table
}

fn idle(labs: &Labs) -> Result<Table> {
    let columns = vec![
        Column::text("rx-mode"),
        Column::values("of a processor", "%"),
        Column::values("sleeps", "per s"),
        Column::text("guide"),
    ];
    let mut table = Table::new("Thalweg while nothing comes", columns);
    for (mode, guide) in [("adaptive", true), ("polling", false)] {
        labs.set_mode(mode)?;
        let (busy, sleeps) = labs.idle()?;
        let guide = if guide { Cell::Guide("< 1 %".into(), busy < 1.0) } else { Cell::None };
        table.row(vec![mode.into(), Cell::Number(busy, 3), Cell::Number(sleeps, 1), guide]);
    }
    labs.set_mode("adaptive")?;
    table.note(format!("All threads of the process, over {} s.", IDLE_SPAN.as_secs()));
    Ok(table)
}

fn main() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    if Privilege::check() == Privilege::UserNamespaces {
        enter_user_namespace()?;
    }
    require_tools(&["ip", "setpriv"])?;
    thalweg_smoke::thalweg()?;
    let mut report = Report::start("first_packet", "The first packet after a pause");
    report.about(
        "UDP packets of 64 bytes, one at a time, over two host interfaces on virtual Ethernet, in \
         turns with the kernel's forwarding. Threads run where the scheduler puts them.",
    );
    let mut labs = Labs::start()?;
    let measured = measure(&mut labs, &args)?;
    report.table(latencies(&measured));
    if args.wants("idle") {
        report.table(idle(&labs)?);
    }
    labs.router.stop()?;
    report.finish(&args)
}
