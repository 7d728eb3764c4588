//! `show interface vtr`: what interfaces change about VLAN tags.

use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{Interfaces, TagRewrite, interface_arg, interface_names};
use thalweg_graph::Control;

/// The command.
pub static COMMAND: ShowInterfaceVtr = ShowInterfaceVtr;

/// The command's type.
pub struct ShowInterfaceVtr;

impl Command<Control> for ShowInterfaceVtr {
    fn path(&self) -> &'static str {
        "show interface vtr"
    }
    fn usage(&self) -> &'static str {
        "[<interface> …]"
    }
    fn help(&self) -> &'static str {
        "Show which interfaces change VLAN tags in layer 2, and how"
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let mut chosen = Vec::new();
        while !args.is_empty() {
            chosen.push(interface_arg(c, args)?);
        }
        let all = c.state::<Interfaces>();
        let all = all.borrow();
        let is_shown = |v: &&thalweg_device::InterfaceView| match chosen.is_empty() {
            true => !v.rewrite.is_none(),
            false => chosen.contains(&v.sw_if),
        };
        let mut list = Vec::new();
        for v in all.iter().filter(is_shown) {
            out.line(format!("{}:  VTR {}", v.name, vpps_words(&v.rewrite)));
            list.push(json!({ "interface": v.name, "rewrite": v.rewrite.to_string() }));
        }
        out.json(json!({ "interfaces": list }));
        Ok(Outcome::Done)
    }
    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        interface_names(c)
    }
}

/// A rewrite as VPP's clients read it: `none`, `pop-1`, `trans-1-2 dot1ad 100 200`.
pub(crate) fn vpps_words(rewrite: &TagRewrite) -> String {
    let mut tags = String::new();
    if let Some(outer) = rewrite.push.first() {
        tags = format!(" {}", outer.kind);
        rewrite.push.iter().for_each(|tag| tags += &format!(" {}", tag.id));
    }
    match (rewrite.pop, rewrite.push.len()) {
        (0, 0) => "none".into(),
        (0, n) => format!("push-{n}{tags}"),
        (n, 0) => format!("pop-{n}"),
        (n, m) => format!("trans-{n}-{m}{tags}"),
    }
}
