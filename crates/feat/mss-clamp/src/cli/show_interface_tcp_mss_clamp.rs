//! `show interface tcp-mss-clamp`.

use crate::{Clamp, Limits};
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_device::{Interfaces, SwIfIndex};
use thalweg_graph::Control;

/// `show interface tcp-mss-clamp [<interface>]`
pub struct ShowInterfaceTcpMssClamp;

/// The command.
pub static COMMAND: ShowInterfaceTcpMssClamp = ShowInterfaceTcpMssClamp;

/// A limit as VPP shows it.
fn text(clamp: Option<Clamp>) -> String {
    let Some(Clamp { mss, direction }) = clamp else { return "disabled".into() };
    let rx = if direction.has_rx() { "RX" } else { "" };
    let tx = if direction.has_tx() { "TX" } else { "" };
    let both = if rx.is_empty() || tx.is_empty() { "" } else { " " };
    format!("{mss} [{rx}{both}{tx}]")
}

impl Command<Control> for ShowInterfaceTcpMssClamp {
    fn path(&self) -> &'static str {
        "show interface tcp-mss-clamp"
    }

    fn usage(&self) -> &'static str {
        "[<interface>]"
    }

    fn help(&self) -> &'static str {
        "Show the limits of the MSS by interface"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let ports: Vec<SwIfIndex> = if args.is_empty() {
            c.state::<Interfaces>().borrow().iter().map(|v| v.sw_if).collect()
        } else {
            vec![interface_arg(c, args)?]
        };
        args.end()?;
        let mut rows = Vec::new();
        for sw_if in ports.into_iter().filter(|i| *i != SwIfIndex(0)) {
            let (name, Limits { ip4, ip6 }) = (c.interface_name(sw_if), crate::get(c, sw_if));
            out.line(format_args!("{name}: ip4: {} ip6: {}", text(ip4), text(ip6)));
            let has_rx = |clamp: Option<Clamp>| clamp.is_some_and(|c| c.direction.has_rx());
            let has_tx = |clamp: Option<Clamp>| clamp.is_some_and(|c| c.direction.has_tx());
            rows.push(json!({
                "interface": name,
                "ip4-mss": ip4.map(|clamp| clamp.mss),
                "rx": has_rx(ip4),
                "tx": has_tx(ip4),
                "ip6-mss": ip6.map(|clamp| clamp.mss),
                "ip6-rx": has_rx(ip6),
                "ip6-tx": has_tx(ip6),
            }));
        }
        out.json(json!(rows));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        interface_names(c)
    }
}
