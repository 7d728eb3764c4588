//! `mpls local-label`: binds labels to paths.

use crate::{Key, Via};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_feat_ip::{label_arg, path_arg};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// The command's type.
pub struct MplsLocalLabel;

/// The command.
pub static COMMAND: MplsLocalLabel = MplsLocalLabel;

impl Command<Control> for MplsLocalLabel {
    fn path(&self) -> &'static str {
        "mpls local-label"
    }
    fn usage(&self) -> &'static str {
        "[add|del|replace] <label> [eos|non-eos] [table <id>] via <next hop> <interface> \
         [out-labels <label> ...] [weight <n>] [preference <n>] [via ...] | \
         via ip4-lookup-in-table <id> | via mpls-lookup-in-table <id> | via rx-ip4 <interface> | \
         via drop"
    }
    fn help(&self) -> &'static str {
        "Bind a label to paths\n\
         `eos' binds it where it is the bottom of the stack, `non-eos' (the default) where others\n\
         follow. The last of `out-labels' takes the place of the label, those before it are pushed.\n\
         Without any, or with `implicit-null', the label is popped. A further path of a label that\n\
         is bound shares its load by weight. `del' without paths deletes the label."
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let verb = args.one_of_exact(&["add", "del", "replace"]);
        let (mut label, mut eos, mut table, mut vias) = (None, false, TableId(0), Vec::new());
        while !args.is_empty() {
            match args.one_of_exact(&["eos", "non-eos", "table", "via"]) {
                Some("eos") => eos = true,
                Some("non-eos") => eos = false,
                Some("table") => table = TableId(args.u32("table")?),
                Some(_) if args.exact("mpls-lookup-in-table") => {
                    vias.push(Via::Mpls(TableId(args.u32("table")?)));
                }
                Some(_) => vias.push(Via::Path(path_arg(c, args)?)),
                None if label.is_none() => label = Some(label_arg(args)?),
                None => args.end()?,
            }
        }
        let Some(label) = label else {
            return Err(CliError::failed("local-label required: a number up to 1048575"));
        };
        let key = Key { label, eos };
        match verb {
            Some("del") => crate::del_label(c, table, key, &vias)?,
            verb => crate::add_label(c, table, key, vias, verb == Some("replace"))?,
        }
        Ok(Outcome::Done)
    }
    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [.., "via", _] | [.., "rx-ip4"] => thalweg_device::interface_names(c),
            [.., "via"] => ["ip4-lookup-in-table", "mpls-lookup-in-table", "rx-ip4", "drop"]
                .map(str::to_owned)
                .into(),
            _ => ["via", "out-labels", "eos", "non-eos", "table"].map(str::to_owned).into(),
        }
    }
}
