//! `nat44 add identity mapping`.

use crate::cli_support::{Options, external, failed, finish, mapped_port, protocol};
use crate::mapping::{Mapping, TwiceNat};
use crate::state::StaticMapping;
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
        let _ = args.keyword("external");
        let (address, external_if) = external(c, args)?;
        let ip = protocol(args).unwrap_or(0);
        let port = mapped_port(args, ip)?;
        let options = Options::take(c, args)?;
        options.without_exact()?;
        let mapping = Mapping {
            protocol: ip,
            external: address,
            external_port: port,
            local: address,
            local_port: port,
            table: options.table,
            twice: TwiceNat::Never,
            out2in_only: false,
            backends: Vec::new(),
            affinity: 0,
            exact: None,
        };
        finish(
            c,
            StaticMapping { mapping, external_if, identity: true, tag: options.tag },
            options.add,
        )
        .map_err(failed)?;
        Ok(Outcome::Done)
    }
}
