//! Routes through the binary API and through the command line, while a worker forwards: how many a
//! second, what is lost, and how long the worker's loops take.
//!
//! The router is the program itself (`cargo build --release --bins` makes it), with one worker on
//! the last core; clients share the first with all its other threads.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use thalweg_device::MacAddr;
use thalweg_feat_ip::TableId;

use anyhow::{Context, Result, ensure};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;
use thalweg_bench_common::{Args, Cell, Column, Report, Series, Table};
use thalweg_bench_control::api::{Client, Router};
use thalweg_bench_control::churn;
use thalweg_bench_control::steps::during;
use thalweg_feat_ip::{Path as Path4, add_route};
use thalweg_feat_neighbor::NeighborFlags;
use thalweg_graph::Control;
use thalweg_tables::Ipv4Prefix;
use thalweg_tables::lpm4::internet;

const ROUTES: usize = 1_000_000;
/// Routes of clients that wait for each answer, in a window.
const FEW: usize = 20_000;
/// Routes of a client that is slow as it is, in a window.
const FEWER: usize = 2_500;
const ROUNDS: usize = 5;
/// Windows with changes in a round, which set a million routes together if the client is fast. Long
/// loops come and go with the machine's moods: only many short windows, with as many in which
/// nothing changes between them, tell what is due to the changes.
const PARTS: usize = 4;
/// Routes in a window of a fast client.
const PART: usize = ROUTES / PARTS;
/// The method that begins with all routes there.
const DELETING: &str = "deleting";
/// Words that select methods.
const WORDS: [&str; 5] = ["pipelined", DELETING, "exec", "one", "papi"];
/// Routes of a very large document.
const LARGE: usize = 200_000;
/// Sub-interfaces of a very large document, and of each port.
const SUBS: usize = 60_000;
const VLANS: usize = 4000;
/// The question about it that has a goal.
const SAME: &str = "`config diff` with its file";
/// Number of times that each question about the main thread's steps is asked.
const TIMES: usize = 3;
/// A control window, before each with changes.
const CONTROL: Duration = Duration::from_millis(600);

/// Figures of a window.
#[derive(Clone, Copy, Default)]
struct Window {
    seconds: f64,
    /// Packets of the worker.
    forwarded: f64,
    dropped: f64,
    p999_us: f64,
    longest_us: f64,
    /// Loops over 100 µs, a second, that are so long because others had the worker's processor, and
    /// those that are by themselves.
    others: f64,
    own: f64,
    own_us: f64,
}

/// Keeps the first core as busy as changes do.
fn spin(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn numbers(watch: &mut Client) -> Result<[f64; 2]> {
    let books: Value = watch.json("show packet accounting")?;
    let sum = books["threads"].as_array().and_then(|t| t.last()).context("no books")?;
    let number = |key: &str| sum[key].as_f64().context("a number that is none");
    Ok([number("tx")?, number("dropped")?])
}

fn window(watch: &mut Client, work: impl FnOnce() -> Result<()>) -> Result<Window> {
    watch.cli("clear runtime")?;
    let (before, begin) = (numbers(watch)?, Instant::now());
    work()?;
    let seconds = begin.elapsed().as_secs_f64();
    let after = numbers(watch)?;
    let loops: Value = watch.json("show runtime loops")?;
    let us = |key: &str| loops[1][key].as_f64().unwrap_or(f64::NAN);
    Ok(Window {
        seconds,
        forwarded: after[0] - before[0],
        dropped: after[1] - before[1],
        p999_us: us("p999_us"),
        longest_us: us("max_us"),
        others: (us("over_100us") - us("own_over_100us")) / seconds,
        own: us("own_over_100us") / seconds,
        own_us: us("own_max_us"),
    })
}

/// A Python that has VPP's client, if it can be had.
fn python() -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/papi-venv.sh");
    let venv = Command::new(script).output().ok().filter(|venv| venv.status.success())?;
    Some(format!("{}/bin/python", String::from_utf8_lossy(&venv.stdout).trim()))
}

