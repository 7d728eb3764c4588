//! The host's part: the kernel, the file system, the machine.

use crate::archive::Archive;
use crate::{FAILED, MODULES, MODULES_DIR, PASSED};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time that the machine may take: much more than it does even on a host that is busy with other
/// things.
const LIMIT: Duration = Duration::from_secs(900);
const QEMU: &str = "qemu-system-x86_64";
/// Kernels to look for, the smallest first.
const KERNELS: [&str; 2] = ["linux-image-cloud-amd64", "linux-image-amd64"];
/// Programs of the host's that the guest calls.
const PROGRAMS: [&str; 5] = ["ip", "tc", "setpriv", "ping", "bash"];
/// Daemons of FRRouting, which has models of its configuration, and a group.
const FRR: [&str; 4] = ["zebra", "staticd", "ospfd", "ldpd"];
const FRR_DIR: &str = "/usr/lib/frr";
const MODELS: &str = "/usr/share/yang";
const ACCOUNTS: [(&str, &str); 2] =
    [("/etc/passwd", "root:x:0:0::/:/bin/sh\n"), ("/etc/group", "root:x:0:\nfrrvty:x:9:root\n")];

pub(crate) fn main() -> Result<()> {
    ensure!(
        cfg!(target_arch = "x86_64"),
        "this needs an x86-64 host: the kernel is fetched for it"
    );
    ensure!(
        found(QEMU).is_some(),
        "{QEMU} is missing: `make setup' installs it, or says what to install"
    );
    let begin = Instant::now();
    let cache = own_directory()?.join("psample");
    let kernel = kernel(&cache)?;
    let work = tempfile::tempdir().context("make a directory")?;
    let image = work.path().join("initramfs");
    fs::write(&image, file_system(&kernel)?).context("write the file system")?;
    println!("test-psample: {} ready after {:.1?}", kernel.name, begin.elapsed());
    let begin = Instant::now();
    let result = boot(&kernel, &image);
    println!("test-psample: the machine ran for {:.1?}", begin.elapsed());
    result
}

/// The directory that Cargo builds in: TARGET/PROFILE/NAME.
fn own_directory() -> Result<PathBuf> {
    let own = env::current_exe().context("find this program")?;
    let target = own.ancestors().nth(2).context("this program is in no directory of Cargo's")?;
    Ok(target.to_path_buf())
}

/// Returns the path of a program. Debian keeps some out of an ordinary user's PATH.
fn found(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let all = env::split_paths(&path).chain(usual);
    all.map(|dir| dir.join(program)).find(|file| file.is_file())
}

struct Kernel {
    name: String,
    image: PathBuf,
    modules: BTreeMap<String, PathBuf>,
}

/// Unpacks Debian's kernel, unless that was done.
fn kernel(cache: &Path) -> Result<Kernel> {
    if let Some(kernel) = unpacked(cache)? {
        return Ok(kernel);
    }
    for what in ["apt-cache", "apt-get", "dpkg-deb"] {
        ensure!(found(what).is_some(), "{what} is missing, by which Debian's kernel is fetched");
    }
    let package = match newest() {
        Some(package) => package,
        None => {
            // The lists of packages may be absent, as in container images.
            let _ = Command::new("apt-get").arg("update").stdout(Stdio::null()).status();
            newest().context("no package of a kernel is known; after apt-get update one may be")?
        }
    };
    println!("test-psample: fetching {package}");
    let work = tempfile::tempdir().context("make a directory")?;
    run(Command::new("apt-get").args(["-q", "download", &package]).current_dir(work.path()))?;
    let archive = fs::read_dir(work.path())?.next().context("apt-get left no file")??.path();
    let partial = cache.with_extension("partial");
    for old in [cache, partial.as_path()] {
        if old.exists() {
            fs::remove_dir_all(old).with_context(|| format!("remove {}", old.display()))?;
        }
    }
    fs::create_dir_all(&partial)?;
    run(Command::new("dpkg-deb").arg("-x").args([&archive, &partial]))?;
    fs::rename(&partial, cache).context("keep the kernel")?;
    unpacked(cache)?.with_context(|| format!("{package} has no kernel, or lacks modules"))
}

/// The package that stands behind the name of the newest kernel.
fn newest() -> Option<String> {
    KERNELS.iter().find_map(|meta| {
        let out = Command::new("apt-cache").args(["depends", meta]).output().ok()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let depends = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        depends.map(str::to_owned).find(|name| name.starts_with("linux-image-"))
    })
}

fn run(command: &mut Command) -> Result<()> {
    let out = command.stdin(Stdio::null()).output().with_context(|| format!("run {command:?}"))?;
    let said = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "{command:?} failed: {}", said.trim());
    Ok(())
}

