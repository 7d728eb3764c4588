//! `set ip neighbor-config`: settings of the neighbour table.

use crate::neighbors::{self, Neighbors};
use crate::{MAX_AGE, MAX_LIMIT, Version};
use serde_json::json;
use std::time::Duration;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set ip neighbor-config <family> [limit <n>] [age <seconds>] [recycle|norecycle]`
pub struct SetIpNeighborConfig;

/// The command.
pub static COMMAND: SetIpNeighborConfig = SetIpNeighborConfig;

const WORDS: &[&str] = &["limit", "interface-limit", "age", "recycle", "norecycle"];

impl Command<Control> for SetIpNeighborConfig {
    fn path(&self) -> &'static str {
        "set ip neighbor-config"
    }

    fn usage(&self) -> &'static str {
        "ip4|ip6 [limit <n>] [interface-limit <n>] [age <seconds>] [recycle|norecycle]"
    }

    fn help(&self) -> &'static str {
        "Set the neighbour table's limits and aging for an address family\n\
         A dynamic neighbour that has not been heard for `age' seconds is probed, and deleted if it\n\
         does not answer; 0 disables aging. At the limit of all interfaces or of one, neighbours\n\
         that are asked for replace the oldest that was only heard. Otherwise `recycle' replaces\n\
         the oldest dynamic neighbour, and `norecycle' refuses new ones."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let words = Version::ALL.map(Version::protocol);
        let word = args.choice("address family", &words)?;
        let family = Version::of_protocol(word).unwrap_or(Version::V4);
        let config = c.state::<Neighbors>().borrow().config(family);
        let mut config = config.map_err(CliError::failed)?;
        let max = MAX_LIMIT as u64;
        while let Some(word) = args.one_of(WORDS)? {
            match word {
                "limit" => config.limit = args.number("limit", 1, max)? as usize,
                "interface-limit" => {
                    config.interface_limit = args.number("interface limit", 1, max)? as usize;
                }
                "age" => {
                    config.age = Duration::from_secs(args.number("age", 0, MAX_AGE.as_secs())?)
                }
                other => config.recycle = other == "recycle",
            }
        }
        args.end()?;
        neighbors::set_config(c, family, config).map_err(CliError::failed)?;
        out.json(json!({
            "limit": config.limit, "interface_limit": config.interface_limit,
            "age": config.age.as_secs(), "recycle": config.recycle,
        }));
        Ok(Outcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;

    #[test]
    fn settings_are_shown() {
        let mut b = Bench::new();
        assert!(b.cli("show ip neighbor-config").contains("limit:50000, age:300, recycle:0"));
        assert_eq!(b.cli("set ip neighbor-config ip4 limit 100 age 60 recycle"), "");
        let text = b.cli("show ip neighbor-config");
        assert!(text.starts_with("ip4:\n  limit:100, age:60, recycle:1\n"), "{text}");
        assert_eq!(b.cli("set ip neighbor-config ip4 norecycle"), "");
        assert!(b.cli("show ip neighbor-config | json").contains("\"recycle\":false"));
        assert_eq!(b.cli("set ip neighbor-config ip6 age 7 interface-limit 5"), "");
        let text = b.cli("show ip neighbor-config");
        assert!(text.contains("ip6:\n  limit:50000, age:7, recycle:0\n  interface limit:5\n"));
        assert!(text.contains("ip4:\n  limit:100, age:60, recycle:0\n  neighbors:0"), "{text}");
        for line in
            ["mpls limit 3", "ip4 limit 0", "ip6 interface-limit 0", "ip4 age -1", "ip4 often"]
        {
            assert!(!b.cli(&format!("set ip neighbor-config {line}")).is_empty(), "{line}");
        }
        b.finish();
    }
}
