//! `show ip6 table`: as for IPv4.

use std::marker::PhantomData;
use thalweg_feat_ip::cli::show_ip_table::ShowIpTable;

/// The command.
pub static COMMAND: ShowIpTable<u128> = ShowIpTable(PhantomData);
