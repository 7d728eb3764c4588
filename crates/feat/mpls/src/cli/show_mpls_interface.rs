//! `show mpls interface`.

use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{SwIfIndex, interface_arg};
use thalweg_graph::Control;

/// The command's type.
pub struct ShowMplsInterface;

/// The command.
pub static COMMAND: ShowMplsInterface = ShowMplsInterface;

impl Command<Control> for ShowMplsInterface {
    fn path(&self) -> &'static str {
        "show mpls interface"
    }
    fn usage(&self) -> &'static str {
        "[<interface>]"
    }
    fn help(&self) -> &'static str {
        "Show interfaces that take labelled packets"
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let one = if args.is_empty() { None } else { Some(interface_arg(c, args)?) };
        args.end()?;
        let mpls = c.state::<crate::Mpls>();
        let mpls = mpls.borrow();
        let all: Vec<SwIfIndex> = one.map_or_else(|| mpls.enabled().collect(), |i| vec![i]);
        let mut json = Vec::new();
        for i in all {
            let (name, on) = (c.interface_name(i), mpls.is_enabled(i));
            out.line(&name);
            out.line(if on { "  MPLS enabled" } else { "  MPLS disabled" });
            json.push(json!({ "interface": name, "enabled": on }));
        }
        out.json(json.into());
        Ok(Outcome::Done)
    }
    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        thalweg_device::interface_names(c)
    }
}
