//! Message types of the binary API, written from VPP's descriptions.
//!
//! A folder of handlers has a file for each request, named after it. The file `message_types.rs`
//! next to the folder has these requests, their replies, details and events, and the types of their
//! fields, as far as `thalweg_api::types` does not have them for all. `thalweg_api` has one of the
//! messages of the connection itself.

mod description;
mod write;

use anyhow::{Context, Result, ensure};
use description::Module;
use std::fs;
use std::path::{Path, PathBuf};
use thalweg_testkit::{is_same_code, rustfmt};

/// Descriptions of VPP's release that the router follows.
const DESCRIPTIONS: &str = "crates/program/router/tests/vpp-api";

/// Types that all messages share, with the modules that have them.
const SHARED: [(&str, &str); 2] = [
    ("crates/api/src/types.rs", "thalweg_api::types"),
    ("crates/api/src/types/fib.rs", "thalweg_api::types::fib"),
];

/// The file with messages of the connection, their module, and the requests: the server handles
/// these without any feature.
const OWN: (&str, &str, [&str; 7]) = (
    "crates/api/src/message_types.rs",
    "memclnt",
    [
        "get_first_msg_id",
        "api_versions",
        "sockclnt_create",
        "sockclnt_delete",
        "memclnt_keepalive",
        "control_ping",
        "get_api_json",
    ],
);

/// Line of a folder's `mod.rs` that says what it is.
const FOLDER: &str = "//! Every API message of this folder, one per file.";

/// Writes the files that are not current; returns true.
pub fn run() -> Result<bool> {
    for (path, wanted) in files(&crate::root()?)? {
        if !is_current(&path, &wanted) {
            fs::write(&path, wanted).with_context(|| format!("write {}", path.display()))?;
            println!("{}: written", path.display());
        }
    }
    Ok(true)
}

fn is_current(path: &Path, wanted: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|found| is_same_code(&found, wanted))
}

/// Returns all files with what they should say.
fn files(root: &Path) -> Result<Vec<(PathBuf, String)>> {
    let read =
        |path: &str| fs::read_to_string(root.join(path)).with_context(|| format!("read {path}"));
    let modules = description::read_all(&root.join(DESCRIPTIONS))?;
    let mut shared = Vec::new();
    for (path, module) in SHARED {
        shared.push((read(path)?, module));
    }
    let mut folders = Vec::new();
    find_folders(&root.join("crates"), &mut folders)?;
    ensure!(!folders.is_empty(), "no folder of handlers below {}", root.display());
    let file = |folder: PathBuf| {
        let text = rustfmt(&file(&folder, &modules, &shared)?);
        Ok((folder.with_file_name("message_types.rs"), text))
    };
    let (path, module, requests) = OWN;
    let own = (root.join(path), rustfmt(&own(&modules, module, &requests)?));
    folders.into_iter().map(file).chain([Ok(own)]).collect()
}

/// Returns the text of the connection's own messages, with their ids.
fn own(modules: &[Module], module: &str, requests: &[&str]) -> Result<String> {
    let module = modules.iter().find(|m| m.name == module).context("no module of messages")?;
    let mut writer = write::Writer::new(&[], "");
    for request in requests {
        writer.service(module, request).with_context(|| format!("message `{request}`"))?;
    }
    writer.numbers(module, requests);
    Ok(writer.finish("the server", "handles by itself"))
}

fn find_folders(dir: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let list = fs::read_to_string(dir.join("mod.rs"));
    if list.is_ok_and(|list| list.starts_with(FOLDER)) {
        found.push(dir.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(dir).with_context(|| format!("read {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            find_folders(&path, found)?;
        }
    }
    Ok(())
}

/// Returns the text for one folder of handlers.
fn file(folder: &Path, modules: &[Module], shared: &[(String, &'static str)]) -> Result<String> {
    let (mut requests, mut handlers) = (Vec::new(), String::new());
    for entry in fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if stem != "mod" {
            requests.push(stem.to_owned());
            handlers += &fs::read_to_string(&path).with_context(|| format!("read {stem}"))?;
        }
    }
    requests.sort_unstable();
    let mut writer = write::Writer::new(shared, &handlers);
    for request in &requests {
        let module = modules.iter().find(|module| module.has_request(request));
        let module = module.with_context(|| {
            format!("{}: no description in {DESCRIPTIONS} has `{request}`", folder.display())
        })?;
        writer.service(module, request).with_context(|| format!("message `{request}`"))?;
    }
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    Ok(writer.finish(&format!("the files of the folder `{name}`"), "handle"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_types_are_current() {
        for (path, wanted) in files(&crate::root().unwrap()).unwrap() {
            let path_text = path.display();
            assert!(is_current(&path, &wanted), "{path_text}: run `cargo xtask api` and commit");
        }
    }
}
