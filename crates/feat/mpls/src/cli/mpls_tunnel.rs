//! `mpls tunnel`: interfaces that put labels before what they send.

use crate::Via;
use crate::tunnels::{self, TunnelKind};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::command_line::{interface_maybe, interface_or};
use thalweg_device::{interface_arg, interface_names};
use thalweg_feat_ip::path_arg;
use thalweg_graph::Control;

/// The command's type.
pub struct MplsTunnel;

/// The command.
pub static COMMAND: MplsTunnel = MplsTunnel;

impl Command<Control> for MplsTunnel {
    fn path(&self) -> &'static str {
        "mpls tunnel"
    }
    fn usage(&self) -> &'static str {
        "[add] [<interface>] [l2-only [control-word]] via {<next hop> [<interface>] | via-label <label>} \
         out-labels <label> ... [weight <n>] [preference <n>] [via ...] | \
         set <interface> via ... | del <interface> [via ...]"
    }
    fn help(&self) -> &'static str {
        "Add a tunnel, an interface that puts labels before what it sends\n\
         The name of the new interface is printed; `mpls-tunnel<n>' makes that one. With an\n\
         interface that is there, `add' adds paths to it, and `set' replaces its paths. `l2-only'\n\
         makes an end of a pseudowire, a port for bridge domains and cross connects;\n\
         `control-word' puts a control word before its frames (RFC 4385). What comes back is\n\
         received by `mpls local-label add <label> eos via l2-input-on <interface>'."
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let verb = args.one_of_exact(&["add", "set", "del"]);
        let (mut number, mut sw_if) = (None, None);
        let mut kind = TunnelKind::default();
        const WORDS: [&str; 3] = ["l2-only", "control-word", "via"];
        let is_word = |w: &str| WORDS.contains(&w);
        if args.peek().is_some_and(|w| !is_word(w)) {
            let new = args.peek().and_then(|w| w.strip_prefix(tunnels::PREFIX)?.parse().ok());
            match interface_maybe(c, args) {
                Some(known) => sw_if = Some(known),
                None if new.is_some() && verb != Some("del") && verb != Some("set") => {
                    number = new;
                    args.word("interface")?;
                }
                None => _ = interface_or(c, args, "interface", &WORDS)?,
            }
        }
        let mut paths = Vec::new();
        while !args.is_empty() {
            match args.one_of_exact(&WORDS) {
                Some("l2-only") if sw_if.is_none() => kind.layer2 = true,
                Some("control-word") if kind.layer2 => kind.control_word = true,
                Some("via") => paths.push(tunnels::path(Via::of(path_arg(c, args)?))?),
                Some(word) => {
                    let text = format!("`{word}' belongs to a new tunnel: `l2-only control-word'");
                    return Err(CliError::failed(text));
                }
                None => args.end()?,
            }
        }
        match (verb, sw_if) {
            (Some("del"), Some(sw_if)) => tunnels::del_paths(c, sw_if, &paths)?,
            (Some("set"), Some(sw_if)) => tunnels::set_paths(c, sw_if, paths)?,
            (Some("del" | "set"), None) => _ = interface_arg(c, args)?,
            (_, Some(sw_if)) => tunnels::add_paths(c, sw_if, paths)?,
            (_, None) => {
                let sw_if = tunnels::create(c, number, kind, paths)?;
                out.line(c.interface_name(sw_if));
            }
        }
        Ok(Outcome::Done)
    }
    fn complete(&self, c: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        let words = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        match before {
            [] => words(&["add", "set", "del"]),
            ["set" | "del"] | [.., "via"] | [.., "via", _] => interface_names(c),
            _ => words(&["via", "out-labels", "l2-only", "control-word"]),
        }
    }
}
