//! `ip6 table`: as for IPv4.

use std::marker::PhantomData;
use thalweg_feat_ip::cli::ip_table::IpTable;

/// The command.
pub static COMMAND: IpTable<u128> = IpTable(PhantomData);
