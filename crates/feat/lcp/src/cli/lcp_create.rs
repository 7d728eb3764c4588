//! `lcp create`.

use crate::Wanted;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{interface_arg, interface_names};
use thalweg_engine::setting::Refused;
use thalweg_graph::Control;

/// `lcp create <interface> host-if <device> [netns <namespace>] [tun]`
pub struct LcpCreate;

/// The command.
pub static COMMAND: LcpCreate = LcpCreate;

impl Command<Control> for LcpCreate {
    fn path(&self) -> &'static str {
        "lcp create"
    }

    fn usage(&self) -> &'static str {
        "<interface>|sw_if_index <n> host-if <device> [netns <namespace>] [tun]"
    }

    fn help(&self) -> &'static str {
        "Give an interface a twin, a device of the kernel for routing daemons\n\
         The twin is in a network namespace (a name of `ip netns', a path or pid:<n>), that of `lcp\n\
         default netns' without one. That of a sub-interface is a VLAN link on its parent's. `tun' is\n\
         for interfaces without Ethernet frames."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.exact("sw_if_index");
        let phy = interface_arg(c, args)?;
        let (mut name, mut namespace, mut tun) = (None, None, false);
        while !args.is_empty() {
            match args.choice("option", &["host-if", "netns", "tun"])? {
                "host-if" => name = Some(args.word("device")?.to_owned()),
                "netns" => namespace = Some(args.word("namespace")?.to_owned()),
                _ => tun = true,
            }
        }
        let Some(name) = name else { return Err(args.bad("option", "host-if <device>")) };
        let host =
            crate::create(c, &Wanted { phy, name, namespace, tun }).map_err(Refused::from)?;
        out.json(json!({ "interface": c.interface_name(phy), "host": c.interface_name(host) }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        match before {
            [] => interface_names(c),
            _ => ["host-if", "netns", "tun"].map(String::from).into(),
        }
    }
}
