//! `nat44 add load-balancing back-end`.

use crate::cli_support::{failed, service};
use crate::{mapping_words, state};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `nat44 add load-balancing back-end`
pub struct Nat44AddLoadBalancingBackEnd;

/// The command.
pub static COMMAND: Nat44AddLoadBalancingBackEnd = Nat44AddLoadBalancingBackEnd;

impl Command<Control> for Nat44AddLoadBalancingBackEnd {
    fn path(&self) -> &'static str {
        "nat44 add load-balancing back-end"
    }

    fn usage(&self) -> &'static str {
        "protocol tcp|udp external <address>:<port>\n    \
         local <address>:<port> [vrf <table>] [probability <share>] [del]"
    }

    fn help(&self) -> &'static str {
        "Add a back end to a load-balancing mapping, or delete it\n\
         Existing flows stay with their back end; those of a deleted one end."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let (external, ip) = service(args)?;
        if !args.keyword("local") {
            return Err(args.bad("back end", "`local' and an address and port"));
        }
        let backend = mapping_words::backend(args)?;
        let add = !args.exact("del");
        args.end()?;
        let key = (*external.ip(), external.port(), ip);
        state::set_backend(c, key, backend, add).map_err(failed)?;
        Ok(Outcome::Done)
    }
}
