//! `show ip punt redirect`: where punted packets go.

use crate::cli_args::kind_word;
use crate::family::version_text;
use crate::{Path, PathKind, labels_text, redirect};
use serde_json::json;
use std::marker::PhantomData;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_fib::Forwarding;
use thalweg_graph::Control;
use thalweg_tables::Address;

/// `show ip punt redirect`, and the same for another version.
pub struct ShowIpPuntRedirect<A>(pub PhantomData<fn(A)>);

/// The command.
pub static COMMAND: ShowIpPuntRedirect<u32> = ShowIpPuntRedirect(PhantomData);

/// A path as it is typed after `via`.
fn text(c: &Control, path: &Path) -> String {
    let mut words = match path.kind {
        PathKind::Normal => Vec::new(),
        PathKind::Lookup(table) => vec![format!("lookup in table {table}")],
        kind => vec![kind_word(kind).to_owned()],
    };
    words.extend(path.next_hop.map(|hop| hop.to_string()));
    words.extend(path.via_label.map(|label| format!("via-label {label}")));
    words.extend(path.sw_if.map(|sw_if| c.interface_name(sw_if)));
    words.extend(path.table.map(|table| format!("next-hop-table {table}")));
    if path.weight != 1 {
        words.push(format!("weight {}", path.weight));
    }
    if path.preference != 0 {
        words.push(format!("preference {}", path.preference));
    }
    words.join(" ") + &labels_text(&path.labels)
}

impl<A: Address> Command<Control> for ShowIpPuntRedirect<A> {
    fn path(&self) -> &'static str {
        version_text!(A: "show ", WORD, " punt redirect")
    }

    fn help(&self) -> &'static str {
        version_text!(A: "Show where punted ", NAME, " packets go, by the interface that receives \
                     them\n`all' is for interfaces without a redirect of their own.")
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let mut rows = Vec::new();
        for (rx_if, paths, dpo) in redirect::all::<A>(c) {
            let rx = redirect::rx_name(c, rx_if);
            out.line(format_args!(" rx {rx} via:"));
            let paths: Vec<String> = paths.iter().map(|path| text(c, path)).collect();
            for path in &paths {
                out.line(format_args!("   {path}"));
            }
            let forwarding = c.state::<Forwarding>().borrow().describe(c, dpo);
            out.line(format_args!(" forwarding\n  {forwarding}"));
            rows.push(json!({ "rx": rx, "paths": paths, "forwarding": forwarding }));
        }
        out.json(json!(rows));
        Ok(Outcome::Done)
    }
}
