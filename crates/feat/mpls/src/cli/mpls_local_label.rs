//! `mpls local-label`: binds labels to paths.

use crate::{Key, Via};
use std::net::Ipv4Addr;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{interface_arg, interface_names};
use thalweg_feat_ip::{label_arg, path_arg};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_tables::Ipv4Prefix;

/// Takes the prefix that a label is bound to.
fn prefix_arg(args: &mut Args<'_>) -> Result<Ipv4Prefix, CliError> {
    args.with("prefix", "an IPv4 prefix such as 192.0.2.0/24", |word| {
        let (address, len) = word.split_once('/')?;
        let address: Ipv4Addr = address.parse().ok()?;
        Ipv4Prefix::new(address.to_bits(), len.parse().ok()?).ok()
    })
}

/// The command's type.
pub struct MplsLocalLabel;

/// The command.
pub static COMMAND: MplsLocalLabel = MplsLocalLabel;

impl Command<Control> for MplsLocalLabel {
    fn path(&self) -> &'static str {
        "mpls local-label"
    }
    fn usage(&self) -> &'static str {
        "[add|del|replace] <label> [eos|non-eos] [table <id>] via <next hop> [<interface>] \
         [out-labels <label> ...] [weight <n>] [preference <n>] [via ...] | \
         via ip4-lookup-in-table <id> | via mpls-lookup-in-table <id> | via rx-ip4 <interface> | \
         via l2-input-on <interface> [pop-pw-cw] | via drop\n\
         mpls local-label [add|del] <label> <prefix> [table <id>] [mpls-table <id>]"
    }
    fn help(&self) -> &'static str {
        "Bind a label to paths\n\
         `eos' binds it where it is the bottom of the stack, `non-eos' (the default) where others\n\
         follow. The last of `out-labels' takes the place of the label, those before it are pushed.\n\
         Without any, or with `implicit-null', the label is popped. A further path of a label that\n\
         is bound shares its load by weight. A next hop without an interface is followed by the\n\
         routes of table 0. `l2-input-on' has an interface receive the Ethernet frame behind the\n\
         bottom, such as an `mpls tunnel' with `l2-only'; `pop-pw-cw' takes the control word off.\n\
         `del' without paths deletes the label.\n\
         With a prefix, the label follows the prefix's route of the IP table: the route's labels\n\
         take its place, or it is popped."
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let verb = args.one_of_exact(&["add", "del", "replace"]);
        let (mut label, mut prefix, mut vias) = (None, None, Vec::new());
        let (mut eos, mut table, mut mpls_table) = (None, TableId(0), None);
        while !args.is_empty() {
            match args.one_of_exact(&["eos", "non-eos", "table", "mpls-table", "via"]) {
                Some("eos") => eos = Some(true),
                Some("non-eos") => eos = Some(false),
                Some("table") => table = TableId(args.u32("table")?),
                Some("mpls-table") => mpls_table = Some(TableId(args.u32("table")?)),
                Some(_) if args.exact("mpls-lookup-in-table") => {
                    vias.push(Via::Mpls(TableId(args.u32("table")?)));
                }
                Some(_) if args.exact("l2-input-on") => {
                    let sw_if = interface_arg(c, args)?;
                    vias.push(Via::Layer2 { sw_if, control_word: args.exact("pop-pw-cw") });
                }
                Some(_) => vias.push(Via::Path(path_arg(c, args)?)),
                None if label.is_none() => label = Some(label_arg(args)?),
                None if prefix.is_none() && args.peek().is_some_and(|w| w.contains('/')) => {
                    prefix = Some(prefix_arg(args)?);
                }
                None => args.end()?,
            }
        }
        let Some(label) = label else {
            return Err(CliError::failed("local-label required: a number up to 1048575"));
        };
        if let Some(prefix) = prefix {
            if !vias.is_empty() || eos.is_some() {
                let text = "a label of a prefix has no paths of its own, and follows the route as \
                            `eos' and `non-eos'";
                return Err(CliError::failed(text));
            }
            let id = mpls_table.unwrap_or(TableId(0));
            match verb {
                Some("del") => crate::unbind(c, id, label, (table, prefix))?,
                _ => crate::bind(c, id, label, (table, prefix))?,
            }
            return Ok(Outcome::Done);
        }
        let (table, key) = (mpls_table.unwrap_or(table), Key { label, eos: eos.unwrap_or(false) });
        match verb {
            Some("del") => crate::del_label(c, table, key, &vias)?,
            verb => crate::add_label(c, table, key, vias, verb == Some("replace"))?,
        }
        Ok(Outcome::Done)
    }
    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [.., "via", _] | [.., "rx-ip4" | "l2-input-on"] => interface_names(c),
            [.., "via"] => {
                ["ip4-lookup-in-table", "mpls-lookup-in-table", "rx-ip4", "l2-input-on", "drop"]
                    .map(str::to_owned)
                    .into()
            }
            _ => ["via", "out-labels", "eos", "non-eos", "table"].map(str::to_owned).into(),
        }
    }
}
