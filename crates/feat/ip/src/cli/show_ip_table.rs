//! `show ip table`: all routing tables.

use crate::Ip;
use crate::family::{Version, version_text};
use serde_json::json;
use std::marker::PhantomData;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{Interfaces, SwIfIndex};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_tables::Address;

/// `show ip table`, and the same for another version.
pub struct ShowIpTable<A>(pub PhantomData<fn(A)>);

/// The command.
pub static COMMAND: ShowIpTable<u32> = ShowIpTable(PhantomData);

impl<A: Address> Command<Control> for ShowIpTable<A> {
    fn path(&self) -> &'static str {
        version_text!(A: "show ", WORD, " table")
    }

    fn help(&self) -> &'static str {
        match Version::of::<A>() {
            Version::V4 => {
                "Show the IPv4 routing tables, their size, and the interfaces that use them\n\
                 Memory is that of the routes, without the first level of a table (64 MiB of address \
                 space,\nused only where there are routes)."
            }
            Version::V6 => {
                "Show the IPv6 routing tables, their size, and the interfaces that use them"
            }
        }
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let ip = c.state::<Ip<A>>();
        let ip = ip.borrow();
        let mut rows = Vec::new();
        for (i, id) in ip.table_ids().into_iter().enumerate() {
            let (routes, memory) = (ip.route_count(id), ip.table_memory(id));
            let (name, users) = (Version::of::<A>().table_name(id), users(c, &ip, id));
            out.line(format_args!(
                "[{i}] table_id:{id} {name} routes:{routes} memory:{memory} interfaces:[{}]",
                users.join(", ")
            ));
            rows.push(json!({
                "table": id.0, "name": name, "routes": routes,
                "memory": memory, "interfaces": users,
            }));
        }
        out.json(rows.into());
        Ok(Outcome::Done)
    }
}

/// Names of the interfaces bound to a table.
fn users<A: Address>(c: &Control, ip: &Ip<A>, id: TableId) -> Vec<String> {
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    let mine = all.iter().filter(|v| v.sw_if != SwIfIndex(0) && ip.table_of(v.sw_if) == id);
    mine.map(|v| v.name.clone()).collect()
}
