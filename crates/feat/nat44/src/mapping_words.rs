//! Static mappings in words, of commands and of documents: one parser and one printer.

use crate::cli_support::{endpoint, mapped_port, protocol, service};
use crate::mapping::{Backend, Mapping, TwiceNat};
use crate::state::{self, StaticMapping};
use std::fmt;
use std::net::Ipv4Addr;
use thalweg_cli::{Args, CliError};
use thalweg_device::interface_arg;
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_wire::ip::protocol as number;
use thalweg_wire::nat::tuple::MAX_TABLE;

/// Commands that add mappings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    /// `nat44 add static mapping`
    Static,
    /// `nat44 add identity mapping`
    Identity,
    /// `nat44 add load-balancing static mapping`
    Balanced,
}

impl Family {
    pub(crate) const ALL: [Family; 3] = [Family::Static, Family::Identity, Family::Balanced];

    /// Its list in a configuration document.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Family::Static => "static-mappings",
            Family::Identity => "identity-mappings",
            Family::Balanced => "load-balancing",
        }
    }

    /// Its command.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Family::Static => "nat44 add static mapping",
            Family::Identity => "nat44 add identity mapping",
            Family::Balanced => "nat44 add load-balancing static mapping",
        }
    }
}

/// An external address, or the interface that has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outside {
    Address(Ipv4Addr),
    Interface(String),
}

/// Interfaces that words may name.
#[derive(Clone, Copy)]
pub(crate) enum Names<'a> {
    /// Names that exist.
    Of(&'a Control),
    /// Any: they may come later.
    Any,
}

/// A mapping in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MappingWords {
    pub(crate) family: Family,
    protocol: u8,
    pub(crate) outside: Outside,
    outside_port: u16,
    local: (Ipv4Addr, u16),
    backends: Vec<Backend>,
    /// Table of the inside host; `None` for the inside VRF.
    table: Option<TableId>,
    twice: TwiceNat,
    out2in_only: bool,
    affinity: u32,
    exact: Option<Ipv4Addr>,
    tag: String,
}

impl MappingWords {
    /// Takes all arguments of a family's command; false if the last says `del`.
    ///
    /// # Errors
    /// If a word is missing or wrong.
    pub(crate) fn take(
        family: Family,
        args: &mut Args<'_>,
        names: Names<'_>,
    ) -> Result<(MappingWords, bool), CliError> {
        let mut words = MappingWords {
            family,
            protocol: 0,
            outside: Outside::Address(Ipv4Addr::UNSPECIFIED),
            outside_port: 0,
            local: (Ipv4Addr::UNSPECIFIED, 0),
            backends: Vec::new(),
            table: None,
            twice: TwiceNat::Never,
            out2in_only: false,
            affinity: 0,
            exact: None,
            tag: String::new(),
        };
        match family {
            Family::Static => words.take_static(args, names)?,
            Family::Identity => {
                let _ = args.keyword("external");
                words.outside = outside(args, names)?;
                words.protocol = protocol(args).unwrap_or(0);
                words.outside_port = mapped_port(args, words.protocol)?;
            }
            Family::Balanced => {
                let (external, ip) = service(args)?;
                words.protocol = ip;
                words.outside = Outside::Address(*external.ip());
                words.outside_port = external.port();
                words.backends = backends(args)?;
            }
        }
        let add = words.take_options(args)?;
        words.check(add)?;
        Ok((words, add))
    }

    fn take_static(&mut self, args: &mut Args<'_>, names: Names<'_>) -> Result<(), CliError> {
        self.protocol = protocol(args).unwrap_or(0);
        if !args.keyword("local") {
            return Err(args.bad("inside host", "`local' and its address"));
        }
        self.local = (args.ipv4("inside address")?, mapped_port(args, self.protocol)?);
        if !args.keyword("external") {
            return Err(args.bad("external address", "`external' and an address or interface"));
        }
        self.outside = outside(args, names)?;
        self.outside_port = mapped_port(args, self.protocol)?;
        Ok(())
    }

