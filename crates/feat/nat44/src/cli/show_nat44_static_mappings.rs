//! `show nat44 static mappings`.

use crate::Nat44;
use crate::mapping_words::{Family, MappingWords};
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_fib::TableId;
use thalweg_graph::Control;

/// `show nat44 static mappings`
pub struct ShowNat44StaticMappings;

/// The command.
pub static COMMAND: ShowNat44StaticMappings = ShowNat44StaticMappings;

impl Command<Control> for ShowNat44StaticMappings {
    fn path(&self) -> &'static str {
        "show nat44 static mappings"
    }

    fn help(&self) -> &'static str {
        "Show static mappings, identity mappings and load balancing"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let nat = c.state::<Nat44>();
        let nat = nat.borrow();
        out.line("NAT44 static mappings:");
        let mut rows = Vec::new();
        for m in nat.mappings() {
            let words = MappingWords::of(c, m, TableId(0));
            let (family, text) = (words.family, words.to_string());
            let kind = match family {
                Family::Static => "",
                Family::Identity => "identity mapping ",
                Family::Balanced => "load-balancing ",
            };
            out.line(format_args!(" {kind}{text}"));
            rows.push(json!({ "kind": family.key(), "mapping": text }));
        }
        out.json(rows.into());
        Ok(Outcome::Done)
    }
}
