//! `show ip fib`: routes and what they resolve to.

use crate::family::{Version, version_text};
use crate::fib_text::{self, Detail};
use crate::prefixes::Prefixes;
use crate::{Ip, RouteView, cli_args};
use serde_json::{Value, json};
use std::marker::PhantomData;
use std::task::Poll;
use thalweg_cli::{Align, Args, CliError, Command, Outcome, Output, Table, pieces};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_tables::{Address, Prefix};

/// `show ip fib [table <id>] …`, and the same for another version.
pub struct ShowIpFib<A>(pub PhantomData<fn(A)>);

/// The command.
pub static COMMAND: ShowIpFib<u32> = ShowIpFib(PhantomData);

/// Maximum number of routes listed without `all`: some megabytes of text.
const LIMIT: usize = 10_000;
/// Routes per element of the JSON list.
const DOCUMENT: usize = 1000;

impl<A: Address> Command<Control> for ShowIpFib<A> {
    fn path(&self) -> &'static str {
        version_text!(A: "show ", WORD, " fib")
    }

    fn usage(&self) -> &'static str {
        "[table <id>] [<address> | <prefix> | summary | all] [detail]"
    }

    fn help(&self) -> &'static str {
        version_text!(A: "Show ", NAME, " routes and their forwarding objects\n\
                     An address shows its longest match, a prefix its exact match, both in detail.\n\
                     `summary' counts routes by prefix length. Without arguments, the first 10000 \
                     routes of each\ntable are listed; `all' lists every one.")
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let request = Request::<A>::parse(args)?;
        let tables = match request.table {
            Some(id) => vec![cli_args::known_table::<A>(c, id)?],
            None => c.state::<Ip<A>>().borrow().table_ids(),
        };
        match request.selection {
            Selection::Route(prefix) => one(c, &tables, out, prefix).map(|()| Outcome::Done),
            Selection::Lookup(addr) => lookup(c, &tables, out, addr).map(|()| Outcome::Done),
            Selection::Summary => {
                summary::<A>(c, &tables, out);
                Ok(Outcome::Done)
            }
            Selection::List { all } => {
                let limit = if all { usize::MAX } else { LIMIT };
                let mut list = Lister::<A> { tables, at: None, limit, detail: request.detail };
                Ok(pieces(c, out, move |c, out| list.go(c, out)))
            }
        }
    }
}

/// Routes to show.
enum Selection<A> {
    List { all: bool },
    Summary,
    Route(Prefix<A>),
    Lookup(A),
}

struct Request<A> {
    table: Option<TableId>,
    selection: Selection<A>,
    detail: Detail,
}

impl<A: Address> Request<A> {
    fn parse(args: &mut Args<'_>) -> Result<Request<A>, CliError> {
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
                    r.selection = match args.maybe(prefix) {
                        Some(p) => Selection::Route(p),
                        None => Selection::Lookup(address(args)?),
                    };
                }
            }
        }
        Ok(r)
    }
}

fn prefix<A: Address>(args: &mut Args<'_>) -> Result<Prefix<A>, CliError> {
    let (ip, len) = args.ip_prefix("prefix")?;
    let addr = A::from_ip(ip).ok_or_else(|| args.bad("prefix", A::FAMILY))?;
    Prefix::new(addr, len).map_err(CliError::failed)
}

fn address<A: Address>(args: &mut Args<'_>) -> Result<A, CliError> {
    let expected = match Version::of::<A>() {
        Version::V4 => {
            "an address or prefix such as 192.0.2.1 or 192.0.2.0/24, `table', `summary', `all' or \
             `detail'"
        }
        Version::V6 => {
            "an address or prefix such as 2001:db8::1 or 2001:db8::/32, `table', `summary', `all' \
             or `detail'"
        }
    };
    args.with("route", expected, |word| A::from_ip(word.parse().ok()?))
}

fn heading<A: Address>(c: &Control, table: TableId) -> String {
    fib_text::heading(&c.state::<Ip<A>>().borrow(), table)
}