    /// Takes what is at the end of a mapping, in any order.
    fn take_options(&mut self, args: &mut Args<'_>) -> Result<bool, CliError> {
        let mut add = true;
        while !args.is_empty() {
            match () {
                () if args.keyword("vrf") => self.table = Some(table(args)?),
                () if args.keyword("twice-nat") => self.twice = TwiceNat::Always,
                () if args.keyword("self-twice-nat") => self.twice = TwiceNat::SelfOnly,
                () if args.keyword("out2in-only") => self.out2in_only = true,
                () if args.keyword("affinity") => {
                    self.affinity = args.number("seconds", 0, state::MAX_AFFINITY.into())? as u32;
                }
                () if args.keyword("exact") => self.exact = Some(args.ipv4("pool address")?),
                () if args.keyword("tag") => self.tag = args.word("tag")?.to_owned(),
                () if args.exact("del") => add = false,
                () => args.end()?,
            }
        }
        Ok(add)
    }

    /// Checks options against each other, and drops those without effect on the family.
    fn check(&mut self, add: bool) -> Result<(), CliError> {
        if self.family == Family::Static {
            self.affinity = 0;
            return match (self.protocol, self.twice) {
                (0, TwiceNat::Always | TwiceNat::SelfOnly) => {
                    Err(CliError::failed("twice-nat requires a protocol and ports"))
                }
                _ => Ok(()),
            };
        }
        if self.exact.is_some() {
            let text = "`exact' applies to static mappings with twice-nat only";
            return Err(CliError::failed(text));
        }
        if self.family == Family::Identity {
            (self.twice, self.out2in_only, self.affinity) = (TwiceNat::Never, false, 0);
        } else {
            self.table = None;
            if add && self.backends.is_empty() {
                let text = "back ends expected: `local' and an address and port";
                return Err(CliError::failed(text));
            }
        }
        Ok(())
    }

    /// Reads the words of a document, where hosts are in `inside` unless they say otherwise.
    ///
    /// # Errors
    /// The errors of [`MappingWords::take`].
    pub(crate) fn read(
        family: Family,
        text: &str,
        inside: TableId,
    ) -> Result<MappingWords, CliError> {
        let mut args = Args::parse(text)?;
        let (mut words, add) = MappingWords::take(family, &mut args, Names::Any)?;
        if !add {
            return Err(CliError::failed("a mapping without `del' expected"));
        }
        words.table = words.table.filter(|table| *table != inside);
        Ok(words)
    }

    /// Returns the words of an existing mapping.
    pub(crate) fn of(c: &Control, m: &StaticMapping, inside: TableId) -> MappingWords {
        let Mapping { protocol, external, external_port, local, local_port, table, .. } = m.mapping;
        let family = match m.mapping.backends.is_empty() {
            _ if m.identity => Family::Identity,
            false => Family::Balanced,
            true => Family::Static,
        };
        let of_interface = |sw_if| Outside::Interface(c.interface_name(sw_if));
        MappingWords {
            family,
            protocol,
            outside: m.external_if.map_or(Outside::Address(external), of_interface),
            outside_port: external_port,
            local: (local, local_port),
            backends: m.mapping.backends.clone(),
            table: Some(table).filter(|table| *table != inside && family != Family::Balanced),
            twice: m.mapping.twice,
            out2in_only: m.mapping.out2in_only,
            affinity: m.mapping.affinity,
            exact: m.mapping.exact,
            tag: m.tag.clone(),
        }
    }

    /// The mapping that it names in a router.
    ///
    /// # Errors
    /// If there is no such interface.
    pub(crate) fn mapping(self, c: &Control) -> Result<StaticMapping, CliError> {
        let (external, external_if) = match &self.outside {
            Outside::Address(address) => (*address, None),
            Outside::Interface(name) => {
                (Ipv4Addr::UNSPECIFIED, Some(interface_arg(c, &mut Args::parse(name)?)?))
            }
        };
        let identity = self.family == Family::Identity;
        let (local, local_port) = if identity { (external, self.outside_port) } else { self.local };
        let table = match self.family {
            Family::Balanced => TableId(0),
            _ => self.table.unwrap_or_else(|| state::inside_vrf(c)),
        };
        let mapping = Mapping {
            protocol: self.protocol,
            external,
            external_port: self.outside_port,
            local,
            local_port,
            table,
            twice: self.twice,
            out2in_only: self.out2in_only,
            backends: self.backends,
            affinity: self.affinity,
            exact: self.exact,
        };
        Ok(StaticMapping { mapping, external_if, identity, tag: self.tag })
    }
}

