//! `set arp proxy`: addresses of other hosts that the router answers ARP for.

use crate::cli_support::proxy_range;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set arp proxy …`
pub struct SetArpProxy;

/// The command.
pub static COMMAND: SetArpProxy = SetArpProxy;

impl Command<Control> for SetArpProxy {
    fn path(&self) -> &'static str {
        "set arp proxy"
    }

    fn usage(&self) -> &'static str {
        "[del] [table-id <id>] start <address> end <address>"
    }

    fn help(&self) -> &'static str {
        "Answer ARP requests for a range of addresses, on interfaces with `set interface proxy-arp'\n\
         Only requests that come by an interface of the table are answered."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        proxy_range(c, args)
    }

    fn complete(&self, _: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        ["del", "table-id", "start", "end"].map(str::to_owned).to_vec()
    }
}
