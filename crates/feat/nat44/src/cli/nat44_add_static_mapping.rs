//! `nat44 add static mapping`.

use crate::cli_support::{Options, external, failed, finish, mapped_port, protocol};
use crate::mapping::{Mapping, TwiceNat};
use crate::state::StaticMapping;
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
        let ip = protocol(args).unwrap_or(0);
        if !args.keyword("local") {
            return Err(args.bad("inside host", "`local' and its address"));
        }
        let local = args.ipv4("inside address")?;
        let local_port = mapped_port(args, ip)?;
        if !args.keyword("external") {
            return Err(args.bad("external address", "`external' and an address or interface"));
        }
        let (external, external_if) = external(c, args)?;
        let external_port = mapped_port(args, ip)?;
        let options = Options::take(c, args)?;
        let mapping = Mapping {
            protocol: ip,
            external,
            external_port,
            local,
            local_port,
            table: options.table,
            twice: options.twice,
            out2in_only: options.out2in_only,
            backends: Vec::new(),
            affinity: 0,
            exact: options.exact,
        };
        if ip == 0 && options.twice != TwiceNat::Never {
            return Err(CliError::failed("twice-nat requires a protocol and ports"));
        }
        let m = StaticMapping { mapping, external_if, identity: false, tag: options.tag };
        finish(c, m, options.add).map_err(failed)?;
        Ok(Outcome::Done)
    }
}
