//! `show settings` follows from the declarations of settings.

use crate::router::{ONE, Router};
use crate::setters::SETTERS;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use thalweg_engine::features;
use thalweg_engine::setting::Shown;
use thalweg_graph::Control;

fn rows(router: &mut Router, words: &str) -> Vec<Value> {
    let text = router.run(&format!("show settings{words} | json"));
    serde_json::from_str::<Value>(&text).unwrap().as_array().unwrap().clone()
}

fn row(rows: &[Value], setting: &str) -> Value {
    rows.iter().find(|row| row["setting"] == setting).cloned().unwrap_or_default()
}

#[test]
fn a_setting_is_shown_with_its_default() {
    let _one = ONE.lock();
    let mut router = Router::prepared();
    let all = rows(&mut router, "");
    assert!(all.len() > 20 && all.iter().all(|row| row["differs"] == false), "{all:?}");
    router.run("sflow polling-interval 30\nmpls table add 0\nset interface mpls pg0 enable");
    let sflow = rows(&mut router, " sflow");
    assert_eq!(
        row(&sflow, "sflow polling-interval"),
        json!({
            "feature": "sflow",
            "setting": "sflow polling-interval",
            "interface": null,
            "key": "thalweg.sflow.polling-interval",
            "value": 30,
            "default": 20,
            "differs": true,
            "takes": "<S>",
        })
    );
    assert!(sflow.iter().all(|row| row["feature"] == "sflow"));
    let shown = router.run("show settings sflow");
    let line = shown.lines().find(|line| line.starts_with("sflow polling-interval")).unwrap();
    assert_eq!(line.split_whitespace().skip(2).collect::<Vec<_>>(), ["30", "*", "20", "<S>"]);
    router.stop();
}

/// A feature's list has values of interfaces that were set, and an interface's has all.
#[test]
fn an_interface_has_all_of_its_settings() {
    let _one = ONE.lock();
    let mut router = Router::prepared();
    router.run("mpls table add 0\nset interface mpls pg0 enable");
    let mpls = rows(&mut router, " mpls");
    assert_eq!(mpls.len(), 1, "{mpls:?}");
    let enabled = row(&mpls, "set interface mpls pg0");
    let said = ["interface", "key", "value"].map(|key| enabled[key].clone());
    assert_eq!(said, [json!("pg0"), json!("thalweg.interfaces.pg0.mpls"), json!(true)]);
    let of_port = rows(&mut router, " pg1");
    assert!(of_port.len() > 3, "{of_port:?}");
    assert!(of_port.iter().all(|row| row["interface"] == "pg1" && row["differs"] == false));
    let refused = router.attempt("show settings pg7").unwrap_err().to_string();
    assert!(refused.contains("no interface `pg7'") && refused.contains("sflow"), "{refused}");
    router.stop();
}

/// Declared settings of the router, or of an interface.
fn settings(c: &Control, interface: Option<&str>) -> Vec<Shown> {
    let all = features(c).into_iter().flat_map(|feature| feature.declared);
    all.flat_map(|setting| setting.shown(c, interface)).collect()
}

/// Plans compare the words of values and run them: a command takes the words of a value for that
/// value, so that two values never have the same words.
#[test]
fn the_words_of_a_value_set_that_value() {
    let _one = ONE.lock();
    let mut router = Router::prepared();
    let all = settings(&router.c, None).into_iter().chain(settings(&router.c, Some("pg0")));
    let of_all = |row: Shown| row.command.trim_end_matches(" pg0").to_owned();
    let declared: BTreeSet<String> = all.map(of_all).collect();
    let set = |router: &Router| -> Vec<Shown> {
        settings(&router.c, None).into_iter().filter(Shown::differs).collect()
    };
    let mut tried: BTreeSet<String> = BTreeSet::new();
    for (_, examples) in SETTERS.iter().filter(|(path, _)| declared.contains(*path)) {
        for lines in *examples {
            // The beginning of an example may be there by now.
            lines.lines().for_each(|line| _ = router.attempt(line));
            let before = set(&router);
            for row in &before {
                let (words, _) = row.value.as_ref().unwrap();
                router.run(&format!("{} {words}", row.command));
                tried.insert(format!("{} {words}", row.key));
            }
            assert_eq!(set(&router), before, "{lines}");
        }
    }
    assert!(tried.len() > 40, "{tried:?}");
    router.stop();
}
