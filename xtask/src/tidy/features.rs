//! A crate's manifest asks for the features of rustix that its code uses: in the workspace's build
//! others ask for them, too, and only the crate alone does not build.

use super::{Source, tests_begin};

/// Modules that need no feature.
const FREE: [&str; 5] = ["buffer", "cmsg_space", "fd", "ffi", "io"];
const NAME: &str = concat!("rustix", "::");

/// Crates that a manifest asks for, in its dependencies and in those of its tests.
fn asked(manifest: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut always, mut in_tests, mut section) = (Vec::new(), Vec::new(), "");
    for line in manifest.lines() {
        match line.strip_prefix('[') {
            Some(name) => section = name,
            None if line.starts_with("rustix ") => {
                let features = line.split('"').skip(1).step_by(2);
                let is_of_tests = section.starts_with("dev-");
                let to = if is_of_tests { &mut in_tests } else { &mut always };
                to.extend(features);
            }
            None => {}
        }
    }
    (always, in_tests)
}

/// The module of rustix that each mention in a line names.
fn used(line: &str) -> impl Iterator<Item = &str> {
    let code = if line.trim_start().starts_with("//") { "" } else { line };
    let end =
        |rest: &str| rest.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(rest.len());
    code.split(NAME).skip(1).map(move |rest| &rest[..end(rest)]).filter(|name| !name.is_empty())
}

/// The folder of the manifest that a source belongs to: the deepest one above it.
fn home<'a>(manifests: &[&'a Source], path: &str) -> Option<&'a Source> {
    let folder = |m: &Source| m.path.strip_suffix("Cargo.toml").unwrap_or(&m.path).to_owned();
    let above = manifests.iter().filter(|m| path.starts_with(&folder(m)));
    above.max_by_key(|m| m.path.len()).copied()
}

pub fn check(sources: &[Source]) -> Vec<String> {
    let is_manifest = |s: &&Source| s.path.ends_with("/Cargo.toml");
    let manifests: Vec<&Source> = sources.iter().filter(is_manifest).collect();
    let mut findings = Vec::new();
    for source in sources.iter().filter(|s| s.is("rs")) {
        let Some(manifest) = home(&manifests, &source.path) else { continue };
        let (always, in_tests) = asked(&manifest.text);
        let begin = tests_begin(source);
        for (number, line) in source.lines() {
            for module in used(line).filter(|module| !FREE.contains(module)) {
                let is_asked =
                    always.contains(&module) || number >= begin && in_tests.contains(&module);
                if !is_asked {
                    let what = format!("{} does not ask for `{module}' of rustix", manifest.path);
                    findings.push(source.finding(number, what));
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    #[test]
    fn features_that_are_not_asked_for_are_found() {
        let manifest = "[dependencies]\nrustix = { workspace = true, features = [\"fs\", \"net\"] }\n\
                        [dev-dependencies]\nrustix = { workspace = true, features = [\"pty\"] }\n";
        let use_of = |module: &str| format!("{NAME}{module}::f();\n");
        let [fs, pty, io, time] = ["fs", "pty", "io", "time"].map(use_of);
        let code = format!("{fs}{pty}{io}// {time}#[cfg(test)]\nmod tests {{\n{pty}{time}}}");
        let all = [
            source("crates/a/Cargo.toml", manifest),
            source("crates/a/b/Cargo.toml", ""),
            source("crates/a/src/a.rs", &code),
            source("crates/a/tests/t.rs", &pty),
            source("crates/a/b/src/lib.rs", &fs),
        ];
        assert_eq!(
            check(&all),
            [
                "crates/a/src/a.rs:2: crates/a/Cargo.toml does not ask for `pty' of rustix",
                "crates/a/src/a.rs:8: crates/a/Cargo.toml does not ask for `time' of rustix",
                "crates/a/b/src/lib.rs:1: crates/a/b/Cargo.toml does not ask for `fs' of rustix",
            ]
        );
    }
}
