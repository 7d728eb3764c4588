//! `lcp param`.

use crate::form::OnOff;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_engine::setting::Form;
use thalweg_graph::Control;

/// `lcp param [del-static-on-link-down off] [del-dynamic-on-link-down off]`
pub struct LcpParam;

/// The command.
pub static COMMAND: LcpParam = LcpParam;

/// Switches of VPP that stay off: routes are those of the kernel, which has some by links without
/// carrier.
pub(crate) const WORDS: &[&str] = &["del-static-on-link-down", "del-dynamic-on-link-down"];

/// VPP's number for what it does not support.
const UNSUPPORTED: i32 = -126;

impl Command<Control> for LcpParam {
    fn path(&self) -> &'static str {
        "lcp param"
    }

    fn usage(&self) -> &'static str {
        "[del-static-on-link-down off] [del-dynamic-on-link-down off]"
    }

    fn help(&self) -> &'static str {
        "Accept that routes by a link without carrier stay as long as the kernel has them\n\
         VPP's switches cannot be on here. Of several next hops those by such links take no part."
    }

    fn run(
        &self,
        _: &mut Control,
        args: &mut Args<'_>,
        _: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        while !args.is_empty() {
            let word = args.choice("option", WORDS)?;
            if OnOff("state").take(args)? {
                let text = format_args!(
                    "{word} cannot be on: routes by a link without carrier stay as long as the \
                     kernel has them, and daemons remove theirs"
                );
                return Err(CliError::with_code(text, UNSUPPORTED));
            }
        }
        Ok(Outcome::Done)
    }
}
