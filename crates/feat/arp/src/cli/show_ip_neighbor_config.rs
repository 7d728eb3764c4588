//! `show ip neighbor-config`: settings and counters of the neighbour table.

use crate::neighbors::Neighbors;
use serde_json::json;
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
        let (config, stats) = (n.config(), n.stats());
        out.json(json!({ "ip4": {
            "limit": config.limit,
            "age": config.age.as_secs(),
            "recycle": config.recycle,
            "neighbors": n.len(),
            "refused": stats.refused,
            "recycled": stats.recycled,
            "moved": stats.moved,
            "contradicted": stats.contradicted,
            "failed": stats.failed,
            "expired": stats.expired,
            "crowded": stats.crowded,
            "conflicts": n.conflicts(),
        }}));
        out.line("ip4:");
        out.line(format_args!(
            "  limit:{}, age:{}, recycle:{}",
            config.limit,
            config.age.as_secs(),
            u8::from(config.recycle)
        ));
        out.line(format_args!(
            "  neighbors:{}, refused:{}, recycled:{}, moved:{}, contradicted static:{}",
            n.len(),
            stats.refused,
            stats.recycled,
            stats.moved,
            stats.contradicted
        ));
        out.line(format_args!(
            "  failed:{}, expired:{}, crowded:{}, address conflicts:{}",
            stats.failed,
            stats.expired,
            stats.crowded,
            n.conflicts()
        ));
        Ok(Outcome::Done)
    }
}