/// The arguments of the family's command.
impl fmt::Display for MappingWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.protocol {
            0 => "",
            number::TCP => "tcp",
            number::UDP => "udp",
            _ => "icmp",
        };
        let outside = match &self.outside {
            Outside::Address(address) => address.to_string(),
            Outside::Interface(name) => name.clone(),
        };
        let has_ports = self.protocol != 0;
        let port = |port: u16| if has_ports { format!(" {port}") } else { String::new() };
        match self.family {
            Family::Static => {
                let ((local, local_port), blank) = (self.local, if has_ports { " " } else { "" });
                write!(f, "{kind}{blank}local {local}{}", port(local_port))?;
                write!(f, " external {outside}{}", port(self.outside_port))?;
            }
            Family::Identity => {
                let of_interface = matches!(self.outside, Outside::Interface(_));
                write!(f, "{}{outside}", if of_interface { "external " } else { "" })?;
                if has_ports {
                    write!(f, " {kind} {}", self.outside_port)?;
                }
            }
            Family::Balanced => {
                write!(f, "protocol {kind} external {outside}:{}", self.outside_port)?;
                for Backend { address, port, table, share } in &self.backends {
                    write!(f, " local {address}:{port}")?;
                    if *table != TableId(0) {
                        write!(f, " vrf {table}")?;
                    }
                    write!(f, " probability {share}")?;
                }
            }
        }
        if let Some(table) = self.table {
            write!(f, " vrf {table}")?;
        }
        f.write_str(match self.twice {
            TwiceNat::Never => "",
            TwiceNat::Always => " twice-nat",
            TwiceNat::SelfOnly => " self-twice-nat",
        })?;
        if self.out2in_only {
            f.write_str(" out2in-only")?;
        }
        if let Some(address) = self.exact {
            write!(f, " exact {address}")?;
        }
        if self.affinity != 0 {
            write!(f, " affinity {}", self.affinity)?;
        }
        if !self.tag.is_empty() {
            write!(f, " tag '{}'", self.tag)?;
        }
        Ok(())
    }
}

/// Takes an external address, or the interface that has it.
fn outside(args: &mut Args<'_>, names: Names<'_>) -> Result<Outside, CliError> {
    match args.maybe(|args| args.ipv4("address")) {
        Some(address) => Ok(Outside::Address(address)),
        None if args.at_address() => args.ipv4("address").map(Outside::Address),
        None => match names {
            Names::Of(c) => {
                interface_arg(c, args).map(|sw_if| Outside::Interface(c.interface_name(sw_if)))
            }
            Names::Any => args.word("interface").map(|name| Outside::Interface(name.to_owned())),
        },
    }
}

/// Takes the number of a routing table.
pub(crate) fn table(args: &mut Args<'_>) -> Result<TableId, CliError> {
    args.number("table", 0, MAX_TABLE.into()).map(|table| TableId(table as u32))
}

/// Takes the words of a back end after `local`.
pub(crate) fn backend(args: &mut Args<'_>) -> Result<Backend, CliError> {
    let at = endpoint(args, "address and port of the back end")?;
    let (mut of, mut share) = (TableId(0), 1);
    if args.keyword("vrf") {
        of = table(args)?;
    }
    if args.keyword("probability") {
        share = args.number("share", 1, 255)? as u8;
    }
    Ok(Backend { address: *at.ip(), port: at.port(), table: of, share })
}

fn backends(args: &mut Args<'_>) -> Result<Vec<Backend>, CliError> {
    let mut all = Vec::new();
    while args.keyword("local") {
        all.push(backend(args)?);
    }
    Ok(all)
}
