//! `nat44 add static mapping`.

use crate::cli_support::{failed, finish};
use crate::mapping_words::{Family, MappingWords, Names};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `nat44 add static mapping`
pub struct Nat44AddStaticMapping;

/// The command.
pub static COMMAND: Nat44AddStaticMapping = Nat44AddStaticMapping;

impl Command<Control> for Nat44AddStaticMapping {
    fn path(&self) -> &'static str {
        "nat44 add static mapping"
    }

    fn usage(&self) -> &'static str {
        "[tcp|udp|icmp] local <address> [<port>] external {<address> | <interface>} [<port>]\n    \
         [vrf <table>] [twice-nat | self-twice-nat] [out2in-only]\n    \
         [exact <pool-address>] [tag <text>] [del]"
    }

    fn help(&self) -> &'static str {
        "Map an external address, or a port of it, to an inside host\n\
         Without a protocol, all ports are mapped. With twice-nat, addresses of external hosts are\n\
         translated as well; with self-twice-nat, only that of the host itself. With out2in-only,\n\
         sessions opened from inside do not use the mapping. With exact, external hosts are translated\n\
         to this address of the twice-nat pool only."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (words, add) = MappingWords::take(Family::Static, args, Names::Of(c))?;
        finish(c, words.mapping(c)?, add).map_err(failed)?;
        Ok(Outcome::Done)
    }
}
