//! `show nat44 addresses`.

use crate::{Nat44, view};
use serde_json::json;
use std::net::Ipv4Addr;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// `show nat44 addresses`
pub struct ShowNat44Addresses;

/// The command.
pub static COMMAND: ShowNat44Addresses = ShowNat44Addresses;

impl Command<Control> for ShowNat44Addresses {
    fn path(&self) -> &'static str {
        "show nat44 addresses"
    }

    fn help(&self) -> &'static str {
        "Show pool addresses and the number of their ports in use"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let workers = view::workers(c);
        let nat = c.state::<Nat44>();
        let nat = nat.borrow();
        let mut rows = Vec::new();
        for twice in [false, true] {
            out.line(if twice {
                "NAT44 twice-nat pool addresses:"
            } else {
                "NAT44 pool addresses:"
            });
            for a in nat.all_addresses().iter().filter(|a| a.twice == twice) {
                let mine =
                    |b: &&(u32, bool, [u32; 3])| (Ipv4Addr::from(b.0), b.1) == (a.address, twice);
                let all = workers.iter().flat_map(|w| w.busy.iter()).filter(mine);
                let busy = all.fold([0; 3], |s, b| [s[0] + b.2[0], s[1] + b.2[1], s[2] + b.2[2]]);
                out.line(a.address);
                match a.table {
                    Some(table) => out.line(format_args!("  tenant VRF: {table}")),
                    None => out.line("  tenant VRF independent"),
                }
                let [tcp, udp, icmp] = busy;
                for (n, name) in [(udp, "udp"), (tcp, "tcp"), (icmp, "icmp")] {
                    out.line(format_args!("  {n} busy {name} ports"));
                }
                rows.push(json!({
                    "address": a.address.to_string(), "twice-nat": twice, "tenant-vrf": a.table.map(TableId::get),
                    "busy": { "tcp": tcp, "udp": udp, "icmp": icmp },
                }));
            }
        }
        out.json(rows.into());
        Ok(Outcome::Done)
    }
}
