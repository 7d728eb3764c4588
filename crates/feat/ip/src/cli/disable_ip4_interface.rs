//! `disable ip4 interface`: makes an interface drop IPv4 while it has no address.

use super::enable_ip4_interface::Ip4Interface;

/// The command.
pub static COMMAND: Ip4Interface = Ip4Interface {
    path: "disable ip4 interface",
    help: "Drop IPv4 packets on an interface while it has no IPv4 address\n\
           Takes `enable ip4 interface' back.",
    on: false,
};