fn one<A: Address>(
    c: &Control,
    tables: &[TableId],
    out: &mut Output,
    prefix: Prefix<A>,
) -> Result<(), CliError> {
    if found(c, tables, out, |ip: &Ip<A>, id| ip.route(TableId(id), prefix)) {
        return Ok(());
    }
    let ip = c.state::<Ip<A>>();
    let ip = ip.borrow();
    let shorter = (0..prefix.len()).rev().filter_map(|l| Prefix::new(prefix.addr(), l).ok());
    let cover = shorter.into_iter().find_map(|p| tables.iter().find_map(|id| ip.route(*id, p)));
    let hint = cover.map_or_else(String::new, |v| format!("; {} covers it", v.prefix));
    let table = tables.first().filter(|_| tables.len() == 1);
    let place = table.map_or_else(String::new, |id| format!(" in table {id}"));
    Err(CliError::with_code(format_args!("no route {prefix}{place}{hint}"), -6))
}

fn lookup<A: Address>(
    c: &Control,
    tables: &[TableId],
    out: &mut Output,
    addr: A,
) -> Result<(), CliError> {
    match found(c, tables, out, |ip: &Ip<A>, id| ip.lookup(TableId(id), addr)) {
        true => Ok(()),
        false => Err(CliError::with_code(format_args!("no route to {}", addr.to_ip()), -6)),
    }
}

/// Shows the route that `find` returns in each table; returns false if there is none.
fn found<A: Address>(
    c: &Control,
    tables: &[TableId],
    out: &mut Output,
    find: impl Fn(&Ip<A>, u32) -> Option<RouteView<A>>,
) -> bool {
    let mut json = Vec::new();
    for id in tables {
        let view = find(&c.state::<Ip<A>>().borrow(), id.get());
        let Some(view) = view else { continue };
        out.line(heading::<A>(c, *id));
        out.text(&fib_text::route(c, *id, &view, Detail::Full));
        json.push(json!({ "table": id.0, "routes": [fib_text::route_json(c, *id, &view)] }));
    }
    let any = !json.is_empty();
    out.json(Value::Array(json));
    any
}

fn summary<A: Address>(c: &Control, tables: &[TableId], out: &mut Output) {
    let mut json = Vec::new();
    for id in tables {
        out.line(heading::<A>(c, *id));
        let counts = c.state::<Ip<A>>().borrow().counts_by_length(*id);
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
        json.push(json!({ "table": id.0, "routes": routes, "lengths": lengths }));
    }
    out.json(Value::Array(json));
}

/// Lists tables route by route, so that a million of them neither fill memory nor block the main
/// thread.
struct Lister<A> {
    tables: Vec<TableId>,
    /// Table being listed.
    at: Option<Listed<A>>,
    limit: usize,
    detail: Detail,
}

struct Listed<A> {
    table: TableId,
    prefixes: Prefixes<A>,
    done: usize,
    json: Vec<Value>,
}

impl<A: Address> Lister<A> {
    /// Lists one route, or searches for it; returns false at the end.
    fn go(&mut self, c: &Control, out: &mut Output) -> bool {
        let Some(at) = &mut self.at else {
            if self.tables.is_empty() {
                out.end_elements();
                return false;
            }
            let table = self.tables.remove(0);
            out.line(heading::<A>(c, table));
            let prefixes = Prefixes::new(table);
            self.at = Some(Listed { table, prefixes, done: 0, json: Vec::new() });
            return true;
        };
        let ip = c.state::<Ip<A>>();
        let ip = ip.borrow();
        let next = if at.done < self.limit { at.prefixes.next(&ip) } else { Poll::Ready(None) };
        let Poll::Ready(next) = next else { return true };
        // The route may have been deleted since.
        if let Some(view) = next.and_then(|prefix| ip.route(at.table, prefix)) {
            match out.wants_json() {
                true => at.json.push(fib_text::route_json(c, at.table, &view)),
                false => out.text(&fib_text::route(c, at.table, &view, self.detail)),
            }
        }
        at.done += usize::from(next.is_some());
        let more = if next.is_none() { at.prefixes.left() } else { 0 };
        if next.is_none() || at.json.len() == DOCUMENT {
            let routes = std::mem::take(&mut at.json);
            out.element(json!({ "table": at.table.0, "routes": routes, "left_out": more }));
        }
        if more > 0 {
            out.line(format_args!(
                "... {more} more routes: `show {} fib all' lists, `summary' counts them",
                Version::of::<A>().word()
            ));
        }
        if next.is_none() {
            self.at = None;
        }
        true
    }
}
