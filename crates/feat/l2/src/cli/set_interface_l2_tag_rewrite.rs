//! `set interface l2 tag-rewrite`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{TagKind, TagRewrite, VlanTag, interface_arg};
use thalweg_graph::Control;
use thalweg_wire::vlan::{MAX_ID, VlanId};

/// The command.
pub static COMMAND: SetInterfaceL2TagRewrite = SetInterfaceL2TagRewrite;

/// The command's type.
pub struct SetInterfaceL2TagRewrite;

impl Command<Control> for SetInterfaceL2TagRewrite {
    fn path(&self) -> &'static str {
        "set interface l2 tag-rewrite"
    }
    fn usage(&self) -> &'static str {
        "<interface> disable | pop {1|2} | push {dot1q|dot1ad} <vlan> [<vlan>] | \
         translate {1-1|1-2|2-1|2-2} {dot1q|dot1ad} <vlan> [<vlan>]"
    }
    fn help(&self) -> &'static str {
        "Set what an interface in layer 2 changes about the VLAN tags of its frames\n\
         Outer tags of frames that it receives are removed, added or replaced; frames that it\n\
         sends are changed back. Priorities (802.1p) stay with the frames."
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let rewrite = rewrite(args)?;
        args.end()?;
        let json = serde_json::json!({ "index": sw_if.get(), "rewrite": rewrite.to_string() });
        crate::set_tag_rewrite(c, sw_if, rewrite).map_err(thalweg_device::command_line::refused)?;
        out.json(json);
        Ok(Outcome::Done)
    }
    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect();
        match before {
            [] => thalweg_device::interface_names(c),
            [_] => words(&["disable", "pop", "push", "translate"]),
            [_, "pop"] => words(&["1", "2"]),
            [_, "translate"] => words(&["1-1", "1-2", "2-1", "2-2"]),
            [_, "push"] | [_, "translate", _] => words(&["dot1q", "dot1ad"]),
            _ => Vec::new(),
        }
    }
}

/// Takes a rewrite.
///
/// # Errors
/// If the words are not one.
pub(crate) fn rewrite(args: &mut Args<'_>) -> Result<TagRewrite, CliError> {
    let (pop, least, most) =
        match args.choice("operation", &["disable", "pop", "push", "translate"])? {
            "disable" => return Ok(TagRewrite::NONE),
            "pop" => return Ok(TagRewrite::pop(args.number("number of tags", 1, 2)? as usize)),
            "push" => (0, 1, 2),
            _ => match args.choice("operation", &["1-1", "1-2", "2-1", "2-2"])? {
                "1-1" => (1, 1, 1),
                "1-2" => (1, 2, 2),
                "2-1" => (2, 1, 1),
                _ => (2, 2, 2),
            },
        };
    let mut kind = match args.choice("kind of tag", &["dot1q", "dot1ad"])? {
        "dot1q" => TagKind::Dot1q,
        _ => TagKind::Dot1ad,
    };
    let mut push = Vec::new();
    while push.len() < least || (push.len() < most && !args.is_empty()) {
        let id = args.number("VLAN id", 1, u64::from(MAX_ID.0))? as u16;
        push.push(VlanTag { kind, id: VlanId(id) });
        kind = TagKind::Dot1q;
    }
    Ok(TagRewrite { pop, push })
}
