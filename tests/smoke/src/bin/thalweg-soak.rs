//! Connections come and go through translation and rules for a number of minutes; then everything
//! that the router remembered has to be forgotten.

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use thalweg_smoke::{SoakOptions, soak};
use thalweg_testkit::{Privilege, enter_user_namespace};

const USAGE: &str = "usage: thalweg-soak [minutes] (30 without)";

fn run() -> Result<()> {
    // First thing: a process with several threads may not.
    match Privilege::check() {
        Privilege::Root => {}
        Privilege::UserNamespaces => enter_user_namespace()?,
        Privilege::None(why) => bail!("{why}"),
    }
    let minutes: f64 = match env::args().nth(1) {
        Some(text) => text.parse().with_context(|| format!("{text:?} is no number; {USAGE}"))?,
        None => 30.0,
    };
    let seconds = minutes * 60.0;
    if !(1.0..=604_800.0).contains(&seconds) {
        bail!("{minutes} minutes: more than a second and up to a week expected; {USAGE}");
    }
    let report = Duration::from_secs(60).min(Duration::from_secs_f64(seconds / 2.0));
    println!("connections come and go for {minutes} minutes");
    soak(SoakOptions { duration: Duration::from_secs_f64(seconds), report }, |line| {
        println!("{line}");
    })?;
    println!("passed");
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("thalweg-soak: {error:#}");
            ExitCode::FAILURE
        }
    }
}
