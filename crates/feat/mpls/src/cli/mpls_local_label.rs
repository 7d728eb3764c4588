//! `mpls local-label`: binds labels to paths.

use crate::{Bound, Key, Via};
use std::net::IpAddr;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::interface_names;
use thalweg_feat_ip::{label_arg, path_arg};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// Takes the prefix that a label is bound to.
fn prefix_arg(args: &mut Args<'_>) -> Result<(IpAddr, u8), CliError> {
    args.with("prefix", "a prefix such as 192.0.2.0/24 or 2001:db8::/32", |word| {
        let (address, len) = word.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let len = len.parse().ok()?;
        Bound::new(TableId(0), address, len).map(|_| (address, len))
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
         via via-label <label> [out-labels ...] | \
         via ip4-lookup-in-table <id> | via ip6-lookup-in-table <id> | \
         via mpls-lookup-in-table <id> | via rx-ip4 <interface> | via rx-ip6 <interface> | \
         via l2-input-on <interface> [pop-pw-cw] | via drop\n\
         mpls local-label [add|del] <label> <prefix> [table <id>] [mpls-table <id>]"
    }
    fn help(&self) -> &'static str {
        "Bind a label to paths\n\
         `eos' binds it where it is the bottom of the stack, `non-eos' (the default) where others\n\
         follow. The last of `out-labels' takes the place of the label, those before it are pushed.\n\
         Without any, or with `implicit-null', the label is popped. A further path of a label that\n\
         is bound shares its load by weight. A next hop without an interface is followed by the\n\
         routes of table 0. `via-label' follows another label of table 0 as it is bound where others\n\
         follow it: packets get its labels, too. `l2-input-on' has an interface receive the Ethernet frame behind the\n\
         bottom, such as an `mpls tunnel' with `l2-only'; `pop-pw-cw' takes the control word off.\n\
         `del' without paths deletes the label. Where the last label is popped, an IPv6 packet\n\
         follows if the next hop is one of IPv6, or the path `ip6-lookup-in-table' or `rx-ip6'.\n\
         `out-labels implicit-null uniform' has a packet that is popped or looked up take over the\n\
         label's TTL and class.\n\
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
                Some(_) => vias.push(Via::of(path_arg(c, args)?)),
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
            // The argument has been checked.
            let Some(to) = Bound::new(table, prefix.0, prefix.1) else { return Ok(Outcome::Done) };
            match verb {
                Some("del") => crate::unbind(c, id, label, to)?,
                _ => crate::bind(c, id, label, to)?,
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
            [.., "via", _] | [.., "rx-ip4" | "rx-ip6" | "l2-input-on"] => interface_names(c),
            [.., "via"] => {
                let words = "via-label ip4-lookup-in-table ip6-lookup-in-table mpls-lookup-in-table rx-ip4 \
                             rx-ip6 l2-input-on drop";
                words.split(' ').map(str::to_owned).collect()
            }
            _ => ["via", "out-labels", "eos", "non-eos", "table"].map(str::to_owned).into(),
        }
    }
}
