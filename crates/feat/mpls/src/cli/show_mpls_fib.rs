//! `show mpls fib`: labels and what becomes of them.

use crate::label_table::{Action, Behind, To};
use crate::{LabelView, Mpls, MplsError, Via};
use serde_json::{Value, json};
use thalweg_cli::{Args, CliError, Command, Outcome, Output, pieces};
use thalweg_feat_ip::{PathKind, label_arg};
use thalweg_fib::rib::Mode;
use thalweg_fib::{Dpo, Forwarding, LookIn, PathText, Place, TableId, label_text};
use thalweg_graph::Control;
use thalweg_wire::mpls::Label;

/// The command's type.
pub struct ShowMplsFib;

/// The command.
pub static COMMAND: ShowMplsFib = ShowMplsFib;

/// Labels per element of the JSON list, and per slice.
const AT_ONCE: usize = 64;

impl Command<Control> for ShowMplsFib {
    fn path(&self) -> &'static str {
        "show mpls fib"
    }
    fn usage(&self) -> &'static str {
        "[<label>] [table <id>]"
    }
    fn help(&self) -> &'static str {
        "Show labels and their paths"
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (mut table, mut label) = (None, None);
        while !args.is_empty() {
            if args.exact("table") {
                table = Some(TableId(args.u32("table")?));
            } else if label.is_none() {
                label = Some(label_arg(args)?);
            } else {
                args.end()?;
            }
        }
        let mpls = c.state::<Mpls>();
        let ids: Vec<TableId> = mpls.borrow().tables().map(|(id, _)| id).collect();
        if let Some(id) = table.filter(|id| !ids.contains(id)) {
            return Err(MplsError::NoTable(id).into());
        }
        let tables = table.map_or(ids, |id| vec![id]);
        if let Some(label) = label {
            return one(c, &tables, label, out);
        }
        let mut at = Listed { tables, next: None };
        Ok(pieces(c, out, move |c, out| at.go(c, out)))
    }
}

fn heading(c: &Control, id: TableId) -> String {
    let mpls = c.state::<Mpls>();
    let mpls = mpls.borrow();
    let interfaces = mpls.enabled().filter(|_| id == TableId(0)).count();
    let locks = match interfaces {
        0 => String::new(),
        n => format!("interface:{n}, "),
    };
    format!("MPLS-VRF:{id}, fib_index:{id} locks:[{locks}CLI:1, ]")
}

fn one(
    c: &Control,
    tables: &[TableId],
    label: Label,
    out: &mut Output,
) -> Result<Outcome<Control>, CliError> {
    let mut json = Vec::new();
    for id in tables {
        let mpls = c.state::<Mpls>();
        let of = |v: &LabelView| v.key.label == label;
        let all: Vec<LabelView> = mpls.borrow().labels(*id, label).take_while(of).collect();
        if all.is_empty() {
            continue;
        }
        out.line(heading(c, *id));
        all.iter().for_each(|view| out.text(&text(c, *id, view)));
        let labels: Vec<Value> = all.iter().map(|view| as_json(c, view)).collect();
        json.push(json!({ "table": id.get(), "labels": labels }));
    }
    if json.is_empty() {
        let id = tables.first().copied().unwrap_or(TableId(0));
        return Err(MplsError::NoLabel(label_text(label), id).into());
    }
    out.json(json.into());
    Ok(Outcome::Done)
}

/// Lists tables some labels at a time.
struct Listed {
    tables: Vec<TableId>,
    /// Next label of the first one.
    next: Option<Label>,
}

impl Listed {
    fn go(&mut self, c: &Control, out: &mut Output) -> bool {
        let Some(&id) = self.tables.first() else {
            out.end_elements();
            return false;
        };
        let from = self.next.unwrap_or_else(|| {
            out.line(heading(c, id));
            Label(0)
        });
        let mpls = c.state::<Mpls>();
        let all: Vec<LabelView> = mpls.borrow().labels(id, from).take(AT_ONCE + 1).collect();
        // Both of a label's entries come at once.
        let more = all.get(AT_ONCE).map(|view| view.key.label);
        let now = all.iter().take_while(|view| Some(view.key.label) != more);
        let now: Vec<&LabelView> = now.collect();
        match out.wants_json() {
            true => {
                let labels: Vec<Value> = now.iter().map(|view| as_json(c, view)).collect();
                out.element(json!({ "table": id.get(), "labels": labels }));
            }
            false => now.iter().for_each(|view| out.text(&text(c, id, view))),
        }
        self.next = more;
        if more.is_none() {
            self.tables.remove(0);
        }
        true
    }
}

