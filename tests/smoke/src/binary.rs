//! Path of the router's program.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The program under test: `$THALWEG_BIN`, or what Cargo built in the directory where it built
/// this program, the optimised one first.
///
/// # Errors
/// If there is none; the error says how to build it.
pub fn thalweg() -> Result<PathBuf> {
    if let Some(path) = env::var_os("THALWEG_BIN") {
        let path = PathBuf::from(path);
        if path.is_file() {
            return Ok(path);
        }
        bail!("THALWEG_BIN names {}, which is no file", path.display());
    }
    let own = env::current_exe().context("find this program")?;
    // TARGET/PROFILE/deps/NAME-HASH
    for dir in own.ancestors().skip(1) {
        for profile in ["release", "debug"] {
            let program = dir.join(profile).join("thalweg");
            if program.is_file() {
                return Ok(program);
            }
        }
    }
    bail!(
        "there is no thalweg next to {}; build it with: cargo build --release --bins",
        own.parent().unwrap_or(Path::new(".")).display()
    )
}
