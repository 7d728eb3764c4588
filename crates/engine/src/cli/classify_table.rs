//! `classify table`: makes tables of patterns, for traces and captures.

use crate::classify::{Classifier, NONE, Table, words};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::control::Control;

/// `classify table mask ... [next-table <n>] | table <n> [next-table <n>] [del] [del-chain]`
pub struct ClassifyTable;

/// The command.
pub static COMMAND: ClassifyTable = ClassifyTable;

const WORDS: [&str; 9] =
    ["mask", "table", "next-table", "buckets", "memory-size", "skip", "match", "del", "del-chain"];

impl Command<Control> for ClassifyTable {
    fn path(&self) -> &'static str {
        "classify table"
    }

    /// `cl run' goes on to mean `clear runtime'.
    fn listed(&self) -> bool {
        false
    }

    fn usage(&self) -> &'static str {
        "mask <fields> [buckets <n>] [next-table <n>] | table <n> [next-table <n>] [del] [del-chain]"
    }

    fn help(&self) -> &'static str {
        "Make a classifier table, have it lead to another, or remove it\n\
         Prints the number of a new one. Its mask is in the words of `classify filter', and how many\n\
         vectors of 16 bytes it skips and has follows from it; `skip' and `match' have to agree.\n\
         `classify session' adds what it hits, the binary API makes it a filter\n\
         (`classify_trace_set_table'), `trace filter include table <n>' shows only what it hits.\n\
         `next-table 4294967295' has it lead to none. `buckets' is kept, `memory-size' without effect: sessions share one limit."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (mut table, mut index, mut next) = (None, None, None);
        let (mut buckets, mut skip, mut vectors) = (2, None, None);
        let (mut del, mut chain) = (false, false);
        while !args.is_empty() {
            if args.peek() == Some("mask") {
                table = Some(Table::of_mask(&words::mask(args)?)?);
                continue;
            }
            match args.choice("option", &WORDS)? {
                "table" => index = Some(args.u32("table")?),
                "next-table" => next = Some(args.u32("table")?),
                "buckets" => buckets = args.number("buckets", 1, u32::MAX.into())? as u32,
                "memory-size" => drop(args.word("size")?),
                "skip" => skip = Some(args.u32("vectors")?),
                "match" => vectors = Some(args.u32("vectors")?),
                "del" => del = true,
                "del-chain" => (del, chain) = (true, true),
                _ => return Err(args.bad("mask", "`mask' and the fields that count")),
            }
        }
        args.end()?;
        let state = c.state::<Classifier>();
        let mut state = state.borrow_mut();
        let index = match (index, table, next) {
            (Some(index), _, _) if del => {
                state.remove(index, chain)?;
                index
            }
            (Some(index), None, Some(next)) if state.table(index).is_some() => {
                state.set_next(index, Some(next).filter(|next| *next != NONE))?;
                index
            }
            (None, Some(table), next) if !del => {
                let fits = |asked: Option<u32>, is| asked.is_none_or(|asked| asked == is);
                if !fits(skip, table.skip) || !fits(vectors, table.vectors()) {
                    return Err(CliError::with_code(
                        format!(
                            "the mask skips {} vectors and has {}: leave out `skip' and `match'",
                            table.skip,
                            table.vectors()
                        ),
                        -7,
                    ));
                }
                let index = state.add(Table { next, buckets, ..table })?;
                out.line(index);
                index
            }
            (Some(index), None, _) if state.table(index).is_none() => {
                return Err(crate::classify::ClassifyError::NoTable(index).into());
            }
            (Some(_), None, None) => {
                return Err(args.bad("change", "`next-table' and a number, or `del'"));
            }
            _ => return Err(args.bad("table", "`mask' for a new table, or `table' and its number")),
        };
        out.json(serde_json::json!({ "table": index, "deleted": del }));
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, _: &[&str], _: &str) -> Vec<String> {
        WORDS.map(String::from).into()
    }
}
