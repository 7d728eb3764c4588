//! System calls about devices, safe to call.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// A socket for requests about devices of the calling thread's namespace.
pub(crate) fn requests() -> io::Result<OwnedFd> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    Ok(socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

/// The present name of a device of the calling thread's namespace (`SIOCGIFNAME`, netdevice(7)).
pub fn name_of(fd: BorrowedFd<'_>, ifindex: u32) -> Option<String> {
    // SAFETY: all zeroes is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_ifru.ifru_ifindex = ifindex as i32;
    // SAFETY: the kernel reads the index and writes the name into the request.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFNAME as _, &raw mut request) };
    let bytes: Vec<u8> =
        request.ifr_name.iter().map(|c| *c as u8).take_while(|byte| *byte != 0).collect();
    let name = String::from_utf8(bytes).ok()?;
    (result >= 0 && !name.is_empty()).then_some(name)
}

/// Reads the speed of a device through `SIOCETHTOOL`, in Mbit/s, if it has one.
///
/// `/sys/class/net` does not help here: it shows the namespace of the process that mounted it, not
/// that of the calling thread.
pub fn link_speed(fd: BorrowedFd<'_>, name: &str) -> Option<u32> {
    // ETHTOOL_GLINKSETTINGS: `struct ethtool_link_settings` is 48 bytes, then three bit maps whose
    // size the kernel returns, as a negative number, in byte 15 of the first reply. The maximum is
    // 48 + 3 * 127 * 4 bytes.
    const GLINKSETTINGS: u32 = 0x4c;
    const MAP_WORDS_AT: usize = 15;
    let mut settings = [0u32; 12 + 3 * 127];
    settings[0] = GLINKSETTINGS;
    ethtool(fd, name, &mut settings)?;
    let words = settings[MAP_WORDS_AT / 4].to_ne_bytes()[MAP_WORDS_AT % 4] as i8;
    if words < 0 {
        settings = [0u32; 12 + 3 * 127];
        settings[0] = GLINKSETTINGS;
        let mut word = [0u8; 4];
        word[MAP_WORDS_AT % 4] = words.unsigned_abs();
        settings[MAP_WORDS_AT / 4] = u32::from_ne_bytes(word);
        ethtool(fd, name, &mut settings)?;
    }
    let speed = settings[1];
    (speed != 0 && speed != u32::MAX).then_some(speed)
}

/// Returns whether a device segments TCP itself (`ETHTOOL_GTSO`).
pub fn segments_tcp(fd: BorrowedFd<'_>, name: &str) -> bool {
    const GTSO: u32 = 0x1e;
    let mut words = [0u32; 12 + 3 * 127];
    words[0] = GTSO;
    ethtool(fd, name, &mut words).is_some() && words[1] != 0
}

/// One ethtool request; `words` must be large enough for its answer.
fn ethtool(fd: BorrowedFd<'_>, name: &str, words: &mut [u32; 12 + 3 * 127]) -> Option<()> {
    // SAFETY: all zeroes is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One byte stays 0 to end the name.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: `request` is a NUL-terminated name and a pointer to `words`,
    // which is as large as the largest answer to ETHTOOL_GLINKSETTINGS.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    (result >= 0).then_some(())
}

/// Brings a device of the calling thread's namespace up (`SIOCSIFFLAGS`, netdevice(7)).
pub fn switch_on(fd: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    // SAFETY: the kernel reads the name and writes the flags into the request.
    if unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFFLAGS as _, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just written this arm of the union.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    if flags & libc::IFF_UP as libc::c_short != 0 {
        return Ok(());
    }
    request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
    // SAFETY: the kernel reads the request.
    if unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
