//! Thin, safe wrappers over the system calls of this crate.

use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
use std::ffi::c_int;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// The driver's file.
pub(crate) const FILE: &str = "/dev/net/tun";

/// Flags of `TUNSETIFF` (`linux/if_tun.h`).
pub(crate) const IFF_TUN: u16 = 0x0001;
pub(crate) const IFF_TAP: u16 = 0x0002;
pub(crate) const IFF_MULTI_QUEUE: u16 = 0x0100;
const IFF_NO_PI: u16 = 0x1000;
const IFF_VNET_HDR: u16 = 0x4000;

/// Offloads of `TUNSETOFFLOAD`.
pub(crate) const CSUM: u32 = 0x01;
/// TCP segmentation of both versions, with ECN.
pub(crate) const TSO: u32 = 0x02 | 0x04 | 0x08;
/// UDP segmentation of both versions, since Linux 6.2.
pub(crate) const USO: u32 = 0x20 | 0x40;

const SET_IFF: libc::c_ulong = 0x4004_54ca;
const GET_IFF: libc::c_ulong = 0x8004_54d2;
const SET_PERSIST: libc::c_ulong = 0x4004_54cb;
const SET_OFFLOAD: libc::c_ulong = 0x4004_54d0;
const SET_VNET_HDR_SIZE: libc::c_ulong = 0x4004_54d8;
const SET_CARRIER: libc::c_ulong = 0x4004_54e2;

/// One queue of a TAP: each read takes a frame, each write sends one.
#[derive(Debug)]
pub(crate) struct Tun(OwnedFd);

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The device's name in a request.
fn name_in(request: &libc::ifreq) -> String {
    let bytes = request.ifr_name.iter().map(|c| *c as u8).take_while(|byte| *byte != 0);
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
}

impl Tun {
    /// Opens the driver, for devices of the calling thread's namespace.
    pub(crate) fn open() -> io::Result<Tun> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(Tun(open(FILE, flags, Mode::empty())?))
    }

    /// Takes a descriptor that this process got with its start, if it is one of the driver.
    pub(crate) fn from_store(fd: RawFd) -> Option<Tun> {
        // SAFETY: the parent process passed the descriptor, and nothing else here owns it.
        let tun = Tun(unsafe { OwnedFd::from_raw_fd(fd) });
        let flags = fcntl_getfl(&tun.0).ok()?;
        fcntl_setfl(&tun.0, flags | OFlags::NONBLOCK).ok()?;
        tun.device().is_ok().then_some(tun)
    }

    /// Returns the name of the device of which this is a queue.
    pub(crate) fn device(&self) -> io::Result<String> {
        // SAFETY: all zeroes is a valid `ifreq`.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes name and flags.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), GET_IFF as _, &raw mut request) })?;
        Ok(name_in(&request))
    }

    /// Makes this a queue of a device, which is made if there is none, and returns its name. A name
    /// with `%d` gets a number from the kernel.
    pub(crate) fn set_device(&self, name: &str, flags: u16) -> io::Result<String> {
        // SAFETY: all zeroes is a valid `ifreq`.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // One byte stays 0 to end the name.
        let room = request.ifr_name.len() - 1;
        for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (flags | IFF_NO_PI | IFF_VNET_HDR) as libc::c_short;
        // SAFETY: the kernel reads name and flags, and writes both.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), SET_IFF as _, &raw mut request) })?;
        Ok(name_in(&request))
    }

    /// Sets the length of the offload header before each frame.
    pub(crate) fn set_header(&self, bytes: usize) -> io::Result<()> {
        self.set_by_pointer(SET_VNET_HDR_SIZE, bytes as c_int)
    }

    /// Makes the device appear with or without a carrier.
    pub(crate) fn set_carrier(&self, on: bool) -> io::Result<()> {
        self.set_by_pointer(SET_CARRIER, c_int::from(on))
    }

    fn set_by_pointer(&self, what: libc::c_ulong, value: c_int) -> io::Result<()> {
        // SAFETY: the kernel reads an integer, which lives across the call.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), what as _, &raw const value) })
    }

    /// Sets the work that the kernel may leave to us.
    pub(crate) fn set_offloads(&self, offloads: u32) -> io::Result<()> {
        self.set_by_value(SET_OFFLOAD, libc::c_ulong::from(offloads))
    }

    /// Sets whether the device stays when its last queue is closed.
    pub(crate) fn set_persistent(&self, on: bool) -> io::Result<()> {
        self.set_by_value(SET_PERSIST, libc::c_ulong::from(on))
    }

    fn set_by_value(&self, what: libc::c_ulong, value: libc::c_ulong) -> io::Result<()> {
        // SAFETY: these requests take a number, no pointer.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), what as _, value) })
    }

    /// Takes a frame with its header, scattered to pieces; what does not fit is lost.
    #[inline]
    pub(crate) fn read(&self, pieces: &mut [IoSliceMut<'_>]) -> rustix::io::Result<usize> {
        rustix::io::readv(&self.0, pieces)
    }

    /// Sends a frame with its header, gathered from pieces.
    #[inline]
    pub(crate) fn write(&self, pieces: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
        rustix::io::writev(&self.0, pieces)
    }

    /// Gives the queue back to the kernel now, even if others hold this: reads return nothing, and
    /// writes fail.
    pub(crate) fn release(&self) {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(nothing) = open("/dev/null", flags, Mode::empty()) else { return };
        // SAFETY: no pointers. The descriptor keeps its number, and its owner; it leads to another
        // file.
        unsafe { libc::dup3(nothing.as_raw_fd(), self.0.as_raw_fd(), libc::O_CLOEXEC) };
    }

    /// Throws waiting frames away.
    pub(crate) fn drain(&self) {
        let mut first = [0; 1];
        while self.read(&mut [IoSliceMut::new(&mut first)]).is_ok_and(|n| n > 0) {}
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
