//! Sleeping: a thread waits here for a descriptor, its waker, or a deadline.
//!
//! A socket in an epoll set calls into that set for each packet that arrives, even while the worker
//! is awake and polls its ring. `poll` is on a socket's queue only while the thread sleeps; but it
//! scans all descriptors each time, so a large number of them is watched by an epoll set after all.

use crate::mailbox::Waker;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// More descriptors than this are watched by an epoll set.
const FEW: usize = 64;

/// Event data of the waker in an epoll set; a device's is its descriptor.
const WAKER: u64 = u64::MAX;

/// Causes that woke the thread.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Woken {
    /// The waker.
    pub(crate) by_waker: bool,
    /// A device with an error.
    pub(crate) by_error: bool,
}

/// Publishes the descriptor of a thread's epoll set to other threads.
#[derive(Clone)]
pub(crate) struct SetFd(Arc<AtomicI32>);

impl SetFd {
    /// Returns the set's descriptor, while there is one.
    pub(crate) fn get(&self) -> Option<RawFd> {
        Some(self.0.load(Ordering::Relaxed)).filter(|fd| *fd >= 0)
    }
    fn publish(&self, set: Option<&OwnedFd>) {
        self.0.store(set.map_or(-1, AsRawFd::as_raw_fd), Ordering::Relaxed);
    }
}

/// A thread's waker, and the descriptors of devices that wake it when they are readable.
///
/// A descriptor that was closed or hung up is no longer watched: it would end each sleep at once.
pub(crate) struct Poller {
    /// Kept open as long as it is watched.
    waker: Arc<Waker>,
    how: How,
    set_fd: SetFd,
}

enum How {
    /// `poll`: the waker, then devices.
    List(Vec<PollFd<'static>>),
    /// An epoll set with the waker and these devices.
    Set { epoll: OwnedFd, watched: BTreeSet<RawFd> },
}

impl Poller {
    pub(crate) fn new(waker: Arc<Waker>) -> Poller {
        let how = How::List(vec![entry(waker.fd().as_raw_fd())]);
        Poller { waker, how, set_fd: SetFd(Arc::new(AtomicI32::new(-1))) }
    }

    /// Returns a handle for show commands, on any thread.
    pub(crate) fn set_fd(&self) -> SetFd {
        self.set_fd.clone()
    }

    /// Watches exactly these descriptors (and the waker's).
    pub(crate) fn watch(&mut self, fds: BTreeSet<RawFd>) {
        if fds.len() <= FEW {
            self.list(&fds);
            return;
        }
        if let How::List(_) = self.how {
            let Ok(epoll) = new_set(&self.waker) else {
                // Slower, but it works.
                self.list(&fds);
                return;
            };
            self.set_fd.publish(Some(&epoll));
            self.how = How::Set { epoll, watched: BTreeSet::new() };
        }
        let How::Set { epoll, watched } = &mut self.how else { return };
        for fd in watched.difference(&fds) {
            // A closed descriptor leaves the set automatically.
            let _ = epoll::delete(&epoll, borrow(*fd));
        }
        for fd in &fds {
            let data = epoll::EventData::new_u64(*fd as u64);
            // Re-adding one that is in the set fails, and that is fine: numbers are reused.
            let _ = epoll::add(&epoll, borrow(*fd), data, epoll::EventFlags::IN);
        }
        *watched = fds;
    }

