//! Queues of TAPs that outlive the router: the service manager keeps copies of them, and hands them
//! to the next process (systemd's file descriptor store, sd_pid_notify_with_fds(3),
//! sd_listen_fds(3)).
//!
//! A device exists as long as one of its queues is open. While the router is away, its carrier, its
//! addresses and routes by it stay, and routing daemons see nothing of a restart.

use crate::sys::Tun;
use sd_notify::NotifyState;
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use thalweg_device_linux::NamespaceId;
use thalweg_graph::Control;

/// Time after the start at which nobody has asked for what is left.
const UNTIL: Duration = Duration::from_secs(60);

/// Queues from before the start that nobody has asked for yet, by the device's name in the store.
#[derive(Default)]
pub(crate) struct Store(BTreeMap<String, Vec<Tun>>);

/// Name of a device in the store.
fn name_of(namespace: NamespaceId, device: &str) -> String {
    format!("tap.{}.{device}", namespace.number())
}

impl Store {
    /// Takes over what the service manager has handed to this process.
    pub(crate) fn begin(c: &mut Control) {
        let mut store = Store::default();
        for (fd, name) in sd_notify::listen_fds_with_names().into_iter().flatten() {
            if name.starts_with("tap.") {
                store.0.entry(name).or_default().extend(Tun::from_store(fd));
            }
        }
        let is_empty = store.0.is_empty();
        c.insert(store);
        if !is_empty {
            c.every(UNTIL, |c| {
                c.state::<Store>().borrow_mut().end();
                false
            });
        }
    }

    /// Takes the queues of a device, if it is there still and has its name.
    pub(crate) fn take(&mut self, namespace: NamespaceId, device: &str) -> Vec<Tun> {
        let queues = self.0.remove(&name_of(namespace, device)).unwrap_or_default();
        let is_it = |queue: &Tun| queue.device().is_ok_and(|name| name == device);
        queues.into_iter().filter(is_it).collect()
    }

    /// Gives up what nobody has asked for.
    fn end(&mut self) {
        for name in std::mem::take(&mut self.0).into_keys() {
            tracing::info!("no TAP is {name}, which was kept over the restart");
            tell(&[NotifyState::FdStoreRemove, NotifyState::FdName(&name)], &[]);
        }
    }
}

/// Has the queues of a device kept.
pub(crate) fn keep(namespace: NamespaceId, device: &str, queues: &[Arc<Tun>]) {
    let name = name_of(namespace, device);
    let fds: Vec<_> = queues.iter().map(|queue| queue.as_fd()).collect();
    tell(&[NotifyState::FdStoreRemove, NotifyState::FdName(&name)], &[]);
    tell(&[NotifyState::FdStore, NotifyState::FdName(&name)], &fds);
}

/// Has the queues of a device kept no longer, so that it goes with the last of them.
pub(crate) fn forget(namespace: NamespaceId, device: &str) {
    let name = name_of(namespace, device);
    tell(&[NotifyState::FdStoreRemove, NotifyState::FdName(&name)], &[]);
}

/// Tells the service manager, if there is one that listens.
fn tell(state: &[NotifyState<'_>], fds: &[std::os::fd::BorrowedFd<'_>]) {
    let sent = match fds {
        [] => sd_notify::notify(state),
        fds => sd_notify::notify_with_fds(state, fds),
    };
    if let Err(e) = sent {
        tracing::warn!("the service manager does not keep TAPs over a restart: {e}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_store_say_which_device() {
        let own = NamespaceId::own();
        assert_eq!(name_of(own, "e0"), format!("tap.{}.e0", own.number()));
        // systemd parts names by colons, and takes up to 255 bytes.
        assert!(!name_of(own, "sixteen-letters").contains(':'));
    }
}
