//! `show l2fib`.

use crate::api_types::Watchers;
use crate::bridges::Bridges;
use crate::cli_support::{bridge_arg, failed};
use crate::{Address, L2, L2Error, Origin};
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, pieces};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;
use thalweg_tables::{Sorted, Sorter};
use thalweg_wire::MacAddr;

/// The command.
pub static COMMAND: ShowL2fib = ShowL2fib;

/// The command's type.
pub struct ShowL2fib;

const WORDS: &[&str] = &["all", "verbose", "bd_id", "bd_index", "learn", "add", "raw"];

impl Command<Control> for ShowL2fib {
    fn path(&self) -> &'static str {
        "show l2fib"
    }
    fn usage(&self) -> &'static str {
        "[all|verbose] [bd_id <id>] [bd_index <index>] [learn|add] [raw]"
    }
    fn help(&self) -> &'static str {
        "Show the MAC addresses of bridge domains\n\
         By default their number; or all entries, those of a bridge domain, learned ones or\n\
         configured ones. `raw' adds the whole table as workers read it: number, key (bridge\n\
         domain's index and MAC address) and value (port, flags and number) of each entry."
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let list = Query::parse(c, args)?;
        let (mut stage, mut at) = (Stage::Gather(Sorter::new()), 0);
        Ok(pieces(c, out, move |c, out| {
            let state = c.state::<L2>();
            let l2 = state.borrow();
            match &mut stage {
                Stage::Gather(_) if !list.rows && !out.wants_json() => {
                    tail(c, l2.bridges(), out);
                    false
                }
                Stage::Gather(sorter) => {
                    let (some, next) = l2.bridges().addresses(at, AT_ONCE);
                    let wanted = some.iter().filter(|a| list.matches(a));
                    wanted.for_each(|a| sorter.push((a.bridge, a.mac)));
                    if let Some(next) = next {
                        at = next;
                    } else {
                        list.head(l2.bridges(), sorter.is_empty(), out);
                        stage = Stage::Print(std::mem::take(sorter).sorted());
                    }
                    true
                }
                Stage::Print(sorted) => {
                    let Some((bridge, mac)) = sorted.next() else {
                        tail(c, l2.bridges(), out);
                        if list.raw && !out.wants_json() {
                            out.line("Raw Hash Table:");
                            stage = Stage::Raw(0);
                            return true;
                        }
                        return false;
                    };
                    if let Some(a) = l2.bridges().address(bridge, mac) {
                        show_entry(c, l2.bridges(), &a, out);
                    }
                    true
                }
                Stage::Raw(from) => {
                    let (some, next) = l2.bridges().words(*from, AT_ONCE);
                    for (entry, key, value) in some {
                        let (bridge, mac) = (key.bridge(), MacAddr(key.mac()));
                        let line = format!("  {entry:>8}: key {bridge}/{mac} value {value:016x}");
                        out.line(line);
                    }
                    *from = next.unwrap_or(0);
                    next.is_some()
                }
            }
        }))
    }
    fn complete(&self, _: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        WORDS.iter().filter(|w| !before.contains(w)).map(ToString::to_string).collect()
    }
}

/// Table entries visited per step.
const AT_ONCE: u32 = 256;

/// Selection of entries.
#[derive(Default)]
struct Query {
    rows: bool,
    bridge: Option<u32>,
    learned: Option<bool>,
    raw: bool,
}

/// Progress of a listing.
enum Stage {
    /// Collecting the entries.
    Gather(Sorter<(u32, MacAddr)>),
    /// Printing the entries in order.
    Print(Sorted<(u32, MacAddr)>),
    /// Printing them as the table holds them, from this number on.
    Raw(u32),
}

