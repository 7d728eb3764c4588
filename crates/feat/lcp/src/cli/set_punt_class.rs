//! `set punt class`.

use crate::class::Class;
use crate::gate;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set punt class <class> <packets-per-second>|default`
pub struct SetPuntClass;

/// The command.
pub static COMMAND: SetPuntClass = SetPuntClass;

impl Command<Control> for SetPuntClass {
    fn path(&self) -> &'static str {
        "set punt class"
    }

    fn usage(&self) -> &'static str {
        "bgp|ospf|bfd|isis|ldp|pim|igmp|arp|nd|vrrp|icmp|dhcp|lldp|tcp|other \
         <packets-per-second>|default"
    }

    fn help(&self) -> &'static str {
        "Set how many packets of a class go to the twin of an interface per second\n\
         The limit holds for each interface on each worker; 0 drops all. `show punt' shows limits and\n\
         what they have dropped."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let names = Class::ALL.map(Class::name);
        let name = args.choice("class", &names)?;
        let rate = match args.keyword("default") {
            true => None,
            false => Some(args.u32("packets per second")?),
        };
        args.end()?;
        if let Some(class) = Class::named(name) {
            gate::set_rate(c, class, rate);
        }
        Ok(Outcome::Done)
    }
}
