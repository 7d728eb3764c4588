//! A million sessions: duration of main thread steps and worker loops while they are listed, saved,
//! restored and flushed.
//!
//! `cargo bench -p thalweg-feat-nat44 --bench sessions`

#![allow(clippy::expect_used, clippy::panic)]

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use thalweg_fib::TableId;

use thalweg_cli::{Command, Format, Outcome, Output, Task, TaskPoll};
use thalweg_device::testing::Lab;
use thalweg_feat_nat44::saved::{self, Header, Saved};
use thalweg_feat_nat44::session::Class;
use thalweg_feat_nat44::view;
use thalweg_graph::{Control, LoopCounts, clock};
use thalweg_wire::nat::tuple::Tuple;

const COUNT: u32 = 1_000_000;
/// Sessions per external address, all TCP.
const OF_ADDRESS: u32 = 62_500;
/// Sessions per host.
const OF_HOST: u32 = 10;

/// Session `n`, with its host and external endpoint.
fn session(n: u32) -> Saved {
    let host = Ipv4Addr::from(0x0a01_0000 + n / OF_HOST);
    let inside = Tuple {
        src: host,
        sport: 5000 + (n % OF_HOST) as u16,
        dst: Ipv4Addr::new(198, 51, 100, 7),
        dport: 443,
        protocol: 6,
        table: 0,
    };
    let dst = Ipv4Addr::from(0xc000_0201 + n / OF_ADDRESS);
    let dport = 1024 + (n % OF_ADDRESS) as u16;
    let outside = Tuple { dst, dport, ..inside.reversed() };
    Saved {
        inside: inside.key(),
        outside: outside.key(),
        packets: 9,
        bytes: 900,
        left: 7_000_000,
        age: 1000,
        state: 35,
        class: Class::TcpEstablished,
        marks: 0,
        has_port: true,
        has_twice_port: false,
        grown: true,
    }
}

/// A file with all sessions.
fn file() -> Vec<u8> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut header = Header {
        count: u64::from(COUNT),
        at: since.map_or(0, |d| d.as_millis() as u64),
        ..Header::default()
    };
    let mut records = Vec::with_capacity(COUNT as usize * saved::RECORD);
    for n in 0..COUNT {
        let record = session(n).record();
        header.sum = saved::sum(header.sum, &record);
        records.extend(record);
    }
    [&header.bytes()[..], &records].concat()
}

/// The longest step of the main thread, the longest loop of the worker and its loops above 100 µs,
/// and the total duration.
struct Took {
    step: Duration,
    own: u64,
    long: u64,
    all: Duration,
}

struct Watch {
    begin: Instant,
    loops: [LoopCounts; 2],
    step: Duration,
}

fn loops(lab: &Lab) -> [LoopCounts; 2] {
    let stats = lab.c.worker_stats(0);
    [stats.loops.read(), stats.long_loops.read()]
}

impl Watch {
    fn new(lab: &Lab) -> Watch {
        Watch { begin: Instant::now(), loops: loops(lab), step: Duration::ZERO }
    }

    fn step<R>(&mut self, f: impl FnOnce() -> R) -> R {
        let begin = Instant::now();
        let done = f();
        self.step = self.step.max(begin.elapsed());
        done
    }

    fn end(self, lab: &Lab) -> Took {
        let [all, own] = loops(lab);
        let (all, own) = (all.since(&self.loops[0]), own.since(&self.loops[1]));
        let longest = if own.count() == 0 { all.longest() } else { own.longest() };
        let long = own.longer_than((clock::hz() * 1e-4) as u64);
        Took { step: self.step, own: longest, long, all: self.begin.elapsed() }
    }
}

/// Runs a command as the main thread does, handling events and messages between steps.
fn command(lab: &mut Lab, name: &str, rest: &str, format: Format) -> Took {
    let found = thalweg_feat_nat44::FEATURE.all_commands().find(|c| c.path() == name);
    let found: &dyn Command<Control> = found.expect("a command");
    let mut out = Output::with_format(format);
    let mut watch = Watch::new(lab);
    let (mut length, mut last) = (0, String::new());
    let mut args = thalweg_cli::Args::parse(rest).expect("words");
    let done =
        watch.step(|| found.run(&mut lab.c, &mut args, &mut out)).expect("a command that starts");
    if let Outcome::Pending(mut task) = done {
        loop {
            let now = Instant::now();
            let poll = watch.step(|| Task::poll(&mut *task, &mut lab.c, now, &mut out));
            let text = out.take();
            length += text.len();
            if !text.is_empty() {
                last = text;
            }
            match poll {
                TaskPoll::Done => break,
                TaskPoll::Failed(e) => panic!("{name}: {e}"),
                _ => lab.c.run_once(Some(Duration::ZERO)),
            }
        }
    }
    if length < 1000 {
        println!("{name} {rest}: {}", last.trim());
    }
    watch.end(lab)
}

/// Lists the sessions of one host among all, as API dumps do.
fn of_a_host(lab: &mut Lab) -> Took {
    let filter = view::SessionFilter {
        host: Some(Ipv4Addr::new(10, 1, 200, 7)),
        table: Some(TableId(0)),
        ..view::SessionFilter::default()
    };
    let (mut watch, mut found, mut listing) = (Watch::new(lab), 0, view::Listing::new(filter));
    loop {
        match watch.step(|| listing.next(&mut lab.c)) {
            view::Next::Some(slice) => found += slice.sessions.len(),
            view::Next::Late => {}
            view::Next::End => break,
        }
    }
    assert_eq!(found, OF_HOST as usize, "sessions of a host");
    watch.end(lab)
}

fn ended(lab: &mut Lab) -> Took {
    let mut watch = Watch::new(lab);
    watch.step(|| lab.ok("clear nat44 sessions"));
    let end = Instant::now() + Duration::from_secs(60);
    while view::workers(&mut lab.c)[0].sessions > 0 {
        assert!(Instant::now() < end, "sessions do not end");
        std::thread::sleep(Duration::from_millis(1));
    }
    watch.end(lab)
}

fn main() {
    let mut lab = Lab::of(&thalweg_feat_nat44::FEATURE).buffers(4096).ip4(2..=4).start();
    lab.ok("nat44 plugin enable sessions 1000000\nnat44 add address 192.0.2.1 - 192.0.2.16");
    lab.c.sync();
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("sessions");
    std::fs::write(&path, file()).expect("a file");
    let (path, all) = (path.display().to_string(), format!("max {COUNT}"));
    println!(
        "what: longest step of main, longest loop of the worker, its loops above 100 µs, all of it"
    );
    report("nat44 restore", &command(&mut lab, "nat44 restore", &path, Format::Text));
    assert_eq!(view::workers(&mut lab.c)[0].sessions, COUNT);
    let show = "show nat44 sessions";
    report("show nat44 sessions, text", &command(&mut lab, show, &all, Format::Text));
    report("show nat44 sessions, JSON", &command(&mut lab, show, &all, Format::Json));
    report("nat44_user_session_v3_dump", &of_a_host(&mut lab));
    report("nat44 save", &command(&mut lab, "nat44 save", &path, Format::Text));
    report("clear nat44 sessions", &ended(&mut lab));
    lab.close();
}

fn report(what: &str, took: &Took) {
    println!(
        "{what}: {:.2} ms, {:.0} µs, {}, {:.2} s",
        took.step.as_secs_f64() * 1e3,
        took.own as f64 / clock::hz() * 1e6,
        took.long,
        took.all.as_secs_f64(),
    );
}
