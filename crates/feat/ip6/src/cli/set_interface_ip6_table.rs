//! `set interface ip6 table`: as for IPv4.

use std::marker::PhantomData;
use thalweg_feat_ip::cli::set_interface_ip_table::SetInterfaceIpTable;

/// The command.
pub static COMMAND: SetInterfaceIpTable<u128> = SetInterfaceIpTable(PhantomData);