/// Place of a path, as VPP lists it.
fn place_text(c: &Control, via: &Via) -> String {
    match via.named(c).place {
        Place::NextHop { address, interface: None, .. } => address.to_string(),
        Place::Lookup(LookIn::Mpls, table) => format!("mpls fib-index:{table}"),
        Place::Lookup(_, table) => format!("fib-index:{table}"),
        Place::Receive(_, interface) => interface,
        Place::Layer2 { interface, control_word } => {
            format!("l2 {interface}{}", if control_word { " pop-pw-cw" } else { "" })
        }
        Place::End(PathKind::Local) => String::new(),
        place => place.to_string(),
    }
}

/// Word for who has bound a label.
fn source(view: &LabelView) -> &'static str {
    if view.vias.is_empty() { "special" } else { view.source.word() }
}

fn text(c: &Control, id: TableId, view: &LabelView) -> String {
    let (key, n) = (view.key, view.key.label);
    let index = n.get() << 1 | u32::from(key.eos);
    let mut lines = vec![format!("{key}/21 fib:{id} index:{index} locks:2")];
    lines.push(format!("  {} refs:1 src-flags:added,contributing,active,", source(view)));
    lines.extend(view.under.map(|under| format!("  {} refs:1 src-flags:added,", under.word())));
    if let Some(bound) = view.bound {
        let table = bound.version().table_name(bound.table());
        lines.push(format!("    bound to {} in {table}", bound.prefix()));
    }
    if !view.vias.is_empty() {
        lines.push(format!("    path-list:[{index}] locks:1 len:{}", view.vias.len()));
    }
    for (i, via) in view.vias.iter().enumerate() {
        let PathText { place, weight, preference, .. } = via.text();
        let (kind, place) = (place.listed(), place_text(c, via));
        lines.push(format!(
            "      path:[{i}] pl-index:{index} weight={weight} pref={preference} {kind}:  \
             oper-flags:resolved,"
        ));
        lines.push(format!("        {place}"));
    }
    let extended = view.vias.iter().enumerate().filter_map(|(i, via)| match via {
        Via::Path(p) | Via::Ip6(p) if !p.labels.as_slice().is_empty() => {
            Some(format!("     path:{i}  {}", p.labels.listed()))
        }
        _ => None,
    });
    let extended: Vec<String> = extended.collect();
    if !extended.is_empty() {
        lines.push("    Extensions:".into());
        lines.extend(extended);
    }
    lines.push(format!(" forwarding:   mpls-{}-chain", if key.eos { "eos" } else { "neos" }));
    lines.extend(chain(c, view));
    lines.join("\n") + "\n"
}

/// Returns the objects at the end of an object's packets.
fn ends(f: &Forwarding, dpo: Dpo) -> Vec<Dpo> {
    match f.is_group(dpo) {
        true => f.members(dpo).iter().flat_map(|m| ends(f, m.dpo)).collect(),
        false => vec![dpo],
    }
}

/// The members of an object, or itself, each as what packets meet by it.
pub(crate) fn members_text(c: &Control, f: &Forwarding, dpo: Dpo) -> Vec<String> {
    let one = |end: Dpo| f.describe(c, end).trim_end().to_owned();
    let text = |to: Dpo| ends(f, to).into_iter().map(one).collect::<Vec<_>>().join(", ");
    f.members(dpo).iter().map(|m| text(m.dpo)).collect()
}

