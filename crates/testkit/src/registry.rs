//! The committed list of a folder in which every file holds one item.
//!
//! A folder such as `src/nodes` has a file per graph node and a `mod.rs` that declares them all
//! and collects them in a static list. A unit test keeps that `mod.rs` current:
//!
//! ```no_run
//! #[test]
//! fn node_list_is_current() {
//!     thalweg_testkit::GeneratedList {
//!         dir: concat!(env!("CARGO_MANIFEST_DIR"), "/src/nodes"),
//!         what: "graph node",
//!         list: "NODES",
//!         element: "&thalweg_graph::node::NodeDecl",
//!         item: "NODE",
//!     }
//!     .check();
//! }
//! ```
//!
//! Adding a file makes the test rewrite the list and fail once. Plain statics in a plain file have
//! a fixed order, and rustfmt, Miri and the reader see them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use thalweg_netns::Cmd;

/// Form of a folder's list.
#[derive(Clone, Copy, Debug)]
pub struct GeneratedList<'a> {
    /// The folder with one file per item.
    pub dir: &'a str,
    /// Word for an item, in the singular, for the documentation: `graph node`.
    pub what: &'a str,
    /// Name of the static list: `NODES`.
    pub list: &'a str,
    /// Type of its elements: `&thalweg_graph::node::NodeDecl`, `&dyn thalweg_cli::Command`.
    pub element: &'a str,
    /// Name of the item in each file, of which the list holds a reference: `NODE`.
    pub item: &'a str,
}

/// Checks the lists of a feature crate: `src/nodes`, `src/cli` and `src/api`, as far as it has
/// them. For a unit test of one line: `check_feature_lists(env!("CARGO_MANIFEST_DIR"))`.
///
/// # Panics
/// The panics of [`GeneratedList::check`].
pub fn check_feature_lists(crate_dir: &str) {
    let lists = [
        ("nodes", "graph node", "NODES", "&thalweg_graph::NodeDecl", "NODE"),
        (
            "cli",
            "command",
            "COMMANDS",
            "&dyn thalweg_cli::Command<thalweg_graph::Control>",
            "COMMAND",
        ),
        (
            "api",
            "API message",
            "SERVICES",
            "&dyn thalweg_api::Service<thalweg_graph::Control>",
            "SERVICE",
        ),
        ("settings", "setting", "SETTINGS", "&dyn thalweg_engine::setting::Declared", "SETTING"),
    ];
    for (folder, what, list, element, item) in lists {
        let dir = format!("{crate_dir}/src/{folder}");
        if Path::new(&dir).is_dir() {
            GeneratedList { dir: &dir, what, list, element, item }.check();
        }
    }
}

impl GeneratedList<'_> {
    /// Passes if `mod.rs` agrees with the folder.
    ///
    /// # Panics
    /// Otherwise; except under `CI` it has written the right `mod.rs` by then, and the next run
    /// passes. Panics as well if a file lacks its item.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub fn check(&self) {
        let write = std::env::var_os("CI").is_none();
        if let Err(error) = self.compare(write) {
            panic!("{error:#}");
        }
    }

    fn compare(&self, write: bool) -> Result<()> {
        let wanted = rustfmt(&self.generate()?);
        let path = Path::new(self.dir).join("mod.rs");
        let found = fs::read_to_string(&path).unwrap_or_default();
        if is_same_code(&found, &wanted) {
            return Ok(());
        }
        if !write {
            bail!(
                "{} does not list what the folder holds; run its test without CI set and commit \
                 the file",
                path.display()
            );
        }
        fs::write(&path, wanted).with_context(|| format!("write {}", path.display()))?;
        bail!("{} regenerated, run again", path.display())
    }

    fn generate(&self) -> Result<String> {
        let modules = self.modules()?;
        let declarations: String =
            modules.iter().map(|module| format!("pub mod {module};\n")).collect();
        let elements: Vec<_> =
            modules.iter().map(|module| format!("&{module}::{}", self.item)).collect();
        let head = format!(
            "//! Every {what} of this folder, one per file.\n\
             //!\n\
             //! Generated from the files' names by a unit test, which keeps it current: add a\n\
             //! file, then run the tests twice.\n",
            what = self.what
        );
        let one_line = format!(
            "pub static {}: &[{}] = &[{}];\n",
            self.list,
            self.element,
            elements.join(", ")
        );
        Ok(format!(
            "{head}\n{declarations}{gap}/// Every {what}, in the order of the files' names.\n\
             {one_line}",
            gap = if modules.is_empty() { "" } else { "\n" },
            what = self.what,
        ))
    }

    /// The folder's modules in alphabetical order.
    fn modules(&self) -> Result<Vec<String>> {
        let mut modules = Vec::new();
        let entries =
            fs::read_dir(self.dir).with_context(|| format!("read folder {}", self.dir))?;
        for entry in entries {
            let path = entry?.path();
            let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
            let source = if path.is_dir() {
                path.join("mod.rs")
            } else if path.extension().is_some_and(|ext| ext == "rs") && stem != "mod" {
                path.clone()
            } else {
                continue;
            };
            // A folder without mod.rs holds data.
            let Ok(text) = fs::read_to_string(&source) else { continue };
            self.require_item(&source, &text)?;
            modules.push(stem.to_owned());
        }
        modules.sort_unstable();
        Ok(modules)
    }

    fn require_item(&self, path: &Path, text: &str) -> Result<()> {
        let declares = |line: &str| {
            let mut words = line.split(|c: char| c.is_whitespace() || ":;({<".contains(c));
            words.next() == Some("pub")
                && matches!(words.next(), Some("static" | "const" | "struct"))
                && words.next() == Some(self.item)
        };
        if text.lines().any(declares) {
            return Ok(());
        }
        bail!(
            "{} has no `pub static {}`; each file of the folder holds one {}, and what several \
             share belongs next to the folder",
            path.display(),
            self.item,
            self.what
        )
    }
}

