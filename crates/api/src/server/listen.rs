//! The socket that clients connect to.

use super::{ServerConfig, ServerError};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

pub(super) struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// Device and inode, so as to remove no socket but ours.
    id: Option<(u64, u64)>,
}

impl Listener {
    pub(super) fn open(config: &ServerConfig) -> Result<Self, ServerError> {
        let path = &config.path;
        let fail = |what| move |source| ServerError::Socket { what, path: path.clone(), source };
        if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            fs::create_dir_all(dir).map_err(fail("make the directory of"))?;
        }
        remove_stale(path)?;
        let socket = UnixListener::bind(path).map_err(fail("listen on"))?;
        let listener = Self { socket, path: path.clone(), id: inode(path) };
        if let Some(group) = config.group {
            chown(path, None, Some(group)).map_err(fail("set the group of"))?;
        }
        let permissions = fs::Permissions::from_mode(config.mode);
        fs::set_permissions(path, permissions).map_err(fail("set the permissions of"))?;
        listener.socket.set_nonblocking(true).map_err(fail("listen on"))?;
        Ok(listener)
    }

    pub(super) fn accept(&self) -> io::Result<UnixStream> {
        let stream = self.socket.accept()?.0;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.id.is_some() && inode(&self.path) == self.id {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Removes the socket of a process that ended without doing so.
fn remove_stale(path: &Path) -> Result<(), ServerError> {
    let fail = |what| move |source| ServerError::Socket { what, path: path.to_owned(), source };
    let kind = match fs::symlink_metadata(path) {
        Ok(meta) => meta.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(fail("look at")(error)),
    };
    if !kind.is_socket() {
        return Err(ServerError::NotASocket { path: path.to_owned() });
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(ServerError::InUse { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(fail("remove the stale"))
        }
        Err(error) => Err(fail("probe")(error)),
    }
}
