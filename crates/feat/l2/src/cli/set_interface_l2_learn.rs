//! `set interface l2 learn`.

use crate::PortFlags;
use crate::cli_support::PortSwitch;

/// The command.
pub static COMMAND: PortSwitch = PortSwitch {
    path: "set interface l2 learn",
    flag: PortFlags::LEARN,
    help: "Have a port learn source MAC addresses, or not\n\
           What its bridge domain does not do, a port does not, either. A port that joins one does\n\
           all.",
};