impl Query {
    fn parse(c: &Control, args: &mut Args<'_>) -> Result<Query, CliError> {
        let state = c.state::<L2>();
        let l2 = state.borrow();
        let all = l2.bridges();
        let mut list = Query::default();
        while let Some(word) = args.one_of(WORDS)? {
            list.rows = true;
            match word {
                "bd_id" => {
                    let id = bridge_arg(args)?;
                    all.get(id).ok_or(L2Error::NoBridge(id)).map_err(failed)?;
                    list.bridge = Some(id);
                }
                "bd_index" => {
                    let index = args.u16("index")?;
                    let found = all.list().find(|(_, d)| d.number == index);
                    let none =
                        || CliError::failed(format_args!("no bridge domain with index {index}"));
                    list.bridge = Some(found.ok_or_else(none)?.0);
                }
                "learn" => list.learned = Some(true),
                "add" => list.learned = Some(false),
                "raw" => list.raw = true,
                _ => {}
            }
        }
        args.end()?;
        Ok(list)
    }

    fn matches(&self, a: &Address) -> bool {
        self.bridge.is_none_or(|id| a.bridge == id)
            && self.learned.is_none_or(|l| l == (a.origin == Origin::Learned))
    }

    fn head(&self, all: &Bridges, none: bool, out: &mut Output) {
        let ((total, learned), counts) = (all.count(), all.counts());
        let events = json!({
            "learned": counts.learned, "moved": counts.moved, "aged": counts.aged,
            "refused": counts.refused, "untold": counts.untold,
        });
        let numbers = [
            ("total", json!(total)),
            ("learned", json!(learned)),
            ("limit", json!(all.limit())),
            ("events", events),
        ];
        let object = numbers.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        out.begin_elements(&object, "addresses");
        if self.rows && !none {
            out.line(HEADING);
        }
    }
}

fn show_entry(c: &Control, all: &Bridges, a: &Address, out: &mut Output) {
    if out.wants_json() {
        return out.element(as_json(c, a));
    }
    let domain = all.get(a.bridge);
    let index = domain.map_or(0, |d| d.number);
    out.line(row(c, a, index, domain.is_some_and(|d| d.mac_age > 0)).trim_end());
}

fn tail(c: &Control, all: &Bridges, out: &mut Output) {
    out.end_elements();
    let (total, learned) = all.count();
    match total {
        0 => out.line("no l2fib entries"),
        _ => out.line(format_args!(
            "L2FIB total/learned entries: {total}/{learned}  Last scan time: {:.4e}sec  Learn \
             limit: {}",
            all.last_scan().as_secs_f64(),
            all.limit(),
        )),
    }
    let watchers = c.state::<Watchers>();
    let watchers = watchers.borrow();
    for (pid, max) in watchers.clients() {
        out.line(format_args!(
            "L2MAC events client PID: {pid}  Delay: {:.2e}sec  Max macs in event: {max}",
            watchers.interval(),
        ));
    }
}

const HEADING: &str = "    MacAddr-Address     BD-Idx If-Idx BSN-ISN Age(min) static filter bvi         \
                       Interface-Name";

fn row(c: &Control, a: &Address, index: u16, ages: bool) -> String {
    let stays = matches!(a.origin, Origin::Static | Origin::Filter | Origin::Bvi);
    let age = match a.origin {
        _ if stays => "no".into(),
        _ if ages => (a.age.as_secs() / 60).to_string(),
        _ => "-".to_owned(),
    };
    let star = |is: bool| if is { "*" } else { "-" };
    let filter = a.origin == Origin::Filter;
    let (port, name) = match a.port {
        SwIfIndex::MAX => ("-1".into(), "N/A".into()),
        port => (port.to_string(), c.interface_name(port)),
    };
    format!(
        "{:^19} {index:^6} {port:^7}  0/0   {age:^8}{:^7}{:^7}{:^5}{name:^30}",
        a.mac.to_string(),
        star(stays),
        star(filter),
        star(a.origin == Origin::Bvi),
    )
}

fn as_json(c: &Control, a: &Address) -> serde_json::Value {
    let origin = match a.origin {
        Origin::Learned => "learned",
        Origin::Static => "static",
        Origin::Filter => "filter",
        Origin::Added => "added",
        Origin::Bvi => "bvi",
    };
    let port = (a.port != SwIfIndex::MAX).then(|| c.interface_name(a.port));
    json!({
        "bridge_domain": a.bridge,
        "mac": a.mac.to_string(),
        "interface": port,
        "origin": origin,
        "age_seconds": a.age.as_secs(),
    })
}
