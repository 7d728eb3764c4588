//! Our messages are VPP's: name, fields, options, types, services and CRC, as VPP's own
//! descriptions have them.

#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use thalweg_api::{Registry, json};
use thalweg_engine::{ENGINE, Feature};
use thalweg_graph::Control;
use thalweg_program_router::api::services;
use thalweg_program_router::features::FEATURES;

/// Modules of messages that only we have.
const OURS: &[&str] = &[];

fn features() -> Vec<&'static Feature> {
    [&ENGINE].into_iter().chain(FEATURES.iter().copied()).collect()
}

fn registry() -> Registry<Control> {
    Registry::new(services(&features())).unwrap()
}

fn oracle(folder: &str, module: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/vpp-api/{folder}/{module}.api.json"));
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|e| panic!("no description of {module} to compare with: {path:?}: {e}"));
    serde_json::from_str(&text).unwrap()
}

fn by_name(list: &Value) -> HashMap<&str, &Value> {
    list.as_array().unwrap().iter().map(|entry| (entry[0].as_str().unwrap(), entry)).collect()
}

#[test]
fn descriptions_agree_with_vpps() {
    let mut differences = Vec::new();
    let mut compared = 0;
    for (module, ours) in registry().describe() {
        if OURS.contains(&module.name) {
            continue;
        }
        let theirs = oracle(module.folder, module.name);
        for list in ["messages", "types", "unions", "enums", "enumflags"] {
            let known = by_name(&theirs[list]);
            for (name, entry) in by_name(&ours[list]) {
                compared += 1;
                if known.get(name) != Some(&entry) {
                    let theirs = known.get(name).map_or("nothing".into(), |e| e.to_string());
                    differences.push(format!("{list}: ours   {entry}\n  theirs {theirs}"));
                }
            }
        }
        for table in ["services", "aliases"] {
            for (name, entry) in ours[table].as_object().unwrap() {
                if theirs[table].get(name) != Some(entry) {
                    let theirs = &theirs[table][name];
                    differences.push(format!("{table}: {name}: {entry}\n  theirs {theirs}"));
                }
            }
        }
        assert_eq!(ours["options"], theirs["options"], "{}", module.name);
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(compared > 150, "{compared}");
}

#[test]
fn every_message_stands_in_the_table_once() {
    let registry = registry();
    let mut names: Vec<_> = registry.messages().iter().map(|def| def.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
    // The longest name that fits an entry of the table.
    for def in registry.messages() {
        assert!(def.name_crc().len() < 64, "{}", def.name);
        assert_eq!(json::message(def)[0], def.name);
    }
}

proptest! {
    #[test]
    fn no_request_panics_and_each_is_written_as_it_was_read(body in any::<Vec<u8>>()) {
        for service in services(&features()) {
            if let Ok(first) = service.echo(&body) {
                let second = service.echo(&first);
                prop_assert_eq!(second, Ok(first));
            }
        }
    }
}
