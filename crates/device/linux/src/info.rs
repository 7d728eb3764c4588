//! Properties of a Linux network device.

use std::io;
use std::os::fd::AsFd;

use thalweg_netlink::Link;
use thalweg_wire::ethernet::MacAddr;

use crate::sys;

/// A device that cannot be described.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Invalid name of a Linux network device.
    #[error(
        "\"{0}\" cannot be the name of a network device: use 1 to 15 characters, without \
         spaces, slashes or colons"
    )]
    BadName(String),
    /// The device does not exist in the calling thread's namespace.
    #[error("there is no network device \"{name}\" in this namespace, which has: {}", list(.known))]
    NoSuchDevice {
        /// The name given.
        name: String,
        /// Existing devices.
        known: Vec<String>,
    },
    /// A netlink request failed.
    #[error("cannot {what} over netlink")]
    Netlink {
        /// The attempted request.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

fn list(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.is_empty() {
        text.push_str("none");
    } else if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
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
    pub mac: MacAddr,
    /// MTU in bytes.
    pub mtu: u32,
    /// Flags (`IFF_*`, netdevice(7)).
    pub flags: u32,
    /// True if it has no queueing discipline (`noqueue`), as is usual for virtual devices.
    pub unqueued: bool,
    /// Speed in Mbit/s, if known. Not filled in by events and lists.
    pub speed_mbps: Option<u32>,
    /// Frames that the kernel has dropped on their way to the device.
    pub tx_dropped: u64,
}

impl IfInfo {
    /// Returns true if the device is administratively up (`IFF_UP`).
    pub fn is_up(&self) -> bool {
        self.flags & libc::IFF_UP as u32 != 0
    }

    /// Returns true if the device has a carrier (`IFF_RUNNING`).
    pub fn is_running(&self) -> bool {
        self.flags & libc::IFF_RUNNING as u32 != 0
    }

    /// Queries a device of the calling thread's namespace.
    ///
    /// # Errors
    /// If the name is invalid or unknown (the error lists existing devices), or netlink fails.
    pub fn query(name: &str) -> Result<Self, LinkError> {
        if !is_name(name) {
            return Err(LinkError::BadName(name.to_owned()));
        }
        match Link::named(name) {
            Ok(Some(link)) => {
                let mut info = IfInfo::from(link);
                info.find_speed();
                Ok(info)
            }
            Ok(None) => Err(LinkError::NoSuchDevice {
                name: name.to_owned(),
                known: Self::list()?.into_iter().map(|info| info.name).collect(),
            }),
            Err(source) => Err(LinkError::Netlink { what: "look up a device", source }),
        }
    }

    /// Reads the device's speed in the calling thread's namespace; unknown if that fails.
    pub fn find_speed(&mut self) {
        self.speed_mbps = sys::requests().ok().and_then(|s| sys::link_speed(s.as_fd(), &self.name));
    }

    /// All devices of the calling thread's namespace, by index.
    ///
    /// # Errors
    /// If netlink fails.
    pub fn list() -> Result<Vec<Self>, LinkError> {
        let all =
            Link::all().map_err(|source| LinkError::Netlink { what: "list devices", source })?;
        Ok(all.into_iter().map(IfInfo::from).collect())
    }
}

impl From<Link> for IfInfo {
    fn from(link: Link) -> Self {
        IfInfo {
            name: link.name,
            ifindex: link.index,
            kind: link.hardware,
            mac: MacAddr(link.mac.unwrap_or_default()),
            mtu: link.mtu,
            flags: link.flags,
            unqueued: link.qdisc == "noqueue",
            speed_mbps: None,
            tx_dropped: link.statistics.tx_dropped,
        }
    }
}

/// The kernel's rules for device names (`dev_valid_name`).
fn is_name(name: &str) -> bool {
    (1..=15).contains(&name.len())
        && name != "."
        && name != ".."
        && !name.bytes().any(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b':' | 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_loopback() {
        let lo = IfInfo::query("lo").unwrap();
        assert_eq!((lo.name.as_str(), lo.kind, lo.mac), ("lo", 772, MacAddr::default()));
        assert!(IfInfo::list().unwrap().contains(&IfInfo { speed_mbps: None, ..lo }));
    }

    #[test]
    fn unknown_devices_are_reported_with_the_known() {
        let error = IfInfo::query("no-such-dev").unwrap_err().to_string();
        assert!(error.contains("\"no-such-dev\"") && error.contains("lo"), "{error}");
        for name in ["", "a/b", "sixteen-or-more-", "a b", "..", "x:1", "a\0"] {
            assert!(matches!(IfInfo::query(name), Err(LinkError::BadName(_))), "{name:?}");
        }
    }

    #[test]
    fn messages_help() {
        let known = vec!["lo".into(), "eth0".into()];
        let error = LinkError::NoSuchDevice { name: "eth9".into(), known };
        assert_eq!(
            error.to_string(),
            "there is no network device \"eth9\" in this namespace, which has: lo, eth0"
        );
        let many: Vec<String> = (0..25).map(|n| format!("eth{n}")).collect();
        assert!(list(&many).ends_with("and 5 more"));
        assert_eq!(list(&[]), "none");
    }

    #[test]
    fn shows_addresses() {
        assert_eq!(MacAddr([2, 0xfe, 0, 1, 0xab, 9]).to_string(), "02:fe:00:01:ab:09");
    }
}
