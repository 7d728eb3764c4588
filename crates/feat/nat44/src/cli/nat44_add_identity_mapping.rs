//! `nat44 add identity mapping`.

use crate::cli_support::{failed, finish};
use crate::mapping_words::{Family, MappingWords, Names};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `nat44 add identity mapping`
pub struct Nat44AddIdentityMapping;

/// The command.
pub static COMMAND: Nat44AddIdentityMapping = Nat44AddIdentityMapping;

impl Command<Control> for Nat44AddIdentityMapping {
    fn path(&self) -> &'static str {
        "nat44 add identity mapping"
    }

    fn usage(&self) -> &'static str {
        "{<address> | external <interface>} [tcp|udp|icmp <port>] [vrf <table>]\n    \
         [tag <text>] [del]"
    }

    fn help(&self) -> &'static str {
        "Map an inside address, or a port of it, to itself, so that it is not translated"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (words, add) = MappingWords::take(Family::Identity, args, Names::Of(c))?;
        finish(c, words.mapping(c)?, add).map_err(failed)?;
        Ok(Outcome::Done)
    }
}
