//! Sessions by which users are logged in to this machine, as far as the system shows them.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Programs whose connections are sessions, or carry some: an `ssh` may hold a tunnel back.
const PROGRAMS: [&str; 9] = [
    "sshd",
    "sshd-session",
    "ssh",
    "dropbear",
    "telnetd",
    "in.telnetd",
    "in.rlogind",
    "in.rshd",
    "autossh",
];
/// Ports of sessions: SSH, telnet.
const PORTS: [u16; 2] = [22, 23];
/// The variable with the addresses of a session: of the peer and its port, ours and its port.
const VARIABLE: &str = "SSH_CONNECTION=";
/// State of a connection in `/proc/net/tcp`.
const ESTABLISHED: &str = "01";

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Login {
    /// Address of the other machine.
    pub(super) peer: IpAddr,
    /// Address of this one.
    pub(super) own: IpAddr,
    /// Interface of a link-local address, by name.
    pub(super) zone: Option<String>,
}

/// All sessions, those that this process belongs to included.
pub(super) fn all() -> BTreeSet<Login> {
    let family = ancestors();
    let mut logins: BTreeSet<Login> = family.iter().flat_map(|process| named(process)).collect();
    let own = |process: &String| {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        family.contains(process) || PROGRAMS.contains(&name.trim())
    };
    let sockets: BTreeSet<u64> =
        processes().filter(own).flat_map(|process| sockets(&process)).collect();
    for table in ["tcp", "tcp6"] {
        let text = fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        let rows = text.lines().filter_map(Row::parse);
        let logged_in =
            rows.filter(|row| PORTS.contains(&row.own.1) || sockets.contains(&row.socket));
        logins.extend(logged_in.map(|row| Login {
            zone: zone_of(row.own.0),
            peer: row.peer,
            own: row.own.0,
        }));
    }
    logins.retain(|login| !login.peer.is_loopback() && !login.peer.is_unspecified());
    logins
}

/// Numbers of all processes.
fn processes() -> impl Iterator<Item = String> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns this process and its ancestors.
fn ancestors() -> Vec<String> {
    let mut all = Vec::new();
    let mut next = Some(std::process::id().to_string());
    while let Some(process) = next.filter(|process| process != "0" && !all.contains(process)) {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        next = parent(&stat).map(str::to_owned);
        all.push(process);
    }
    all
}

/// The parent's number in `/proc/PID/stat`: the second word behind the name, which may have blanks.
fn parent(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)
}

/// Numbers of the sockets that a process has open, as far as we may see them.
fn sockets(process: &str) -> Vec<u64> {
    let open = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| {
        let to = fs::read_link(entry.path()).ok()?;
        to.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    open.filter_map(number).collect()
}

/// Sessions that the environment of a process names, as far as we may see it: sudo(8) takes the
/// variable away from what it starts.
fn named(process: &str) -> Vec<Login> {
    let bytes = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.split('\0').filter_map(variable).collect()
}

/// Reads a variable.
fn variable(text: &str) -> Option<Login> {
    let mut words = text.strip_prefix(VARIABLE)?.split_whitespace();
    let (peer, zone) = with_zone(words.next()?)?;
    let (own, _) = with_zone(words.nth(1)?)?;
    Some(Login { peer, own, zone })
}

/// An address, and the interface that stands behind one of a link.
fn with_zone(text: &str) -> Option<(IpAddr, Option<String>)> {
    let (address, zone) = match text.split_once('%') {
        Some((address, zone)) => (address, Some(zone.to_owned())),
        None => (text, None),
    };
    Some((address.parse::<IpAddr>().ok()?.to_canonical(), zone))
}

/// The interface that has a link-local address.
fn zone_of(own: IpAddr) -> Option<String> {
    let IpAddr::V6(own) = own else { return None };
    if !own.is_unicast_link_local() {
        return None;
    }
    let wanted = format!("{:032x}", own.to_bits());
    let text = fs::read_to_string("/proc/thread-self/net/if_inet6").ok()?;
    let row = text.lines().find(|line| line.starts_with(&wanted))?;
    row.split_whitespace().last().map(str::to_owned)
}

/// An established connection in `/proc/net/tcp` or `tcp6`.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    own: (IpAddr, u16),
    peer: IpAddr,
    socket: u64,
}

impl Row {
    fn parse(line: &str) -> Option<Row> {
        let mut words = line.split_whitespace().skip(1);
        let (own, peer) = (end(words.next()?)?, end(words.next()?)?);
        if words.next()? != ESTABLISHED {
            return None;
        }
        Some(Row { own, peer: peer.0, socket: words.nth(5)?.parse().ok()? })
    }
}

/// An address and a port: words of the address as this machine has them in memory.
fn end(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let (words, []) = address.as_bytes().as_chunks::<8>() else { return None };
    let word = |text: &[u8; 8]| {
        let text = std::str::from_utf8(text).ok()?;
        Some(u32::from_str_radix(text, 16).ok()?.to_ne_bytes())
    };
    let words: Vec<[u8; 4]> = words.iter().map(word).collect::<Option<_>>()?;
    let address = match words[..] {
        [one] => IpAddr::from(Ipv4Addr::from(one)),
        [a, b, c, d] => {
            let bytes: [u8; 16] = [a, b, c, d].concat().try_into().ok()?;
            IpAddr::from(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some((address, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_variable_of_a_session_is_read() {
        let login = variable("SSH_CONNECTION=192.0.2.7 50000 198.51.100.1 22").unwrap();
        assert_eq!((login.peer, login.own), (ip("192.0.2.7"), ip("198.51.100.1")));
        let login = variable("SSH_CONNECTION=fe80::1%eth0 50000 fe80::2%eth0 22").unwrap();
        assert_eq!((login.peer, login.zone.as_deref()), (ip("fe80::1"), Some("eth0")));
        let mapped = variable("SSH_CONNECTION=::ffff:192.0.2.7 1 ::ffff:192.0.2.1 22").unwrap();
        assert_eq!(mapped.peer, ip("192.0.2.7"));
        for other in [
            "SSH_CONNECTION=",
            "SSH_CONNECTION=192.0.2.7 1",
            "SSH_CONNECTION=x 1 y 2",
            "PATH=/bin",
            "",
        ] {
            assert_eq!(variable(other), None, "{other}");
        }
    }

    #[test]
    fn connections_are_read_in_both_versions() {
        let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
        let [own, peer] = [[198, 51, 100, 1], [192, 0, 2, 7]].map(word);
        let row = format!("  1: {own}:0016 {peer}:C350 01 0:0 02:0 0 0 0 4711 4 0 20 4 30 10 -1");
        let found = Row::parse(&row).unwrap();
        assert_eq!(found.own, (ip("198.51.100.1"), 22));
        assert_eq!((found.peer, found.socket), (ip("192.0.2.7"), 4711));
        assert_eq!(Row::parse(&row.replace(" 01 ", " 0A ")), None, "it listens");
        let six = [[0x20, 1, 0xd, 0xb8], [0; 4], [0; 4], [0, 0, 0, 1]].map(word).concat();
        assert_eq!(end(&format!("{six}:0016")), Some((ip("2001:db8::1"), 22)));
        for odd in ["", "x", "00:16", "0000000:0016", "zzzzzzzz:0016", "00000000:x"] {
            assert_eq!(end(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent("7 (a) b (c) S 5 7 7"), Some("5"));
        assert_eq!(parent(""), None);
        let all = ancestors();
        assert_eq!(all[0], std::process::id().to_string());
    }
}
