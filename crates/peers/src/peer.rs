//! Programs of others, to test against and compare with.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use thalweg_netns::{Cmd, Netns};

/// Debian's directories of libraries, below the root of a package.
fn library_dirs() -> Vec<PathBuf> {
    let triple = format!("{}-linux-gnu", env::consts::ARCH);
    vec![Path::new("usr/lib").join(&triple), Path::new("lib").join(triple)]
}

/// A package of programs: installed in the system, or unpacked by `scripts/setup.sh long` or
/// `bench`.
#[derive(Clone, Debug)]
pub struct Peer {
    root: PathBuf,
}

impl Peer {
    /// Finds package `name`, known by `programs`: paths below the root, such as
    /// `usr/sbin/ovsdb-server`. Installed packages come first.
    ///
    /// # Errors
    /// If it is nowhere; the error says how to get it.
    pub fn find(name: &str, programs: &[&str]) -> Result<Peer> {
        let has_all = |root: &Path| programs.iter().all(|program| root.join(program).is_file());
        let own = env::current_exe().context("find this program")?;
        let unpacked = own.ancestors().skip(1).map(|dir| dir.join("peers").join(name));
        let root = std::iter::once(PathBuf::from("/")).chain(unpacked).find(|root| has_all(root));
        match root {
            Some(root) => Ok(Peer { root }),
            None => bail!("{name} is not here: scripts/setup.sh {} fetches it", list(name)),
        }
    }

    /// A file of the package.
    pub fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// The package's file `PREFIX…` in directory `below`, if there is one.
    pub fn file_beginning(&self, below: &str, prefix: &str) -> Option<PathBuf> {
        let mut found: Vec<_> = std::fs::read_dir(self.path(below))
            .ok()?
            .filter_map(|entry| entry.ok())
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
            .map(|entry| entry.path())
            .collect();
        found.sort();
        found.into_iter().next()
    }

    /// The directory of libraries below the root, such as `usr/lib/x86_64-linux-gnu`.
    pub fn library_dir(&self) -> PathBuf {
        self.root.join(&library_dirs()[0])
    }

    /// A command that runs one of its programs, in `ns` if one is given.
    pub fn command(&self, ns: Option<&Netns>, program: &str) -> Cmd {
        self.wrapped(ns, &[], program)
    }

    /// Like [`command`](Peer::command), by way of another program with its arguments.
    pub fn wrapped(&self, ns: Option<&Netns>, wrapper: &[&str], program: &str) -> Cmd {
        let program = self.path(program).into_os_string();
        let mut words = wrapper.iter().map(OsString::from).chain([program]);
        // The command has at least the program itself.
        let first = words.next().unwrap_or_default();
        let command = match ns {
            Some(ns) => ns.command(first),
            None => Cmd::new(first),
        };
        let command = command.args(words);
        if self.root == Path::new("/") {
            return command;
        }
        let dirs: Vec<_> = library_dirs().iter().map(|dir| self.root.join(dir)).collect();
        let path = env::join_paths(dirs).unwrap_or_default();
        command.env("LD_LIBRARY_PATH", path)
    }
}

/// The list of `scripts/setup.sh` that fetches a package.
fn list(name: &str) -> &'static str {
    match name {
        "bird" | "frr" => "demo-bgp",
        "keepalived" | "radvd" => "test",
        "goflow2" | "pmacct" => "long",
        _ => "bench",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_installed_is_found_and_what_is_not_is_explained() {
        let peer = Peer::find("any", &["bin/sh"]).unwrap();
        assert_eq!(peer.path("bin/sh"), Path::new("/bin/sh"));
        let said = peer.command(None, "bin/sh").args(["-c", "echo yes"]).output().unwrap();
        assert_eq!(said, "yes\n");
        let error = Peer::find("any", &["no/such/program"]).unwrap_err().to_string();
        assert!(error.contains("setup.sh bench"), "{error}");
    }
}
