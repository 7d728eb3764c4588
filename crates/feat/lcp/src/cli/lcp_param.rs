//! `lcp param`.

use crate::form::OnOff;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_engine::setting::Form;
use thalweg_graph::Control;

/// `lcp param [del-static-on-link-down on|off] [del-dynamic-on-link-down on|off]`
pub struct LcpParam;

/// The command.
pub static COMMAND: LcpParam = LcpParam;

/// Switches of VPP, which change nothing: routes are those of the kernel, which removes those by a
/// link that goes down.
pub(crate) const WORDS: &[&str] = &["del-static-on-link-down", "del-dynamic-on-link-down"];

impl Command<Control> for LcpParam {
    fn path(&self) -> &'static str {
        "lcp param"
    }

    fn usage(&self) -> &'static str {
        "[del-static-on-link-down on|off] [del-dynamic-on-link-down on|off]"
    }

    fn help(&self) -> &'static str {
        "Accept VPP's switches for routes by a link that goes down, which change nothing\n\
         The router follows the kernel, which removes such routes."
    }

    fn run(
        &self,
        _: &mut Control,
        args: &mut Args<'_>,
        _: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        while !args.is_empty() {
            args.choice("option", WORDS)?;
            OnOff("state").take(args)?;
        }
        Ok(Outcome::Done)
    }
}
