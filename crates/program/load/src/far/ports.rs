//! Interfaces that the user names, with a device or a cable between them.

use std::str::FromStr;

use anyhow::{Context, Result};
use serde_json::Value;
use thalweg_netlink::Link;
use thalweg_netns::{Cmd, Guard, require_tools};

use super::Far;
use super::ways::Ways;
use crate::spot::{Drops, Side, Spot, Way};

/// Pairs of interfaces; clients are behind the first of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ports(Vec<[String; 2]>);

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Ports, String> {
        let wrong = || format!("`{text}': pairs of interfaces are expected, such as eth1,eth2");
        let is_name = |name: &str| {
            let odd = |c: char| c.is_whitespace() || c.is_control() || c == '/';
            (1..=15).contains(&name.len()) && !name.contains(odd)
        };
        let names: Vec<&str> = text.split(',').collect();
        let (pairs, []) = names.as_chunks::<2>() else { return Err(wrong()) };
        if !names.iter().all(|name| is_name(name)) {
            return Err(wrong());
        }
        let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
        if let Some((_, name)) = twice {
            return Err(format!("{name} twice: clients and servers need an interface each"));
        }
        Ok(Ports(pairs.iter().map(|pair| pair.map(str::to_owned)).collect()))
    }
}

impl Ports {
    /// The names, pair by pair.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flatten().map(String::as_str)
    }

    pub(crate) fn pairs(&self) -> Vec<[&str; 2]> {
        self.0.iter().map(|pair| pair.each_ref().map(String::as_str)).collect()
    }

    /// Checks that they are there, and that no way to this machine leads by their links.
    ///
    /// # Errors
    /// Names the interface and what to do.
    pub(crate) fn check(&self, even_needed: bool) -> Result<()> {
        require_tools(&["ip"])?;
        let ways = Ways::read()?;
        self.names().try_for_each(|name| ways.check("--ports", name, even_needed))
    }

    /// Lists those that are down, and sets them down again when the guard ends: the tester sets all
    /// of them up.
    ///
    /// # Errors
    /// If the guard cannot start.
    pub(crate) fn guard(&self) -> Result<Option<Guard>> {
        const SCRIPT: &str =
            "PATH=$PATH:/usr/sbin:/sbin; for port; do ip link set dev \"$port\" down; done";
        let is_down = |name: &&str| matches!(Link::named(name), Ok(Some(link)) if !link.is_up());
        let down: Vec<&str> = self.names().filter(is_down).collect();
        if down.is_empty() {
            return Ok(None);
        }
        crate::report!("--ports: set up until the end, and then down again: {}", down.join(", "));
        Guard::of_command(["sh", "-c", SCRIPT, "sh"].into_iter().chain(down)).map(Some)
    }
}

/// Packets that an interface has missed and dropped, as `ip -json -stats -stats link` shows it.
fn received(text: &str) -> Result<[u64; 2]> {
    let links: Value = serde_json::from_str(text).context("read its counters")?;
    let counters = &links[0]["stats64"]["rx"];
    let of = |key: &str| counters[key].as_u64().with_context(|| format!("it has no rx {key}"));
    // Older versions of ip do not tell what was missed apart.
    Ok([of("missed_errors").unwrap_or(0), of("dropped")?])
}

impl Far for Ports {
    fn name(&self) -> String {
        let between = |[a, b]: &[String; 2]| format!("between {a} and {b}");
        format!("what is {}", self.0.iter().map(between).collect::<Vec<_>>().join(", "))
    }

    fn drops(&mut self, drops: &mut Drops) -> Result<()> {
        for (at, name) in self.0.iter().flat_map(|pair| pair.iter().enumerate()) {
            // `/sys` may be that of another namespace.
            let words = ["-json", "-stats", "-stats", "link", "show", "dev", name];
            let text = Cmd::new("ip").args(words).output()?;
            let [missed, dropped] = received(&text).context(name.clone())?;
            for (reason, packets) in
                [("receive ring of the card full", missed), ("dropped", dropped)]
            {
                let spot = Spot::new(Side::Link, name, reason).going(Way::received_by(at));
                drops.add(spot, packets);
            }
        }
        Ok(())
    }

    fn stop(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_names_are_read() {
        let ports: Ports = "eth1,eth2".parse().unwrap();
        assert_eq!(ports.pairs(), [["eth1", "eth2"]]);
        let ports: Ports = "a,b,c,d".parse().unwrap();
        assert_eq!(ports.pairs(), [["a", "b"], ["c", "d"]]);
        assert_eq!(ports.name(), "what is between a and b, between c and d");
        for text in [
            "",
            "eth1",
            "eth1,",
            "a b,c",
            "a,b,c",
            "../x,y",
            "a,a",
            "a,b,c,a",
            "0123456789abcdef,a",
        ] {
            assert!(text.parse::<Ports>().is_err(), "{text}");
        }
    }

    #[test]
    fn counters_of_interfaces_are_read() {
        let text = r#"[{"stats64":{"rx":{"packets":9,"dropped":3,"missed_errors":5}}}]"#;
        assert_eq!(received(text).unwrap(), [5, 3]);
        assert_eq!(received(r#"[{"stats64":{"rx":{"dropped":3}}}]"#).unwrap(), [0, 3]);
        assert!(received("[]").is_err() && received("").is_err());
    }
}
