//! `show ip punt redirect`: where punted packets go.

use crate::family::{Version, version_text};
use crate::{Path, redirect};
use serde_json::json;
use std::marker::PhantomData;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_fib::{Forwarding, PathText};
use thalweg_graph::Control;
use thalweg_tables::Address;

/// `show ip punt redirect`, and the same for another version.
pub struct ShowIpPuntRedirect<A>(pub PhantomData<fn(A)>);

/// The command.
pub static COMMAND: ShowIpPuntRedirect<u32> = ShowIpPuntRedirect(PhantomData);

/// A path as it is typed after `via`.
fn text<A: Address>(c: &Control, path: &Path) -> String {
    PathText::of(path, Version::of::<A>()).map(|i| c.interface_name(i)).to_string()
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
            let paths: Vec<String> = paths.iter().map(|path| text::<A>(c, path)).collect();
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
