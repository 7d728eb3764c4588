//! Properties of a Linux network device.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::codec::{self, NLMSG_DONE, NLMSG_ERROR, RTM_NEWLINK};
use crate::{Error, sys};

/// An Ethernet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A Linux network device, as of the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IfInfo {
    /// Name.
    pub name: String,
    /// Index in its namespace.
    pub ifindex: u32,
    /// ARP hardware type: 1 is Ethernet.
    pub kind: u16,
    /// MAC address; all zeroes if it has none of 6 bytes.
    pub mac: Mac,
    /// MTU in bytes.
    pub mtu: u32,
    /// Flags (`IFF_*`, netdevice(7)).
    pub flags: u32,
    /// Whether it has no queueing discipline (`noqueue`), as is usual for virtual devices.
    pub unqueued: bool,
    /// Speed in Mbit/s, if known. Not filled in by events and lists.
    pub speed_mbps: Option<u32>,
}

impl IfInfo {
    /// Whether the device is administratively up (`IFF_UP`).
    pub fn is_up(&self) -> bool {
        self.flags & libc::IFF_UP as u32 != 0
    }

    /// Whether it has a carrier (`IFF_RUNNING`).
    pub fn is_running(&self) -> bool {
        self.flags & libc::IFF_RUNNING as u32 != 0
    }

    /// Queries a device of the calling thread's namespace.
    ///
    /// # Errors
    /// If the name is invalid or unknown (the error lists existing devices), or netlink fails.
    pub fn query(name: &str) -> Result<Self, Error> {
        if !is_name(name) {
            return Err(Error::BadName(name.to_owned()));
        }
        let mut found = None;
        let answer = dump_links(Some(name), |info| found = Some(info));
        match (answer, found) {
            (Ok(socket), Some(mut info)) => {
                info.speed_mbps = sys::link_speed(socket.as_fd(), &info.name);
                Ok(info)
            }
            (Err(error), _) if error.raw_os_error() != Some(libc::ENODEV) => {
                Err(Error::Netlink { what: "look up a device", source: error })
            }
            _ => Err(Error::NoSuchDevice {
                name: name.to_owned(),
                known: Self::list()?.into_iter().map(|info| info.name).collect(),
            }),
        }
    }

    /// Reads the device's speed in the calling thread's namespace; unknown if that fails.
    pub(crate) fn find_speed(&mut self) {
        let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0);
        self.speed_mbps = socket.ok().and_then(|s| sys::link_speed(s.as_fd(), &self.name));
    }

    /// All devices of the calling thread's namespace, by index.
    ///
    /// # Errors
    /// If netlink fails.
    pub fn list() -> Result<Vec<Self>, Error> {
        let mut all = Vec::new();
        dump_links(None, |info| all.push(info))
            .map_err(|source| Error::Netlink { what: "list devices", source })?;
        all.sort_by_key(|info: &Self| info.ifindex);
        Ok(all)
    }
}

/// The kernel's rules for device names (`dev_valid_name`).
fn is_name(name: &str) -> bool {
    (1..=15).contains(&name.len())
        && name != "."
        && name != ".."
        && !name.bytes().any(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b':' | 0))
}

/// Sends one request and passes the links of the reply to `each`.
fn dump_links(name: Option<&str>, mut each: impl FnMut(IfInfo)) -> io::Result<OwnedFd> {
    const SEQUENCE: u32 = 1;
    let socket = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
    sys::send(socket.as_fd(), &codec::get_link(name, SEQUENCE), 0)?;
    // The kernel replies while it takes the request, and continues a long reply while it is read,
    // so there is nothing to wait for.
    let mut buffer = vec![0u8; 64 * 1024];
    loop {
        let len = receive(socket.as_fd(), &mut buffer)?;
        for message in codec::messages(&buffer[..len]) {
            if message.sequence != SEQUENCE {
                continue;
            }
            match message.kind {
                NLMSG_DONE => return Ok(socket),
                NLMSG_ERROR => match codec::error_code(message.body) {
                    0 => return Ok(socket),
                    code => return Err(io::Error::from_raw_os_error(code.wrapping_neg())),
                },
                RTM_NEWLINK => codec::link(message.body).into_iter().for_each(&mut each),
                _ => {}
            }
            if name.is_some() {
                return Ok(socket);
            }
        }
    }
}

/// Receives one datagram; one larger than the buffer is an error.
pub(super) fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    let len = sys::recv(fd, buffer, libc::MSG_TRUNC | libc::MSG_DONTWAIT)?;
    if len > buffer.len() {
        return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_loopback() {
        let lo = IfInfo::query("lo").unwrap();
        assert_eq!((lo.name.as_str(), lo.kind, lo.mac), ("lo", 772, Mac::default()));
        assert!(IfInfo::list().unwrap().contains(&IfInfo { speed_mbps: None, ..lo }));
    }

    #[test]
    fn unknown_devices_are_reported_with_the_known() {
        let error = IfInfo::query("no-such-dev").unwrap_err().to_string();
        assert!(error.contains("\"no-such-dev\"") && error.contains("lo"), "{error}");
        for name in ["", "a/b", "sixteen-or-more-", "a b", "..", "x:1", "a\0"] {
            assert!(matches!(IfInfo::query(name), Err(Error::BadName(_))), "{name:?}");
        }
    }

    #[test]
    fn shows_addresses() {
        assert_eq!(Mac([2, 0xfe, 0, 1, 0xab, 9]).to_string(), "02:fe:00:01:ab:09");
    }
}