/// Sets routes from a number on by VPP's Python client, which says how long it took.
fn papi(router: &Router, python: &str, first: usize) -> Result<f64> {
    let json = router.dir().join("api");
    router.write_descriptions(&json)?;
    let out = Command::new(python)
        .args(["-c", PAPI, &json.display().to_string(), &router.socket().display().to_string()])
        .args([first, FEWER].map(|n| n.to_string()))
        .output()
        .context("run Python")?;
    ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Ok(String::from_utf8_lossy(&out.stdout).trim().parse()?)
}

const PAPI: &str = "
import ipaddress, sys, time
from vpp_papi import VPPApiClient
vpp = VPPApiClient(apidir=sys.argv[1], server_address=sys.argv[2])
vpp.connect('bench')
hop = {'sw_if_index': 0xffffffff, 'table_id': 0, 'rpf_id': 0, 'weight': 1, 'preference': 0, 'type': 2,
       'flags': 0, 'proto': 0, 'nh': {'address': {'ip4': '0.0.0.0'}, 'via_label': 0, 'obj_id': 0,
       'classify_table_index': 0}, 'n_labels': 0,
       'label_stack': [{'is_uniform': 0, 'label': 0, 'ttl': 0, 'exp': 0}] * 16}
first, count = map(int, sys.argv[3:5])
prefixes = [f'{ipaddress.IPv4Address(0x64400000 + first + n)}/32' for n in range(count)]
begin = time.perf_counter()
for prefix in prefixes:
    reply = vpp.api.ip_route_add_del(
        route={'table_id': 0, 'prefix': prefix, 'n_paths': 1, 'paths': [hop]})
    assert reply.retval == 0, reply
print(time.perf_counter() - begin)
vpp.disconnect()
";

/// Figures of windows with changes, compared with the control's.
#[derive(Default)]
struct Rows {
    rate: Series,
    busy: Shown,
    control: Shown,
}

/// Figures of several windows.
#[derive(Default)]
struct Shown {
    mpps: Series,
    p999_us: Series,
    longest_us: Series,
    others: Series,
    own: Series,
    own_us: Series,
    dropped: f64,
}

impl Shown {
    fn add(&mut self, w: Window) {
        self.mpps.push(w.forwarded / w.seconds / 1e6);
        self.p999_us.push(w.p999_us);
        self.longest_us.push(w.longest_us);
        self.others.push(w.others);
        self.own.push(w.own);
        self.own_us.push(w.own_us);
        self.dropped += w.dropped;
    }
}

impl Rows {
    fn row(&self, table: &mut Table, method: &str) {
        let (busy, control) = (&self.busy, &self.control);
        let more = busy.own.more_than(&control.own);
        table.row(vec![
            method.into(),
            Cell::series(&self.rate, 0),
            Cell::series(&busy.mpps, 2),
            Cell::series(&control.mpps, 2),
            Cell::Guide(format!("{} lost, none", busy.dropped), busy.dropped == 0.0),
            Cell::series(&busy.p999_us, 1),
            Cell::series(&control.p999_us, 1),
            Cell::series(&busy.longest_us, 1),
            Cell::series(&control.longest_us, 1),
            Cell::series(&busy.others, 1),
            Cell::series(&control.others, 1),
            Cell::series(&busy.own, 1),
            Cell::series(&control.own, 1),
            Cell::series(&busy.own_us, 1),
            Cell::series(&control.own_us, 1),
            Cell::Guide(format!("{more:.1}, none"), more.least <= 0.0),
        ]);
    }
}

/// Sets routes by a client, in one of a round's windows; how long that took, if not as long as the
/// window.
type Set<'a> = Box<dyn FnMut(&mut Client, usize) -> Result<Option<f64>> + 'a>;
/// Does something by a client.
type Act<'a> = Box<dyn FnMut(&mut Client) -> Result<()> + 'a>;

/// A way to set routes, and to undo what a round did.
struct Method<'a> {
    word: &'static str,
    name: &'static str,
    /// Number of routes in a window.
    routes: usize,
    set: Set<'a>,
    undo: Act<'a>,
}

