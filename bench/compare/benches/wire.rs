//! Small packets and TCP through Thalweg, the kernel and Open vSwitch, on virtual Ethernet pairs.
//!
//! `--json FILE` writes a report. Needs root or user namespaces, the program (`cargo build
//! --release --bins`), and for the rows of Open vSwitch `scripts/setup.sh bench`.

use std::time::Duration;

use anyhow::Result;
use thalweg_bench_common::{Args, Cell, Column, Report, Series, Table};
use thalweg_bench_compare::{Forwarder, Path, Side};
use thalweg_testkit::{
    IperfOptions, Offloads, Privilege, enter_user_namespace, iperf3, require_tools,
};

const WARM_UP: Duration = Duration::from_millis(250);
const WINDOW: Duration = Duration::from_millis(1000);

/// Share of a processor that others may take during a measurement.
const DISTURBED: f64 = 0.1;

const SMALL: [(Path, Forwarder); 8] = [
    (Path::Layer2, Forwarder::Kernel),
    (Path::Layer2, Forwarder::Thalweg),
    (Path::Layer2, Forwarder::Ovs),
    (Path::Layer2, Forwarder::OvsAfxdp),
    (Path::Ipv4, Forwarder::Kernel),
    (Path::Ipv4, Forwarder::Thalweg),
    (Path::Ipv4, Forwarder::Ovs),
    (Path::Ipv4, Forwarder::OvsAfxdp),
];

const TCP: [(Path, Forwarder); 5] = [
    (Path::Layer2, Forwarder::Kernel),
    (Path::Layer2, Forwarder::Thalweg),
    (Path::Layer2, Forwarder::Ovs),
    (Path::Ipv4, Forwarder::Kernel),
    (Path::Ipv4, Forwarder::Thalweg),
];

/// A forwarder and what it did, or why it is not here.
struct Contestant<M> {
    path: Path,
    forwarder: Forwarder,
    side: Result<Side, String>,
    measured: M,
}

/// Packets per second.
#[derive(Default)]
struct Packets {
    offered: Series,
    delivered: Series,
    per_forwarder: Series,
    per_busy: Series,
    others: Series,
}

impl Packets {
    /// Measures once more, up to two times, if programs of others had more than [`DISTURBED`].
    fn round(&mut self, side: &Side) -> Result<()> {
        let mut got = side.flood(WARM_UP, WINDOW)?;
        for _ in 0..2 {
            if got.others <= DISTURBED {
                break;
            }
            eprintln!("disturbed: other programs had {:.0} % of a processor", 100.0 * got.others);
            let again = side.flood(WARM_UP, WINDOW)?;
            if again.others < got.others {
                got = again;
            }
        }
        self.offered.push(got.offered / 1e6);
        self.delivered.push(got.delivered / 1e6);
        self.per_forwarder.push(got.per_forwarder_second / 1e6);
        self.per_busy.push(got.per_busy_second / 1e6);
        self.others.push(got.others);
        Ok(())
    }
}

fn gather<M: Default>(
    wanted: &[(Path, Forwarder)],
    offloads: Offloads,
    args: &Args,
) -> Vec<Contestant<M>> {
    let selected = wanted.iter().filter(|(path, _)| args.wants(path.name()));
    selected
        .map(|&(path, forwarder)| Contestant {
            path,
            forwarder,
            side: Side::start(path, forwarder, offloads)
                .map_err(|error| format!("not available: {error:#}").replace('\n', " ")),
            measured: M::default(),
        })
        .collect()
}

/// Measures all of them in turns. One that fails is out, and says why.
fn rounds<M>(
    (what, rounds): (&str, usize),
    contestants: &mut [Contestant<M>],
    measure: impl Fn(&Side, &mut M) -> Result<()>,
) {
    for round in 0..rounds {
        eprintln!("{what}: round {} of {rounds}", round + 1);
        for c in contestants.iter_mut() {
            let Ok(side) = &c.side else { continue };
            if let Err(error) = measure(side, &mut c.measured) {
                eprintln!("{}, {}: {error:#}", c.path.name(), c.forwarder.name());
                c.side = Err(format!("failed: {error:#}").replace('\n', " "));
            }
        }
    }
}

fn finish<M>(contestants: Vec<Contestant<M>>) -> Result<()> {
    contestants.into_iter().filter_map(|c| c.side.ok()).try_for_each(Side::stop)
}

/// A row for each, or the reason why there is none.
fn rows<M>(table: &mut Table, contestants: &[Contestant<M>], cells: impl Fn(&M) -> Vec<Cell>) {
    for c in contestants {
        let mut row = vec![c.path.name().into(), c.forwarder.name().into()];
        match &c.side {
            Ok(_) => row.extend(cells(&c.measured)),
            Err(why) => row.push(Cell::Missing(why.clone())),
        }
        table.row(row);
    }
}

