//! `lcp ethertype`.

use crate::protocols;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;
use thalweg_wire::ethernet::ethertype as known;

/// `lcp ethertype enable|disable <hex>|<name>`
pub struct LcpEthertype;

/// The command.
pub static COMMAND: LcpEthertype = LcpEthertype;

/// Ethertypes by VPP's names.
const NAMES: [(&str, u16); 5] = [
    ("802_1_lldp", known::LLDP),
    ("lldp", known::LLDP),
    ("lacp", known::SLOW),
    ("pppoe-discovery", known::PPPOE_DISCOVERY),
    ("pppoe-session", known::PPPOE_SESSION),
];

/// Takes an ethertype: a number in base 16, or a name.
fn take(args: &mut Args<'_>) -> Result<u16, CliError> {
    let word = args.word("ethertype")?;
    let lower = word.to_ascii_lowercase();
    let digits = lower.strip_prefix("0x").unwrap_or(&lower);
    let named = NAMES.iter().find(|(name, _)| *name == lower).map(|(_, kind)| *kind);
    let found = named.or_else(|| u16::from_str_radix(digits, 16).ok());
    found.ok_or_else(|| args.bad_last("ethertype", "a number such as 0x88cc, or lldp"))
}

impl Command<Control> for LcpEthertype {
    fn path(&self) -> &'static str {
        "lcp ethertype"
    }

    fn usage(&self) -> &'static str {
        "enable|disable <ethertype>"
    }

    fn help(&self) -> &'static str {
        "Pass frames of an ethertype between interfaces and their twins\n\
         The ethertype is in base 16, such as 88cc, or lldp. Those that the router handles itself\n\
         cannot be passed."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let on = args.enable_disable("state")?;
        let kind = take(args)?;
        args.end()?;
        protocols::set_ethertype(c, kind, on)?;
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, before: &[&str], _: &str) -> Vec<String> {
        match before {
            [] => vec!["enable".into(), "disable".into()],
            [_] => vec!["lldp".into(), "0x88cc".into()],
            _ => Vec::new(),
        }
    }
}
