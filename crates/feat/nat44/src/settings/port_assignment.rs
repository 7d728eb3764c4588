//! `nat addr-port-assignment-alg`.

use crate::cli_args::scheme_text;
use crate::ports::Scheme;
use crate::section::{tuned, tuning};
use crate::state::set_scheme;
use thalweg_cli::{Args, CliError};
use thalweg_engine::setting::{Form, Global};

/// The ports of pool addresses that sessions may use.
pub struct SchemeForm;

impl Form for SchemeForm {
    type Value = Scheme;

    fn usage(&self) -> &'static str {
        "default | map-e psid <n> psid-offset <bits> psid-len <bits> | port-range <first> - <last>"
    }

    fn take(&self, args: &mut Args<'_>) -> Result<Scheme, CliError> {
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

    fn words(&self, scheme: &Scheme) -> String {
        scheme_text(*scheme)
    }

    fn complete(&self, before: &[&str]) -> Vec<String> {
        match before {
            [] => vec!["default".into(), "map-e".into(), "port-range".into()],
            ["map-e"] => vec!["psid".into()],
            ["map-e", "psid", _] => vec!["psid-offset".into()],
            ["map-e", "psid", _, "psid-offset", _] => vec!["psid-len".into()],
            _ => Vec::new(),
        }
    }
}

/// The ports of pool addresses that sessions may use.
pub static SETTING: Global<SchemeForm> = Global {
    command: "nat addr-port-assignment-alg",
    help: "Set the ports of pool addresses that sessions may use: all from 1024 on, those of a MAP-E port\n\
           set (RFC 7597), or a range. A change ends all sessions with such a port.",
    form: SchemeForm,
    key: "thalweg.nat44.port-assignment",
    default: || Scheme::All,
    get: |c| tuned(c, |nat| nat.scheme()),
    set: |c, scheme| Ok(set_scheme(c, scheme)?),
    rare: tuning(),
};
