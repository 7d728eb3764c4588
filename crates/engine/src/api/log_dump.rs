//! `log_dump`: lists the last lines of the log.

use crate::api_modules::VPE;
use std::time::UNIX_EPOCH;
use thalweg_api::types::Timestamp;
use thalweg_api::{Details, Dump, Message, Text, api_enum};
use thalweg_graph::control::Control;
use thalweg_graph::log;

api_enum! {
    /// Severity of a log line.
    pub struct LogLevel: u32 = "log_level" {
        /// The system is unusable.
        EMERG = 0, "VPE_API_LOG_LEVEL_EMERG";
        /// Immediate action is needed.
        ALERT = 1, "VPE_API_LOG_LEVEL_ALERT";
        /// A critical failure.
        CRIT = 2, "VPE_API_LOG_LEVEL_CRIT";
        /// An error.
        ERR = 3, "VPE_API_LOG_LEVEL_ERR";
        /// A warning.
        WARNING = 4, "VPE_API_LOG_LEVEL_WARNING";
        /// A normal but significant event.
        NOTICE = 5, "VPE_API_LOG_LEVEL_NOTICE";
        /// Informational.
        INFO = 6, "VPE_API_LOG_LEVEL_INFO";
        /// Debugging detail.
        DEBUG = 7, "VPE_API_LOG_LEVEL_DEBUG";
        /// Logging is disabled.
        DISABLED = 8, "VPE_API_LOG_LEVEL_DISABLED";
    }
}

/// Requests lines of the log.
#[derive(Debug, Message)]
#[api(request)]
pub struct LogDump {
    /// Earliest timestamp of interest.
    pub start_timestamp: Timestamp,
}

/// A line of the log.
#[derive(Debug, Message)]
#[api(details)]
pub struct LogDetails {
    /// Time at which the line was written.
    pub timestamp: Timestamp,
    /// Severity of the line.
    pub level: LogLevel,
    /// The part of the program that wrote it.
    pub msg_class: Text<32>,
    /// The text.
    pub message: Text<256>,
}

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