/// A column, and what of a measurement it is about.
type Judged<M> = (&'static str, fn(&M) -> &Series);

/// Ratios of this router over each of the others, in the same path.
fn ratios<M>(title: &str, contestants: &[Contestant<M>], columns: &[Judged<M>]) -> Table {
    let mut all = vec![Column::text("path"), Column::text("Thalweg over")];
    all.extend(columns.iter().map(|(name, _)| Column::values(name, "")));
    let mut table = Table::new(title, all);
    let there = || contestants.iter().filter(|c| c.side.is_ok());
    for ours in there().filter(|c| c.forwarder == Forwarder::Thalweg) {
        for other in there().filter(|c| c.path == ours.path && c.forwarder != ours.forwarder) {
            let mut row = vec![ours.path.name().into(), other.forwarder.name().into()];
            row.extend(columns.iter().map(|(_, series)| {
                Cell::ratio(series(&ours.measured).over(series(&other.measured)))
            }));
            table.row(row);
        }
    }
    table
}

fn small_packets(args: &Args, report: &mut Report) -> Result<()> {
    let mut all = gather::<Packets>(&SMALL, Offloads::OFF, args);
    if let Some(version) = all.iter().find_map(|c| c.side.as_ref().ok()?.version().ok()?) {
        report.about(format!("Open vSwitch is version {version}, datapath type netdev."));
    }
    rounds(("64-byte packets", args.rounds()), &mut all, |side, packets: &mut Packets| {
        packets.round(side)
    });
    let mut table = Table::new(
        "Packets of 64 bytes",
        vec![
            Column::text("path"),
            Column::text("forwarder"),
            Column::values("offered", "Mpps"),
            Column::values("delivered", "Mpps"),
            Column::values("per processor second of the forwarder", "million packets"),
            Column::values("per busy processor second of the machine", "million packets"),
        ],
    );
    rows(&mut table, &all, |m| {
        [&m.offered, &m.delivered, &m.per_forwarder, &m.per_busy]
            .map(|series| Cell::series(series, 3))
            .into()
    });
    table.note(
        "One flow of UDP, from a thread on the first processor that hands the kernel 64 packets a \
         call, to an interface that counts. What the kernel does with a packet until the first queue, it does on \
         the sender's processor: all of its bridging and routing, but only the way into the socket \
         for the others, which forward on the last processor. So the rates compare one processor \
         with two, and the packets per processor second say more.",
    );
    table.note(
        "The forwarder's time is that of its process, which includes the receiving side of what it \
         sends; for the kernel it is all time in software interrupts, which includes the sender's \
         transmission and both ends' reception. Threads that never sleep count as busy in full. The \
         machine's busy time includes the generator.",
    );
    let others = all.iter().flat_map(|c| c.measured.others.values()).fold(0.0, f64::max);
    table.note(format!(
        "Programs of others had up to {:.0} % of a processor in a window that counts; one with more \
         than {:.0} % was measured again, up to two times.",
        100.0 * others,
        100.0 * DISTURBED
    ));
    report.table(table);
    report.table(ratios(
        "Packets of 64 bytes: Thalweg and the others",
        &all,
        &[
            ("delivered", |m| &m.delivered),
            ("per processor second of the forwarder", |m| &m.per_forwarder),
            ("per busy processor second of the machine", |m| &m.per_busy),
        ],
    ));
    finish(all)
}

fn tcp(args: &Args, report: &mut Report) -> Result<()> {
    let mut all = gather::<Series>(&TCP, Offloads::ON, args);
    let options = IperfOptions { duration: Duration::from_secs(2), ..IperfOptions::default() };
    rounds(("TCP", args.rounds()), &mut all, |side, rates: &mut Series| {
        side.resume()?;
        let (left, right) = (&side.lab.left, &side.lab.right);
        let result = iperf3(&left.ns, &right.ns, right.addr, &options)?;
        rates.push(result.bits_per_s / 1e9);
        side.pause()
    });
    let mut table = Table::new(
        "TCP, offloads on",
        vec![Column::text("path"), Column::text("forwarder"), Column::values("rate", "Gbit/s")],
    );
    rows(&mut table, &all, |rates| vec![Cell::series(rates, 2)]);
    table.note(
        "iperf3, one connection, 2 s. Open vSwitch runs with userspace-tso-enable, as it could not \
         take segments of 64 KiB otherwise.",
    );
    report.table(table);
    report.table(ratios("TCP: Thalweg and the others", &all, &[("rate", |rates| rates)]));
    finish(all)
}

fn main() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    if Privilege::check() == Privilege::UserNamespaces {
        enter_user_namespace()?;
    }
    require_tools(&["ip", "bridge", "iperf3", "setpriv"])?;
    thalweg_smoke::thalweg()?;
    let mut report = Report::start("wire", "Virtual Ethernet: Thalweg, the kernel, Open vSwitch");
    report.about(format!(
        "All forwarders take turns in each of {} rounds; medians, with the least and the greatest. \
         Ratios are taken within rounds. Generator, forwarder and sink share the machine's processors.",
        args.rounds()
    ));
    small_packets(&args, &mut report)?;
    tcp(&args, &mut report)?;
    report.finish(&args)
}
