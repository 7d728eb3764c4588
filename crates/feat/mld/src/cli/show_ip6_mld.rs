//! `show ip6 mld`: the groups that interfaces report.

use crate::listen;
use serde_json::{Value, json};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::SwIfIndex;
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_graph::{Control, clock};

/// `show ip6 mld [<interface>]`
pub struct ShowIp6Mld;

/// The command.
pub static COMMAND: ShowIp6Mld = ShowIp6Mld;

impl Command<Control> for ShowIp6Mld {
    fn path(&self) -> &'static str {
        "show ip6 mld"
    }

    fn usage(&self) -> &'static str {
        "[<interface>]"
    }

    fn help(&self) -> &'static str {
        "Show the multicast groups that interfaces report, and the queries that they have heard"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let only = if args.is_empty() { None } else { Some(interface_arg(c, args)?) };
        args.end()?;
        let all = only.map_or_else(|| listen::all(c), |i| vec![i]);
        let rows: Vec<Value> = all.into_iter().map(|i| show_one(c, i, out)).collect();
        out.json(rows.into());
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        interface_names(c)
    }
}

/// Shows an interface; returns it as JSON.
fn show_one(c: &Control, sw_if: SwIfIndex, out: &mut Output) -> Value {
    let (name, port) = (c.interface_name(sw_if), listen::port(c, sw_if).unwrap_or_default());
    let groups: Vec<_> = port.groups().collect();
    let (robustness, interval) = port.querier();
    let (version, interval, counts) = (port.version(clock::now()), interval.as_secs(), port.counts);
    out.line(format_args!(
        "{name}: MLDv{version}, robustness {robustness}, query interval {interval} seconds"
    ));
    let ([old, new], [old_sent, sent], done) = (counts.queries, counts.reports, counts.done);
    out.line(format_args!("  queries received: {new}, of version 1: {old}"));
    out.line(format_args!("  reports sent: {sent}, of version 1: {old_sent}, leaves: {done}"));
    groups.iter().for_each(|group| out.line(format_args!("    {group}")));
    json!({
        "interface": name, "version": version, "robustness": robustness,
        "query-interval": interval, "groups": groups, "queries": new, "queries-v1": old,
        "reports": sent, "reports-v1": old_sent, "leaves-v1": done,
    })
}