/// Returns the fate of a label, in the structure that VPP prints.
fn chain(c: &Control, view: &LabelView) -> Vec<String> {
    let f = c.state::<Forwarding>();
    let f = f.borrow();
    let bit = if view.key.eos { "eos" } else { "neos" };
    let swapped = |label: Label| format!("mpls-label[@0]:[{}:64:0:{bit}]", label_text(label));
    let object = |dpo: Dpo| members_text(c, &f, dpo);
    let counts = match view.action {
        Action::Swap(_, dpo)
        | Action::Member(_, dpo)
        | Action::Ip(_, To::Sent(dpo))
        | Action::Pop(dpo) => f.counting().then(|| f.counts(dpo).to),
        _ => None,
    };
    let to = counts.map_or_else(String::new, |n| format!(" to:[{}:{}]", n.packets, n.bytes));
    let head = |n: usize| format!("  [@0]: dpo-load-balance: [proto:mpls buckets:{n}{to}]");
    match view.action {
        Action::Swap(label, dpo) => {
            let ends = object(dpo);
            let first = vec![head(1), format!("    [0] [@13]: {}", swapped(label))];
            first
                .into_iter()
                .chain(ends.into_iter().map(|e| format!("        [@1]: {e}")))
                .collect()
        }
        Action::Member(_, dpo) | Action::Ip(_, To::Sent(dpo)) | Action::Pop(dpo) => {
            let ends = object(dpo);
            let line = |(i, e): (usize, String)| {
                let labels = view.vias.get(i).and_then(|via| match via {
                    Via::Path(p) => p.labels.sent().as_slice().last().copied(),
                    _ => None,
                });
                let label = labels.filter(|_| matches!(view.action, Action::Member(..)));
                let label = label.map_or_else(String::new, |l| swapped(l) + " ");
                format!("    [{i}] [@1]: {label}{e}")
            };
            [head(ends.len())].into_iter().chain(ends.into_iter().enumerate().map(line)).collect()
        }
        Action::Ip(how, to) => vec![head(1), format!("    [0] [@0]: {}", behind(c, how, to))],
        Action::AnyIp(mode, id) => {
            let text = format!("    [0] [@0]: dst-address,unicast lookup in ip-VRF:{id}");
            vec![head(1), in_mode(text, mode)]
        }
        Action::ReceiveL2(sw_if, _) => {
            let name = c.interface_name(thalweg_device::SwIfIndex(sw_if));
            vec![head(1), format!("    [0] [@0]: interface-rx-dpo: {name} ethernet")]
        }
        Action::LookUpMpls(id) => {
            vec![head(1), format!("    [0] [@0]: dst-address,unicast lookup in MPLS-VRF:{id}")]
        }
        Action::LookUpMplsHere => {
            vec![
                head(1),
                "    [0] [@0]: dst-address,unicast lookup in interface's mpls table".into(),
            ]
        }
        Action::Punt => vec![head(1), "    [0] [@0]: dpo-punt".into()],
        Action::Drop | Action::Miss => vec![head(1), "    [0] [@0]: dpo-drop mpls".into()],
    }
}

/// Returns the fate of an IP packet behind a label that is not sent right away.
fn behind(c: &Control, how: Behind, to: To) -> String {
    let text = match to {
        To::LookedUp(id) => {
            format!("dst-address,unicast lookup in {}", how.version.table_name(id))
        }
        To::Here => {
            let link = how.version.link().name();
            format!("dst-address,unicast lookup in interface's {link} table")
        }
        To::Received(sw_if) => {
            let name = c.interface_name(thalweg_device::SwIfIndex(sw_if));
            format!("interface-rx-dpo: {name} {}", how.version.protocol())
        }
        To::Sent(dpo) => format!("dpo-idx {dpo}"),
    };
    in_mode(text, how.mode)
}

fn in_mode(text: String, mode: Mode) -> String {
    if mode == Mode::Pipe { text } else { format!("{text} {}", mode.word()) }
}

fn as_json(c: &Control, view: &LabelView) -> Value {
    let path = |via: &Via| {
        let named = via.named(c);
        let mut path = named.json();
        let kind = match via {
            Via::Path(_) | Via::Ip6(_) => {
                let is_ip6 = matches!(via, Via::Ip6(_));
                path["protocol"] = if is_ip6 { "ip6" } else { "ip4" }.into();
                named.place.listed()
            }
            Via::Mpls(_) => "mpls-lookup",
            Via::AnyIp(..) => named.place.listed(),
            Via::Layer2 { control_word, .. } => {
                path["control_word"] = (*control_word).into();
                "l2-input"
            }
        };
        path["kind"] = kind.into();
        path
    };
    json!({
        "label": view.key.label.get(),
        "eos": view.key.eos,
        "source": source(view),
        "bound_to": view.bound.map(|bound| {
            json!({ "prefix": bound.prefix(), "table": bound.table().get() })
        }),
        "paths": view.vias.iter().map(path).collect::<Vec<_>>(),
        "forwarding": chain(c, view).iter().map(|line| line.trim().to_owned()).collect::<Vec<_>>(),
    })
}
