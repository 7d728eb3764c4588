//! `nat addr-port-assignment-alg`.

use crate::cli_support::failed;
use crate::ports::Scheme;
use crate::state;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `nat addr-port-assignment-alg`
pub struct NatAddrPortAssignmentAlg;

/// The command.
pub static COMMAND: NatAddrPortAssignmentAlg = NatAddrPortAssignmentAlg;

impl Command<Control> for NatAddrPortAssignmentAlg {
    fn path(&self) -> &'static str {
        "nat addr-port-assignment-alg"
    }

    fn usage(&self) -> &'static str {
        "default | map-e psid <n> psid-offset <bits> psid-len <bits> | port-range <first> - <last>"
    }

    fn help(&self) -> &'static str {
        "Set the ports of pool addresses that sessions may use: all from 1024 on, those of a MAP-E port\n\
         set (RFC 7597), or a range. A change ends all sessions with such a port."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let scheme = scheme(args)?;
        args.end()?;
        state::set_scheme(c, scheme).map_err(failed)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => vec!["default".into(), "map-e".into(), "port-range".into()],
            ["map-e"] => vec!["psid".into()],
            ["map-e", "psid", _] => vec!["psid-offset".into()],
            ["map-e", "psid", _, "psid-offset", _] => vec!["psid-len".into()],
            _ => Vec::new(),
        }
    }
}

fn scheme(args: &mut Args<'_>) -> Result<Scheme, CliError> {
    match args.choice("algorithm", &["default", "map-e", "port-range"])? {
        "default" => Ok(Scheme::All),
        "map-e" => {
            let (mut psid, mut offset, mut length) = (None, None, None);
            while !args.is_empty() {
                match () {
                    () if args.exact("psid") => psid = Some(args.u16("psid")?),
                    () if args.exact("psid-offset") => offset = Some(args.u8("psid-offset")?),
                    () if args.exact("psid-len") => length = Some(args.u8("psid-len")?),
                    () => args.end()?,
                }
            }
            let (Some(psid), Some(offset), Some(length)) = (psid, offset, length) else {
                return Err(args.bad("map-e", "psid, psid-offset and psid-len"));
            };
            Scheme::map_e(psid, offset, length)
                .map_err(|e| CliError::failed(format_args!("map-e: {e}")))
        }
        _ => {
            let first = args.u16("port")?;
            if !args.exact("-") {
                return Err(args.bad("port-range", "`<first> - <last>`"));
            }
            let last = args.u16("port")?;
            Scheme::range(first, last)
                .map_err(|e| CliError::failed(format_args!("port-range {first} - {last}: {e}")))
        }
    }
}
