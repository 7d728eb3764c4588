//! `enable ip6 interface`: as for IPv4.

use thalweg_feat_ip::cli::enable_ip4_interface::IpInterface;

/// The command.
pub static COMMAND: IpInterface<u128> = IpInterface::new(true);
