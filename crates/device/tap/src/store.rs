//! Queues of TAPs that outlive the router: the service manager keeps copies of them, and hands them
//! to the next process (systemd's file descriptor store, sd_pid_notify_with_fds(3),
//! sd_listen_fds(3)).
//!
//! A device exists as long as one of its queues is open. While the router is away, its carrier, its
//! addresses and routes by it stay, and routing daemons do not notice a restart.

use crate::sys::Tun;
use sd_notify::NotifyState;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
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

    /// Gives up queues that nobody has asked for.
    fn end(&mut self) {
        for name in std::mem::take(&mut self.0).into_keys() {
            tracing::info!("no TAP is {name}, which was kept over the restart");
            tell(Word { name, fds: Vec::new() });
        }
    }
}

/// Keeps the queues of a device.
pub(crate) fn keep(namespace: NamespaceId, device: &str, queues: &[Arc<Tun>]) {
    let name = name_of(namespace, device);
    let fds = queues.iter().map(|queue| queue.as_fd().try_clone_to_owned()).collect();
    match fds {
        Ok(fds) => tell(Word { name, fds }),
        Err(e) => tracing::warn!("{device} is not kept over a restart: {e}"),
    }
}

/// Stops keeping the queues of a device, which goes with the last of them.
pub(crate) fn forget(namespace: NamespaceId, device: &str) {
    tell(Word { name: name_of(namespace, device), fds: Vec::new() });
}

/// Notifies the service manager, if one listens.
fn tell(word: Word) {
    static TELLER: OnceLock<Teller> = OnceLock::new();
    if std::env::var_os("NOTIFY_SOCKET").is_some() {
        TELLER.get_or_init(|| Teller::new(Word::say)).tell(word);
    }
}

/// Time that the main thread waits for a service manager to read.
const PATIENCE: Duration = Duration::from_millis(500);

/// A word to the service manager: what it has of this name goes, and these descriptors come.
struct Word {
    name: String,
    fds: Vec<OwnedFd>,
}

impl Word {
    fn say(&self) -> io::Result<()> {
        let name = NotifyState::FdName(&self.name);
        sd_notify::notify(&[NotifyState::FdStoreRemove, name.clone()])?;
        if self.fds.is_empty() {
            return Ok(());
        }
        let fds: Vec<_> = self.fds.iter().map(AsFd::as_fd).collect();
        sd_notify::notify_with_fds(&[NotifyState::FdStore, name], &fds)
    }
}

/// Thread that sends words: the socket of a service manager that does not read blocks its writers.
/// Words are sent in order; as long as that works, none is left when a call returns.
struct Teller {
    words: mpsc::Sender<(Word, mpsc::SyncSender<()>)>,
    /// Words that are not sent yet.
    waiting: Arc<AtomicUsize>,
}

impl Teller {
    fn new(say: impl Fn(&Word) -> io::Result<()> + Send + 'static) -> Teller {
        let (words, inbox) = mpsc::channel::<(Word, mpsc::SyncSender<()>)>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let left = waiting.clone();
        let speak = move || {
            for (word, said) in inbox {
                if let Err(e) = say(&word) {
                    tracing::warn!("the service manager does not keep TAPs over a restart: {e}");
                }
                left.fetch_sub(1, Ordering::Relaxed);
                let _ = said.send(());
            }
        };
        // Without the thread nothing is kept, as without a service manager.
        if let Err(e) = std::thread::Builder::new().name("store".into()).spawn(speak) {
            tracing::warn!("the service manager does not keep TAPs over a restart: {e}");
        }
        Teller { words, waiting }
    }

    fn tell(&self, word: Word) {
        let (said, heard) = mpsc::sync_channel(1);
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        // A word that was not sent in time blocks no other.
        if self.words.send((word, said)).is_ok()
            && before == 0
            && heard.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout)
        {
            tracing::warn!("the service manager does not read which TAPs it is to keep");
        }
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

    #[test]
    fn a_service_manager_that_does_not_read_holds_nobody_for_long() {
        let (tell_all, all) = mpsc::channel();
        let (go, may) = mpsc::channel::<()>();
        let teller = Teller::new(move |word| {
            let _ = may.recv();
            tell_all.send(word.name.clone()).map_err(io::Error::other)
        });
        let word = |n: usize| Word { name: format!("tap.{n}"), fds: Vec::new() };
        // Only the first one is waited for: all would take an hour.
        (0..10_000).for_each(|n| teller.tell(word(n)));
        assert_eq!(teller.waiting.load(Ordering::Relaxed), 10_000);
        drop(go);
        let said: Vec<String> = all.iter().take(10_000).collect();
        assert!(said.iter().enumerate().all(|(n, name)| *name == format!("tap.{n}")));
        teller.tell(word(1));
        assert_eq!(all.recv().as_deref(), Ok("tap.1"));
    }
}