fn methods<'a>(
    router: &'a Router,
    prefixes: &'a [Ipv4Prefix],
    exec: &'a [String],
    python: &'a str,
    ports: [u32; 2],
) -> [Method<'a>; 5] {
    let part = |n: usize| &prefixes[n * PART..][..PART];
    let delete = move |n: usize| -> Act<'a> {
        Box::new(move |client| client.routes(false, &prefixes[..n], ports))
    };
    [
        Method {
            word: "pipelined",
            name: "Rust client, many under method",
            routes: PART,
            set: Box::new(move |client, n| client.routes(true, part(n), ports).map(|()| None)),
            undo: delete(ROUTES),
        },
        Method {
            word: DELETING,
            name: "the same, deleting",
            routes: PART,
            set: Box::new(move |client, n| client.routes(false, part(n), ports).map(|()| None)),
            undo: Box::new(move |client| client.routes(true, prefixes, ports)),
        },
        Method {
            word: "exec",
            name: "`exec FILE` of the command line",
            routes: PART,
            set: Box::new(move |client, n| client.cli(&exec[n]).map(|_| None)),
            undo: delete(ROUTES),
        },
        Method {
            word: "one",
            name: "Rust client, one by one",
            routes: FEW,
            set: Box::new(move |client, n| {
                client.routes_in_turn(&prefixes[n * FEW..][..FEW], ports).map(|()| None)
            }),
            undo: delete(PARTS * FEW),
        },
        Method {
            word: "papi",
            name: "vpp_papi, one by one",
            routes: FEWER,
            set: Box::new(move |_, n| papi(router, python, n * FEWER).map(Some)),
            undo: Box::new(|client| {
                let all = PARTS * FEWER;
                client.cli(&format!("ip route del count {all} 100.64.0.0/32")).map(drop)
            }),
        },
    ]
}

fn measure(router: &Router, args: &Args) -> Result<Table> {
    let columns = [
        ("routes", "per s"),
        ("forwarded", "Mpps"),
        ("control", "Mpps"),
        ("", ""),
        ("loop, 99.9 %", "µs"),
        ("control", "µs"),
        ("longest loop", "µs"),
        ("control", "µs"),
        ("loops over 100 µs that others took", "per s"),
        ("control", "per s"),
        ("of its own", "per s"),
        ("control", "per s"),
        ("longest, own time", "µs"),
        ("control", "µs"),
        ("", ""),
    ];
    let column = |(name, unit)| match name {
        "" => Column::text("goal"),
        _ => Column::values(name, unit),
    };
    let columns = [Column::text("method")].into_iter().chain(columns.map(column)).collect();
    let mut table = Table::new("Routes while a worker forwards", columns);
    let (mut watch, mut client) = (router.client("watch")?, router.client("bench")?);
    let ports = [router.index(&mut client, "pg1")?, router.index(&mut client, "pg2")?];
    let prefixes = internet(ROUTES);
    let files: Vec<_> = prefixes.chunks(PART).map(churn::script).collect::<Result<_>>()?;
    let exec: Vec<_> = files.iter().map(|f| format!("exec {}", f.path().display())).collect();
    watch.cli(&churn::streams())?;
    watch.cli("packet-generator enable-stream")?;
    let python = python();
    for mut method in
        methods(router, &prefixes, &exec, python.as_deref().unwrap_or_default(), ports)
    {
        if !args.wants(method.word) {
            continue;
        }
        if method.word == "papi" && python.is_none() {
            table.note("vpp_papi cannot be had here.");
            continue;
        }
        let mut rows = Rows::default();
        let before = method.word == DELETING;
        for _ in 0..ROUNDS {
            if before {
                (method.undo)(&mut client)?;
            }
            for part in 0..PARTS {
                rows.control.add(window(&mut watch, || {
                    spin(CONTROL);
                    Ok(())
                })?);
                let mut took = None;
                let busy = window(&mut watch, || {
                    took = (method.set)(&mut client, part)?;
                    Ok(())
                })?;
                rows.rate.push(method.routes as f64 / took.unwrap_or(busy.seconds));
                rows.busy.add(busy);
            }
            if !before {
                (method.undo)(&mut client)?;
            }
        }
        rows.row(&mut table, method.name);
    }
    watch.cli("packet-generator disable-stream")?;
    Ok(table)
}

