//! Starts that have to fail: with one clear line, a status other than 0, and nothing left behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Result, ensure};
use thalweg_smoke::{Config, Router, host_pair, thalweg};
use thalweg_testkit::{Cmd, Lab, Output, Privilege, WAIT_LIMIT, lab_test};

/// The user and group that own nothing.
const NOBODY: u32 = 65_534;

fn startup(dir: &Path, text: &str) -> Result<std::path::PathBuf> {
    let path = dir.join("startup.conf");
    let socket = dir.join("cli.sock");
    let unix = format!(
        "unix {{ nodaemon runtime-dir {} cli-listen {} }}\n",
        dir.display(),
        socket.display()
    );
    fs::write(&path, unix + text)?;
    Ok(path)
}

/// Starts a router that has to end with an error.
fn fails(text: &str) -> Result<Output> {
    let dir = tempfile::tempdir()?;
    let path = startup(dir.path(), text)?;
    let output = Cmd::new(thalweg()?).args(["run", "-c"]).arg(&path).run()?;
    ensure!(!output.status.success(), "it should not start with `{text}': {}", output.stderr);
    ensure!(output.status.code().is_some(), "{}: {}", output.status, output.stderr);
    ensure!(!output.stderr.contains("panicked"), "{}", output.stderr);
    ensure!(!dir.path().join("cli.sock").exists(), "a socket is left behind");
    Ok(output)
}

lab_test! {
    /// A misspelt word is named with its line and column, and the word that was probably meant.
    fn misspelt_words() {
        let output = fails("cpu {\n  corelist-worker 1\n}\n")?;
        let text = &output.stderr;
        ensure!(text.contains("corelist-workers") && text.contains(":3:3"), "{text}");
        let output = fails("cpu { workers many }\n")?;
        ensure!(output.stderr.contains("many") && output.stderr.contains(":2:15"), "{}", output.stderr);
        let output = fails("buffers { bufers-per-numa 4096 }\n")?;
        ensure!(output.stderr.contains("buffers-per-numa"), "{}", output.stderr);
        let output = fails("cpu {\n")?;
        ensure!(output.stderr.contains('}') || output.stderr.contains("clos"), "{}", output.stderr);
        Ok(())
    }

    /// Stanzas of plugins that do not exist here are no reason not to start.
    fn unknown_stanzas_are_a_warning() {
        let lab = Lab::new()?;
        let config = host_pair().stanza("frobnicator { speed 11 }\ndpdk { dev 0000:01:00.0 }");
        let router = Router::start(&lab.router, &config)?;
        router.await_log("frobnicator")?;
        lab.ping_all()?;
        router.stop().map(drop)
    }

    fn more_buffers_than_there_is_memory() {
        let output = fails("buffers { buffers-per-numa 50000000 }\n")?;
        let text = output.stderr.to_lowercase();
        ensure!(text.contains("buffer") && text.contains("memory"), "{}", output.stderr);
        ensure!(output.stderr.lines().count() <= 6, "{}", output.stderr);
        Ok(())
    }

    fn cores_that_are_not_there() {
        let output = fails("cpu { corelist-workers 1000 }\n")?;
        ensure!(output.stderr.contains("1000") && output.stderr.contains("online"), "{}", output.stderr);
        let output = fails("cpu { workers 500 }\n")?;
        ensure!(output.stderr.contains("500"), "{}", output.stderr);
        Ok(())
    }

    fn a_missing_configuration() {
        let output = Cmd::new(thalweg()?).args(["run", "-c", "/no/such/startup.conf"]).run()?;
        ensure!(!output.status.success() && output.stderr.contains("/no/such/startup.conf"));
        let output = Cmd::new(thalweg()?).args(["run", "unix", "{", "cli-listen"]).run()?;
        ensure!(!output.status.success() && !output.stderr.contains("panicked"), "{}", output.stderr);
        let output = Cmd::new(thalweg()?).args(["frobnicate"]).run()?;
        ensure!(!output.status.success() && output.stderr.contains("frobnicate"), "{}", output.stderr);
        Ok(())
    }

    /// The socket belongs to a router that runs: a second one reports that, and the first is
    /// undisturbed.
    fn a_socket_in_use() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &host_pair())?;
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("startup.conf");
        let text = format!(
            "unix {{ nodaemon runtime-dir {} cli-listen {} }}\nbuffers {{ buffers-per-numa 4096 }}\n",
            dir.path().display(),
            router.socket().display()
        );
        fs::write(&path, text)?;
        let output = Cmd::new(thalweg()?).args(["run", "-c"]).arg(&path).run()?;
        ensure!(!output.status.success(), "two routers share a socket");
        let socket = router.socket().display().to_string();
        ensure!(output.stderr.contains(&socket), "{}", output.stderr);
        router.cli("show version")?;
        lab.ping_all()?;
        router.stop().map(drop)
    }

    /// A mistake in the file of commands is reported with its line; the router starts without it,
    /// as VPP does.
    fn a_mistake_in_the_file_of_commands() {
        let lab = Lab::new()?;
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("start.vpp");
        fs::write(&file, "create host-interface name eth0\nset int stat host-eth9 up\n")?;
        let config = Config::empty().stanza(&format!("unix {{ exec {} }}", file.display()));
        let router = Router::start(&lab.router, &config)?;
        router.await_log("host-eth9")?;
        router.await_log("start.vpp:2")?;
        router.stop().map(drop)
    }

    /// Without the right to open packet sockets the router runs, and says what it lacks.
    fn an_ordinary_user() {
        if Privilege::check() != Privilege::Root || !rustix::process::geteuid().is_root() {
            eprintln!("NOT RUN: an ordinary user cannot become another");
            return Ok(());
        }
        let dir = tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o755)).tempdir()?;
        let program = dir.path().join("thalweg");
        fs::copy(thalweg()?, &program)?;
        let own = tempfile::tempdir()?;
        std::os::unix::fs::chown(own.path(), Some(NOBODY), Some(NOBODY))?;
        let path = startup(own.path(), "buffers { buffers-per-numa 4096 }\n")?;
        let lab = Lab::new()?;
        let running = lab
            .router
            .command("setpriv")
            .args(["--reuid", &NOBODY.to_string(), "--regid", &NOBODY.to_string()])
            .args(["--clear-groups", "--inh-caps=-all"])
            .args(["--pdeathsig", "KILL", "--"])
            .arg(&program)
            .args(["run", "-c"])
            .arg(&path)
            .spawn()?;
        let socket = own.path().join("cli.sock");
        thalweg_testkit::wait_for_unix_socket(&socket, WAIT_LIMIT)?;
        let answer =
            thalweg_smoke::vppctl::vppctl(&socket, "create host-interface name eth0")?;
        ensure!(answer.contains("CAP_NET_RAW"), "{answer}");
        let version = thalweg_smoke::vppctl::vppctl(&socket, "show version")?;
        ensure!(version.contains("thalweg v"), "{version}");
        running.stop(WAIT_LIMIT)?.success().map(drop)
    }
}
