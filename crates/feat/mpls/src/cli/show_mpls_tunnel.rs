//! `show mpls tunnel`.

use super::show_mpls_fib::members_text;
use crate::Via;
use crate::tunnels::{Tunnel, Tunnels};
use serde_json::{Value, json};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_feat_ip::Path;
use thalweg_fib::{Forwarding, PathText};
use thalweg_graph::Control;

/// The command's type.
pub struct ShowMplsTunnel;

/// The command.
pub static COMMAND: ShowMplsTunnel = ShowMplsTunnel;

impl Command<Control> for ShowMplsTunnel {
    fn path(&self) -> &'static str {
        "show mpls tunnel"
    }
    fn usage(&self) -> &'static str {
        "[<number>]"
    }
    fn help(&self) -> &'static str {
        "Show tunnels of labels and their paths"
    }
    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let number = if args.is_empty() { None } else { Some(args.u32("number")?) };
        args.end()?;
        let tunnels = c.state::<Tunnels>();
        let tunnels = tunnels.borrow();
        let all = tunnels.iter().filter(|t| number.is_none_or(|n| t.number == n));
        let all: Vec<&Tunnel> = all.collect();
        match (all.is_empty(), number) {
            (true, Some(n)) => {
                let text = format_args!("no MPLS tunnel {n}; `show mpls tunnel' lists them");
                return Err(CliError::failed(text));
            }
            (true, None) => out.line("No MPLS tunnels configured..."),
            _ => {}
        }
        for tunnel in &all {
            text(c, tunnel).into_iter().for_each(|line| out.line(line));
        }
        out.json(all.iter().map(|tunnel| as_json(c, tunnel)).collect::<Vec<_>>().into());
        Ok(Outcome::Done)
    }
}

/// Returns the objects that packets meet, in the structure that VPP prints.
fn chain(c: &Control, tunnel: &Tunnel) -> Vec<String> {
    let f = c.state::<Forwarding>();
    let f = f.borrow();
    members_text(c, &f, tunnel.object())
}

fn path_text(c: &Control, p: &Path) -> String {
    // The share stands before the place.
    let written = PathText { weight: 1, preference: 0, ..Via::Path(*p).named(c) };
    format!("weight={} pref={} {written}", p.weight, p.preference)
}

fn text(c: &Control, tunnel: &Tunnel) -> Vec<String> {
    let (name, i) = (c.interface_name(tunnel.sw_if), tunnel.sw_if);
    let mut lines = vec![format!("[@{}] {name}: sw_if_index:{i} hw_if_index:{i}", tunnel.number)];
    let flags = [(tunnel.layer2, "L2,"), (tunnel.control_word, "control-word,")];
    let flags: String = flags.iter().filter(|(on, _)| *on).map(|(_, word)| *word).collect();
    if !flags.is_empty() {
        lines.push(format!(" flags:{flags}"));
    }
    lines.push(" via:".into());
    for (n, path) in tunnel.paths.iter().enumerate() {
        lines.push(format!("  path:[{n}] {}", path_text(c, path)));
    }
    lines.push(format!(" forwarding: {}", if tunnel.layer2 { "ethernet" } else { "ip4" }));
    lines.extend(chain(c, tunnel).iter().map(|end| format!("  {end}")));
    lines
}

fn as_json(c: &Control, tunnel: &Tunnel) -> Value {
    let path = |p: &Path| Via::Path(*p).named(c).json();
    json!({
        "number": tunnel.number,
        "interface": c.interface_name(tunnel.sw_if),
        "sw_if_index": tunnel.sw_if.get(),
        "l2_only": tunnel.layer2,
        "control_word": tunnel.control_word,
        "paths": tunnel.paths.iter().map(path).collect::<Vec<_>>(),
        "forwarding": chain(c, tunnel),
    })
}
