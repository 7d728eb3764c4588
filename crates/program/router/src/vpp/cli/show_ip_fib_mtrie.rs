//! `show ip fib mtrie`: the memory of the look-up tables of routes.

use serde_json::json;
use thalweg_cli::{Align, Args, CliError, Command, Outcome, Output, Table};
use thalweg_feat_ip::Ip;
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// `show ip fib mtrie`
pub struct ShowIpFibMtrie;

/// The command.
pub static COMMAND: ShowIpFibMtrie = ShowIpFibMtrie;

impl Command<Control> for ShowIpFibMtrie {
    fn path(&self) -> &'static str {
        "show ip fib mtrie"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["show fib memory", "show dpo memory"]
    }

    fn help(&self) -> &'static str {
        "Show the memory of the look-up tables of routes\n\
         Without the first level, of which only the parts in use have memory. `show ip fib summary'\n\
         counts routes by prefix length."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let ip = c.state::<Ip<u32>>();
        let ip = ip.borrow();
        let mut table = Table::new()
            .column("Table", Align::Right, 10)
            .column("Routes", Align::Right, 12)
            .column("Bytes", Align::Right, 14);
        let mut values = Vec::new();
        for id in ip.table_ids() {
            let (TableId(number), routes, bytes) = (id, ip.route_count(id), ip.table_memory(id));
            table.row([number.to_string(), routes.to_string(), bytes.to_string()]);
            values.push(json!({ "table": number, "routes": routes, "bytes": bytes }));
        }
        out.json(values.into());
        write!(out, "{table}");
        Ok(Outcome::Done)
    }
}
