//! `show punt`.

use crate::class::Class;
use crate::{gate, pairs};
use serde_json::json;
use thalweg_cli::{Align, Args, CliError, Command, Outcome, Output, Table};
use thalweg_device::{interface_arg, interface_names};
use thalweg_graph::Control;

/// `show punt [<interface>]`
pub struct ShowPunt;

/// The command.
pub static COMMAND: ShowPunt = ShowPunt;

impl Command<Control> for ShowPunt {
    fn path(&self) -> &'static str {
        "show punt"
    }

    fn usage(&self) -> &'static str {
        "[<interface>]"
    }

    fn help(&self) -> &'static str {
        "Show by class what is punted to the twins of interfaces, or to that of one\n\
         The limit is in packets per second of each interface, on each worker."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let phy = match args.is_empty() {
            true => None,
            false => Some(interface_arg(c, args)?),
        };
        args.end()?;
        let totals = match phy {
            None => gate::all(c),
            Some(phy) => pairs::get(c, phy).map(|pair| pair.punted).unwrap_or_default(),
        };
        let mut table = Table::new()
            .column("class", Align::Left, 6)
            .column("limit", Align::Right, 8)
            .column("passed", Align::Right, 12)
            .column("limited", Align::Right, 12);
        let mut rows = Vec::new();
        for (class, n) in Class::ALL.into_iter().zip(totals) {
            let (name, rate) = (class.name(), gate::rate(c, class));
            table.row([
                name.to_owned(),
                rate.to_string(),
                n.passed.to_string(),
                n.limited.to_string(),
            ]);
            rows.push(json!({
                "class": name, "limit": rate, "passed": n.passed, "limited": n.limited,
            }));
        }
        out.text(&table.to_string());
        out.json(json!(rows));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, _: &[&str], _: &str) -> Vec<String> {
        interface_names(c)
    }
}
