//! `show ip fib`: routes and what they resolve to.

use crate::fib_text::{self, Detail};
use crate::prefixes::Prefixes;
use crate::{Ip4, cli_args};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::task::Poll;
use thalweg_cli::{Align, Args, CliError, Command, Outcome, Output, Table, pieces};
use thalweg_graph::Control;
use thalweg_tables::Ipv4Prefix;

/// `show ip fib [table <id>] …`
pub struct ShowIpFib;

/// The command.
pub static COMMAND: ShowIpFib = ShowIpFib;

/// Maximum number of routes listed without `all`: some megabytes of text.
const LIMIT: usize = 10_000;
/// Routes per element of the JSON list.
const DOCUMENT: usize = 1000;

impl Command<Control> for ShowIpFib {
    fn path(&self) -> &'static str {
        "show ip fib"
    }

    fn usage(&self) -> &'static str {
        "[table <id>] [<address> | <prefix> | summary | all] [detail]"
    }

    fn help(&self) -> &'static str {
        "Show IPv4 routes and their forwarding objects\n\
         An address shows its longest match, a prefix its exact match, both in detail.\n\
         `summary' counts routes by prefix length. Without arguments, the first 10000 routes of each\n\
         table are listed; `all' lists every one."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let request = Request::parse(args)?;
        let tables = match request.table {
            Some(id) => vec![cli_args::known_table(c, id)?],
            None => c.state::<Ip4>().borrow().table_ids(),
        };
        match request.selection {
            Selection::Route(prefix) => one(c, &tables, out, prefix).map(|()| Outcome::Done),
            Selection::Lookup(addr) => lookup(c, &tables, out, addr).map(|()| Outcome::Done),
            Selection::Summary => {
                summary(c, &tables, out);
                Ok(Outcome::Done)
            }
            Selection::List { all } => {
                let limit = if all { usize::MAX } else { LIMIT };
                let mut list = Lister { tables, at: None, limit, detail: request.detail };
                Ok(pieces(c, out, move |c, out| list.go(c, out)))
            }
        }
    }
}

/// Routes to show.
enum Selection {
    List { all: bool },
    Summary,
    Route(Ipv4Prefix),
    Lookup(Ipv4Addr),
}

struct Request {
    table: Option<u32>,
    selection: Selection,
    detail: Detail,
}

impl Request {
    fn parse(args: &mut Args<'_>) -> Result<Request, CliError> {
        let mut r = Request {
            table: None,
            selection: Selection::List { all: false },
            detail: Detail::Brief,
        };
        while !args.is_empty() {
            match args.one_of(&["table", "summary", "all", "detail"])? {
                Some("table") => r.table = Some(cli_args::table_arg(args)?),
                Some("summary") => r.selection = Selection::Summary,
                Some("all") => r.selection = Selection::List { all: true },
                Some(_) => r.detail = Detail::Full,
                None => {
                    let expected = "an address or prefix such as 192.0.2.1 or 192.0.2.0/24, \
                                    `table', `summary', `all' or `detail'";
                    r.selection = match args.maybe(|a| a.ipv4_prefix("prefix")) {
                        Some(p) => Selection::Route(cli_args::masked(p)?),
                        None => match args.maybe(|a| a.ipv4("address")) {
                            Some(addr) => Selection::Lookup(addr),
                            None => return Err(args.bad("route", expected)),
                        },
                    };
                }
            }
        }
        Ok(r)
    }
}

/// Heading of a table, and its beginning as JSON.
fn heading(c: &Control, table: u32) -> String {
    let ip4 = c.state::<Ip4>();
    let ip4 = ip4.borrow();
    fib_text::heading(&ip4, table)
}

fn one(c: &Control, tables: &[u32], out: &mut Output, prefix: Ipv4Prefix) -> Result<(), CliError> {
    let find = |ip4: &Ip4, id| ip4.route(id, prefix);
    if found(c, tables, out, find) {
        return Ok(());
    }
    let ip4 = c.state::<Ip4>();
    let ip4 = ip4.borrow();
    let shorter = (0..prefix.len()).rev().filter_map(|l| Ipv4Prefix::new(prefix.addr(), l).ok());
    let cover = shorter.into_iter().find_map(|p| tables.iter().find_map(|id| ip4.route(*id, p)));
    let hint = cover.map_or_else(String::new, |v| format!("; {} covers it", v.prefix));
    let table = tables.first().filter(|_| tables.len() == 1);
    let place = table.map_or_else(String::new, |id| format!(" in table {id}"));
    Err(CliError::with_code(format_args!("no route {prefix}{place}{hint}"), -6))
}

