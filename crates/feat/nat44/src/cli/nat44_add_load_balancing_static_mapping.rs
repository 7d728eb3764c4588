//! `nat44 add load-balancing static mapping`.

use crate::cli_support::{Options, endpoint, failed, finish, service};
use crate::mapping::{Backend, Mapping};
use crate::state::StaticMapping;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_wire::nat::tuple::MAX_TABLE;

/// `nat44 add load-balancing static mapping`
pub struct Nat44AddLoadBalancingStaticMapping;

/// The command.
pub static COMMAND: Nat44AddLoadBalancingStaticMapping = Nat44AddLoadBalancingStaticMapping;

/// Takes the back ends: each `local <address>:<port> [vrf <table>] probability <share>`.
fn backends(args: &mut Args<'_>) -> Result<Vec<Backend>, CliError> {
    let mut all: Vec<Backend> = Vec::new();
    while args.keyword("local") {
        let at = endpoint(args, "address and port of the back end")?;
        let mut table = 0;
        if args.keyword("vrf") {
            table = args.number("table", 0, u64::from(MAX_TABLE))? as u32;
        }
        let mut share = 1;
        if args.keyword("probability") {
            share = args.number("share", 1, 255)? as u8;
        }
        all.push(Backend { address: *at.ip(), port: at.port(), table: TableId(table), share });
    }
    Ok(all)
}

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
        let (external, ip) = service(args)?;
        let backends = backends(args)?;
        let options = Options::take(c, args)?;
        options.without_exact()?;
        if options.add && backends.is_empty() {
            return Err(CliError::failed("back ends expected: `local' and an address and port"));
        }
        let mapping = Mapping {
            protocol: ip,
            external: *external.ip(),
            external_port: external.port(),
            local: std::net::Ipv4Addr::UNSPECIFIED,
            local_port: 0,
            table: TableId(0),
            twice: options.twice,
            out2in_only: options.out2in_only,
            backends,
            affinity: options.affinity,
            exact: None,
        };
        let m = StaticMapping { mapping, external_if: None, identity: false, tag: options.tag };
        finish(c, m, options.add).map_err(failed)?;
        Ok(Outcome::Done)
    }
}