/// Formats as rustfmt does, by rustfmt where it is installed.
pub fn rustfmt(source: &str) -> String {
    Cmd::new("rustfmt")
        .args(["--edition", "2024", "--config", "max_width=100,use_small_heuristics=Max"])
        .stdin(source)
        .output()
        .unwrap_or_else(|_| source.to_owned())
}

/// Compares two texts without what formatting, and its versions, may change.
pub fn is_same_code(a: &str, b: &str) -> bool {
    let squeeze = |text: &str| {
        let text: String = text.split_whitespace().collect();
        text.replace(",]", "]").replace(",}", "}").replace(",)", ")")
    };
    squeeze(a) == squeeze(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(dir: &Path) -> GeneratedList<'_> {
        GeneratedList {
            dir: dir.to_str().unwrap(),
            what: "graph node",
            list: "NODES",
            element: "&crate::NodeDecl",
            item: "NODE",
        }
    }

    #[test]
    fn the_list_follows_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let list = list(dir.path());
        fs::write(dir.path().join("ip4_input.rs"), "pub static NODE: X = X;\n").unwrap();
        fs::write(dir.path().join("arp.rs"), "//! x\npub const NODE: X = X;\n").unwrap();
        fs::write(dir.path().join("notes.txt"), "no module").unwrap();
        fs::create_dir(dir.path().join("data")).unwrap();

        let stale = list.compare(false).unwrap_err().to_string();
        assert!(stale.contains("does not list"), "{stale}");
        let first = list.compare(true).unwrap_err().to_string();
        assert!(first.ends_with("regenerated, run again"), "{first}");
        list.compare(false).unwrap();

        let path = dir.path().join("mod.rs");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("pub mod arp;\npub mod ip4_input;\n\n///"), "{text}");
        assert!(
            text.ends_with(
                "pub static NODES: &[&crate::NodeDecl] = &[&arp::NODE, &ip4_input::NODE];\n"
            ),
            "{text}"
        );

        for letter in "abcdefgh".chars() {
            let file = dir.path().join(format!("some_longer_name_{letter}.rs"));
            fs::write(file, "pub static NODE: X = X;\n").unwrap();
        }
        list.compare(true).unwrap_err();
        list.compare(false).unwrap();
        fs::remove_file(dir.path().join("arp.rs")).unwrap();
        list.compare(true).unwrap_err();
        list.compare(false).unwrap();
        assert!(!fs::read_to_string(&path).unwrap().contains("arp"));
    }

    #[test]
    fn a_file_without_its_item_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("lost.rs"), "pub static NODES: X = X;\n").unwrap();
        let error = list(dir.path()).compare(true).unwrap_err().to_string();
        assert!(error.contains("lost.rs has no `pub static NODE`"), "{error}");
    }

    #[test]
    fn an_empty_folder_has_an_empty_list() {
        let dir = tempfile::tempdir().unwrap();
        list(dir.path()).compare(true).unwrap_err();
        list(dir.path()).compare(false).unwrap();
    }
}
