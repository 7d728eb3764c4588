//! `show nat44 addresses`.

use crate::pool::SPACES;
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
        view::with_workers(c, out, |c, workers, out| {
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
                    let all = workers.iter().flat_map(|w| w.busy.iter());
                    let mine = all.filter(|b| (Ipv4Addr::from(b.0), b.1) == (a.address, twice));
                    let [tcp, udp, icmp, other] =
                        mine.fold([0; SPACES], |sum, b| std::array::from_fn(|i| sum[i] + b.2[i]));
                    out.line(a.address);
                    match a.table {
                        Some(table) => out.line(format_args!("  tenant VRF: {table}")),
                        None => out.line("  tenant VRF independent"),
                    }
                    for (n, name) in [(udp, "udp"), (tcp, "tcp"), (icmp, "icmp")] {
                        out.line(format_args!("  {n} busy {name} ports"));
                    }
                    if other > 0 {
                        out.line(format_args!("  {other} busy ports of other protocols"));
                    }
                    rows.push(json!({
                    "address": a.address.to_string(), "twice-nat": twice, "tenant-vrf": a.table.map(TableId::get),
                    "busy": { "tcp": tcp, "udp": udp, "icmp": icmp, "other": other },
                }));
                }
            }
            out.json(rows.into());
        })
    }
}
