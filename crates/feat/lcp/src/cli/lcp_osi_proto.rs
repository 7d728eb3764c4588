//! `lcp osi-proto`.

use crate::protocols;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `lcp osi-proto enable|disable <number>`
pub struct LcpOsiProto;

/// The command.
pub static COMMAND: LcpOsiProto = LcpOsiProto;

impl Command<Control> for LcpOsiProto {
    fn path(&self) -> &'static str {
        "lcp osi-proto"
    }

    fn usage(&self) -> &'static str {
        "enable|disable <protocol>"
    }

    fn help(&self) -> &'static str {
        "Pass frames of an OSI protocol between interfaces and their twins\n\
         The protocol is its identifier (ISO/IEC TR 9577): 0x83 IS-IS, 0x82 ES-IS, 0x81 CLNP."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let on = args.enable_disable("state")?;
        let word = args.word("protocol")?;
        let number = match word.strip_prefix("0x") {
            Some(digits) => u8::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        };
        let number = number.ok_or_else(|| args.bad_last("protocol", "a number such as 0x83"))?;
        args.end()?;
        protocols::set_osi(c, number, on);
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, before: &[&str], _: &str) -> Vec<String> {
        match before {
            [] => vec!["enable".into(), "disable".into()],
            [_] => ["0x81", "0x82", "0x83"].map(String::from).into(),
            _ => Vec::new(),
        }
    }
}