/// Routes of a document.
const DOCUMENT: usize = 100_000;
const NEIGHBOURS: usize = 50_000;
const LOOPBACKS: usize = 1000;
/// No step of the main thread may take longer, in ms.
const LONGEST_MS: f64 = 5.0;

/// A document with routes, and the same with each of them by the other next hop.
fn documents(dir: &Path, routes: usize) -> Result<[PathBuf; 2]> {
    let write = |name: &str, turn: usize| {
        let mut text = String::from(
            "interfaces:\n  pg1: {addresses: [10.1.0.254/24]}\n  pg2: {addresses: [10.2.0.254/24]}\n\
             thalweg:\n  ip-tables:\n    0:\n      routes:\n",
        );
        for (n, prefix) in internet(routes).iter().enumerate() {
            let side = 1 + (n + turn) % 2;
            writeln!(text, "        {prefix}: 10.{side}.0.1 pg{side}")?;
        }
        let path = dir.join(name);
        std::fs::write(&path, text)?;
        Ok::<_, anyhow::Error>(path)
    };
    Ok([write("one.yaml", 0)?, write("other.yaml", 1)?])
}

/// A client's question, and its outcome.
struct Asked {
    what: String,
    said: String,
    seconds: Series,
    own_ms: Series,
    wall_ms: Series,
}

/// A router that clients ask.
struct Answers {
    router: thalweg_bench_pg::Router,
    socket: PathBuf,
    asked: Vec<Asked>,
}

impl Answers {
    /// Makes a client ask once more.
    fn to(&mut self, what: &str, ask: Ask) -> Result<()> {
        eprintln!("{what}");
        let socket = self.socket.clone();
        let work = move || ask(&mut Client::connect(&socket, "steps")?);
        let (said, took) = during(self.router.control(), work)?;
        let at = match self.asked.iter().position(|a| a.what == what) {
            Some(at) => at,
            None => {
                let [seconds, own_ms, wall_ms] = <[Series; 3]>::default();
                let (what, said) = (what.to_owned(), said.clone());
                self.asked.push(Asked { what, said, seconds, own_ms, wall_ms });
                self.asked.len() - 1
            }
        };
        let asked = &mut self.asked[at];
        asked.said = said;
        asked.seconds.push(took.seconds);
        asked.own_ms.push(took.longest * 1e3);
        asked.wall_ms.push(took.longest_wall * 1e3);
        Ok(())
    }

    fn cli(&mut self, what: &str, line: &str) -> Result<()> {
        let line = line.to_owned();
        let ask =
            move |client: &mut Client| Ok(format!("{} lines", client.cli(&line)?.lines().count()));
        self.to(what, Box::new(ask))
    }

    fn dump(&mut self, what: &str, name: &'static str, fields: &[u8]) -> Result<()> {
        let fields = fields.to_vec();
        let ask = move |client: &mut Client| Ok(format!("{} details", client.dump(name, &fields)?));
        self.to(what, Box::new(ask))
    }

    fn table(&self) -> Table {
        let columns = [
            ("takes", "s"),
            ("longest step, processor time", "ms"),
            ("by the clock on the wall", "ms"),
        ];
        let columns = columns.map(|(name, unit)| Column::values(name, unit));
        let first = Column::text("what a client asks for");
        let columns = [first].into_iter().chain(columns).chain([Column::text("goal")]);
        let mut table = Table::new("Steps of the main thread", columns.collect());
        for asked in &self.asked {
            let own = asked.own_ms.spread().median;
            table.row(vec![
                format!("{}: {}", asked.what, asked.said).into(),
                Cell::series(&asked.seconds, 3),
                Cell::series(&asked.own_ms, 2),
                Cell::series(&asked.wall_ms, 2),
                Cell::Guide(format!("≤ {LONGEST_MS} ms"), own <= LONGEST_MS),
            ]);
        }
        table
    }
}

