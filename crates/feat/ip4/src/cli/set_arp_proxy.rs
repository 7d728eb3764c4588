//! `set arp proxy`: addresses of other hosts that the router answers ARP for.

use crate::cli_support::ProxyRange;

/// The command.
pub static COMMAND: ProxyRange = ProxyRange {
    path: "set arp proxy",
    usage: "[del] [table-id <id>] start <address> end <address>",
    words: &["del", "table-id", "start", "end"],
};
