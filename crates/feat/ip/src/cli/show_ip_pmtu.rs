//! `show ip pmtu`: path MTUs of addresses.

use crate::path_mtu;
use serde_json::json;
use std::net::IpAddr;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_tables::Address;

/// `show ip pmtu`
pub struct ShowIpPmtu;

/// The command.
pub static COMMAND: ShowIpPmtu = ShowIpPmtu;

fn rows<A: Address>(c: &Control) -> impl Iterator<Item = (TableId, IpAddr, u16)> {
    path_mtu::all::<A>(c).into_iter().map(|((table, address), mtu)| (table, address.to_ip(), mtu))
}

impl Command<Control> for ShowIpPmtu {
    fn path(&self) -> &'static str {
        "show ip pmtu"
    }

    fn help(&self) -> &'static str {
        "Show the path MTUs of IPv4 and IPv6 addresses, in bytes"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let mut all = Vec::new();
        for (i, (table, address, mtu)) in rows::<u32>(c).chain(rows::<u128>(c)).enumerate() {
            out.line(format_args!("[{i}] [tbl:{table}] {address} pmtu:{mtu}"));
            all.push(json!({ "table": table.get(), "address": address, "mtu": mtu }));
        }
        out.json(json!(all));
        Ok(Outcome::Done)
    }
}