/// Long answers to clients: lists, plans, documents.
fn steps() -> Result<Table> {
    let mut router = thalweg_bench_pg::Router::on_last_core();
    let dir = tempfile::tempdir()?;
    let _server = thalweg_program_router::run::serve_api(router.control(), dir.path())?;
    router.cli("create packet-generator interface pg1\ncreate packet-generator interface pg2");
    let [one, other] = documents(dir.path(), DOCUMENT)?;
    let mut ask = Answers { router, socket: dir.path().join("api.sock"), asked: Vec::new() };
    for _ in 0..TIMES {
        for (verb, file) in [("plan", &one), ("apply", &one), ("plan", &other), ("apply", &other)] {
            let method = if file == &one { "from none" } else { "by another next hop" };
            let what = format!("`config {verb}`, 100,000 routes {method}");
            ask.cli(&what, &format!("config {verb} {}", file.display()))?;
        }
        ask.cli("`config dump`, 100,000 routes", "show configuration")?;
        ask.cli("`config dump | json`, 100,000 routes", "show configuration | json")?;
        ask.cli("`config plan | json`", &format!("config plan {} | json", one.display()))?;
        let flush = [&[0; 4][..], &[0; 65]].concat();
        ask.to("`ip_table_flush`, 100,000 routes", call("ip_table_flush_b9d2e09e", flush))?;
    }
    fill(&mut ask.router)?;
    let all = u32::MAX.to_be_bytes();
    for _ in 0..TIMES {
        ask.dump("`ip_route_dump`, a million", "ip_route_dump_b9d2e09e", &[0; 69])?;
        ask.cli("`show ip fib`, a million", "show ip fib")?;
        ask.cli("`show ip fib summary`, a million", "show ip fib summary")?;
        ask.cli("`show ip fib all`, a million", "show ip fib all")?;
        let of_all = [&all[..], &[0; 5]].concat();
        ask.dump("`sw_interface_dump`", "sw_interface_dump_aa610c27", &of_all)?;
        for line in [
            "show interface",
            "show interface | json",
            "show interface address",
            "show hardware-interfaces",
            "show ip neighbors",
        ] {
            ask.cli(&format!("`{line}`"), line)?;
        }
        ask.dump("`ip_neighbor_dump`", "ip_neighbor_dump_d817a484", &of_all[..5])?;
    }
    let table = ask.table();
    ask.router.stop();
    Ok(table)
}

/// A document with sub-interfaces, on ports with as many as there are VLANs.
fn sub_interfaces(dir: &Path) -> Result<PathBuf> {
    let mut text = String::from("interfaces:\n");
    for n in 0..SUBS {
        if n % VLANS == 0 {
            writeln!(text, "  pg{}:\n    sub-interfaces:", 10 + n / VLANS)?;
        }
        writeln!(text, "      {}: {{}}", 1 + n % VLANS)?;
    }
    let path = dir.join("subs.yaml");
    std::fs::write(&path, text)?;
    Ok(path)
}