fn lookup(c: &Control, tables: &[u32], out: &mut Output, addr: Ipv4Addr) -> Result<(), CliError> {
    match found(c, tables, out, |ip4, id| ip4.lookup(id, addr)) {
        true => Ok(()),
        false => Err(CliError::with_code(format_args!("no route to {addr}"), -6)),
    }
}

/// Shows the route that `find` returns in each table; returns false if there is none.
fn found(
    c: &Control,
    tables: &[u32],
    out: &mut Output,
    find: impl Fn(&Ip4, u32) -> Option<crate::RouteView>,
) -> bool {
    let mut json = Vec::new();
    for id in tables {
        let view = find(&c.state::<Ip4>().borrow(), *id);
        let Some(view) = view else { continue };
        out.line(heading(c, *id));
        out.text(&fib_text::route(c, *id, &view, Detail::Full));
        json.push(json!({ "table": id, "routes": [fib_text::route_json(c, *id, &view)] }));
    }
    let any = !json.is_empty();
    out.json(Value::Array(json));
    any
}

fn summary(c: &Control, tables: &[u32], out: &mut Output) {
    let mut json = Vec::new();
    for id in tables {
        out.line(heading(c, *id));
        let counts = c.state::<Ip4>().borrow().counts_by_length(*id);
        let mut text = Table::new().gap(0).column("Prefix length", Align::Right, 20).column(
            "Count",
            Align::Right,
            16,
        );
        let mut lengths = Vec::new();
        for (len, n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            text.row([len, *n]);
            lengths.push(json!({ "length": len, "count": n }));
        }
        write!(out, "{text}");
        let routes: usize = counts.iter().sum();
        json.push(json!({ "table": id, "routes": routes, "lengths": lengths }));
    }
    out.json(Value::Array(json));
}

/// Lists tables route by route, so that a million of them neither fill memory nor block the main
/// thread.
struct Lister {
    tables: Vec<u32>,
    /// Table being listed.
    at: Option<Listed>,
    limit: usize,
    detail: Detail,
}

struct Listed {
    table: u32,
    prefixes: Prefixes,
    done: usize,
    json: Vec<Value>,
}

impl Lister {
    /// Lists one route, or searches for it; returns false at the end.
    fn go(&mut self, c: &Control, out: &mut Output) -> bool {
        let Some(at) = &mut self.at else {
            if self.tables.is_empty() {
                out.end_elements();
                return false;
            }
            let table = self.tables.remove(0);
            out.line(heading(c, table));
            let prefixes = Prefixes::new(table);
            self.at = Some(Listed { table, prefixes, done: 0, json: Vec::new() });
            return true;
        };
        let ip4 = c.state::<Ip4>();
        let ip4 = ip4.borrow();
        let next = if at.done < self.limit { at.prefixes.next(&ip4) } else { Poll::Ready(None) };
        let Poll::Ready(next) = next else { return true };
        // It may have been deleted since.
        if let Some(view) = next.and_then(|prefix| ip4.route(at.table, prefix)) {
            match out.wants_json() {
                true => at.json.push(fib_text::route_json(c, at.table, &view)),
                false => out.text(&fib_text::route(c, at.table, &view, self.detail)),
            }
        }
        at.done += usize::from(next.is_some());
        let more = if next.is_none() { at.prefixes.left() } else { 0 };
        if next.is_none() || at.json.len() == DOCUMENT {
            let routes = std::mem::take(&mut at.json);
            out.element(json!({ "table": at.table, "routes": routes, "left_out": more }));
        }
        if more > 0 {
            out.line(format_args!(
                "... {more} more routes: `show ip fib all' lists, `summary' counts them"
            ));
        }
        if next.is_none() {
            self.at = None;
        }
        true
    }
}
