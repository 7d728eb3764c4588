//! What the commands have in common.

use crate::NatError;
use crate::mapping::TwiceNat;
use crate::state::{self, StaticMapping};
use crate::tuple::MAX_TABLE;
use std::net::{Ipv4Addr, SocketAddrV4};
use thalweg_cli::{Args, CliError};
use thalweg_device::{SwIfIndex, interface_arg};
use thalweg_graph::Control;
use thalweg_wire::ip;

/// What was refused, as a command's failure.
pub(crate) fn failed(e: NatError) -> CliError {
    let code = match &e {
        NatError::Device(e) => e.code(),
        NatError::Memory(_) => -12,
        NatError::Exists(_) => -81,
        NatError::Missing(_) => -6,
        NatError::Invalid(_) => -7,
    };
    CliError::with_code(e, code)
}

/// `<address>:<port>`
pub(crate) fn endpoint(args: &mut Args<'_>, what: &str) -> Result<SocketAddrV4, CliError> {
    args.parsed(what, "an address and a port, such as 192.0.2.1:80")
}

/// A protocol with ports, if one is named.
pub(crate) fn protocol(args: &mut Args<'_>) -> Option<u8> {
    let words =
        [("tcp", ip::protocol::TCP), ("udp", ip::protocol::UDP), ("icmp", ip::protocol::ICMP)];
    words.into_iter().find(|(word, _)| args.keyword(word)).map(|(_, number)| number)
}

/// A port, if the mapping has a protocol.
pub(crate) fn mapped_port(args: &mut Args<'_>, protocol: u8) -> Result<u16, CliError> {
    match protocol {
        0 => Ok(0),
        ip::protocol::ICMP => args.u16("identifier"),
        _ => Ok(args.number("port", 1, 65_535)? as u16),
    }
}

/// An address outside, or an interface that has it.
pub(crate) fn external(
    c: &Control,
    args: &mut Args<'_>,
) -> Result<(Ipv4Addr, Option<SwIfIndex>), CliError> {
    match args.maybe(|args| args.ipv4("address")) {
        Some(address) => Ok((address, None)),
        None => Ok((Ipv4Addr::UNSPECIFIED, Some(interface_arg(c, args)?))),
    }
}

/// What may stand at the end of a mapping.
pub(crate) struct Options {
    pub(crate) table: u32,
    pub(crate) twice: TwiceNat,
    pub(crate) out2in_only: bool,
    pub(crate) add: bool,
}

impl Options {
    pub(crate) fn take(args: &mut Args<'_>) -> Result<Options, CliError> {
        let mut o = Options { table: 0, twice: TwiceNat::Never, out2in_only: false, add: true };
        while !args.is_empty() {
            match () {
                () if args.keyword("vrf") => {
                    o.table = args.number("table", 0, u64::from(MAX_TABLE))? as u32;
                }
                () if args.keyword("twice-nat") => o.twice = TwiceNat::Always,
                () if args.keyword("self-twice-nat") => o.twice = TwiceNat::OfItself,
                () if args.keyword("out2in-only") => o.out2in_only = true,
                () if args.exact("del") => o.add = false,
                () => args.end()?,
            }
        }
        Ok(o)
    }
}

/// Adds or removes a mapping.
pub(crate) fn finish(c: &mut Control, m: StaticMapping, add: bool) -> Result<(), NatError> {
    if add { state::add_mapping(c, m) } else { state::del_mapping(c, &m) }
}
