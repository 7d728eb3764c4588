//! `load impair`.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::interface_arg;
use thalweg_graph::Control;

use crate::impair::Impairment;

/// `load impair <port> lose <n> …`
pub struct LoadImpair;

/// The command.
pub static COMMAND: LoadImpair = LoadImpair;

/// Longest delay in microseconds: ten seconds.
const MAX_DELAY: u64 = 10_000_000;

impl Command<Control> for LoadImpair {
    fn path(&self) -> &'static str {
        "load impair"
    }

    fn usage(&self) -> &'static str {
        "<port> none | [lose <n>] [damage <n>] [repeat <n>] [delay <us>] [jitter <us>] [seed <n>] \
         [min-bytes <n>] [max-bytes <n>] [first <ms>]"
    }

    fn help(&self) -> &'static str {
        "Lose, damage, repeat or delay packets that an interface receives\n\
         `lose', `damage' and `repeat' concern one packet in n, at random by the seed: those of\n\
         min-bytes to max-bytes, in the first milliseconds from now. Delay and jitter are in\n\
         microseconds, and for ports of the load tester only, as is `repeat'. Each command\n\
         replaces the one before:\n\
         load impair load0 lose 100000 min-bytes 1000"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(c, args)?;
        let mut wanted = Impairment { seed: 1, ..Impairment::default() };
        if !args.exact("none") {
            let words = [
                "lose",
                "damage",
                "repeat",
                "delay",
                "jitter",
                "seed",
                "min-bytes",
                "max-bytes",
                "first",
            ];
            let any = u64::from(u32::MAX);
            let mut given = 0;
            while let Some(word) = args.one_of(&words)? {
                given += 1;
                let mut number = |most| args.number(word, 1, most);
                match word {
                    "lose" => wanted.lose = number(any)? as u32,
                    "damage" => wanted.damage = number(any)? as u32,
                    "repeat" => wanted.repeat = number(any)? as u32,
                    "delay" => wanted.delay = number(MAX_DELAY)? as u32,
                    "jitter" => wanted.jitter = number(MAX_DELAY)? as u32,
                    "seed" => wanted.seed = number(u64::MAX)?,
                    "min-bytes" => wanted.min_bytes = number(65_535)? as u32,
                    "max-bytes" => wanted.max_bytes = number(65_535)? as u32,
                    _ => wanted.first = number(3_600_000)? as u32,
                }
            }
            if given == 0 {
                return Err(args.bad("impairment", format!("none, or {}", words.join(", "))));
            }
        }
        args.end()?;
        crate::impair(c, sw_if, wanted).map_err(CliError::failed)?;
        Ok(Outcome::Done)
    }
}
