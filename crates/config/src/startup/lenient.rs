//! The stanzas that are not fully known. Words that Thalweg does not use are accepted with a
//! warning, since configurations written for VPP contain words of plugins and allocators that do
//! not exist here.

use super::model::{PluginRule, PluginsConfig, StartupConfig};
use super::reader::Reader;
use super::report::Report;
use super::tree::{Item, Stanza, Word};

const MEMORY_WORDS: &[&str] = &["main-heap-size", "main-heap-page-size", "default-hugepage-size"];
const PHYSMEM_WORDS: &[&str] = &["max-size", "base-addr"];
const API_SEGMENT_WORDS: &[&str] = &[
    "prefix",
    "uid",
    "gid",
    "baseva",
    "global-size",
    "global-pvt-heap-size",
    "api-size",
    "api-pvt-heap-size",
];
const API_TRACE_WORDS: &[&str] = &["on", "enable", "off", "disable", "nitems", "save-api-table"];
const SOCKSVR_WORDS: &[&str] = &["socket-name", "default", "mode", "group"];
const STATSEG_WORDS: &[&str] =
    &["socket-name", "default", "size", "page-size", "per-node-counters", "update-interval"];
const LOGGING_WORDS: &[&str] = &[
    "default-log-level",
    "default-syslog-log-level",
    "size",
    "nthrottle-time",
    "unthrottle-time",
    "class",
];
const PLUGINS_WORDS: &[&str] = &["path", "add-path", "name-filter", "plugin"];
const METRICS_WORDS: &[&str] = &["listen"];
const LOG_LEVELS: &[&str] =
    &["emerg", "alert", "crit", "err", "error", "warn", "notice", "info", "debug", "disabled"];

/// Stanzas that features read themselves.
const OF_FEATURES: &[&str] = &["linux-cp", "linux-nl", "nat", "sflow"];

/// Reads a stanza that is not one of the fully known ones.
pub(super) fn read(config: &mut StartupConfig, stanza: &Stanza, report: &mut Report) {
    let mut reader = Reader::new(stanza, report);
    match stanza.name.text.as_str() {
        "memory" => memory(config, &mut reader),
        "heapsize" => heapsize(config, stanza, &mut reader),
        "physmem" => physmem(config, &mut reader),
        "api-segment" => api_segment(config, &mut reader),
        "api-trace" => api_trace(config, &mut reader),
        "socksvr" => socksvr(config, &mut reader),
        "statseg" => statseg(config, &mut reader),
        "metrics" => metrics(config, &mut reader),
        "logging" => logging(config, &mut reader),
        "plugins" => plugins(&mut config.plugins, &mut reader),
        "plugin_path" => {
            config.plugins.paths.extend(stanza.words().map(Into::into));
        }
        name if OF_FEATURES.contains(&name) => {}
        "dpdk" => report.warn(
            stanza.name.span.clone(),
            "dpdk: there is no DPDK driver; create interfaces by commands such as \
             `create host-interface`"
                .into(),
        ),
        // Without this, an option after stanzas would have no effect.
        name if name.starts_with('-') => {
            let message = format!("`{name}` is no stanza: options go before the stanzas");
            report.error(stanza.name.span.clone(), &message);
        }
        name => {
            let message = format!("stanza `{name}` is not supported and has no effect");
            report.warn(stanza.name.span.clone(), message);
        }
    }
}

fn memory(config: &mut StartupConfig, reader: &mut Reader) {
    let memory = &mut config.memory;
    while let Some(key) = reader.keyword() {
        match key.text.as_str() {
            "main-heap-size" => reader.size(&key, 1 << 20..=1 << 44, &mut memory.main_heap_size),
            "main-heap-page-size" => reader.page_size(&key, &mut memory.main_heap_page_size),
            "default-hugepage-size" => {
                reader.size(&key, 1 << 16..=1 << 34, &mut memory.default_hugepage_size);
            }
            _ => reader.unknown_warning(&key, MEMORY_WORDS),
        }
    }
}

/// Reads `heapsize 1G`, the old form of `memory { main-heap-size 1G }`.
fn heapsize(config: &mut StartupConfig, stanza: &Stanza, reader: &mut Reader) {
    reader.size(&stanza.name, 1 << 20..=1 << 44, &mut config.memory.main_heap_size);
}

fn physmem(config: &mut StartupConfig, reader: &mut Reader) {
    while let Some(key) = reader.keyword() {
        match key.text.as_str() {
            "max-size" => reader.size(&key, 1 << 20..=1 << 44, &mut config.physmem.max_size),
            "base-addr" => drop(reader.value(&key, "an address")),
            _ => reader.unknown_warning(&key, PHYSMEM_WORDS),
        }
    }
}

fn api_segment(config: &mut StartupConfig, reader: &mut Reader) {
    let segment = &mut config.api_segment;
    while let Some(key) = reader.keyword() {
        match key.text.as_str() {
            "prefix" => reader.text(&key, "a prefix", &mut segment.prefix),
            "uid" => reader.text(&key, "a user", &mut segment.uid),
            "gid" => reader.text(&key, "a group", &mut segment.gid),
            "baseva" => drop(reader.value(&key, "an address")),
            "global-size" | "global-pvt-heap-size" | "api-size" | "api-pvt-heap-size" => {
                // The segment does not exist; an invalid size is still an error.
                reader.size(&key, 0..=1 << 44, &mut None);
            }
            _ => reader.unknown_warning(&key, API_SEGMENT_WORDS),
        }
    }
}

