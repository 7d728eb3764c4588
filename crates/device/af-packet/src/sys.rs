//! Thin, safe wrappers over the system calls of this crate.

use std::ffi::c_int;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Types that may be handed to `setsockopt` byte for byte.
///
/// # Safety
/// The kernel must be able to read every byte of the value: a C structure or
/// integer in which pointers, if any, stay valid during the call.
pub(crate) unsafe trait SockOption: Copy {}

// SAFETY: plain integers and structures of integers.
unsafe impl SockOption for c_int {}
// SAFETY: as above.
unsafe impl SockOption for libc::tpacket_req {}
// SAFETY: as above.
unsafe impl SockOption for libc::tpacket_req3 {}
// SAFETY: as above.
unsafe impl SockOption for libc::packet_mreq {}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_len(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Opens a socket that is closed on exec and never blocks.
pub(crate) fn socket(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers; the returned descriptor has no other owner.
    unsafe { check(libc::socket(domain, kind, protocol)).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// `setsockopt` with a plain value.
pub(crate) fn set_option<T: SockOption>(
    fd: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    value: T,
) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which lives across
    // the call; the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    check(result).map(drop)
}

/// `getsockopt` of up to `N` 32-bit words; words the kernel does not write are 0.
pub(crate) fn get_option<const N: usize>(
    fd: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
) -> io::Result<[u32; N]> {
    let mut words = [0u32; N];
    let mut len = (N * 4) as libc::socklen_t;
    // SAFETY: the pointer and the length describe `words`, for which any bytes are valid.
    let result = unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, name, words.as_mut_ptr().cast(), &raw mut len)
    };
    check(result).map(|_| words)
}

/// Takes the socket's pending error, if there is one.
pub(crate) fn take_error(fd: BorrowedFd<'_>) -> Option<io::Error> {
    match get_option::<1>(fd, libc::SOL_SOCKET, libc::SO_ERROR) {
        Ok([0]) => None,
        Ok([code]) => Some(io::Error::from_raw_os_error(code as i32)),
        Err(error) => Some(error),
    }
}

/// Binds a packet socket to a device; protocol 0 receives nothing.
pub(crate) fn bind_packet(fd: BorrowedFd<'_>, ifindex: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: all zeroes is a valid `sockaddr_ll`.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = ifindex as i32;
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `address`.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) }).map(drop)
}

/// Attaches (`true`) or removes a filter that refuses every frame.
pub(crate) fn refuse_all(fd: BorrowedFd<'_>, refuse: bool) -> io::Result<()> {
    if !refuse {
        return set_option(fd, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0);
    }
    // One instruction of classic BPF: return 0 (BPF_RET | BPF_K), keep no byte.
    let mut code = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: 0 };
    let program = libc::sock_fprog { len: 1, filter: &raw mut code };
    // SAFETY: the pointer and the length describe `program`, whose own pointer
    // is to `code`; both live across the call and the kernel copies them.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    check(result).map(drop)
}

/// Sends bytes to the socket's default peer.
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8], flags: c_int) -> io::Result<usize> {
    // SAFETY: the pointer and the length describe `bytes`.
    check_len(unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// Sends one message gathered from several pieces, without waiting.
pub(crate) fn send_gather(fd: BorrowedFd<'_>, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
    // SAFETY: all zeroes is a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // `IoSlice` is documented to have the layout of `iovec`; the kernel only
    // reads through it here.
    message.msg_iov = pieces.as_ptr().cast_mut().cast();
    message.msg_iovlen = pieces.len();
    // SAFETY: `message` points to `pieces`, which outlive the call.
    check_len(unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT) })
}

/// Receives into pieces, without blocking; returns the length of the datagram, even if it exceeds
/// them.
pub(crate) fn receive_scattered(
    fd: BorrowedFd<'_>,
    pieces: &mut [IoSliceMut<'_>],
) -> io::Result<usize> {
    // SAFETY: all zeroes is a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // `IoSliceMut` is documented to have the layout of `iovec`.
    message.msg_iov = pieces.as_mut_ptr().cast();
    message.msg_iovlen = pieces.len();
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: `message` points to `pieces`, which are borrowed mutably and outlive the call.
    check_len(unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, flags) })
}
