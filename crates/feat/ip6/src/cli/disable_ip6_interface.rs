//! `disable ip6 interface`: as for IPv4.

use std::marker::PhantomData;
use thalweg_feat_ip::cli::disable_ip4_interface::DisableIpInterface;

/// The command.
pub static COMMAND: DisableIpInterface<u128> = DisableIpInterface(PhantomData);
