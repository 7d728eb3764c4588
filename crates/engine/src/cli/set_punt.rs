//! `set punt`: which UDP ports are punted.

use crate::punt::{self, Port};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `set punt [ipv4|ipv6] [udp] [del] all|<port>`
pub struct SetPunt;

/// The command.
pub static COMMAND: SetPunt = SetPunt;

impl Command<Control> for SetPunt {
    fn path(&self) -> &'static str {
        "set punt"
    }

    fn usage(&self) -> &'static str {
        "[ipv4|ipv6] [udp] [del] all|<port>"
    }

    fn help(&self) -> &'static str {
        "Punt datagrams to a UDP port that nothing in the router listens on\n\
         They go by `ip punt redirect' or to a feature that takes them, and are dropped if there is\n\
         neither; without this, a port without a listener is answered by an ICMP error then. `all'\n\
         is for all of these ports. IPv4 and UDP unless said otherwise; `del' ends it. `show punt\n\
         stats' counts, `show punt ports' has the ports."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (mut v6, mut del, mut number) = (false, false, None);
        while !args.is_empty() {
            let words = ["ipv4", "ip4", "ipv6", "ip6", "udp", "tcp", "reason", "del", "all"];
            match args.one_of_exact(&words) {
                Some("ipv4" | "ip4") => v6 = false,
                Some("ipv6" | "ip6") => v6 = true,
                Some("udp") => {}
                Some("del") => del = true,
                Some("all") => number = Some(None),
                Some("tcp") => return Err(CliError::failed(NO_TCP)),
                Some(_) => {
                    return Err(CliError::failed(
                        "reasons cannot be set: `show punt reasons' has them and who takes them",
                    ));
                }
                None => number = Some(Some(args.u16("port")?)),
            }
        }
        args.end()?;
        let number = number.ok_or_else(|| args.bad("port", "`all' or a port"))?;
        punt::set_port(c, Port { v6, number }, !del).map_err(CliError::failed)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, _: &[&str], _: &str) -> Vec<String> {
        ["ipv4", "ipv6", "udp", "del", "all"].map(String::from).into()
    }
}

/// Reason why TCP ports are not punted.
pub const NO_TCP: &str = "punt TCP ports is not supported yet: what nothing here takes of TCP goes \
                          by `ip punt redirect' without it";
