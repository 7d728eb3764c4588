//! `set ip neighbor`: configures or deletes a neighbour.

use crate::args;
use crate::neighbors::{self, NeighborFlags};
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output, usage_words};
use thalweg_graph::Control;

/// `set ip neighbor [del] <interface> <ip> [<mac>] [static] [no-fib-entry] [del]`
pub struct SetIpNeighbor;

/// The command.
pub static COMMAND: SetIpNeighbor = SetIpNeighbor;

impl Command<Control> for SetIpNeighbor {
    fn path(&self) -> &'static str {
        "set ip neighbor"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["ip neighbor"]
    }

    fn usage(&self) -> &'static str {
        "[del] <interface> <ip> <mac> [static] [no-fib-entry] [del]"
    }

    fn help(&self) -> &'static str {
        "Configure a neighbour's MAC address, or delete a neighbour\n\
         A static neighbour stays until deleted; any other is probed like a learned one. With\n\
         `no-fib-entry' it gets no host route. `show ip neighbors' lists them."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let mut del = args.exact("del");
        let sw_if = args::interface(c, args)?;
        let ip = args.ip("neighbour's address")?;
        // Deleting needs no MAC address, but accepts one.
        let mac = if del || args.peek() == Some("del") {
            args.maybe(|a| a.mac("MAC address"))
        } else {
            Some(args.mac("MAC address")?)
        };
        let mut flags = NeighborFlags::default();
        while let Some(word) = args.one_of(&["static", "no-fib-entry", "del"])? {
            match word {
                "static" => flags.is_static = true,
                "no-fib-entry" => flags.no_fib_entry = true,
                _ => del = true,
            }
        }
        args.end()?;
        let mac = mac.filter(|_| !del);
        match mac {
            Some(mac) => neighbors::set(c, sw_if, ip, mac, flags).map_err(CliError::failed)?,
            None => neighbors::remove(c, sw_if, ip).map_err(CliError::failed)?,
        }
        let interface = c.interface_name(sw_if);
        out.json(json!({
            "interface": interface,
            "ip": ip.to_string(),
            "mac": mac.map(|m| m.to_string()),
            "static": flags.is_static,
            "no_fib_entry": flags.no_fib_entry,
            "deleted": del,
        }));
        Ok(Outcome::Done)
    }

    fn complete(&self, c: &Control, before: &[&str], _: &str) -> Vec<String> {
        match before {
            [] => [args::interfaces(c), vec!["del".into()]].concat(),
            ["del"] => args::interfaces(c),
            [_] | ["del", _] => Vec::new(),
            _ => usage_words(self.usage()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;

    #[test]
    fn both_spellings_set_and_delete() {
        let mut b = Bench::new();
        assert_eq!(b.cli("set ip neighbor test0 10.0.0.2 02:00:00:00:00:02 static"), "");
        assert_eq!(b.cli("ip neighbor test0 10.0.0.3 02:00:00:00:00:03"), "");
        let all = b.lab.c.state::<crate::Neighbors>().borrow().list();
        assert_eq!(all.len(), 2);
        assert!(all[0].is_static && !all[1].is_static);
        assert_eq!(b.cli("ip neighbor del test0 10.0.0.2"), "");
        assert_eq!(b.cli("set ip neighbor test0 10.0.0.3 02:00:00:00:00:03 del"), "");
        assert_eq!(b.cli("set ip neighbor test0 10.0.0.4 02:00:00:00:00:04 no-fib-entry"), "");
        assert_eq!(b.cli("set ip neighbor test0 10.0.0.4 del"), "");
        assert!(b.lab.c.state::<crate::Neighbors>().borrow().is_empty());
        b.finish();
    }

    #[test]
    fn refusals_say_why() {
        let mut b = Bench::new();
        for (line, want) in [
            ("set ip neighbor nope 10.0.0.2 02:00:00:00:00:02", "bad interface `nope'"),
            ("set ip neighbor test0 10.0.0.2 01:00:00:00:00:02", "not a unicast MAC address"),
            ("set ip neighbor test0 10.0.0.1 02:00:00:00:00:02", "the interface's own address"),
            ("set ip neighbor local0 10.0.0.2 02:00:00:00:00:02", "not an Ethernet interface"),
            ("set ip neighbor test0 10.0.0.2", "missing MAC address"),
            ("set ip neighbor test0 10.0.0 02:00:00:00:00:02", "bad neighbour's address"),
            ("set ip neighbor test0 10.0.0.9 del", "`show ip neighbors` lists them"),
            ("set ip neighbor test0 10.0.0.2 02:00:00:00:00:02 twice", "unexpected `twice'"),
        ] {
            let got = b.cli(line);
            assert!(got.contains(want), "{line}: {got}");
        }
        b.finish();
    }

    #[test]
    fn without_a_resolver_there_are_no_neighbours_of_the_family() {
        let mut lab = Bench::bare();
        for line in [
            "set ip neighbor test0 2001:db8::2 02:00:00:00:00:02",
            "set ip neighbor del test0 2001:db8::2",
            "set ip neighbor-config ip6 age 3",
        ] {
            let want = "no resolver is registered for IPv6 neighbours";
            assert!(lab.cli(line).contains(want), "{line}: {}", lab.cli(line));
        }
        assert_eq!(lab.cli("show ip neighbor-config"), "");
        lab.close();
    }
}