    fn list(&mut self, fds: &BTreeSet<RawFd>) {
        let all = std::iter::once(self.waker.fd().as_raw_fd()).chain(fds.iter().copied());
        match &mut self.how {
            How::List(list) => {
                list.clear();
                list.extend(all.map(entry));
            }
            How::Set { .. } => {
                // Published before it is closed: its number may be another file's at once.
                self.set_fd.publish(None);
                self.how = How::List(all.map(entry).collect());
            }
        }
    }

    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> Woken {
        let timeout = timeout.map(|d| Timespec {
            tv_sec: i64::try_from(d.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(d.subsec_nanos()),
        });
        match &mut self.how {
            How::List(list) => wait_list(list, timeout.as_ref()),
            How::Set { epoll, .. } => wait_set(epoll, timeout.as_ref()),
        }
    }
}

fn wait_list(list: &mut Vec<PollFd<'static>>, timeout: Option<&Timespec>) -> Woken {
    let mut woken = Woken::default();
    // A signal, or no memory: the worker looks for work and comes back. The list's results are
    // stale then.
    let Ok(ready) = poll(list, timeout) else { return woken };
    if ready == 0 {
        return woken;
    }
    woken.by_waker = !list[0].revents().is_empty();
    let mut gone = false;
    for device in &list[1..] {
        let flags = device.revents();
        woken.by_error |= flags.intersects(PollFlags::ERR | PollFlags::HUP);
        gone |= is_gone(flags);
    }
    if gone {
        let mut at = 0;
        list.retain(|fd| {
            at += 1;
            at == 1 || !is_gone(fd.revents())
        });
    }
    woken
}

/// Returns true if the descriptor will yield nothing more: closed, or hung up and read to the end.
fn is_gone(flags: PollFlags) -> bool {
    flags.contains(PollFlags::NVAL)
        || flags.contains(PollFlags::HUP) && !flags.contains(PollFlags::IN)
}

fn new_set(waker: &Waker) -> rustix::io::Result<OwnedFd> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, waker.fd(), epoll::EventData::new_u64(WAKER), epoll::EventFlags::IN)?;
    Ok(epoll)
}

fn wait_set(epoll: &OwnedFd, timeout: Option<&Timespec>) -> Woken {
    let mut events = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; 16];
    let mut woken = Woken::default();
    // A signal or a failure of the set itself: the worker looks for work and comes back.
    let Ok((ready, _)) = epoll::wait(epoll, &mut events, timeout) else { return woken };
    for event in ready {
        // Copied out: the structure is packed.
        let (data, flags) = (event.data.u64(), event.flags);
        if data == WAKER {
            woken.by_waker = true;
            continue;
        }
        woken.by_error |= flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
        if flags.contains(epoll::EventFlags::HUP) && !flags.contains(epoll::EventFlags::IN) {
            let _ = epoll::delete(epoll, borrow(data as RawFd));
        }
    }
    woken
}

fn entry(fd: RawFd) -> PollFd<'static> {
    PollFd::from_borrowed_fd(borrow(fd), PollFlags::IN)
}

