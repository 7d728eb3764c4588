//! `load witness`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `load witness trial <n> seed <n> | window`
pub struct LoadWitness;

/// The command.
pub static COMMAND: LoadWitness = LoadWitness;

impl Command<Control> for LoadWitness {
    fn path(&self) -> &'static str {
        "load witness"
    }

    fn usage(&self) -> &'static str {
        "trial <n> seed <n> | window"
    }

    fn help(&self) -> &'static str {
        "Note the first packets of the load tester that are dropped\n\
         `trial' begins with nothing noted: packets of streams are, those with tags of this trial\n\
         and seed. `window' has packets of connections noted from now on, too. `show load witness'\n\
         lists both, and ends it."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        match args.choice("what to note", &["trial", "window"])? {
            "trial" => {
                let trial = args.number("trial", 0, u8::MAX.into())? as u8;
                args.choice("seed", &["seed"])?;
                let seed = args.number("seed", 0, u64::MAX)?;
                args.end()?;
                crate::witness(c, trial, seed).map_err(CliError::failed)?;
            }
            _ => {
                args.end()?;
                crate::witness_talks(c);
            }
        }
        Ok(Outcome::Done)
    }
}
