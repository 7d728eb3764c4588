//! `set ip arp proxy`: addresses of other hosts that the router answers ARP for.

use crate::cli_support::proxy_range;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set ip arp proxy …`
pub struct SetIpArpProxy;

/// The command.
pub static COMMAND: SetIpArpProxy = SetIpArpProxy;

impl Command<Control> for SetIpArpProxy {
    fn path(&self) -> &'static str {
        "set ip arp proxy"
    }

    fn usage(&self) -> &'static str {
        "<address> - <address> [table-id <id>] [del]"
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
        ["table-id", "del"].map(str::to_owned).to_vec()
    }
}
