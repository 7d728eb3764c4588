//! Counts that were accepted.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// Share by which a path may exceed what was accepted.
pub const TOLERANCE: f64 = 0.03;

/// Instructions per packet of each path at each level.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Accepted {
    /// The compiler.
    pub rustc: String,
    /// Instructions by path, then by level.
    pub instructions: BTreeMap<String, BTreeMap<String, f64>>,
}

/// A count next to the one that was accepted.
pub struct Verdict {
    /// The path.
    pub path: String,
    /// The level of instructions.
    pub level: String,
    /// The accepted count, if there is one.
    pub before: Option<f64>,
    /// The new count.
    pub now: f64,
}

impl Verdict {
    /// The share by which it has grown.
    pub fn change(&self) -> Option<f64> {
        self.before.map(|before| self.now / before - 1.0)
    }

    /// True if it has grown by more than [`TOLERANCE`].
    pub fn is_worse(&self) -> bool {
        self.change().is_some_and(|change| change > TOLERANCE)
    }

    /// A line about it.
    pub fn say(&self) -> String {
        let (before, change) = (self.before.unwrap_or(0.0), self.change().unwrap_or(0.0));
        format!(
            "{}, {}: {:.2} instructions per packet, {before:.2} were accepted ({:+.1} %)",
            self.path,
            self.level,
            self.now,
            100.0 * change
        )
    }
}

impl Accepted {
    /// None, by the compiler that is in use.
    ///
    /// # Errors
    /// If there is no compiler.
    pub fn by_this_compiler() -> Result<Accepted> {
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
        let out = Command::new(rustc).arg("--version").output().context("run rustc --version")?;
        let rustc = String::from_utf8_lossy(&out.stdout).trim().to_owned();
        Ok(Accepted { rustc, ..Accepted::default() })
    }

    /// Reads those of a file.
    ///
    /// # Errors
    /// If there is no such file, or it is no such table.
    pub fn read(file: &Path) -> Result<Accepted> {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("{}: `make bench-accept' makes it", file.display()))?;
        serde_json::from_str(&text).with_context(|| file.display().to_string())
    }

    /// Writes them.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, file: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(file, text).with_context(|| format!("write {}", file.display()))
    }

    /// Sets a count, to two digits.
    pub fn set(&mut self, path: &str, level: &str, count: f64) {
        let count = (100.0 * count).round() / 100.0;
        self.instructions.entry(path.into()).or_default().insert(level.into(), count);
    }

    /// Each count next to an older one.
    pub fn compare(&self, before: &Accepted) -> Vec<Verdict> {
        let mut all = Vec::new();
        for (path, levels) in &self.instructions {
            for (level, now) in levels {
                let old = before.instructions.get(path).and_then(|l| l.get(level)).copied();
                all.push(Verdict {
                    path: path.clone(),
                    level: level.clone(),
                    before: old,
                    now: *now,
                });
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_grown_is_told_from_what_has_not() {
        let (mut before, mut now) = (Accepted::default(), Accepted::default());
        before.set("a", "avx2", 10.0);
        before.set("b", "avx2", 10.0);
        now.set("a", "avx2", 10.291);
        now.set("b", "avx2", 10.31);
        now.set("c", "avx2", 5.0);
        let worse: Vec<bool> = now.compare(&before).iter().map(Verdict::is_worse).collect();
        assert_eq!(worse, [false, true, false]);
        let said = now.compare(&before)[1].say();
        assert!(said.contains("b, avx2: 10.31") && said.contains("(+3.1 %)"), "{said}");
    }

    #[test]
    fn a_file_keeps_them() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.json");
        assert!(format!("{:#}", Accepted::read(&file).unwrap_err()).contains("bench-accept"));
        let mut some = Accepted::by_this_compiler().unwrap();
        assert!(some.rustc.starts_with("rustc "), "{}", some.rustc);
        some.set("a", "scalar", 1.234);
        some.write(&file).unwrap();
        assert_eq!(Accepted::read(&file).unwrap(), some);
        assert_eq!(some.instructions["a"]["scalar"], 1.23);
    }
}
