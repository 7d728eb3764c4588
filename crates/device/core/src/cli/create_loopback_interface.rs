//! `create loopback interface`: an interface without hardware.

use crate::command_line::refused;
use crate::{interface, loopback};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `create loopback interface`
pub struct CreateLoopbackInterface;

/// The command.
pub static COMMAND: CreateLoopbackInterface = CreateLoopbackInterface;

impl Command<Control> for CreateLoopbackInterface {
    fn path(&self) -> &'static str {
        "create loopback interface"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["loopback create-interface"]
    }

    fn usage(&self) -> &'static str {
        "[mac <mac>] [instance <n>]"
    }

    fn help(&self) -> &'static str {
        "Create interface loop<n>, by default the next free one"
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
                    instance =
                        Some(args.number("instance", 0, loopback::MAX_INSTANCE.into())? as u32)
                }
            }
        }
        let sw_if = loopback::create_loopback(c, instance, mac).map_err(refused)?;
        let name = interface::view(c, sw_if).map_err(refused)?.name;
        out.json(serde_json::json!({ "name": name, "index": sw_if.get() }));
        out.line(name);
        Ok(Outcome::Done)
    }
}
