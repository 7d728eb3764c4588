//! Helpers shared by the API messages.

use crate::cli_support::proxy_failed;
use crate::proxy_arp::ProxyError;
use thalweg_api::Retval;

impl From<ProxyError> for Retval {
    fn from(error: ProxyError) -> Self {
        let error = proxy_failed(error);
        Retval(error.code()).because(error)
    }
}
