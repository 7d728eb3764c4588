//! `set ip arp proxy`: addresses of other hosts that the router answers ARP for.

use crate::cli_support::ProxyRange;

/// The command.
pub static COMMAND: ProxyRange = ProxyRange {
    path: "set ip arp proxy",
    usage: "<address> - <address> [table-id <id>] [del]",
    words: &["table-id", "del"],
};
