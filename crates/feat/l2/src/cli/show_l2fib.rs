//! `show l2fib`.

use crate::cli_support::{bridge_arg, failed};
use crate::{Address, L2, L2Error, Origin};
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;
use thalweg_wire::MacAddr;

/// The command.
pub static COMMAND: ShowL2fib = ShowL2fib;

/// The command's type.
pub struct ShowL2fib;

const WORDS: &[&str] = &["all", "verbose", "bd_id", "bd_index", "learn", "add"];

impl Command<Control> for ShowL2fib {
    fn path(&self) -> &'static str {
        "show l2fib"
    }
    fn usage(&self) -> &'static str {
        "[all|verbose] [bd_id <id>] [bd_index <index>] [learn|add]"
    }
    fn help(&self) -> &'static str {
        "Show the addresses that bridge domains know\n\
         How many there are; or all of them, those of one bridge domain, those that were learned or\n\
         those that were configured."
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let state = c.state::<L2>();
        let l2 = state.borrow();
        let all = l2.bridges();
        let (mut rows, mut bridge, mut learned) = (false, None, None);
        while let Some(word) = args.one_of(WORDS)? {
            rows = true;
            match word {
                "bd_id" => {
                    let id = bridge_arg(args)?;
                    all.get(id).ok_or(L2Error::NoBridge(id)).map_err(failed)?;
                    bridge = Some(id);
                }
                "bd_index" => {
                    let index = args.u16("index")?;
                    let found = all.list().find(|(_, d)| d.number == index);
                    let none =
                        || CliError::failed(format_args!("no bridge domain of index {index}"));
                    bridge = Some(found.ok_or_else(none)?.0);
                }
                "learn" => learned = Some(true),
                "add" => learned = Some(false),
                _ => {}
            }
        }
        args.end()?;
        let mut found = Vec::new();
        let mut from = Some(0);
        while let Some(at) = from {
            let (some, next) = all.addresses(at, 1 << 16);
            found.extend(some.into_iter().filter(|a| {
                bridge.is_none_or(|id| a.bridge == id)
                    && learned.is_none_or(|l| l == (a.origin == Origin::Learned))
            }));
            from = next;
        }
        found.sort_by_key(|a| (a.bridge, a.mac));
        let (total, of_them) = all.count();
        let counts = all.counts();
        out.json(json!({
            "total": total,
            "learned": of_them,
            "limit": all.limit(),
            "events": { "learned": counts.learned, "moved": counts.moved, "aged": counts.aged,
                        "refused": counts.refused },
            "addresses": found.iter().map(|a| as_json(c, a)).collect::<Vec<_>>(),
        }));
        if rows && !found.is_empty() {
            out.line(HEADING);
            for a in &found {
                let domain = all.get(a.bridge);
                let index = domain.map_or(0, |d| d.number);
                out.line(row(c, a, index, domain.is_some_and(|d| d.mac_age > 0)).trim_end());
            }
        }
        if total == 0 {
            out.line("no l2fib entries");
        } else {
            out.line(format_args!(
                "L2FIB total/learned entries: {total}/{of_them}  Last scan time: {:.4e}sec  \
                 Learn limit: {}",
                all.last_scan().as_secs_f64(),
                all.limit(),
            ));
        }
        Ok(Outcome::Done)
    }
    fn complete(&self, _: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        WORDS.iter().filter(|w| !before.contains(w)).map(ToString::to_string).collect()
    }
}

const HEADING: &str = "    Mac-Address     BD-Idx If-Idx BSN-ISN Age(min) static filter bvi         \
                       Interface-Name";

fn row(c: &Control, a: &Address, index: u16, ages: bool) -> String {
    let stays = matches!(a.origin, Origin::Static | Origin::Filter);
    let age = match a.origin {
        _ if stays => "no".into(),
        _ if ages => (a.age.as_secs() / 60).to_string(),
        _ => "-".to_owned(),
    };
    let star = |is: bool| if is { "*" } else { "-" };
    let filter = a.origin == Origin::Filter;
    let (port, name) = match a.port {
        u32::MAX => ("-1".into(), "N/A".into()),
        port => (port.to_string(), c.interface_name(port)),
    };
    format!(
        "{:^19} {index:^6} {port:^7}  0/0   {age:^8}{:^7}{:^7}{:^5}{name:^30}",
        MacAddr(a.mac).to_string(),
        star(stays),
        star(filter),
        "-",
    )
}

fn as_json(c: &Control, a: &Address) -> serde_json::Value {
    let origin = match a.origin {
        Origin::Learned => "learned",
        Origin::Static => "static",
        Origin::Filter => "filter",
        Origin::Added => "added",
    };
    let port = (a.port != u32::MAX).then(|| c.interface_name(a.port));
    json!({
        "bridge_domain": a.bridge,
        "mac": MacAddr(a.mac).to_string(),
        "interface": port,
        "origin": origin,
        "age_seconds": a.age.as_secs(),
    })
}
