//! `ip route`: static routes.

use crate::cli_args::{self, RouteSpec};
use crate::{Path, PathKind, add_route, del_route};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use thalweg_cli::{Args, CliError, Command, Outcome, Output, Task, TaskPoll};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_tables::{Address, Prefix};

/// `ip route [add|del] <prefix> …`
pub struct IpRoute;

/// The command.
pub static COMMAND: IpRoute = IpRoute;

/// Maximum time on the main thread per slice.
const SLICE: Duration = Duration::from_millis(3);

impl Command<Control> for IpRoute {
    fn path(&self) -> &'static str {
        "ip route"
    }

    fn usage(&self) -> &'static str {
        "[add|del|replace] [count <n>] <prefix> [table <id>] via <next hop> [<interface> | \
         next-hop-table <id>] [weight <n>] [preference <n>] [out-labels <label> ...] [via ...] | \
         via <interface> | \
         via via-label <label> [out-labels ...] | \
         via ip4-lookup-in-table <id> | via rx-ip4 <interface> | drop | local | unreachable | prohibit"
    }

    fn help(&self) -> &'static str {
        "Add or delete a route, or paths of one\n\
         Host bits of the prefix are ignored. A further path of a route that\n\
         exists shares its load by weight; of usable paths, only those of the lowest preference\n\
         take part. `replace' sets all paths at once. A next hop without\n\
         interface is resolved recursively, in the route's table or in `next-hop-table' (one of the\n\
         other version in its table 0), and follows\n\
         route changes; while it leads nowhere, `show ip fib' says why. `del' without paths deletes\n\
         the whole route.\n\
         `ip4-lookup-in-table' looks the packet up again in another table, `rx-ip4' in\n\
         that of an interface, by which it then has come.\n\
         `out-labels' puts MPLS labels before the packets, the outermost first; those of the route\n\
         to a recursive next hop come before them. Each may have a `ttl' and an `exp' behind it; 64\n\
         and 0 are the usual ones. `via-label' follows a label of MPLS table 0 as it is bound\n\
         where others follow it (`non-eos'): packets get its labels, too.\n\
         `count' repeats the command for that many prefixes of the same length, one\n\
         after the other."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let verb = args.one_of(&["add", "del", "replace"])?;
        let (del, replace) = (verb == Some("del"), verb == Some("replace"));
        let spec = cli_args::route_args(c, args)?;
        if !del && spec.paths.is_empty() {
            let expected = "`via <next hop>', `via <interface>' or a word such as `drop'";
            return Err(args.bad("path", expected));
        }
        match spec.prefix.0 {
            IpAddr::V4(ip) => change(c, ip.to_bits(), spec, del, replace),
            IpAddr::V6(ip) => change(c, ip.to_bits(), spec, del, replace),
        }
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        cli_args::complete_route(c, before)
    }
}

fn change<A: Address>(
    c: &mut Control,
    addr: A,
    spec: RouteSpec,
    del: bool,
    replace: bool,
) -> Result<Outcome<Control>, CliError> {
    let RouteSpec { prefix: (_, len), table, count, paths } = spec;
    let first = Prefix::new(addr, len).map_err(CliError::failed)?;
    cli_args::check_count(first, count)?;
    for path in &paths {
        if let (PathKind::Lookup(other), false) = (path.kind, del) {
            cli_args::known_table::<A>(c, other)?;
        }
    }
    let mut bulk =
        Bulk { first, table, count, paths, del, replace, done: 0, began: Instant::now() };
    if count > 1 {
        return Ok(Outcome::pending(bulk));
    }
    bulk.one(c).map(|()| cli_args::when_resolved(c))
}

/// Adds or deletes many routes, a slice at a time.
struct Bulk<A> {
    first: Prefix<A>,
    table: TableId,
    count: u32,
    paths: Vec<Path>,
    del: bool,
    replace: bool,
    done: u32,
    began: Instant,
}

impl<A: Address> Bulk<A> {
    fn prefix(&self) -> Prefix<A> {
        cli_args::later(self.first, self.done)
    }

    fn one(&mut self, c: &mut Control) -> Result<(), CliError> {
        let prefix = self.prefix();
        let done = match self.del {
            true => del_route(c, self.table, prefix, &self.paths),
            false => add_route(c, self.table, prefix, self.paths.clone(), self.replace),
        };
        self.done += 1;
        done.map_err(cli_args::route_failed)
    }
}

impl<A: Address> Task<Control> for Bulk<A> {
    fn poll(&mut self, c: &mut Control, now: Instant, out: &mut Output) -> TaskPoll {
        let end = Instant::now() + SLICE;
        while self.done < self.count {
            let prefix = self.prefix();
            if let Err(e) = self.one(c) {
                let (n, verb) = (self.done - 1, if self.del { "deleted" } else { "added" });
                let text = format!("{prefix}: {e}; the {n} routes before it are {verb}");
                return TaskPoll::Failed(CliError::with_code(text, e.code()));
            }
            if self.done.is_multiple_of(64) && Instant::now() >= end {
                return TaskPoll::At(now);
            }
        }
        if !crate::table::settle_slice(c) {
            return TaskPoll::At(now);
        }
        let (n, seconds) = (self.done, self.began.elapsed().as_secs_f64().max(1e-9));
        out.json(serde_json::json!({ "routes": n, "seconds": seconds }));
        out.line(format_args!("{:.6e} routes/sec", f64::from(n) / seconds));
        TaskPoll::Done
    }

    fn cancel(&mut self, _: &mut Control, out: &mut Output) {
        let last = self.prefix().addr().to_ip();
        out.line(format_args!("stopped before {last}, after {} routes", self.done));
    }
}
