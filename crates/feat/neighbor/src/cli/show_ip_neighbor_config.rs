//! `show ip neighbor-config`: settings and counters of the neighbour table.

use crate::{Config, Neighbors, Version};
use serde_json::{Value, json};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show ip neighbor-config`
pub struct ShowIpNeighborConfig;

/// The command.
pub static COMMAND: ShowIpNeighborConfig = ShowIpNeighborConfig;

impl Command<Control> for ShowIpNeighborConfig {
    fn path(&self) -> &'static str {
        "show ip neighbor-config"
    }

    fn help(&self) -> &'static str {
        "Show the neighbour table's settings and counters"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let state = c.state::<Neighbors>();
        let n = state.borrow();
        let mut all = serde_json::Map::new();
        for family in n.families() {
            all.insert(family.protocol().into(), show(&n, family, out));
        }
        out.json(all.into());
        Ok(Outcome::Done)
    }
}

/// Prints a family's settings and counters, and returns them.
fn show(n: &Neighbors, family: Version, out: &mut Output) -> Value {
    let (Ok(config), stats, count) = (n.config(family), n.stats(family), n.count(family)) else {
        return Value::Null;
    };
    let Config { limit, interface_limit, age, recycle, .. } = config;
    out.line(format_args!("{}:", family.protocol()));
    let age = age.as_secs();
    out.line(format_args!("  limit:{limit}, age:{age}, recycle:{}", u8::from(recycle)));
    if interface_limit < limit {
        out.line(format_args!("  interface limit:{interface_limit}"));
    }
    out.line(format_args!(
        "  neighbors:{count}, refused:{}, recycled:{}, moved:{}, contradicted static:{}",
        stats.refused, stats.recycled, stats.moved, stats.contradicted
    ));
    out.line(format_args!(
        "  failed:{}, expired:{}, crowded:{}, address conflicts:{}",
        stats.failed, stats.expired, stats.crowded, stats.conflicts
    ));
    json!({
        "limit": limit,
        "interface_limit": interface_limit,
        "age": age,
        "recycle": recycle,
        "neighbors": count,
        "refused": stats.refused,
        "recycled": stats.recycled,
        "moved": stats.moved,
        "contradicted": stats.contradicted,
        "failed": stats.failed,
        "forgotten": stats.forgotten,
        "expired": stats.expired,
        "crowded": stats.crowded,
        "conflicts": stats.conflicts,
    })
}
