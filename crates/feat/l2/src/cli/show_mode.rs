//! `show mode`.

use crate::L2;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{interface_arg, interface_names};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: ShowMode = ShowMode;

/// The command's type.
pub struct ShowMode;

impl Command<Control> for ShowMode {
    fn path(&self) -> &'static str {
        "show mode"
    }
    fn usage(&self) -> &'static str {
        "[<interface> …]"
    }
    fn help(&self) -> &'static str {
        "Show which interfaces are in layer 2 and how; the others are in layer 3"
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let mut chosen = Vec::new();
        while !args.is_empty() {
            chosen.push(interface_arg(c, args)?);
        }
        if chosen.is_empty() {
            let names = interface_names(c).into_iter();
            chosen = names.filter_map(|n| thalweg_device::interface::find(c, &n).ok()).collect();
        }
        let state = c.state::<L2>();
        let l2 = state.borrow();
        let mut all = Vec::new();
        for sw_if in chosen {
            let name = c.interface_name(sw_if);
            let bridge = l2.bridges().of(sw_if);
            let (line, value) = if let Some(id) = bridge {
                let domain = l2.bridges().get(id);
                let group =
                    domain.and_then(|d| d.ports().find(|p| p.0 == sw_if)).map_or(0, |p| p.1);
                let value = json!({ "interface": name, "mode": "bridge", "bridge_domain": id,
                                    "split_horizon_group": group });
                let bvi =
                    if domain.and_then(crate::Domain::bvi) == Some(sw_if) { "bvi " } else { "" };
                (format!("l2 bridge {name} bd_id {id} {bvi}shg {group}"), value)
            } else if let Some(to) = l2.xconnect(sw_if) {
                let to = c.interface_name(to);
                let value = json!({ "interface": name, "mode": "xconnect", "to": to });
                (format!("l2 xconnect {name} {to}"), value)
            } else {
                (format!("l3 {name}"), json!({ "interface": name, "mode": "l3" }))
            };
            out.line(line);
            all.push(value);
        }
        out.json(json!({ "interfaces": all }));
        Ok(Outcome::Done)
    }
    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        interface_names(c)
    }
}
