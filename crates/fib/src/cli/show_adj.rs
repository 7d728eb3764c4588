//! `show adj`: the adjacencies, and what leads to them.

use crate::forwarding::Object;
use crate::{Dpo, Forwarding};
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, pieces};
use thalweg_device::SwIfIndex;
use thalweg_device::command_line::{interface_arg, interface_names};
use thalweg_graph::Control;

/// `show adj [nbr] [<index>|<interface>|summary]`
pub struct ShowAdj;

/// The command.
pub static COMMAND: ShowAdj = ShowAdj;

/// Adjacencies that are shown.
#[derive(Clone, Copy)]
struct Selection {
    /// True for adjacencies of neighbours only.
    neighbors: bool,
    index: Option<u32>,
    sw_if: Option<SwIfIndex>,
}

impl Selection {
    fn has(self, f: &Forwarding, dpo: Dpo) -> bool {
        let Some(slot) = f.objects.get(&dpo) else { return false };
        let is_one = match slot.object {
            Object::Adjacency { key, .. } => !self.neighbors || key.peer.address().is_some(),
            Object::Midchain { .. } => !self.neighbors,
            Object::Group(_) | Object::Plain => false,
        };
        let owner = f.owner(dpo).map(|(sw_if, _)| sw_if);
        is_one
            && self.index.is_none_or(|index| index == dpo.get())
            && self.sw_if.is_none_or(|sw_if| owner == Some(sw_if))
    }
}

impl Command<Control> for ShowAdj {
    fn path(&self) -> &'static str {
        "show adj"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["show adjacency"]
    }

    fn usage(&self) -> &'static str {
        "[nbr] [<index>|<interface>] [summary]"
    }

    fn help(&self) -> &'static str {
        "Show the adjacencies: neighbours and subnets that routes lead to\n\
         By index, with the number of routes, groups and neighbours that use each and, after\n\
         `adjacency counters enable', its packets and bytes. `nbr' leaves out those of subnets."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let mut selection = Selection { neighbors: false, index: None, sw_if: None };
        let mut summary = false;
        while !args.is_empty() {
            if args.exact("nbr") {
                selection.neighbors = true;
            } else if args.exact("summary") {
                summary = true;
            } else if let Some(index) = args.maybe(|args| args.u32("index")) {
                selection.index = Some(index);
            } else {
                selection.sw_if = Some(interface_arg(c, args)?);
            }
        }
        if let Some(index) = selection.index
            && !selection.has(&c.state::<Forwarding>().borrow(), Dpo(index))
        {
            let text = format!("no adjacency {index}: `show adj' lists them");
            return Err(CliError::with_code(text, -6));
        }
        let (mut next, mut count) = (0, 0u32);
        Ok(pieces(c, out, move |c, out| {
            let state = c.state::<Forwarding>();
            let f = state.borrow();
            if next >= f.high_water() {
                if summary {
                    out.line(format_args!("Number of adjacencies: {count}"));
                }
                out.end_elements();
                return false;
            }
            let dpo = Dpo(next);
            next += 1;
            if selection.has(&f, dpo) {
                count += 1;
                show(&f, c, dpo, !summary, out);
            }
            true
        }))
    }

    fn complete(&self, c: &Control, _: &[&str], _: &str) -> Vec<String> {
        let words = ["nbr", "summary"].map(String::from);
        words.into_iter().chain(interface_names(c)).collect()
    }
}

fn show(f: &Forwarding, c: &Control, dpo: Dpo, text: bool, out: &mut Output) {
    let (refs, counts) = (f.objects.get(&dpo).map_or(0, |slot| slot.refs), f.counts(dpo));
    let owner = f.owner(dpo);
    out.element(json!({
        "index": dpo.get(), "kind": f.kind(f.table.get(dpo).state().kind).name,
        "interface": owner.map(|(sw_if, _)| c.interface_name(sw_if)),
        "next_hop": owner.and_then(|(_, next_hop)| next_hop).map(|ip| ip.to_string()),
        "description": f.describe(c, dpo), "references": refs,
        "packets": counts.via.packets, "bytes": counts.via.bytes,
    }));
    if text {
        out.line(format_args!("[@{}] {}", dpo.get(), f.describe(c, dpo)));
        let traffic = match f.counting() {
            true => format!(", {} packets {} bytes", counts.via.packets, counts.via.bytes),
            false => String::new(),
        };
        out.line(format_args!("   references: {refs}{traffic}"));
    }
}
