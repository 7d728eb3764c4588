//! `make soak`, for six seconds.

use std::time::Duration;

use thalweg_smoke::{SoakOptions, soak};
use thalweg_testkit::lab_test;

lab_test! {
    /// Connections, sessions, ports and buffers are back at zero after churn and changes.
    fn nothing_stays() {
        let options =
            SoakOptions { duration: Duration::from_secs(6), report: Duration::from_secs(3) };
        soak(options, |_| {})
    }
}