fn borrow(fd: RawFd) -> BorrowedFd<'static> {
    // SAFETY: the descriptor is the waker's, which its poller holds, or belongs to an input node
    // that lives in the same worker; if it was closed meanwhile, the system call fails, or watches
    // the new owner of its number until the worker reads its nodes' descriptors again. Nothing else
    // happens.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};
    use std::io::{Read, Write};
    use std::time::Instant;

    const SOON: Option<Duration> = Some(Duration::from_millis(30));
    /// Timeout of a wait that should not be needed.
    const LONG: Option<Duration> = Some(Duration::from_secs(60));

    /// Numbers of descriptors below and above the list's limit.
    const COUNTS: [usize; 2] = [3, FEW + 9];

    fn poller() -> (Arc<Waker>, Poller) {
        let waker = Arc::new(Waker::new().unwrap());
        (waker.clone(), Poller::new(waker))
    }

    fn devices(n: usize) -> Vec<OwnedFd> {
        (0..n).map(|_| eventfd(0, EventfdFlags::NONBLOCK).unwrap()).collect()
    }

    fn watch(poller: &mut Poller, devices: &[OwnedFd]) {
        poller.watch(devices.iter().map(AsRawFd::as_raw_fd).collect());
    }

    fn readable(device: &OwnedFd) {
        rustix::io::write(device, &1u64.to_ne_bytes()).unwrap();
    }

    fn timed(poller: &mut Poller, timeout: Option<Duration>) -> (Woken, Duration) {
        let start = Instant::now();
        (poller.wait(timeout), start.elapsed())
    }

    #[track_caller]
    fn sleeps(poller: &mut Poller) {
        let (woken, took) = timed(poller, SOON);
        assert!(!woken.by_waker && !woken.by_error, "{woken:?}");
        assert!(took >= SOON.unwrap(), "{took:?}");
    }

    #[track_caller]
    fn is_called(poller: &mut Poller) -> Woken {
        let (woken, took) = timed(poller, LONG);
        assert!(took < LONG.unwrap(), "{took:?}");
        woken
    }

    #[test]
    fn a_timeout_ends_a_wait_and_the_waker_does() {
        for n in [0].into_iter().chain(COUNTS) {
            let (waker, mut poller) = poller();
            let all = devices(n);
            watch(&mut poller, &all);
            sleeps(&mut poller);
            waker.begin_sleep();
            waker.wake();
            let woken = is_called(&mut poller);
            assert!(woken.by_waker && !woken.by_error);
            waker.end_sleep(woken.by_waker);
            sleeps(&mut poller);
            assert!(!timed(&mut poller, Some(Duration::ZERO)).0.by_waker);
        }
    }

    #[test]
    fn each_of_few_and_of_many_descriptors_wakes() {
        for n in COUNTS {
            let (_waker, mut poller) = poller();
            let all = devices(n);
            watch(&mut poller, &all);
            assert_eq!(poller.set_fd().get().is_some(), n > FEW);
            for device in &all {
                readable(device);
                for _ in 0..2 {
                    // The device stays readable until it is read.
                    assert!(!is_called(&mut poller).by_waker);
                }
                rustix::io::read(device, &mut [0u8; 8]).unwrap();
            }
            sleeps(&mut poller);
        }
    }

    #[test]
    fn the_watched_set_changes_between_few_and_many() {
        let (waker, mut poller) = poller();
        let all = devices(FEW + 1);
        for n in [FEW + 1, FEW, 0, FEW + 1, 1, FEW] {
            watch(&mut poller, &all[..n]);
            assert_eq!(poller.set_fd().get().is_some(), n > FEW);
            for (i, device) in [(0, &all[0]), (FEW, &all[FEW])] {
                readable(device);
                if i < n {
                    is_called(&mut poller);
                } else {
                    sleeps(&mut poller);
                }
                rustix::io::read(device, &mut [0u8; 8]).unwrap();
            }
            waker.begin_sleep();
            waker.wake();
            assert!(is_called(&mut poller).by_waker);
            waker.end_sleep(true);
        }
    }

    #[test]
    fn a_closed_descriptor_does_not_spin() {
        for n in COUNTS {
            let (_waker, mut poller) = poller();
            let mut all = devices(n);
            // A number that no other test's file gets meanwhile.
            let high = rustix::io::fcntl_dupfd_cloexec(&all[0], 900 + n as RawFd).unwrap();
            all[0] = high;
            watch(&mut poller, &all);
            all.remove(0);
            // A list notices when it waits; a set has dropped it already.
            let (woken, _) = timed(&mut poller, SOON);
            assert!(!woken.by_waker && !woken.by_error, "{woken:?}");
            sleeps(&mut poller);
            // The others are watched still.
            readable(all.last().unwrap());
            is_called(&mut poller);
        }
    }

    #[test]
    fn a_hung_up_descriptor_is_read_to_its_end_and_then_ignored() {
        for n in COUNTS {
            let (_waker, mut poller) = poller();
            let mut all = devices(n);
            let (mut here, mut there) = std::io::pipe().unwrap();
            all.push(here.try_clone().unwrap().into());
            watch(&mut poller, &all);
            sleeps(&mut poller);
            there.write_all(b"last words").unwrap();
            assert!(!is_called(&mut poller).by_error);
            drop(there);
            for _ in 0..3 {
                assert!(is_called(&mut poller).by_error);
            }
            here.read_exact(&mut [0; 10]).unwrap();
            // The poller reports it once more, so that its node can handle it.
            assert!(is_called(&mut poller).by_error);
            sleeps(&mut poller);
        }
    }
}
