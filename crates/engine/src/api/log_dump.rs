//! `log_dump`: lists the last lines of the log.

use crate::message_types::{LogDetails, LogDump, LogLevel, VPE};
use std::time::UNIX_EPOCH;
use thalweg_api::types::Timestamp;
use thalweg_api::{Details, Dump};
use thalweg_graph::control::Control;
use thalweg_graph::log;

/// The service.
pub static SERVICE: Dump<Control, LogDump, LogDetails> = Dump::new(&VPE, handle);

fn handle(_: &mut Control, rq: LogDump, out: &mut Details<LogDetails>) {
    for line in log::last() {
        let at = line.at.duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
        // A timestamp that is NaN compares false and thus selects all lines.
        if at < rq.start_timestamp.0 {
            continue;
        }
        out.send(&LogDetails {
            timestamp: Timestamp(at),
            level: LogLevel(line.level as u32),
            msg_class: line.class.as_str().into(),
            message: line.message.as_str().into(),
        });
    }
}
