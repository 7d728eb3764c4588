//! `log_dump`: the last lines of the log.

use crate::api_modules::VPE;
use crate::control::Control;
use crate::log;
use std::time::UNIX_EPOCH;
use thalweg_api::types::Timestamp;
use thalweg_api::{Details, Dump, Message, Text, api_enum};

api_enum! {
    /// How grave a line is.
    pub struct LogLevel: u32 = "log_level" {
        /// Nothing works.
        EMERG = 0, "VPE_API_LOG_LEVEL_EMERG";
        /// Somebody must do something at once.
        ALERT = 1, "VPE_API_LOG_LEVEL_ALERT";
        /// Something important failed.
        CRIT = 2, "VPE_API_LOG_LEVEL_CRIT";
        /// Something failed.
        ERR = 3, "VPE_API_LOG_LEVEL_ERR";
        /// Something may be wrong.
        WARNING = 4, "VPE_API_LOG_LEVEL_WARNING";
        /// Something happened.
        NOTICE = 5, "VPE_API_LOG_LEVEL_NOTICE";
        /// Worth knowing.
        INFO = 6, "VPE_API_LOG_LEVEL_INFO";
        /// For those who look closely.
        DEBUG = 7, "VPE_API_LOG_LEVEL_DEBUG";
        /// Nobody wants to know.
        DISABLED = 8, "VPE_API_LOG_LEVEL_DISABLED";
    }
}

/// Asks for lines of the log.
#[derive(Debug, Message)]
#[api(request)]
pub struct LogDump {
    /// From this time on.
    pub start_timestamp: Timestamp,
}

/// A line of the log.
#[derive(Debug, Message)]
#[api(details)]
pub struct LogDetails {
    /// When it was written.
    pub timestamp: Timestamp,
    /// How grave it is.
    pub level: LogLevel,
    /// The part of the program that wrote it.
    pub msg_class: Text<32>,
    /// What it says.
    pub message: Text<256>,
}

/// The service.
pub static SERVICE: Dump<Control, LogDump, LogDetails> = Dump::new(&VPE, handle);

fn handle(_: &mut Control, rq: LogDump, out: &mut Details<LogDetails>) {
    for line in log::last() {
        let at = line.at.duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
        // So that a time that is none means all.
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
