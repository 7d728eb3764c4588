//! Tables of ARCHITECTURE.md and docs/limits.md that can be compared with the code are right.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use thalweg_buffer::PoolConfig;
use thalweg_device::SwIfIndex;
use thalweg_engine::Feature;
use thalweg_graph::{Control, EngineConfig};
use thalweg_program_router::features::FEATURES;

const PAGE: &str = include_str!("../../../../ARCHITECTURE.md");
const LIMITS: &str = include_str!("../../../../docs/limits.md");

/// The rows of the first table after a line of a page, as cells.
fn rows(page: &'static str, line: &str) -> Vec<Vec<&'static str>> {
    let (_, text) = page.split_once(&format!("\n{line}\n")).expect("the line");
    let table = text.lines().skip_while(|l| !l.starts_with("| ---")).skip(1);
    let row = |l: &'static str| l.trim_matches('|').split('|').map(str::trim).collect();
    table.take_while(|l| l.starts_with('|')).map(row).collect()
}

/// The words of a cell that are in backticks.
fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The value of a constant expression: one number, or two with an operator between them.
fn value(text: &str) -> u64 {
    let number = |s: &str| s.trim().replace(['_', ','], "").parse::<u64>().expect("a number");
    if let Some((a, b)) = text.split_once("<<") {
        return number(a) << number(b);
    }
    match text.split_once('*') {
        Some((a, b)) => number(a) * number(b),
        None => number(text),
    }
}

/// The folder `crates`.
fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the value of a constant in a source file.
fn constant(file: &str, name: &str) -> u64 {
    let path = crates().join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
    let is_it = |l: &&str| l.contains(&format!("const {name}: "));
    let line = text.lines().find(is_it).unwrap_or_else(|| panic!("{file} has no {name}"));
    value(line.split_once('=').expect("a value").1.trim_end_matches(';'))
}

#[test]
fn limits_are_those_of_the_code() {
    let rows = rows(LIMITS, "table.");
    assert!(rows.len() > 30, "{}", rows.len());
    for row in rows {
        let [what, limit, source] = row[..] else { panic!("{row:?}") };
        let [file, name] = code(source)[..] else { panic!("{source}") };
        assert_eq!(value(limit), constant(file, name), "{what}: {name} in {file}");
    }
}

#[test]
fn arcs_are_those_of_the_graph() {
    let pool = PoolConfig { buffers: 1024, ..PoolConfig::default() };
    let mut c = Control::new(EngineConfig { pool, ..EngineConfig::default() }).expect("an engine");
    thalweg_engine::start(&mut c, FEATURES).expect("a graph");
    let rows = rows(PAGE, "## Arcs and taps");
    assert_eq!(rows.len(), c.arc_decls().len());
    for arc in c.arc_decls() {
        let is_it = |r: &&Vec<&str>| code(r[0]) == [arc.name];
        let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("no row for {}", arc.name));
        let features = c.arc_features(c.arc(arc.name).expect("an arc"));
        assert_eq!(code(row[2]), features, "{}, in order", arc.name);
        assert_eq!(row[1], format!("{:?}", arc.key).to_lowercase(), "{}", arc.name);
    }
    c.shut_down();
}

/// Packets visit two features in the order of the arc, whichever is enabled first.
#[test]
fn pairs_of_features_keep_their_order() {
    let pool = PoolConfig { buffers: 1024, ..PoolConfig::default() };
    let mut c = Control::new(EngineConfig { pool, ..EngineConfig::default() }).expect("an engine");
    thalweg_engine::start(&mut c, thalweg_program_router::features::FEATURES).expect("a graph");
    for arc in c.arc_decls().to_vec() {
        let features = c.arc_features(c.arc(arc.name).expect("an arc"));
        for (i, early) in features.iter().enumerate() {
            for late in &features[i + 1..] {
                for (sw_if, [a, b]) in [(1, [early, late]), (2, [late, early])] {
                    for feature in [a, b] {
                        c.enable_feature(arc.name, feature, SwIfIndex(sw_if), true)
                            .expect("a feature");
                    }
                    let want = (arc.name, vec![*early, *late]);
                    assert!(c.enabled_features(SwIfIndex(sw_if)).contains(&want), "{want:?}");
                    for feature in [a, b] {
                        c.enable_feature(arc.name, feature, SwIfIndex(sw_if), false)
                            .expect("a feature");
                    }
                }
            }
        }
    }
    c.shut_down();
}

/// Features of different crates come in the order of their stages: none names one of another crate,
/// which could be renamed or left out.
#[test]
fn features_order_themselves_by_stages() {
    let mut ordered = 0;
    for parent in ["feat", "device"] {
        for entry in fs::read_dir(crates().join(parent)).expect("a folder") {
            let folder = entry.expect("an entry").path().join("src");
            let mut files = Vec::new();
            sources(&folder, &mut files);
            for file in files {
                let text = fs::read_to_string(&file).expect("a source file");
                let lists = [".before(&[\"", ".after(&[\""].map(|word| text.split(word).skip(1));
                for list in lists.into_iter().flatten() {
                    let names = list.split(']').next().unwrap_or_default().split('"');
                    for name in names.step_by(2).filter(|name| !name.is_empty()) {
                        let node = folder.join("nodes").join(name.replace('-', "_") + ".rs");
                        assert!(node.exists(), "{name} in {}", file.display());
                        ordered += 1;
                    }
                }
            }
        }
    }
    assert!(ordered > 2, "{ordered}");
}

