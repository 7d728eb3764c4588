//! `set interface tcp-mss-clamp`.

use crate::{Clamp, Direction};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_graph::Control;

/// `set interface tcp-mss-clamp …`
pub struct SetInterfaceTcpMssClamp;

/// The command.
pub static COMMAND: SetInterfaceTcpMssClamp = SetInterfaceTcpMssClamp;

const DIRECTIONS: &[&str] = &["enable", "disable", "rx", "tx"];

fn direction(args: &mut Args<'_>) -> Result<Option<Direction>, CliError> {
    Ok(match args.choice("direction", DIRECTIONS)? {
        "enable" => Some(Direction::Both),
        "rx" => Some(Direction::Rx),
        "tx" => Some(Direction::Tx),
        _ => None,
    })
}

impl Command<Control> for SetInterfaceTcpMssClamp {
    fn path(&self) -> &'static str {
        "set interface tcp-mss-clamp"
    }

    fn usage(&self) -> &'static str {
        "<interface> [ip4 {enable|disable|rx|tx} [ip4-mss <bytes>]] \
         [ip6 {enable|disable|rx|tx} [ip6-mss <bytes>]]"
    }

    fn help(&self) -> &'static str {
        "Lower the MSS of TCP connections through an interface\n\
         Of SYNs that it receives (`rx'), sends (`tx'), or both (`enable'); an MSS is never raised.\n\
         The version that is not named keeps its limit."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let (mut ip4, mut ip6, mut ip4_mss, mut ip6_mss) = (None, None, None, None);
        while !args.is_empty() {
            if args.exact("ip4") {
                ip4 = Some(direction(args)?);
            } else if args.exact("ip6") {
                ip6 = Some(direction(args)?);
            } else if args.exact("ip4-mss") {
                ip4_mss = Some(args.u16("MSS")?);
            } else if args.exact("ip6-mss") {
                ip6_mss = Some(args.u16("MSS")?);
            } else {
                args.end()?;
            }
        }
        if ip4.is_none() && ip6.is_none() {
            return Err(args.bad("version", "ip4 or ip6, and one of enable, disable, rx, tx"));
        }
        let mut limits = crate::get(c, sw_if);
        for (limit, said, mss, word) in [
            (&mut limits.ip4, ip4, ip4_mss, "ip4-mss <bytes>"),
            (&mut limits.ip6, ip6, ip6_mss, "ip6-mss <bytes>"),
        ] {
            *limit = match (said, mss) {
                (None, None) => continue,
                (Some(None), _) => None,
                (Some(Some(direction)), Some(mss)) => Some(Clamp { mss, direction }),
                (Some(Some(_)), None) => return Err(args.bad("MSS", word)),
                (None, Some(_)) => {
                    return Err(args.bad("direction", "one of enable, disable, rx, tx"));
                }
            };
        }
        crate::set(c, sw_if, limits)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => interface_names(c),
            [.., "ip4" | "ip6"] => DIRECTIONS.iter().map(|word| (*word).to_owned()).collect(),
            [.., "ip4-mss" | "ip6-mss"] => Vec::new(),
            _ => ["ip4", "ip4-mss", "ip6", "ip6-mss"].map(str::to_owned).to_vec(),
        }
    }
}