/// Measures what clients ask for about a very large document, from none and back.
fn large(title: &str, document: impl FnOnce(&Path) -> Result<PathBuf>) -> Result<Table> {
    let mut router = thalweg_bench_pg::Router::on_last_core();
    let dir = tempfile::tempdir()?;
    let _server = thalweg_program_router::run::serve_api(router.control(), dir.path())?;
    let one = document(dir.path())?;
    let none = dir.path().join("none.yaml");
    std::fs::write(&none, "interfaces: {}\n")?;
    let mut ask = Answers { router, socket: dir.path().join("api.sock"), asked: Vec::new() };
    for _ in 0..TIMES {
        ask.cli("`config apply`", &format!("config apply {}", one.display()))?;
        ask.cli(SAME, &format!("config diff {}", one.display()))?;
        ask.cli("`config diff` with an empty file", &format!("config diff {}", none.display()))?;
        ask.cli("`config dump`", "show configuration")?;
        ask.cli("`config apply` of an empty file", &format!("config apply {}", none.display()))?;
    }
    let columns = [
        Column::text("what a client asks for"),
        Column::values("takes", "s"),
        Column::values("longest step of the main thread", "ms"),
        Column::text("goal"),
    ];
    let mut table = Table::new(title, columns.into());
    for asked in &ask.asked {
        let goal = match asked.what == SAME {
            true => Cell::Guide("≤ 2 s".into(), asked.seconds.spread().median <= 2.0),
            false => Cell::None,
        };
        let what = format!("{}: {}", asked.what, asked.said);
        let [seconds, step] = [(&asked.seconds, 3), (&asked.own_ms, 2)];
        let cells = [seconds, step].map(|(series, digits)| Cell::series(series, digits));
        table.row([what.into()].into_iter().chain(cells).chain([goal]).collect());
    }
    ask.router.stop();
    Ok(table)
}

/// A client's action; it returns words on the outcome.
type Ask = Box<dyn FnOnce(&mut Client) -> Result<String> + Send>;

/// A request that one reply answers.
fn call(name: &'static str, fields: Vec<u8>) -> Ask {
    Box::new(move |client| Ok(format!("retval {}", client.call(name, &fields)?)))
}

/// A million routes, neighbours, interfaces.
fn fill(r: &mut thalweg_bench_pg::Router) -> Result<()> {
    let c = r.control();
    let port = |c: &Control, name: &str| thalweg_device::interface::find(c, name);
    let ports = [port(c, "pg1")?, port(c, "pg2")?];
    for (n, prefix) in internet(ROUTES).iter().enumerate() {
        let via = Path4::via([10, 1 + (n % 2) as u8, 0, 1], Some(ports[n % 2]));
        add_route(c, TableId(0), *prefix, vec![via], false)?;
    }
    r.cli("set interface ip address pg1 172.16.0.1/12");
    let c = r.control();
    for n in 0..NEIGHBOURS {
        let [_, a, b, d] = (n as u32).to_be_bytes();
        let (ip, mac) = ([172, 17 + a, b, d].into(), [2, 0, 0, a, b, d]);
        thalweg_feat_neighbor::set(c, ports[0], ip, MacAddr(mac), NeighborFlags::default())?;
    }
    for _ in 0..LOOPBACKS {
        r.command("create loopback interface");
    }
    // Lets the consequences of the set-up pass before anything is measured.
    r.wait(Duration::from_secs(1));
    Ok(())
}

/// Leaves the last core to the worker.
fn stay_on_first_core() -> Result<()> {
    let mut first = CpuSet::new();
    first.set(0);
    sched_setaffinity(None, &first).context("stay on the first core")
}

fn main() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    let mut report = Report::start("api", "The binary API");
    report.about(
        "Four streams of 64-byte packets to 20,256 destinations, as fast as one worker takes them; \
         each window with changes follows one of control, in which nothing changes and the first \
         core is as busy. The worker has the last core, all else the first. Medians of twenty windows (of three \
         times for what is asked of the main thread), with the least and the greatest. The last column is how \
         many more loops a second took over 100 µs of the worker's own time in windows with changes than in \
         the control windows before them: the mean, with the interval in which it lies with 95 % certainty.",
    );
    if args.wants("steps") {
        report.table(steps()?);
    }
    if args.wants("documents") {
        let routes = |dir: &Path| documents(dir, LARGE).map(|[one, _]| one);
        report.table(large("A document of 200,000 routes", routes)?);
        report.table(large("A document of 60,000 sub-interfaces", sub_interfaces)?);
    }
    if WORDS.iter().any(|word| args.wants(word)) {
        let router = Router::start()?;
        stay_on_first_core()?;
        router.client("setup")?.cli(churn::PORTS)?;
        let table = measure(&router, &args)?;
        report.table(table);
        router.stop()?;
    }
    report.finish(&args)
}
