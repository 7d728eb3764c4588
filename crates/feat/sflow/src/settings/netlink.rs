//! `sflow netlink`.

use crate::netlink::{NetlinkMode, NetlinkSettings, set_netlink};
use crate::state::values;
use thalweg_cli::{Args, CliError};
use thalweg_config::declare::Value;
use thalweg_engine::setting::{Form, Global, Rare, Worded, read_words};
use thalweg_sflow_agent::netlink::psample::{RX_GROUP, TX_GROUP};

impl Worded for NetlinkMode {
    const USAGE: &'static str = "enable|disable|auto";
    const WORDS: &'static [&'static str] = &["enable", "disable", "auto"];
    const VALUES: &'static [NetlinkMode] =
        &[NetlinkMode::Enable, NetlinkMode::Disable, NetlinkMode::Auto];
}

/// A mode, and the PSAMPLE groups of received and sent packets.
pub struct NetlinkForm;

impl Form for NetlinkForm {
    type Value = NetlinkSettings;

    fn usage(&self) -> &'static str {
        "enable|disable|auto [group <rx> <tx>]"
    }

    fn take(&self, args: &mut Args<'_>) -> Result<NetlinkSettings, CliError> {
        let mode = NetlinkMode::take("mode", args)?;
        let mut settings = NetlinkSettings { mode, rx_group: RX_GROUP, tx_group: TX_GROUP };
        if args.keyword("group") {
            let most = u64::from(u32::MAX);
            settings.rx_group = args.number("group number for received packets", 1, most)? as u32;
            settings.tx_group = args.number("group number for sent packets", 1, most)? as u32;
        }
        Ok(settings)
    }

    fn words(&self, s: &NetlinkSettings) -> String {
        format!("{} group {} {}", s.mode.word(), s.rx_group, s.tx_group)
    }

    fn read(&self, value: &Value) -> Result<NetlinkSettings, String> {
        let read = read_words(value, |args| self.take(args)).ok();
        read.filter(|s| s.rx_group != s.tx_group).ok_or_else(|| {
            "enable, disable or auto, and two groups such as `auto group 3 4',".into()
        })
    }

    fn complete(&self, before: &[&str]) -> Vec<String> {
        match before {
            [] => NetlinkMode::WORDS.iter().map(|word| (*word).to_owned()).collect(),
            [_] => vec!["group".into()],
            _ => Vec::new(),
        }
    }
}

/// Export over netlink.
pub static SETTING: Global<NetlinkForm> = Global {
    command: "sflow netlink",
    help: "Send samples, interface counters and drops over netlink to an agent such as hsflowd\n\
           The agent must run on this host in the router's network namespace. `auto', the default, \
           enables this while no collector is configured. The groups are the PSAMPLE groups of \
           received and sent packets; hsflowd expects 3 and 4 from a router.",
    form: NetlinkForm,
    key: "thalweg.sflow.netlink",
    default: NetlinkSettings::default,
    get: |c| values(c, |all| all.netlink),
    set: |c, settings| Ok(set_netlink(c, settings)?),
    rare: Rare { reset: Some("auto"), ..Rare::NONE },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_understood() {
        let read = |text: &str| {
            let mut args = Args::parse(text).unwrap();
            let taken = NetlinkForm.take(&mut args).and_then(|taken| args.end().map(|()| taken));
            taken.map_err(|error| error.to_string())
        };
        let usual = NetlinkSettings::default();
        assert_eq!(read("auto"), Ok(usual));
        assert_eq!(read("enable"), Ok(NetlinkSettings { mode: NetlinkMode::Enable, ..usual }));
        let other = NetlinkSettings { mode: NetlinkMode::Disable, rx_group: 1, tx_group: 2 };
        assert_eq!(read("disable group 1 2"), Ok(other));
        assert!(
            read("enable group 1").unwrap_err().contains("missing group number for sent packets")
        );
        assert!(read("enable group 0 1").is_err() && read("perhaps").is_err());
        assert!(read("auto 5").unwrap_err().contains("unexpected `5'"));
    }
}
