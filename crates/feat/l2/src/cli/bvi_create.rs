//! `bvi create`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{command_line::refused, interface, loopback};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: BviCreate = BviCreate;

/// The command's type.
pub struct BviCreate;

impl Command<Control> for BviCreate {
    fn path(&self) -> &'static str {
        "bvi create"
    }
    fn usage(&self) -> &'static str {
        "[mac <mac>] [instance <n>]"
    }
    fn help(&self) -> &'static str {
        "Create interface bvi<n>, by default the next free one\n\
         A loopback to be the router's own port of a bridge domain: see `set interface l2 bridge'."
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (mut mac, mut instance) = (None, None);
        while !args.is_empty() {
            match args.choice("option", &["mac", "instance"])? {
                "mac" => mac = Some(args.mac("MAC address")?),
                _ => {
                    let n = args.number("instance", 0, loopback::MAX_INSTANCE.into())?;
                    instance = Some(n as u32);
                }
            }
        }
        let sw_if = loopback::create_bvi(c, instance, mac).map_err(refused)?;
        let name = interface::view(c, sw_if).map_err(refused)?.name;
        out.json(serde_json::json!({ "name": name, "index": sw_if.get() }));
        out.line(name);
        Ok(Outcome::Done)
    }
    fn complete(&self, _: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        let all = ["mac", "instance"].into_iter().filter(|o| !before.contains(o));
        all.map(str::to_owned).collect()
    }
}
