//! Files in the runtime directory of a router, and where that is.

use std::path::{Path, PathBuf};

/// File in the runtime directory with the panic context of a worker.
pub const LAST_PANIC: &str = "last-panic.txt";

/// Directory of the router's sockets: `/run/thalweg` for root, else `$XDG_RUNTIME_DIR/thalweg`,
/// else `/tmp/thalweg-UID`.
pub fn runtime_dir() -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| Path::new(dir).is_absolute());
    match own {
        _ if user == 0 => default_dir(),
        Some(dir) => Path::new(&dir).join("thalweg"),
        None => std::env::temp_dir().join(format!("thalweg-{user}")),
    }
}

fn default_dir() -> PathBuf {
    Path::new(crate::DEFAULT_SOCKET).with_file_name("")
}

/// The command line's socket in a runtime directory.
pub fn cli_socket(runtime_dir: &Path) -> PathBuf {
    runtime_dir.join("cli.sock")
}

/// The socket that a client tries: the user's own router's if there is one, else the system's. A
/// directory that another user made first is not the own router's.
pub fn client_socket() -> PathBuf {
    let dir = runtime_dir();
    let own = cli_socket(&dir);
    match thalweg_socket::stranger_of(&dir).is_none() && own.exists() {
        true => own,
        false => crate::DEFAULT_SOCKET.into(),
    }
}
