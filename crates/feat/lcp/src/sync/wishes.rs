//! Changes of a twin that its interface refuses: they are tried again when something changes that
//! may have stood in the way, and shown meanwhile.
//!
//! The last of two changes wins: one of the interface itself ends the wish.

use super::{Sync, note};
use std::fmt::Display;
use std::time::Duration;
use thalweg_device::{SwIfIndex, interface};
use thalweg_feat_ip::{Ip, TableId, Version};
use thalweg_graph::Control;

/// A setting of a twin that its interface is to have. MAC addresses and states are no wishes: what
/// is refused is ordered back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wish {
    Mtu,
    Vrf,
    Labels,
}

/// A wish that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// The wish, as the log has it.
    what: String,
    why: String,
    /// The interface's own MTU then, in bytes.
    mtu: Option<u32>,
}

fn mtu_of(c: &Control, phy: SwIfIndex) -> Option<u32> {
    interface::view(c, phy).ok().map(|view| view.mtu.l3)
}

/// Grants a wish that is new, or was refused before and is still the same; does nothing if it
/// `is_met`.
pub(super) fn grant<E: Display>(
    c: &mut Control,
    phy: SwIfIndex,
    wish: Wish,
    (is_new, is_met): (bool, bool),
    what: &str,
    set: impl FnOnce(&mut Control) -> Result<(), E>,
) {
    let before = {
        let sync = c.state::<Sync>();
        let mut sync = sync.borrow_mut();
        sync.twins.get_mut(&phy).and_then(|twin| twin.wishes.remove(&wish))
    };
    let before = before.filter(|before| before.what == what);
    if is_met || !(is_new || before.is_some()) {
        return;
    }
    let done = set(c).map_err(|e| e.to_string());
    let mtu = mtu_of(c, phy);
    let refused =
        done.as_ref().err().cloned().map(|why| Refused { what: what.to_owned(), why, mtu });
    if let Some(refused) = refused.clone() {
        let sync = c.state::<Sync>();
        let mut sync = sync.borrow_mut();
        sync.twins.get_mut(&phy).map(|twin| twin.wishes.insert(wish, refused));
    }
    // One that was refused before is refused in silence.
    if is_new || refused != before {
        note(c, phy, what, done);
    }
}

/// Ends a wish, as the interface was given another value.
pub(super) fn end(c: &Control, phy: SwIfIndex, wish: Wish) {
    if let Some(twin) = c.state::<Sync>().borrow_mut().twins.get_mut(&phy) {
        twin.wishes.remove(&wish);
    }
}

/// Ends the wish for another MTU, if the interface was given one. If another limit has changed,
/// such as the device's, the wish may be granted now.
pub(super) fn mtu_changed(c: &mut Control, phy: SwIfIndex) {
    let refused = {
        let sync = c.state::<Sync>();
        let sync = sync.borrow();
        sync.twins.get(&phy).and_then(|twin| twin.wishes.get(&Wish::Mtu)?.mtu)
    };
    match refused {
        Some(mtu) if mtu_of(c, phy) == Some(mtu) => try_again_soon(c),
        _ => end(c, phy, Wish::Mtu),
    }
}

/// Ends the wish for another table, if the interface has moved elsewhere.
pub(super) fn table_changed(c: &Control, phy: SwIfIndex, version: Version) {
    let wanted = {
        let sync = c.state::<Sync>();
        let sync = sync.borrow();
        let Some(twin) = sync.twins.get(&phy) else { return };
        TableId(twin.known.as_ref().and_then(|known| known.vrf).unwrap_or(0))
    };
    let now = match version {
        Version::V4 => c.state::<Ip<u32>>().borrow().table_of(phy),
        Version::V6 => c.state::<Ip<u128>>().borrow().table_of(phy),
    };
    if now != wanted {
        end(c, phy, Wish::Vrf);
    }
}

/// Keeps account of whether an interface has refused something of its twin.
pub(super) fn account(c: &Control, phy: SwIfIndex) {
    let sync = c.state::<Sync>();
    let mut sync = sync.borrow_mut();
    let has_refused =
        sync.twins.get(&phy).is_some_and(|t| !t.wishes.is_empty() || !t.refused.is_empty());
    match has_refused {
        true => sync.refusing.insert(phy),
        false => sync.refusing.remove(&phy),
    };
}

