//! `show ip6 punt redirect`: as for IPv4.

use std::marker::PhantomData;
use thalweg_feat_ip::cli::show_ip_punt_redirect::ShowIpPuntRedirect;

/// The command.
pub static COMMAND: ShowIpPuntRedirect<u128> = ShowIpPuntRedirect(PhantomData);