/// The kernel that is in the cache, if there is one.
fn unpacked(cache: &Path) -> Result<Option<Kernel>> {
    let Ok(boot) = fs::read_dir(cache.join("boot")) else { return Ok(None) };
    let names = boot.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let Some(name) = names.into_iter().find(|name| name.starts_with("vmlinuz-")) else {
        return Ok(None);
    };
    let mut modules = BTreeMap::new();
    let mut dirs = vec![cache.join("lib/modules"), cache.join("usr/lib/modules")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten() {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() {
                dirs.push(path);
                continue;
            }
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let module = file.split_once(".ko").map(|(name, _)| name.replace('-', "_"));
            if let Some(module) = module.filter(|name| MODULES.contains(&name.as_str())) {
                modules.insert(module, path);
            }
        }
    }
    for needed in [
        "psample",
        "act_sample",
        "drop_monitor",
        "veth",
        "8021q",
        "mpls_router",
        "mpls_iptunnel",
        "tun",
        "vrf",
        "bonding",
    ] {
        ensure!(modules.contains_key(needed), "{name} has no module {needed}");
    }
    let image = cache.join("boot").join(&name);
    Ok(Some(Kernel { name, image, modules }))
}

/// Programs with their libraries, modules, and this program as the first process.
fn file_system(kernel: &Kernel) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    let own = env::current_exe().context("find this program")?;
    let thalweg = match env::var_os("THALWEG_BIN") {
        Some(path) => PathBuf::from(path),
        None => own_directory()?.join("release/thalweg"),
    };
    ensure!(
        thalweg.is_file(),
        "there is no {}; build it with: cargo build --release --bins",
        thalweg.display()
    );
    add_program(&mut archive, &own, Path::new("/init"))?;
    add_program(&mut archive, &thalweg, Path::new("/bin/thalweg"))?;
    add_program(&mut archive, &thalweg.with_file_name("thalctl"), Path::new("/bin/thalctl"))?;
    for name in PROGRAMS {
        let program = found(name).with_context(|| format!("{name} is missing"))?;
        add_program(&mut archive, &program, &Path::new("/bin").join(name))?;
    }
    for name in FRR {
        let program = Path::new(FRR_DIR).join(name);
        ensure!(program.is_file(), "{} is missing: scripts/setup.sh long", program.display());
        add_program(&mut archive, &program, &program)?;
    }
    for model in fs::read_dir(MODELS).with_context(|| format!("list {MODELS}"))? {
        let model = model?.path();
        if model.is_file() {
            archive.file(&model, &model)?;
        }
    }
    let accounts = tempfile::tempdir().context("make a directory")?;
    for (path, content) in ACCOUNTS {
        let from = accounts.path().join("file");
        fs::write(&from, content).context("write accounts")?;
        archive.file(&from, Path::new(path))?;
    }
    for (name, path) in &kernel.modules {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let packed = file.split_once(".ko").map_or("", |(_, rest)| rest);
        archive.file(path, &Path::new(MODULES_DIR).join(format!("{name}.ko{packed}")))?;
    }
    for dir in ["/proc", "/sys", "/dev", "/tmp", "/run", "/var/tmp", "/var/run"] {
        archive.directory(Path::new(dir))?;
    }
    archive.finish()
}

/// Adds a program and, where they are on the host, the libraries that it is linked with.
fn add_program(archive: &mut Archive, program: &Path, to: &Path) -> Result<()> {
    archive.file(program, to)?;
    let out = Command::new("ldd").arg(program).output().context("run ldd")?;
    let text = String::from_utf8_lossy(&out.stdout);
    for word in text.split_whitespace().filter(|word| word.starts_with('/')) {
        let library = Path::new(word);
        archive.file(library, library)?;
    }
    Ok(())
}

/// Ends the machine whatever happens.
struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn boot(kernel: &Kernel, image: &Path) -> Result<()> {
    let mut child = Command::new(QEMU)
        // Emulated: nested virtual machines are rarely allowed, and often broken.
        .args(["-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "1024"])
        .args(["-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio"])
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(image)
        .args(["-append", "console=ttyS0 quiet loglevel=3 panic=-1 rdinit=/init"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("start {QEMU}"))?;
    let console = child.stdout.take().context("the machine has no console")?;
    let machine = Machine(child);
    let (lines, inbox) = mpsc::channel();
    std::thread::spawn(move || {
        let mut console = BufReader::new(console);
        let mut line = Vec::new();
        while console.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if lines.send(text).is_err() {
                break;
            }
            line.clear();
        }
    });
    let deadline = Instant::now() + LIMIT;
    let mut passed = false;
    loop {
        match inbox.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                ensure!(Instant::now() < deadline, "the machine still runs after {LIMIT:?}");
                println!("{line}");
                passed |= line.trim() == PASSED;
                ensure!(!line.contains(FAILED), "a test in the machine failed; see above");
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => bail!("the machine still runs after {LIMIT:?}"),
        }
    }
    drop(machine);
    ensure!(passed, "the machine ended without a word");
    Ok(())
}
