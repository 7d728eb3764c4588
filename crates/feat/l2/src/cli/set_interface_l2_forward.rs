//! `set interface l2 forward`.

use crate::PortFlags;
use crate::cli_support::PortSwitch;

/// The command.
pub static COMMAND: PortSwitch = PortSwitch {
    path: "set interface l2 forward",
    flag: PortFlags::FORWARD,
    help: "Forward known unicast frames that a port receives, or drop them\n\
           What its bridge domain does not do, a port does not, either. A port that joins one does\n\
           all.",
};
