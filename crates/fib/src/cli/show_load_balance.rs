//! `show load-balance`: groups of forwarding objects.

use crate::{Dpo, Forwarding};
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, pieces};
use thalweg_graph::Control;

/// `show load-balance [<index>]`
pub struct ShowLoadBalance;

/// The command.
pub static COMMAND: ShowLoadBalance = ShowLoadBalance;

impl Command<Control> for ShowLoadBalance {
    fn path(&self) -> &'static str {
        "show load-balance"
    }

    fn usage(&self) -> &'static str {
        "[<index>]"
    }

    fn help(&self) -> &'static str {
        "Show the groups that spread packets over several paths\n\
         Only routes with several paths, or whose next hop another route leads to, have one."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let only = if args.is_empty() { None } else { Some(args.u32("index")?) };
        args.end()?;
        if let Some(index) = only
            && !c.state::<Forwarding>().borrow().is_group(Dpo(index))
        {
            let text = format!("no group {index}: `show load-balance' lists them");
            return Err(CliError::with_code(text, -6));
        }
        let mut next = 0;
        Ok(pieces(c, out, move |c, out| {
            let state = c.state::<Forwarding>();
            let f = state.borrow();
            if next >= f.high_water() {
                out.end_elements();
                return false;
            }
            let dpo = Dpo(next);
            next += 1;
            if f.is_group(dpo) && only.is_none_or(|index| index == dpo.get()) {
                show(&f, c, dpo, out);
            }
            true
        }))
    }
}

fn show(f: &Forwarding, c: &Control, dpo: Dpo, out: &mut Output) {
    let members = f.members(dpo);
    out.line(format_args!("[index:{}] {} members", dpo.get(), members.len()));
    let mut values = Vec::new();
    for (i, member) in members.iter().enumerate() {
        let text = f.describe(c, member.dpo);
        out.line(format_args!("  [{i}] weight:{} [@{}] {text}", member.weight, member.dpo.get()));
        values.push(json!({
            "index": member.dpo.get(), "weight": member.weight, "description": text,
        }));
    }
    out.element(json!({ "index": dpo.get(), "members": values }));
}
