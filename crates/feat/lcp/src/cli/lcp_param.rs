//! `lcp param`.

use crate::form::OnOff;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_engine::setting::{Form, Refused};
use thalweg_graph::Control;

/// VPP's number for what it does not support.
const UNSUPPORTED: i32 = -126;

/// A word that is about routes of the kernel, which the router does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} removes routes that come from the kernel, and the router does not take such routes yet: \
     leave it off"
)]
pub(crate) struct NeedsRoutes(pub(crate) &'static str);

/// `lcp param [del-static-on-link-down on|off] [del-dynamic-on-link-down on|off]`
pub struct LcpParam;

/// The command.
pub static COMMAND: LcpParam = LcpParam;

pub(crate) const WORDS: &[&str] = &["del-static-on-link-down", "del-dynamic-on-link-down"];

impl Command<Control> for LcpParam {
    fn path(&self) -> &'static str {
        "lcp param"
    }

    fn usage(&self) -> &'static str {
        "[del-static-on-link-down on|off] [del-dynamic-on-link-down on|off]"
    }

    fn help(&self) -> &'static str {
        "Have the kernel's routes by an interface stay when its link goes down\n\
         `on', by which they would go, is refused: the router does not take the kernel's routes yet."
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
                return Err(Refused::new(UNSUPPORTED, NeedsRoutes(word)).into());
            }
        }
        Ok(Outcome::Done)
    }
}
