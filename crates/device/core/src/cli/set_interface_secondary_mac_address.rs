//! `set interface secondary-mac-address`: adds or removes MAC addresses that are an interface's
//! own, besides the first.

use crate::command_line::{interface_arg, interface_names, refused};
use crate::interface;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set interface secondary-mac-address`
pub struct SetInterfaceSecondaryMacAddress;

/// The command.
pub static COMMAND: SetInterfaceSecondaryMacAddress = SetInterfaceSecondaryMacAddress;

impl Command<Control> for SetInterfaceSecondaryMacAddress {
    fn path(&self) -> &'static str {
        "set interface secondary-mac-address"
    }

    fn usage(&self) -> &'static str {
        "<interface> <mac> add|del"
    }

    fn help(&self) -> &'static str {
        "Add or remove a secondary MAC address of an interface\n\
         Frames to it are the interface's own, as are those to its MAC address; what it sends has\n\
         that. Of a sub-interface, its parent's are changed."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let mac = args.mac("MAC address")?;
        let is_add = args.choice("operation", &["add", "del"])? == "add";
        args.end()?;
        let done = match is_add {
            true => interface::add_secondary_mac(c, sw_if, mac),
            false => interface::remove_secondary_mac(c, sw_if, mac),
        };
        done.map_err(refused)?;
        let mac = mac.to_string();
        out.json(serde_json::json!({ "index": sw_if.get(), "mac": mac, "add": is_add }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => interface_names(c),
            [_, _] => ["add", "del"].map(str::to_owned).into(),
            _ => Vec::new(),
        }
    }
}
