//! `sflow netlink`.

use crate::cli_support::refused;
use crate::netlink::{NetlinkMode, NetlinkSettings, set_netlink};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;
use thalweg_sflow_agent::netlink::psample::{RX_GROUP, TX_GROUP};

/// The command.
pub static COMMAND: SFlowNetlink = SFlowNetlink;

/// The command's type.
pub struct SFlowNetlink;

impl Command<Control> for SFlowNetlink {
    fn path(&self) -> &'static str {
        "sflow netlink"
    }
    fn usage(&self) -> &'static str {
        "enable|disable|auto [group <rx> <tx>]"
    }
    fn help(&self) -> &'static str {
        "Send samples, interface counters and drops over netlink to an agent such as hsflowd\n\
         The agent must run on this host in the router's network namespace. `auto', the default, \
         enables this while no collector is configured. The groups are the PSAMPLE groups of \
         received and sent packets; hsflowd expects 3 and 4 from a router."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let settings = settings(args)?;
        set_netlink(cx, settings).map_err(refused)?;
        Ok(Outcome::Done)
    }
    fn complete(&self, _cx: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => ["enable", "disable", "auto"].map(String::from).into(),
            [_] => vec!["group".into()],
            _ => Vec::new(),
        }
    }
}

fn settings(args: &mut Args<'_>) -> Result<NetlinkSettings, CliError> {
    let mode = match args.choice("mode", &["enable", "disable", "auto"])? {
        "enable" => NetlinkMode::Enable,
        "disable" => NetlinkMode::Disable,
        _ => NetlinkMode::Auto,
    };
    let mut settings = NetlinkSettings { mode, rx_group: RX_GROUP, tx_group: TX_GROUP };
    if args.keyword("group") {
        let most = u64::from(u32::MAX);
        settings.rx_group = args.number("group number for received packets", 1, most)? as u32;
        settings.tx_group = args.number("group number for sent packets", 1, most)? as u32;
    }
    args.end()?;
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_understood() {
        let read = |text: &str| {
            settings(&mut Args::parse(text).unwrap()).map_err(|error| error.to_string())
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