/// Whatever makes an ICMP error asks the one check of its version first, `icmp_errors::Errors`.
#[test]
fn icmp_errors_are_made_behind_one_check() {
    const MAKERS: [&str; 3] = [
        "feat/ip4/src/nodes/ip4_icmp_error.rs",
        "feat/ip6/src/nodes/ip6_icmp_error.rs",
        "feat/mpls/src/error_message.rs",
    ];
    let mut files = Vec::new();
    for parent in ["feat", "device"] {
        for entry in fs::read_dir(crates().join(parent)).expect("a folder") {
            sources(&entry.expect("an entry").path().join("src"), &mut files);
        }
    }
    let makes = |text: &str| {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        code.contains("emit_error(") || code.contains("may_answer_with_error(")
    };
    let mut made: Vec<String> = Vec::new();
    for file in files {
        if makes(&fs::read_to_string(&file).expect("a source file")) {
            let path = file.strip_prefix(crates()).expect("below crates");
            made.push(path.display().to_string());
        }
    }
    // The check itself.
    made.retain(|path| path != "feat/ip4/src/icmp.rs");
    made.sort();
    assert_eq!(made, MAKERS, "a maker of ICMP errors asks `icmp_errors::Errors` for the source");
}

/// The name of a package, and the workspace's crates that it depends on.
fn manifest(folder: &Path) -> (String, Vec<String>) {
    let text = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
    let name = text.lines().find_map(|l| l.strip_prefix("name = ")).expect("a name");
    let (_, after) = text.split_once("[dependencies]").unwrap_or_default();
    let own = after.lines().skip(1).take_while(|l| !l.starts_with('['));
    let own = own.filter(|l| l.starts_with("thalweg-"));
    let own = own.filter_map(|l| l.split(['.', ' ']).next()).map(str::to_owned);
    (name.trim_matches('"').to_owned(), own.collect())
}

#[test]
fn dependencies_point_downwards() {
    let mut levels = BTreeMap::new();
    let mut needs = Vec::new();
    for (level, row) in
        rows(PAGE, "(`crates/program/router/tests/architecture.rs`):").iter().enumerate()
    {
        for name in code(row[0]) {
            let folders = match name.strip_suffix("/*") {
                None => vec![crates().join(name)],
                Some(parent) => fs::read_dir(crates().join(parent))
                    .expect("a folder")
                    .map(|e| e.expect("an entry").path())
                    .collect(),
            };
            for folder in folders {
                let (name, own) = manifest(&folder);
                levels.insert(name.clone(), level);
                needs.push((name, own));
            }
        }
    }
    assert!(levels.len() > 20, "{levels:?}");
    for (name, own) in needs {
        for dependency in own {
            let level = levels.get(&dependency).unwrap_or_else(|| panic!("no row: {dependency}"));
            assert!(*level >= levels[&name], "{name} depends on {dependency} above it");
        }
    }
}

#[test]
fn features_need_those_whose_crates_they_use() {
    let at = |parent: &str| fs::read_dir(crates().join(parent)).expect("a folder");
    let folders = at("feat").chain(at("device")).map(|e| e.expect("an entry").path());
    let mut names = BTreeMap::new();
    for folder in folders.chain([crates().join("fib")]) {
        let text = fs::read_to_string(folder.join("src/lib.rs")).expect("a source file");
        // Code that drivers share is no feature.
        let Some((_, feature)) = text.split_once("pub static FEATURE") else { continue };
        let name = feature.split('"').nth(1).expect("a name").to_owned();
        let (package, uses) = manifest(&folder);
        names.insert(package, (name, uses));
    }
    assert!(names.len() > 10, "{names:?}");
    for (name, uses) in names.values() {
        let is_it = |f: &&&Feature| f.name == name;
        // The load tester adds its ports to a device of its own.
        let all = [FEATURES, &[&thalweg_device_load::FEATURE]].concat();
        let feature = all.iter().find(is_it).unwrap_or_else(|| panic!("no feature {name}"));
        let mut uses: Vec<_> = uses.iter().filter_map(|p| names.get(p)).map(|n| &n.0).collect();
        let mut needs: Vec<_> = feature.needs.iter().map(|need| need.name).collect();
        uses.sort_unstable();
        needs.sort_unstable();
        assert_eq!(needs, uses, "{name}");
    }
}

#[test]
fn files_that_are_named_exist() {
    let is_file = |s: &&str| s.contains('/') && s.ends_with(".rs") && !s.contains('{');
    let named = PAGE.split('`').skip(1).step_by(2).filter_map(|s| s.split(':').next());
    let mut n = 0;
    for file in named.filter(is_file) {
        let root = crates().join("..");
        let found = crates().join(file).exists() || root.join(file).exists();
        assert!(found, "there is no {file}");
        n += 1;
    }
    assert!(n > 30, "{n}");
}

/// Source files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Features keep what their nodes share with the worker, and what they leave in a packet in fields
/// of their own: neither can be mixed up, and both can be found.
#[test]
fn features_have_no_state_on_the_side() {
    let mut files = Vec::new();
    sources(&crates().join("feat"), &mut files);
    assert!(files.len() > 200, "{}", files.len());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for word in ["thread_local!", ".opaque"] {
            assert!(!text.contains(word), "{word} in {}", file.display());
        }
    }
}
