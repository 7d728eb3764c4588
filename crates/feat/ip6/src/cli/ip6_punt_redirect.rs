//! `ip6 punt redirect`: as for IPv4.

use std::marker::PhantomData;
use thalweg_feat_ip::cli::ip_punt_redirect::IpPuntRedirect;

/// The command.
pub static COMMAND: IpPuntRedirect<u128> = IpPuntRedirect(PhantomData);
