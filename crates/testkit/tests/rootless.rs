//! A lab for all users: what the demo does when it is not started by root. Without libtest, which
//! would have started threads.

use anyhow::{Result, ensure};
use thalweg_testkit::{
    Cmd, Lab, LabOptions, Middle, Privilege, enter_user_namespace, require_tools,
};

fn main() -> Result<()> {
    require_tools(&["ip", "ping", "setpriv", "unshare"])?;
    if let Err(error) = enter_user_namespace() {
        ensure!(std::env::var_os("CI").is_none(), "{error:#}");
        eprintln!("NOT RUN: {error:#}");
        return Ok(());
    }
    ensure!(Privilege::check() == Privilege::Root, "root of the user namespace has no privilege");
    let lab = Lab::build(&LabOptions {
        middle: Middle::KernelRouter,
        name_prefix: Some("demo".into()),
        ..LabOptions::default()
    })?;
    lab.ping_all()?;
    let right = lab.right.addr.to_string();
    Cmd::new("ip").args(["netns", "exec", "demo-left", "ping", "-c", "1", &right]).output()?;
    println!("a lab in a user namespace ... ok");
    Ok(())
}
