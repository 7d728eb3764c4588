//! The part of rtnetlink that describes links (rtnetlink(7)).
//!
//! Messages come from the kernel; their lengths are checked all the same.

use super::info::{IfInfo, Mac};

pub(super) const NLMSG_ERROR: u16 = 2;
pub(super) const NLMSG_DONE: u16 = 3;
pub(super) const RTM_NEWLINK: u16 = 16;
pub(super) const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_HDR: usize = 16;
const IFINFOMSG: usize = 16;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_QDISC: u16 = 6;

/// One message of a datagram.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    pub kind: u16,
    pub sequence: u32,
    pub body: &'a [u8],
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|chunk| u16::from_ne_bytes(*chunk))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_ne_bytes(*chunk))
}

/// Messages of a datagram, up to the first truncated one.
pub(super) fn messages(datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let len = u32_at(rest, 0)? as usize;
        let body = rest.get(NLMSG_HDR..len)?;
        let message = Message { kind: u16_at(rest, 4)?, sequence: u32_at(rest, 8)?, body };
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

/// Attributes of a message, up to the first truncated one.
fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let len = usize::from(u16_at(rest, 0)?);
        // The two upper bits are flags.
        let kind = u16_at(rest, 2)? & 0x3fff;
        let value = rest.get(4..len)?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Parses the link of an `RTM_NEWLINK` or `RTM_DELLINK` message.
///
/// Messages of other address families are ignored: with one, a bridge reports that a device is no
/// longer its port.
pub(super) fn link(body: &[u8]) -> Option<IfInfo> {
    if *body.first()? != libc::AF_UNSPEC as u8 {
        return None;
    }
    let mut info = IfInfo {
        name: String::new(),
        ifindex: u32_at(body, 4)?,
        kind: u16_at(body, 2)?,
        mac: Mac::default(),
        mtu: 0,
        flags: u32_at(body, 8)?,
        unqueued: false,
        speed_mbps: None,
    };
    for (kind, value) in attributes(body.get(IFINFOMSG..)?) {
        match kind {
            IFLA_IFNAME => {
                let text = value.strip_suffix(&[0]).unwrap_or(value);
                info.name = String::from_utf8_lossy(text).into_owned();
            }
            IFLA_ADDRESS => {
                if let Ok(mac) = value.try_into() {
                    info.mac = Mac(mac);
                }
            }
            IFLA_MTU => info.mtu = u32_at(value, 0).unwrap_or_default(),
            IFLA_QDISC => info.unqueued = value.strip_suffix(&[0]).unwrap_or(value) == b"noqueue",
            _ => {}
        }
    }
    Some(info)
}

/// Negative errno of an `NLMSG_ERROR` message; 0 is an acknowledgement.
pub(super) fn error_code(body: &[u8]) -> i32 {
    u32_at(body, 0).map_or(-libc::EBADMSG, |code| code as i32)
}

/// Builds a request for the link with that name, or for all links.
pub(super) fn get_link(name: Option<&str>, sequence: u32) -> Vec<u8> {
    let mut bytes = vec![0u8; NLMSG_HDR + IFINFOMSG];
    let mut flags = NLM_F_REQUEST;
    match name {
        None => flags |= NLM_F_DUMP,
        Some(name) => {
            let len = (4 + name.len() + 1) as u16;
            bytes.extend(len.to_ne_bytes());
            bytes.extend(IFLA_IFNAME.to_ne_bytes());
            bytes.extend(name.as_bytes());
            bytes.push(0);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
    }
    let len = bytes.len() as u32;
    bytes[0..4].copy_from_slice(&len.to_ne_bytes());
    bytes[4..6].copy_from_slice(&RTM_GETLINK.to_ne_bytes());
    bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_it_writes() {
        // A request has the shape of a reply, with one attribute.
        let bytes = get_link(Some("eth0"), 7);
        let all: Vec<_> = messages(&bytes).collect();
        assert_eq!((all.len(), all[0].kind, all[0].sequence), (1, RTM_GETLINK, 7));
        assert_eq!(link(all[0].body).unwrap().name, "eth0");
    }

    proptest! {
        #[test]
        fn arbitrary_datagrams_end(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            len in 0u32..400,
            attribute in 0u16..100,
        ) {
            let mut bytes = bytes;
            if bytes.len() > 36 {
                bytes[..4].copy_from_slice(&len.to_ne_bytes());
                bytes[32..34].copy_from_slice(&attribute.to_ne_bytes());
            }
            for message in messages(&bytes).take(1000) {
                let _ = (link(message.body), error_code(message.body));
            }
            prop_assert!(messages(&bytes).count() <= bytes.len());
            prop_assert!(attributes(&bytes).count() <= bytes.len());
        }
    }
}