/// Looks again, in a moment, at twins of which something was refused: once for many events.
pub(super) fn try_again_soon(c: &mut Control) {
    {
        let sync = c.state::<Sync>();
        let mut sync = sync.borrow_mut();
        if sync.refusing.is_empty() || std::mem::replace(&mut sync.refusing_again, true) {
            return;
        }
    }
    c.after(Duration::ZERO, |c| {
        c.state::<Sync>().borrow_mut().refusing_again = false;
        try_again(c);
    });
}

/// Looks again at twins of which something was refused, as what stood in the way may be gone.
pub(super) fn try_again(c: &Control) {
    let sync = c.state::<Sync>();
    let sync = sync.borrow();
    for phy in &sync.refusing {
        let Some((id, index)) = sync.twins.get(phy).map(|twin| twin.place) else { continue };
        if let Some((_, mirror)) = sync.mirrors.get(&id) {
            mirror.look(index);
        }
    }
}

/// Returns what an interface has refused of its twin, with the reasons.
pub(crate) fn refused(c: &Control, phy: SwIfIndex) -> Vec<(String, String)> {
    let sync = c.state::<Sync>();
    let sync = sync.borrow();
    let Some(twin) = sync.twins.get(&phy) else { return Vec::new() };
    let wishes = twin.wishes.values().map(|r| (r.what.clone(), r.why.clone()));
    let address = |((ip, length), why): (&(std::net::IpAddr, u8), &String)| {
        (format!("address {ip}/{length}"), why.clone())
    };
    let neighbours = match sync.lacking.count(phy) {
        0 => None,
        1 => Some(("one written neighbour".to_owned(), twin.lacking_why.clone())),
        n => Some((format!("{n} written neighbours"), twin.lacking_why.clone())),
    };
    wishes.chain(twin.refused.iter().map(address)).chain(neighbours).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Known, Twin, seen};
    use super::*;
    use crate::FEATURE;
    use crate::make::join;
    use crate::pairs::Made;
    use thalweg_device::testing::Lab;
    use thalweg_device_linux::NamespaceId;
    use thalweg_device_linux::mirror::{Mirror, Seen};
    use thalweg_netlink::Link;

    /// Interface 0, whose twin is said to be the loopback.
    fn lab() -> Lab {
        let mut lab = Lab::of(&FEATURE).interfaces(3).ip4(0..=0).ip6(0..=0).start();
        // Another interface has the subnet in table 7.
        lab.ok("set interface ip address del test1 all\nip table add 7");
        lab.ok("set interface ip table test1 7\nset interface ip address test1 10.0.0.9/24");
        let find = |lab: &Lab, name| interface::find(&lab.c, name).unwrap();
        let (phy, host) = (find(&lab, "test0"), find(&lab, "test2"));
        let view = interface::view(&lab.c, phy).unwrap();
        join(&mut lab.c, &view, (0, host, "twin".into()), Made::Tap, None).unwrap();
        let place = (NamespaceId::default(), 1);
        let mirror = Mirror::start(None, || true).unwrap();
        mirror.watch(1, None);
        let known = Known { up: true, mtu: 1500, mac: Some(view.mac), ..Known::default() };
        let sync = lab.c.state::<Sync>();
        let mut sync = sync.borrow_mut();
        sync.mirrors.insert(place.0, (String::new(), mirror));
        sync.twins.insert(phy, Twin { known: Some(known), ..Twin::at(place) });
        drop(sync);
        lab
    }

    /// Reports a twin that is a member of a VRF.
    fn report(lab: &mut Lab, vrf: u32, mtu: u32) {
        let phy = lab.sw_if(0);
        let mac = interface::view(&lab.c, phy).unwrap().mac.octets();
        let link = Link { index: 1, flags: 1, mtu, mac: Some(mac), ..Link::default() };
        let seen = Seen { order: u64::MAX, link: Some(link), vrf: Some(vrf), ..Seen::default() };
        seen::take(&mut lab.c, phy, seen);
    }

    fn tables(lab: &Lab) -> [u32; 2] {
        let phy = lab.sw_if(0);
        let v4 = lab.c.state::<Ip<u32>>().borrow().table_of(phy);
        let v6 = lab.c.state::<Ip<u128>>().borrow().table_of(phy);
        [v4.get(), v6.get()]
    }

    /// Waits until the mirror has been asked to look since it had looked that many times.
    fn until_looked(lab: &mut Lab, before: u64) -> u64 {
        let looks = |lab: &Lab| super::super::namespaces(&lab.c)[0].counters.looks;
        let begin = std::time::Instant::now();
        while looks(lab) <= before {
            assert!(begin.elapsed() < Duration::from_secs(20), "the mirror does not look");
            lab.c.run_once(Some(Duration::ZERO));
        }
        looks(lab)
    }

    #[test]
    fn a_refused_vrf_is_tried_again_when_addresses_go() {
        let mut lab = lab();
        let looks = until_looked(&mut lab, 0);
        let counted = |lab: &Lab| super::super::counters(&lab.c).not_taken;
        for _ in 0..3 {
            report(&mut lab, 7, 1500);
            assert_eq!((tables(&lab), counted(&lab)), ([0, 0], 1));
        }
        let shown = lab.cli("show lcp");
        assert!(shown.contains("test0 does not take table 7 (VRF) of its twin: "), "{shown}");
        lab.ok("set interface ip address del test0 all");
        until_looked(&mut lab, looks);
        report(&mut lab, 7, 1500);
        assert_eq!(tables(&lab), [7, 7]);
        let shown = lab.cli("show lcp");
        assert!(!shown.contains("does not take"), "{shown}");
        lab.close();
    }

    /// The usual case: `lcp-sync' has given the twin what is written here.
    #[test]
    fn written_addresses_move_with_the_interface() {
        let mut lab = lab();
        for table in [8, 0, 8] {
            report(&mut lab, table, 1500);
            assert_eq!((tables(&lab), refused(&lab.c, lab.sw_if(0))), ([table; 2], vec![]));
            for route in ["10.0.0.1/32", "2001:db8::1/128"] {
                let family = if route.contains(':') { "ip6" } else { "ip" };
                let shown = lab.cli(&format!("show {family} fib table {table} {route}"));
                assert!(shown.contains("test0"), "{shown}");
            }
        }
        let shown = lab.cli("show interface address");
        assert!(shown.contains("10.0.0.1/24") && shown.contains("2001:db8::1/64"), "{shown}");
        // The address that is in the way there leaves it as it is.
        report(&mut lab, 7, 1500);
        assert_eq!(tables(&lab), [8, 8]);
        let said = refused(&lab.c, lab.sw_if(0));
        assert!(said[0].1.contains("overlaps with 10.0.0.9/24 on `test1`"), "{said:?}");
        lab.close();
    }

    /// A limit that is raised may have been in the way; the interface keeps its own MTU meanwhile.
    #[test]
    fn a_refused_mtu_outlives_other_limits() {
        let mut lab = lab();
        report(&mut lab, 0, 1 << 20);
        assert_eq!(refused(&lab.c, lab.sw_if(0)).len(), 1);
        let looks = until_looked(&mut lab, 0);
        lab.ok("set interface mtu ip4 1300 test0");
        assert_eq!(refused(&lab.c, lab.sw_if(0)).len(), 1);
        until_looked(&mut lab, looks);
        lab.ok("set interface mtu packet 1400 test0");
        assert_eq!(refused(&lab.c, lab.sw_if(0)), []);
        lab.close();
    }

    #[test]
    fn a_user_has_the_last_word() {
        let mut lab = lab();
        report(&mut lab, 7, 1500);
        report(&mut lab, 7, 1 << 20);
        assert_eq!(refused(&lab.c, lab.sw_if(0)).len(), 2);
        lab.ok("set interface ip address del test0 all");
        lab.ok(
            "ip table add 9\nset interface ip table test0 9\nset interface mtu packet 1400 test0",
        );
        assert_eq!(refused(&lab.c, lab.sw_if(0)), []);
        report(&mut lab, 7, 1 << 20);
        assert_eq!((tables(&lab), refused(&lab.c, lab.sw_if(0))), ([9, 0], vec![]));
        lab.close();
    }
}
