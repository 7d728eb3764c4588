//! `set interface l2 tag-rewrite`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::interface_arg;
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SetInterfaceL2TagRewrite = SetInterfaceL2TagRewrite;

/// The command's type.
pub struct SetInterfaceL2TagRewrite;

impl Command<Control> for SetInterfaceL2TagRewrite {
    fn path(&self) -> &'static str {
        "set interface l2 tag-rewrite"
    }
    fn usage(&self) -> &'static str {
        "<interface> disable"
    }
    fn help(&self) -> &'static str {
        "Set VLAN tag rewriting of an interface; only `disable' is supported\n\
         Frames keep their tags. The command exists as vppcfg plans contain it for every cross connect."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        interface_arg(cx, args)?;
        args.choice("operation", &["disable"])?;
        args.end()?;
        Ok(Outcome::Done)
    }
    fn complete(&self, cx: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        thalweg_device::interface_names(cx)
    }
}
