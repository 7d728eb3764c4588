//! `enable ip6 interface`: as for IPv4.

use std::marker::PhantomData;
use thalweg_feat_ip::cli::enable_ip4_interface::EnableIpInterface;

/// The command.
pub static COMMAND: EnableIpInterface<u128> = EnableIpInterface(PhantomData);
