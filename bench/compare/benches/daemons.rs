//! Full routes by real routing daemons: the time until the router forwards by all of them, and how
//! long it is away as a link fails and as router and daemon restart.
//!
//! `thalweg demo bgp` is the experiment; this reads what it measured. 100,000 routes of each
//! provider, a million with `--full`. Prints tables in Markdown; `--json FILE` writes the same as
//! JSON. Needs root or user namespaces, BIRD, FRRouting, and the program: `cargo build --release
//! --bins`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use thalweg_bench_common::{Args, Cell, Column, Report, Table};

const QUICK: u32 = 100_000;
const FULL: u32 = 1_000_000;
/// Daemons at the router, by the demonstration's words.
const DAEMONS: [&str; 2] = ["bird", "frr"];

/// Runs the demonstration; returns what it measured, also if a claim of it failed.
fn measure(program: &Path, daemon: &str, routes: u32) -> Result<Value> {
    let file = tempfile::NamedTempFile::new()?;
    let output = Command::new(program)
        .args(["demo", "bgp", "--plain", "--daemon", daemon, "--routes", &routes.to_string()])
        .arg("--json")
        .arg(file.path())
        .output()
        .with_context(|| format!("run {}", program.display()))?;
    let text = std::fs::read_to_string(file.path())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!text.is_empty(), "the demonstration with {daemon} ended early\n{said}");
    serde_json::from_str(&text).context("the demonstration's results")
}

/// A figure in milliseconds, by its place, as seconds.
fn seconds(measured: &Value, place: &str) -> Option<f64> {
    measured.pointer(place)?.as_f64().map(|ms| ms / 1000.0)
}

/// Time until the router has all routes, and how much of it is the router's.
fn filling(table: &mut Table, daemon: &str, measured: &Value) {
    let routes = measured["routes"].as_f64().unwrap_or(f64::NAN);
    let (filled, behind) = (seconds(measured, "/filled_ms"), seconds(measured, "/behind_ms"));
    let number = |value: Option<f64>, digits| value.map_or(Cell::None, |v| Cell::Number(v, digits));
    let most = 3.0;
    table.row(vec![
        daemon.into(),
        Cell::Number(routes, 0),
        number(filled, 1),
        number(filled.map(|s| routes / s), 0),
        number(behind, 2),
        Cell::Guide(format!("≤ {most}"), behind.is_some_and(|s| s <= most)),
    ]);
}

/// Time without forwarding at each event.
fn outages(table: &mut Table, daemon: &str, measured: &Value) {
    for (what, place) in [
        ("the link to the better provider fails", "failure"),
        ("the link is repaired", "repair"),
        ("the router is killed and starts again", "router_restart"),
        ("the daemon is killed and starts again", "daemon_restart"),
    ] {
        let figure = |name: &str| seconds(measured, &format!("/{place}/{name}"));
        let lost = measured[place]["lost"].as_f64().unwrap_or(f64::NAN);
        let number = |value: Option<f64>| value.map_or(Cell::None, |v| Cell::Number(v, 2));
        // A router that starts reads no changes but the whole table.
        let (kernel, router) = match place {
            "router_restart" => (None, None),
            _ => (figure("kernel_done_ms"), figure("router_done_ms")),
        };
        table.row(vec![
            daemon.into(),
            what.into(),
            Cell::Number(lost, 0),
            number(figure("first_back_ms")),
            number(figure("last_back_ms")),
            number(kernel),
            number(router.zip(kernel).map(|(router, kernel)| router - kernel)),
        ]);
    }
}

fn main() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    let program = thalweg_smoke::thalweg()?;
    let routes = if args.full { FULL } else { QUICK };
    let mut report = Report::start("daemons", "Full routes by routing daemons");
    report.about(
        "Two providers, BIRD and FRRouting, announce the same routes to a daemon at the router's \
         twins (`thalweg demo bgp`). A stream of 10,000 packets/s goes to 50 of the destinations.",
    );
    let mut filled = Table::new(
        "Routes until all forward",
        vec![
            Column::text("daemon at the router"),
            Column::values("routes", ""),
            Column::values("all forward after", "s"),
            Column::values("rate", "routes/s"),
            Column::values("router behind the kernel's last route", "s"),
            Column::values("guide", ""),
        ],
    );
    filled.note("From the daemons' start. The last but one column is what the router adds.");
    let mut away = Table::new(
        "Forwarding away",
        vec![
            Column::text("daemon at the router"),
            Column::text("event"),
            Column::values("packets lost", ""),
            Column::values("first destination back after", "s"),
            Column::values("last destination back after", "s"),
            Column::values("the daemon's last change after", "s"),
            Column::values("router behind it", "s"),
        ],
    );
    for daemon in DAEMONS {
        let measured = measure(&program, daemon, routes)?;
        let name = measured["daemon"].as_str().unwrap_or(daemon).to_owned();
        filling(&mut filled, &name, &measured);
        outages(&mut away, &name, &measured);
    }
    report.table(filled);
    report.table(away);
    report.finish(&args)
}
