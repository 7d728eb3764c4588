//! `nat44 add load-balancing static mapping`.

use crate::cli_support::{failed, finish};
use crate::mapping_words::{Family, MappingWords, Names};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `nat44 add load-balancing static mapping`
pub struct Nat44AddLoadBalancingStaticMapping;

/// The command.
pub static COMMAND: Nat44AddLoadBalancingStaticMapping = Nat44AddLoadBalancingStaticMapping;

/// Takes the back ends: each `local <address>:<port> [vrf <table>] probability <share>`.
impl Command<Control> for Nat44AddLoadBalancingStaticMapping {
    fn path(&self) -> &'static str {
        "nat44 add load-balancing static mapping"
    }

    fn usage(&self) -> &'static str {
        "protocol tcp|udp external <address>:<port>\n    \
         {local <address>:<port> [vrf <table>] [probability <share>]} ...\n    \
         [twice-nat | self-twice-nat] [out2in-only] [affinity <seconds>]\n    \
         [tag <text>] [del]"
    }

    fn help(&self) -> &'static str {
        "Balance an external address and port over inside hosts, by probability\n\
         All packets of a flow go to the same host; with affinity, all flows of a client do."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (words, add) = MappingWords::take(Family::Balanced, args, Names::Of(c))?;
        finish(c, words.mapping(c)?, add).map_err(failed)?;
        Ok(Outcome::Done)
    }
}
