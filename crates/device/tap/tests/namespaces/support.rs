//! Tests in namespaces of their own, and raw sockets at the kernel's ends of TAPs.

use std::env;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use thalweg_device_linux::IfInfo;
use thalweg_testkit::{Cmd, WAIT_LIMIT};

/// Set in the process that runs inside of the namespace.
const INSIDE: &str = "THALWEG_TEST_NAMESPACE";
const ROOTLESS: &[&str] = &["--user", "--map-root-user", "--net", "--mount"];

/// Runs `body` as the test `name` in network and mount namespaces of its own.
pub fn in_namespace(name: &str, body: impl FnOnce()) {
    // SAFETY: no arguments, cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    run_inside(name, if root { &["--net", "--mount"] } else { ROOTLESS }, body);
}

/// Runs `body` without any privilege over the first namespaces.
pub fn in_rootless_namespace(name: &str, body: impl FnOnce()) {
    run_inside(name, ROOTLESS, body);
}

fn run_inside(name: &str, flags: &[&str], body: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() {
        for which in ["all", "default"] {
            // The kernel sends no frames of its own.
            let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
        }
        return body();
    }
    let probe = Command::new("unshare").args(flags).args(["test", "-w", "/dev/net/tun"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        assert!(env::var_os("CI").is_none(), "{name} needs root, or user namespaces");
        eprintln!("{name} was not run: it needs root, or user namespaces, and /dev/net/tun");
        return;
    }
    let output = Cmd::new("unshare")
        .args(flags)
        .arg(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .deadline(10 * WAIT_LIMIT)
        .run()
        .unwrap();
    print!("{}", output.stdout);
    eprint!("{}", output.stderr);
    assert!(output.status.success(), "{name} failed in its namespace");
}

/// Runs `ip` in the calling thread's namespace.
pub fn ip(arguments: &str) -> String {
    run("ip", arguments)
}

/// Runs a program with words.
pub fn run(program: &str, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split_whitespace()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A raw socket on a device.
pub struct Raw(OwnedFd, libc::sockaddr_ll);

/// Room for what comes out of a router that nobody looks at yet.
const RECEIVE_BYTES: libc::c_int = 64 << 20;

fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

impl Raw {
    /// Opens a socket on a device of the calling thread's namespace.
    pub fn open(device: &str) -> Raw {
        let all = (libc::ETH_P_ALL as u16).to_be();
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; the returned descriptor has no other owner.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        assert!(fd >= 0, "{}", io::Error::last_os_error());
        // SAFETY: all zeroes is a valid `sockaddr_ll`.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = all;
        address.sll_ifindex = IfInfo::query(device).unwrap().ifindex as i32;
        // SAFETY: as above.
        let raw = Raw(unsafe { OwnedFd::from_raw_fd(fd) }, address);
        for (level, name, value) in [
            (libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1),
            (libc::SOL_PACKET, libc::PACKET_AUXDATA, 1),
            (libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1),
            (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BYTES),
        ] {
            let len = size_of::<libc::c_int>() as libc::socklen_t;
            // SAFETY: pointer and length describe `value`.
            unsafe { libc::setsockopt(raw.fd(), level, name, (&raw const value).cast(), len) };
        }
        let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: pointer and length describe `address`.
        let bound = unsafe { libc::bind(raw.fd(), (&raw const address).cast(), len) };
        assert_eq!(bound, 0, "{}", io::Error::last_os_error());
        raw
    }

    fn fd(&self) -> libc::c_int {
        self.0.as_raw_fd()
    }

    /// Sends a frame. One that the device drops is sent, too.
    pub fn send(&self, frame: &[u8]) -> Result<(), String> {
        let mut to = self.1;
        if frame.get(12..14) == Some(&[0x81, 0]) {
            // The kernel would find another header behind the tag, and choose the queue by that.
            to.sll_protocol = 0x88b5_u16.to_be();
        }
        let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        let to = (&raw const to).cast();
        // SAFETY: pointers and lengths describe `frame` and `to`.
        let sent =
            unsafe { libc::sendto(self.fd(), frame.as_ptr().cast(), frame.len(), 0, to, len) };
        match check(sent) {
            Err(e) if !matches!(e.raw_os_error(), Some(libc::ENOBUFS | libc::ENETDOWN)) => {
                Err(e.to_string())
            }
            _ => Ok(()),
        }
    }

    /// Takes a frame, if one has come.
    pub fn take(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 70_000];
        let mut control = [0u64; 8];
        loop {
            let mut piece =
                libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
            // SAFETY: all zeroes is a valid `msghdr`.
            let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
            (message.msg_iov, message.msg_iovlen) = (&raw mut piece, 1);
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = size_of_val(&control);
            // SAFETY: the message describes `bytes` and `control`, which outlive the call.
            let got = unsafe { libc::recvmsg(self.fd(), &raw mut message, 0) };
            match check(got) {
                Ok(len) => {
                    bytes.truncate(len);
                    put_tag_back(&message, &mut bytes);
                    return Some(bytes);
                }
                // The device was down, which is reported once.
                Err(e) if e.raw_os_error() == Some(libc::ENETDOWN) => {}
                Err(_) => return None,
            }
        }
    }
}

/// The kernel takes a VLAN tag out of a frame, and says it next to it.
fn put_tag_back(message: &libc::msghdr, frame: &mut Vec<u8>) {
    // SAFETY: the kernel has filled the message.
    let header = unsafe { libc::CMSG_FIRSTHDR(message) };
    if header.is_null() {
        return;
    }
    // SAFETY: the only control message asked for is of this type.
    let aux: libc::tpacket_auxdata =
        unsafe { std::ptr::read_unaligned(libc::CMSG_DATA(header).cast()) };
    if aux.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
        let words = [aux.tp_vlan_tpid.to_be_bytes(), aux.tp_vlan_tci.to_be_bytes()];
        frame.splice(12..12, words.concat());
    }
}
