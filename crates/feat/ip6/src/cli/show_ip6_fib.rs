//! `show ip6 fib`: as for IPv4.

use std::marker::PhantomData;
use thalweg_feat_ip::cli::show_ip_fib::ShowIpFib;

/// The command.
pub static COMMAND: ShowIpFib<u128> = ShowIpFib(PhantomData);
