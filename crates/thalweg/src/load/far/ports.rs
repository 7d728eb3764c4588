//! Interfaces that the user names, with a device or a cable between them.

use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use thalweg_netns::{Cmd, require_tools};

use super::Far;
use crate::load::spot::{Drops, Side, Spot, Way};

/// Two interfaces; clients are behind the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::load) struct Ports(pub(in crate::load) [String; 2]);

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Ports, String> {
        let wrong = || format!("`{text}': two interfaces are expected, such as eth1,eth2");
        let (a, b) = text.split_once(',').ok_or_else(wrong)?;
        let is_name = |name: &str| {
            let odd = |c: char| c.is_whitespace() || c.is_control() || "/,".contains(c);
            (1..=15).contains(&name.len()) && !name.contains(odd)
        };
        match (is_name(a) && is_name(b), a == b) {
            (false, _) => Err(wrong()),
            (true, true) => Err(format!("{a} twice: clients and servers need an interface each")),
            (true, false) => Ok(Ports([a.to_owned(), b.to_owned()])),
        }
    }
}

impl Ports {
    /// Checks that they are there, and that the machine itself does not need them.
    ///
    /// # Errors
    /// Names the interface and what to do.
    pub(in crate::load) fn check(&self, even_default_route: bool) -> Result<()> {
        require_tools(&["ip"])?;
        let mut needed = Vec::new();
        for family in ["-4", "-6"] {
            let text =
                Cmd::new("ip").args([family, "-json", "route", "show", "default"]).output()?;
            needed.extend(devices(&text)?);
        }
        for name in &self.0 {
            Cmd::new("ip")
                .args(["link", "show", "dev", name])
                .output()
                .with_context(|| format!("--ports: no interface {name}"))?;
            ensure!(
                even_default_route || !needed.contains(name),
                "--ports: {name} has this machine's default route: load on it would cut the \
                 machine off. Name another, or give --even-default-route"
            );
        }
        Ok(())
    }
}

/// Interfaces of the routes that `ip -json route` lists.
fn devices(text: &str) -> Result<Vec<String>> {
    let routes: Value = match text.trim() {
        "" => return Ok(Vec::new()),
        text => serde_json::from_str(text).context("read the default routes")?,
    };
    let rows = routes.as_array().into_iter().flatten();
    let direct = rows.clone().filter_map(|route| route["dev"].as_str());
    let hops = rows.filter_map(|route| route["nexthops"].as_array()).flatten();
    Ok(direct.chain(hops.filter_map(|hop| hop["dev"].as_str())).map(str::to_owned).collect())
}

impl Far for Ports {
    fn name(&self) -> String {
        format!("what is between {} and {}", self.0[0], self.0[1])
    }

    fn drops(&mut self, drops: &mut Drops) -> Result<()> {
        for (at, name) in self.0.iter().enumerate() {
            let file = |which: &str| format!("/sys/class/net/{name}/statistics/{which}");
            for (which, reason) in
                [("rx_missed_errors", "receive ring of the card full"), ("rx_dropped", "dropped")]
            {
                let path = file(which);
                let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
                let packets = text.trim().parse().with_context(|| path.clone())?;
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
    fn two_names_are_read() {
        assert_eq!("eth1,eth2".parse(), Ok(Ports(["eth1".into(), "eth2".into()])));
        for text in ["", "eth1", "eth1,", "a b,c", "a,b,c", "../x,y", "a,a", "0123456789abcdef,a"] {
            assert!(text.parse::<Ports>().is_err(), "{text}");
        }
    }

    #[test]
    fn interfaces_of_default_routes_are_found() {
        let text = r#"[{"dst":"default","dev":"eth0"},{"nexthops":[{"dev":"a"},{"dev":"b"}]}]"#;
        assert_eq!(devices(text).unwrap(), ["eth0", "a", "b"]);
        assert!(devices("\n").unwrap().is_empty());
        assert!(devices("{").is_err());
    }
}
