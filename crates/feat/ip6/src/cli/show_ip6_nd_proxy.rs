//! `show ip6 nd proxy`: hosts of other links that the router answers for.

use crate::nd_proxy;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show ip6 nd proxy`
pub struct ShowIp6NdProxy;

/// The command.
pub static COMMAND: ShowIp6NdProxy = ShowIp6NdProxy;

impl Command<Control> for ShowIp6NdProxy {
    fn path(&self) -> &'static str {
        "show ip6 nd proxy"
    }

    fn help(&self) -> &'static str {
        "Show the hosts that the router answers for on other interfaces than theirs"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        out.list(nd_proxy::list(c), |(ip, sw_if)| {
            let name = c.interface_name(sw_if);
            (format!("{ip} on {name}"), json!({ "address": ip, "interface": name }))
        });
        Ok(Outcome::Done)
    }
}
