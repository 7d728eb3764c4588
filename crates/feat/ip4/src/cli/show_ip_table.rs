//! `show ip table`: all routing tables.

use crate::Ip4;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::Interfaces;
use thalweg_graph::Control;

/// `show ip table`
pub struct ShowIpTable;

/// The command.
pub static COMMAND: ShowIpTable = ShowIpTable;

impl Command<Control> for ShowIpTable {
    fn path(&self) -> &'static str {
        "show ip table"
    }

    fn help(&self) -> &'static str {
        "Show the IPv4 routing tables, their size, and the interfaces that use them\n\
         Memory is that of the routes, without the first level of a table (64 MiB of address space,\n\
         used only where there are routes)."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let ip4 = c.state::<Ip4>();
        let ip4 = ip4.borrow();
        let mut rows = Vec::new();
        for (i, id) in ip4.table_ids().into_iter().enumerate() {
            let (routes, memory) = (ip4.route_count(id), ip4.table_memory(id));
            let users = users(c, &ip4, id);
            out.line(format_args!(
                "[{i}] table_id:{id} ipv4-VRF:{id} routes:{routes} memory:{memory} interfaces:[{}]",
                users.join(", ")
            ));
            rows.push(json!({
                "table": id, "name": format!("ipv4-VRF:{id}"), "routes": routes,
                "memory": memory, "interfaces": users,
            }));
        }
        out.json(rows.into());
        Ok(Outcome::Done)
    }
}

/// Names of the interfaces bound to a table.
fn users(c: &Control, ip4: &Ip4, id: u32) -> Vec<String> {
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    let mine = all.iter().filter(|v| v.sw_if != 0 && ip4.table_of(v.sw_if) == id);
    mine.map(|v| v.name.clone()).collect()
}
