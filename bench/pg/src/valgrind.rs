//! valgrind, which counts what a program does.

use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Asks whether it can be run.
///
/// # Errors
/// If it cannot; the error says how to get it.
pub fn check() -> Result<()> {
    let out = Command::new("valgrind").arg("--version").output();
    let out = out.context("valgrind cannot be run; `scripts/setup.sh long' installs it")?;
    ensure!(out.status.success(), "valgrind --version: {}", out.status);
    Ok(())
}
