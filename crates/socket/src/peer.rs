//! The process at the other end of a socket.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A user at the other end of a local socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Number of the user.
    pub uid: u32,
}

impl Peer {
    /// Returns true for root.
    pub fn is_root(self) -> bool {
        self.uid == 0
    }

    /// Returns true for root and the user of this process: both can do what this process can.
    fn is_own(self) -> bool {
        self.is_root() || self == Peer::own()
    }

    fn own() -> Peer {
        Peer { uid: rustix::process::geteuid().as_raw() }
    }
}

/// The user at the other end of a connected local socket.
///
/// # Errors
/// If the system does not say.
pub fn peer_of(stream: impl AsFd) -> io::Result<Peer> {
    let credentials = rustix::net::sockopt::socket_peercred(stream)?;
    Ok(Peer { uid: credentials.uid.as_raw() })
}

/// The seat that ends for a new client of `user`, as all are taken: the greatest of the user with
/// most, unless `user` would have the same number. Root's stay. Clients without a user are one
/// user's.
pub fn crowding<K: Ord>(
    user: Option<Peer>,
    seats: impl Iterator<Item = (K, Option<Peer>)>,
) -> Option<K> {
    let mut by_user: HashMap<Option<Peer>, Vec<K>> = HashMap::new();
    seats.for_each(|(seat, of)| by_user.entry(of).or_default().push(seat));
    let own = by_user.get(&user).map_or(0, Vec::len);
    let others = by_user.into_iter().filter(|(of, _)| !of.is_some_and(Peer::is_root));
    let most = others.map(|(_, seats)| seats).max_by_key(Vec::len)?;
    if most.len() > own + 1 { most.into_iter().max() } else { None }
}

/// Permission of everyone to write.
const FOR_ALL: u32 = 0o002;

/// Returns the owner of a directory, or of a link in its place, that another user has made in a
/// place open to all; `None` for one of our own, or without a directory.
pub fn stranger_of(dir: &Path) -> Option<Peer> {
    let above = fs::metadata(dir.parent()?).ok()?;
    let owner = Peer { uid: fs::symlink_metadata(dir).ok()?.uid() };
    (above.mode() & FOR_ALL != 0 && !owner.is_own()).then_some(owner)
}

/// Connects to a local stream socket. The listener must be root, this user, or the owner of the
/// directory, if no other user may create files there.
///
/// # Errors
/// If nobody listens, or another user.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    let (peer, dir) = (peer_of(&stream)?, directory_of(path)?);
    match is_trusted(peer, dir.uid(), dir.mode()) {
        true => Ok(stream),
        false => Err(io::Error::other(format!(
            "another user listens there (uid {}): neither root, nor you, nor the owner of its \
             directory",
            peer.uid
        ))),
    }
}

fn directory_of(path: &Path) -> io::Result<fs::Metadata> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    fs::metadata(dir.unwrap_or(Path::new(".")))
}

/// True if a directory's owner and permissions make a user trusted in it.
fn is_trusted(peer: Peer, owner: u32, mode: u32) -> bool {
    const FOR_OTHERS: u32 = 0o022;
    peer.is_own() || peer.uid == owner && mode & FOR_OTHERS == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::os::unix::net::UnixListener;

    const OTHER: Peer = Peer { uid: 65_533 };

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn who_has_most_makes_room_for_others() {
        let [root, a, b] = [0, 1, 2].map(|uid| Some(Peer { uid }));
        let seats = |users: &[Option<Peer>]| users.iter().copied().enumerate().collect::<Vec<_>>();
        let ends = |new, users: &[_]| crowding(new, seats(users).into_iter());
        assert_eq!(ends(b, &[a, a, a]), Some(2));
        assert_eq!(ends(b, &[a, a, b, a]), Some(3));
        assert_eq!(ends(b, &[a, a, b]), None);
        assert_eq!(ends(a, &[a, a, a]), None);
        assert_eq!(ends(a, &[root, root, root]), None);
        assert_eq!(ends(a, &[None, None, a, None]), Some(3));
    }

    #[test]
    fn the_own_router_is_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        connect(&path).unwrap();
        let (server, _) = listener.accept().unwrap();
        assert_eq!(peer_of(&server).unwrap(), Peer::own());
    }

    #[test]
    fn another_user_is_trusted_in_a_directory_of_its_own_only() {
        assert!(is_trusted(Peer { uid: 0 }, 1, 0o1777));
        assert!(is_trusted(Peer::own(), 1, 0o1777));
        assert!(is_trusted(OTHER, OTHER.uid, 0o755));
        assert!(!is_trusted(OTHER, OTHER.uid, 0o775));
        assert!(!is_trusted(OTHER, OTHER.uid, 0o1777));
        assert!(!is_trusted(OTHER, 1, 0o755));
    }

    #[test]
    fn directories_of_strangers_are_known_where_all_may_make_them() {
        let top = tempfile::tempdir().unwrap();
        let (own, link) = (top.path().join("own"), top.path().join("link"));
        fs::create_dir(&own).unwrap();
        symlink("/", &link).unwrap();
        set_mode(top.path(), 0o1777);
        assert_eq!([&own, &link].map(|dir| stranger_of(dir)), [None; 2]);
        assert_eq!(stranger_of(&top.path().join("none")), None);
        if chown(&own, Some(OTHER.uid), None).is_ok() {
            assert_eq!(stranger_of(&own), Some(OTHER));
            set_mode(top.path(), 0o755);
            assert_eq!(stranger_of(&own), None);
        }
    }
}
