//! `set interface l2 arp-term`.

use crate::PortFlags;
use crate::cli_support::PortSwitch;

/// The command.
pub static COMMAND: PortSwitch = PortSwitch {
    path: "set interface l2 arp-term",
    flag: PortFlags::ARP_TERM,
    help: "Answer for known hosts what a port receives, or pass it on\n\
           What its bridge domain does not do, a port does not, either. A port that joins one does\n\
           all.",
};