fn api_trace(config: &mut StartupConfig, reader: &mut Reader) {
    let trace = &mut config.api_trace;
    while let Some(key) = reader.keyword() {
        match key.text.as_str() {
            "on" | "enable" => trace.on = true,
            "off" | "disable" => trace.on = false,
            "nitems" => reader.number(&key, 1..=1 << 26, &mut trace.nitems),
            "save-api-table" => drop(reader.value(&key, "a file")),
            _ => reader.unknown_warning(&key, API_TRACE_WORDS),
        }
    }
}

fn socksvr(config: &mut StartupConfig, reader: &mut Reader) {
    let socksvr = &mut config.socksvr;
    socksvr.given = true;
    while let Some(key) = reader.keyword() {
        match key.text.as_str() {
            "socket-name" => {
                reader.text(&key, "a path", &mut socksvr.socket_name);
                // VPP's own default, spelt `socket-name default`.
                socksvr.socket_name.take_if(|path| path.as_os_str() == "default");
            }
            "default" => socksvr.socket_name = None,
            "mode" => {
                let Some(word) = reader.value(&key, "permissions") else { continue };
                socksvr.mode = u32::from_str_radix(&word.text, 8).ok().filter(|m| *m <= 0o777);
                if socksvr.mode.is_none() {
                    let message =
                        format!("`mode` takes octal permissions such as 0660, not {}", word.text);
                    reader.error(word.span, message);
                }
            }
            "group" => reader.text(&key, "a group", &mut socksvr.group),
            _ => reader.unknown_warning(&key, SOCKSVR_WORDS),
        }
    }
}

fn statseg(config: &mut StartupConfig, reader: &mut Reader) {
    let statseg = &mut config.statseg;
    while let Some(key) = reader.keyword() {
        match key.text.as_str() {
            "socket-name" => reader.text(&key, "a path", &mut statseg.socket_name),
            "default" => statseg.socket_name = None,
            "size" => reader.size(&key, 1 << 16..=1 << 40, &mut statseg.size),
            "page-size" => reader.page_size(&key, &mut statseg.page_size),
            "per-node-counters" => reader.switch(&key, &mut statseg.per_node_counters),
            "update-interval" => reader.seconds(&key, &mut statseg.update_interval),
            _ => reader.unknown_warning(&key, STATSEG_WORDS),
        }
    }
}

fn metrics(config: &mut StartupConfig, reader: &mut Reader) {
    while let Some(key) = reader.keyword() {
        match key.text.as_str() {
            "listen" => {
                let Some(word) = reader.value(&key, "host:port") else { continue };
                // Port 0 is a free one.
                let (host, port) = word.text.rsplit_once(':').unwrap_or_default();
                if host.is_empty() || port.parse::<u16>().is_err() {
                    let message =
                        format!("`listen` is host:port such as 127.0.0.1:9482, not {}", word.text);
                    reader.error(word.span, message);
                } else {
                    config.metrics.listen = Some(word.text);
                }
            }
            _ => reader.unknown_error(&key, METRICS_WORDS),
        }
    }
}

fn logging(config: &mut StartupConfig, reader: &mut Reader) {
    let logging = &mut config.logging;
    while let Some(key) = reader.keyword() {
        match key.text.as_str() {
            "default-log-level" => level(reader, &key, &mut logging.default_log_level),
            "default-syslog-log-level" => {
                level(reader, &key, &mut logging.default_syslog_log_level);
            }
            "size" => reader.number(&key, 1..=1 << 24, &mut logging.size),
            "nthrottle-time" | "unthrottle-time" => {
                reader.number(&key, 0..=u32::MAX, &mut None);
            }
            "class" => {
                reader.value(&key, "a class");
                reader.block();
            }
            _ => reader.unknown_warning(&key, LOGGING_WORDS),
        }
    }
}

fn level(reader: &mut Reader, key: &Word, to: &mut Option<String>) {
    let Some(word) = reader.value(key, "a level") else { return };
    if LOG_LEVELS.contains(&word.text.as_str()) {
        *to = Some(word.text);
    } else {
        let message =
            format!("`{}` is one of {}, not {}", key.text, LOG_LEVELS.join(", "), word.text);
        reader.error(word.span, message);
    }
}

fn plugins(plugins: &mut PluginsConfig, reader: &mut Reader) {
    while let Some(key) = reader.keyword() {
        match key.text.as_str() {
            "path" | "add-path" => {
                let mut path = None;
                reader.text(&key, "a directory", &mut path);
                plugins.paths.extend(path);
            }
            "name-filter" => drop(reader.value(&key, "a name")),
            "plugin" => {
                let Some(name) = reader.value(&key, "a plugin's file name") else { continue };
                let said = reader.block().unwrap_or_default();
                plugins.rules.extend(plugin_rule(name, said));
            }
            _ => reader.unknown_warning(&key, PLUGINS_WORDS),
        }
    }
}

/// The last `enable` or `disable` counts; other words (`skip-version-check`) are about files.
fn plugin_rule(name: Word, said: &[Item]) -> Option<PluginRule> {
    let mut states = said.iter().filter_map(|item| match item {
        Item::Word(word) if word.text == "enable" => Some(true),
        Item::Word(word) if word.text == "disable" => Some(false),
        _ => None,
    });
    states.next_back().map(|enable| PluginRule { name: name.text, enable })
}

#[cfg(test)]
pub(super) const ALL_WORDS: &[(&str, &[&str])] = &[
    ("memory", MEMORY_WORDS),
    ("physmem", PHYSMEM_WORDS),
    ("api-segment", API_SEGMENT_WORDS),
    ("api-trace", API_TRACE_WORDS),
    ("socksvr", SOCKSVR_WORDS),
    ("statseg", STATSEG_WORDS),
    ("metrics", METRICS_WORDS),
    ("logging", LOGGING_WORDS),
    ("plugins", PLUGINS_WORDS),
];
