//! `disable ip4 interface`: makes an interface drop IPv4 while it has no address.

use super::enable_ip4_interface::IpInterface;

/// The command.
pub static COMMAND: IpInterface<u32> = IpInterface::new(false);
