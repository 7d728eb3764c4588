//! `set interface tcp-mss-clamp`.

use crate::{Clamp, ClampError, Direction};
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
        "<interface> ip4 {enable|disable|rx|tx} [ip4-mss <bytes>] [ip6 disable]"
    }

    fn help(&self) -> &'static str {
        "Lower the MSS of TCP connections through an interface\n\
         Of SYNs that it receives (`rx'), sends (`tx'), or both (`enable'); an MSS is never raised."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let (mut ip4, mut ip6, mut mss) = (None, None, None);
        while !args.is_empty() {
            if args.exact("ip4") {
                ip4 = Some(direction(args)?);
            } else if args.exact("ip6") {
                ip6 = Some(direction(args)?);
            } else if args.exact("ip4-mss") {
                mss = Some(args.u16("MSS")?);
            } else if args.exact("ip6-mss") {
                args.u16("MSS")?;
            } else {
                args.end()?;
            }
        }
        if ip6.flatten().is_some() {
            return Err(ClampError::NoIp6.into());
        }
        let Some(ip4) = ip4 else {
            return Err(args.bad("family", "ip4 and one of enable, disable, rx, tx"));
        };
        let clamp = match (ip4, mss) {
            (None, _) => None,
            (Some(direction), Some(mss)) => Some(Clamp { mss, direction }),
            (Some(_), None) => return Err(args.bad("MSS", "ip4-mss <bytes>")),
        };
        crate::set(c, sw_if, clamp)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => interface_names(c),
            [.., "ip4"] => DIRECTIONS.iter().map(|word| (*word).to_owned()).collect(),
            [.., "ip6"] => vec!["disable".to_owned()],
            [.., "ip4-mss"] => Vec::new(),
            _ => ["ip4", "ip4-mss", "ip6"].map(str::to_owned).to_vec(),
        }
    }
}
