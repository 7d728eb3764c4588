//! Tests that need network namespaces.

use std::env;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use thalweg_netns::{Privilege, user_namespace_command};

use crate::{failure, pause};

/// Set in the environment of a test that runs again inside a user namespace.
const INNER: &str = "THALWEG_TESTKIT_INNER";

/// Runs a test that needs network namespaces; see [`lab_test!`](crate::lab_test).
///
/// `path` is the test's path as `module_path!` and its name give it.
///
/// If it fails, the last packets of its labs' hosts are written into a file in
/// [`failure_dir`](crate::failure_dir), whose path is printed; with `PAUSE=1` in the environment it
/// prints how to enter its namespaces, which stay until Enter is pressed.
///
/// # Panics
/// If the test fails, or if namespaces cannot be made and the environment variable `CI` is set.
#[expect(clippy::panic, reason = "this is how a test fails")]
pub fn run_lab_test(path: &str, body: impl FnOnce() -> Result<()>) {
    let finish = |result: Result<()>| {
        if let Err(error) = result {
            panic!("{error:#}");
        }
    };
    match Privilege::check() {
        Privilege::Root => finish(failure::run(path, body)),
        Privilege::UserNamespaces if env::var_os(INNER).is_none() => finish(run_inside(path)),
        Privilege::UserNamespaces => panic!("{path}: no network namespaces in a user namespace"),
        Privilege::None(why) if env::var_os("CI").is_some() => panic!("{path}: {why}"),
        Privilege::None(why) => eprintln!("NOT RUN: {path}: {why}"),
    }
}

/// Runs one test of this test binary again, as root of a user namespace.
fn run_inside(path: &str) -> Result<()> {
    let program = env::current_exe().context("find this test binary")?;
    // libtest's names begin below the crate.
    let name = path.split_once("::").map_or(path, |(_, name)| name);
    let test = user_namespace_command(program)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INNER, "1");
    if pause::wanted() {
        let status = test.run_attended()?;
        ensure!(status.success(), "{path} ended with {status} in a user namespace");
        return Ok(());
    }
    test.deadline(Duration::from_secs(600)).output().map(drop)
}

/// True if this process is a test that runs in a user namespace of its own.
pub(crate) fn in_own_user_namespace() -> bool {
    env::var_os(INNER).is_some()
}

/// Defines a test that needs network namespaces.
///
/// Root runs the test as it is; other users run it again, alone, in a user namespace; where these
/// are not allowed, the test says that it did not run, and fails if `CI` is set. The body ends in a
/// [`Result`](crate::Result).
///
/// ```
/// thalweg_testkit::lab_test! {
///     /// The two hosts reach each other.
///     fn hosts_ping() {
///         let lab = thalweg_testkit::Lab::kernel_router()?;
///         lab.ping_all()
///     }
/// }
/// ```
#[macro_export]
macro_rules! lab_test {
    ($($(#[$meta:meta])* fn $name:ident() $body:block)+) => {$(
        $(#[$meta])*
        #[test]
        fn $name() {
            $crate::run_lab_test(
                concat!(module_path!(), "::", stringify!($name)),
                || -> $crate::Result<()> { $body },
            );
        }
    )+};
}
