//! Interfaces and their twins follow each other.

#![allow(clippy::unwrap_used)]

use anyhow::Result;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use thalweg_device::testing::Lab;
use thalweg_device::{MacAddr, SwIfIndex, interface};
use thalweg_feat_ip::Ip;
use thalweg_feat_lcp::{FEATURE, sync};
use thalweg_feat_neighbor::{NeighborChange, Neighbors};
use thalweg_netns::{Netns, WAIT_LIMIT, wait_until};
use thalweg_tables::Address;
use thalweg_testkit::{lab_test, processor_time, sized};
use thalweg_wire::build::Packet;

/// A router whose `test0` has the twin `e0`.
struct Pair {
    lab: Lab,
    ns: Netns,
}

impl Pair {
    fn new(lines: &str) -> Result<Pair> {
        let ns = Netns::new("twins")?;
        for which in ["all", "default"] {
            ns.set_sysctl(&format!("net/ipv6/conf/{which}/disable_ipv6"), "0")?;
            ns.set_sysctl(&format!("net/ipv6/conf/{which}/accept_dad"), "0")?;
        }
        let mut lab = Lab::of(&FEATURE).start();
        for line in lines.lines() {
            lab.ok(line.trim());
        }
        let path = ns.descriptor_path();
        lab.ok(&format!("lcp create test0 host-if e0 netns {}", path.display()));
        let mut pair = Pair { lab, ns };
        // The first report says what is there.
        pair.until("a report", |p| p.looks() > 0);
        Ok(pair)
    }

    fn phy(&self) -> SwIfIndex {
        self.lab.sw_if(0)
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Pair) -> bool) {
        let start = Instant::now();
        while !done(self) {
            assert!(start.elapsed() < WAIT_LIMIT, "waited too long for {what}: {}", self.linux());
            self.lab.c.run_once(Some(Duration::from_millis(2)));
        }
    }

    fn looks(&self) -> u64 {
        sync::namespaces(&self.lab.c).iter().map(|n| n.counters.looks).sum()
    }

    fn orders(&self) -> u64 {
        sync::namespaces(&self.lab.c).iter().map(|n| n.counters.orders).sum()
    }

    fn refused(&self) -> u64 {
        sync::namespaces(&self.lab.c).iter().map(|n| n.counters.refused).sum()
    }

    /// Addresses of the interface.
    fn addresses(&self) -> BTreeSet<String> {
        fn of<A: Address>(p: &Pair) -> Vec<String> {
            let ip = p.lab.c.state::<Ip<A>>();
            let ip = ip.borrow();
            ip.addresses(p.phy()).iter().map(ToString::to_string).collect()
        }
        of::<u32>(self).into_iter().chain(of::<u128>(self)).collect()
    }

    fn has(&self, address: &str) -> bool {
        self.addresses().contains(address)
    }

    fn has_neighbour(&self, ip: IpAddr) -> bool {
        self.lab.c.state::<Neighbors>().borrow().find(self.phy(), ip).is_some()
    }

    /// Returns Linux's view of the twin.
    fn linux(&self) -> String {
        self.ns.ip("address show dev e0").unwrap_or_default()
    }

    fn until_linux(&mut self, what: &str, word: &str) {
        self.until(what, |p| p.linux().contains(word));
    }

    fn view(&self) -> interface::InterfaceView {
        interface::view(&self.lab.c, self.phy()).unwrap()
    }
}

lab_test! {
    fn linux_has_its_way() {
        let mut p = Pair::new("")?;
        p.ns.ip("link set e0 down")?;
        p.until("down", |p| !p.view().admin_up);
        p.ns.ip("link set e0 address 02:00:00:00:00:77 mtu 1400")?;
        p.until("MAC", |p| p.view().mac == MacAddr([2, 0, 0, 0, 0, 0x77]));
        p.until("MTU", |p| p.view().mtu.l3 == 1400);
        p.ns.ip("link set e0 up")?;
        p.until("up", |p| p.view().admin_up);
        p.ns.ip("address add 192.0.2.1/24 dev e0")?;
        p.ns.ip("address add 2001:db8::1/64 dev e0")?;
        p.until("addresses", |p| p.has("192.0.2.1/24") && p.has("2001:db8::1/64"));
        p.ns.ip("address delete 192.0.2.1/24 dev e0")?;
        p.until("no IPv4 address", |p| !p.has("192.0.2.1/24"));
        p.ns.ip("link set e0 down")?;
        p.until("no IPv6 address", |p| !p.has("2001:db8::1/64"));
        assert_eq!(p.orders(), 0, "lcp-sync is off");
        Ok(())
    }

    fn an_interface_is_passed_with_lcp_sync() {
        let mut p = Pair::new("set interface ip address test0 192.0.2.1/24
                               set interface ip address test0 2001:db8::1/64
                               set interface mtu packet 1400 test0")?;
        assert!(!p.linux().contains("192.0.2.1"));
        p.lab.ok("lcp lcp-sync on");
        p.until_linux("IPv4", "192.0.2.1/24");
        p.until_linux("IPv6", "2001:db8::1/64");
        p.until_linux("MTU", "mtu 1400");
        p.lab.ok("set interface state test0 down");
        p.until("down", |p| !p.linux().contains(",UP"));
        p.lab.ok("set interface state test0 up");
        p.until_linux("up", ",UP");
        // Linux has taken it away.
        p.until_linux("IPv6 again", "2001:db8::1/64");
        assert!(p.has("2001:db8::1/64") && p.has("192.0.2.1/24"));
        p.lab.ok("set interface ip address del test0 192.0.2.1/24");
        p.until("no IPv4", |p| !p.linux().contains("192.0.2.1"));
        p.lab.ok("set interface mac address test0 02:00:00:00:00:78");
        p.until_linux("MAC", "02:00:00:00:00:78");
        Ok(())
    }

    /// Orders wait for a moment: changes made while changes are passed are passed as well.
    fn what_was_changed_before_a_switch_is_passed() {
        let mut p = Pair::new("lcp lcp-sync on
                               set interface ip address test1 192.0.2.1/24")?;
        p.lab.ok("set interface mtu packet 1400 test0\nlcp lcp-sync off");
        p.until_linux("MTU", "mtu 1400");
        p.lab.ok("set interface mtu packet 1300 test0\nlcp lcp-sync on\nlcp lcp-sync off");
        p.until_linux("MTU again", "mtu 1300");
        p.lab.ok("lcp lcp-sync on\nset interface unnumbered test0 use test1
                  lcp lcp-sync-unnumbered off");
        p.until("nothing borrowed", |p| !p.linux().contains("192.0.2.1"));
        // Nothing is passed after the switch.
        p.lab.ok("lcp lcp-sync off\nset interface mtu packet 1200 test0");
        p.ns.ip("neighbour add 198.51.100.9 lladdr 02:00:00:00:00:09 nud permanent dev e0")?;
        p.until("a neighbour", |p| p.has_neighbour([198, 51, 100, 9].into()));
        assert!(p.linux().contains("mtu 1300"), "{}", p.linux());
        Ok(())
    }

    fn nothing_goes_to_and_fro() {
        let mut p = Pair::new("lcp lcp-sync on")?;
        for round in 0..20 {
            let word = ["down", "up"][round % 2];
            p.ns.ip(&format!("link set e0 {word}"))?;
            p.lab.ok(&format!("set interface ip address test0 198.51.100.{}/32", round + 1));
        }
        p.until_linux("the last address", "198.51.100.20/32");
        p.until("up", |p| p.view().admin_up && p.linux().contains(",UP"));
        // A change that Linux makes after all others is seen after them.
        let mut settled = |host| {
            p.ns.ip(&format!(
                "neighbour add 198.51.100.{host} lladdr 02:00:00:00:00:09 nud permanent dev e0"
            ))?;
            p.until("a neighbour", |p| p.has_neighbour([198, 51, 100, host].into()));
            anyhow::Ok((p.orders(), sync::counters(&p.lab.c).taken))
        };
        settled(200)?;
        let (orders, taken) = settled(201)?;
        assert_eq!(settled(202)?, (orders, taken + 1));
        assert_eq!(p.addresses().len(), 20);
        Ok(())
    }

    fn an_address_that_linux_deletes_is_gone() {
        let mut p = Pair::new("lcp lcp-sync on
                               set interface ip address test0 192.0.2.1/24
                               set interface ip address test0 2001:db8::1/64")?;
        p.until_linux("IPv6", "2001:db8::1/64");
        p.ns.ip("address delete 192.0.2.1/24 dev e0")?;
        p.ns.ip("address delete 2001:db8::1/64 dev e0")?;
        p.until("gone", |p| p.addresses().is_empty());
        assert!(!p.linux().contains("192.0.2.1"));
        Ok(())
    }

    fn written_addresses_outlive_the_twin() {
        let mut p = Pair::new("lcp lcp-sync on
                               set interface ip address test0 192.0.2.1/24")?;
        p.until_linux("IPv4", "192.0.2.1/24");
        p.ns.ip("address add 198.51.100.1/24 dev e0")?;
        p.until("found", |p| p.has("198.51.100.1/24"));
        p.ns.ip("link delete e0")?;
        p.until("gone", |p| !p.has("198.51.100.1/24"));
        assert!(p.has("192.0.2.1/24"));
        p.lab.ok("lcp delete test0");
        assert!(p.has("192.0.2.1/24") && sync::namespaces(&p.lab.c).is_empty());
        Ok(())
    }

    fn a_pair_that_goes_takes_what_came_from_linux() {
        let mut p = Pair::new("set interface ip address test0 192.0.2.1/24")?;
        p.ns.ip("address add 198.51.100.1/24 dev e0")?;
        p.ns.ip("link set e0 up")?;
        p.ns.ip("neighbour add 198.51.100.9 lladdr 02:00:00:00:00:09 nud permanent dev e0")?;
        let ip: IpAddr = [198, 51, 100, 9].into();
        p.until("found", |p| p.has("198.51.100.1/24") && p.has_neighbour(ip));
        p.lab.ok("lcp delete test0");
        assert_eq!(p.addresses(), BTreeSet::from(["192.0.2.1/24".to_owned()]));
        assert!(!p.has_neighbour(ip));
        Ok(())
    }

    /// An address that another interface has is refused once, and taken when it can be.
    fn an_address_that_cannot_be_taken_stays_in_linux() {
        let mut p = Pair::new("lcp lcp-sync on
                               set interface ip address test1 192.0.2.1/24")?;
        p.ns.ip("address add 192.0.2.2/24 dev e0")?;
        p.until("refused", |p| sync::counters(&p.lab.c).not_taken == 1);
        let shown = p.lab.cli("show lcp");
        assert!(shown.contains("test0 does not take address 192.0.2.2/24 of its twin: "), "{shown}");
        // Nothing happens to the twin.
        p.lab.ok("set interface ip address del test1 192.0.2.1/24");
        p.until("taken", |p| p.has("192.0.2.2/24"));
        assert!(!p.lab.cli("show lcp").contains("does not take"));
        assert!(p.linux().contains("192.0.2.2/24"));
        assert_eq!(sync::counters(&p.lab.c).not_taken, 1);
        Ok(())
    }

    /// Neighbours that Linux has written and there is no room for are taken once there is, as many
    /// as there is room for. Neighbours that go in Linux are forgotten.
    fn written_neighbours_wait_for_room() {
        let mut p = Pair::new(
            "set interface ip address test0 192.0.2.1/24
             set ip neighbor-config ip4 limit 3 norecycle
             set ip neighbor test0 192.0.2.201 02:00:00:00:00:01 static
             set ip neighbor test0 192.0.2.202 02:00:00:00:00:01 static
             set ip neighbor test0 192.0.2.203 02:00:00:00:00:01 static",
        )?;
        p.ns.ip("link set e0 up")?;
        let mac = "lladdr 02:00:00:00:00:09 nud permanent dev e0";
        for n in 10..15 {
            p.ns.ip(&format!("neighbour add 192.0.2.{n} {mac}"))?;
        }
        let shown = |p: &mut Pair| p.lab.cli("show lcp");
        p.until("refused", |p| shown(p).contains("5 written neighbours of its twin"));
        assert_eq!(sync::counters(&p.lab.c).not_taken, 5);
        let has = |p: &Pair| {
            (10..15).filter(|n| p.has_neighbour([192, 0, 2, *n].into())).count()
        };
        p.lab.ok("set ip neighbor del test0 192.0.2.201");
        p.until("one taken", |p| has(p) == 1);
        p.lab.ok("set ip neighbor del test0 192.0.2.202");
        p.until("two taken", |p| has(p) == 2);
        assert!(shown(&mut p).contains("3 written neighbours of its twin: "));
        for n in 10..14 {
            p.ns.ip(&format!("neighbour del 192.0.2.{n} dev e0"))?;
        }
        p.until("the last one", |p| has(p) == 1 && p.has_neighbour([192, 0, 2, 14].into()));
        assert!(!shown(&mut p).contains("does not take"));
        // One that is tried again is refused in silence.
        assert_eq!(sync::counters(&p.lab.c).not_taken, 5);
        Ok(())
    }

    /// A host can make the kernel learn neighbours: these take no place of others in a full table.
    fn what_linux_has_learned_gives_way() {
        let mut p = Pair::new(
            "set interface ip address test0 192.0.2.1/24
             set ip neighbor-config ip4 limit 2 norecycle",
        )?;
        p.ns.ip("link set e0 up")?;
        let ours = [192, 0, 2, 1].into();
        for n in [2, 3] {
            let host = MacAddr([2, 0, 0, 0, 0, n]);
            p.lab.deliver(0, vec![Packet::arp_request(host, [192, 0, 2, n].into(), ours).build()]);
            p.until("heard", |p| p.has_neighbour([192, 0, 2, n].into()));
        }
        let mac = "lladdr 02:00:00:00:00:09 dev e0 nud";
        p.ns.ip(&format!("neighbour add 192.0.2.9 {mac} stale"))?;
        p.ns.ip(&format!("neighbour add 192.0.2.10 {mac} permanent"))?;
        p.until("written", |p| p.has_neighbour([192, 0, 2, 10].into()));
        let has = |p: &Pair, n| p.has_neighbour([192, 0, 2, n].into());
        assert!(!has(&p, 9) && (has(&p, 2) || has(&p, 3)));
        // The neighbour is known once there is room.
        p.lab.ok("set ip neighbor-config ip4 limit 100");
        p.ns.ip(&format!("neighbour replace 192.0.2.9 {mac} reachable"))?;
        p.until("room", |p| has(p, 9));
        Ok(())
    }

    fn borrowed_addresses_have_no_subnet() {
        let mut p = Pair::new("lcp lcp-sync on
                               set interface ip address test1 192.0.2.1/24
                               set interface unnumbered test0 use test1")?;
        p.until_linux("borrowed", "192.0.2.1/32");
        p.lab.ok("lcp lcp-sync-unnumbered off");
        p.until("none", |p| !p.linux().contains("192.0.2.1"));
        assert!(p.addresses().is_empty());
        Ok(())
    }

    /// The router answers requests of neighbours, which the kernel does not see: it has another MAC
    /// address from the router.
    fn a_neighbour_comes_back_with_another_mac_address() {
        let mut p = Pair::new(
            "lcp lcp-sync on
             set interface ip address test0 192.0.2.1/24
             set interface ip address test0 2001:db8::1/64",
        )?;
        p.until_linux("addresses", "2001:db8::1/64");
        for ip in ["192.0.2.2", "2001:db8::2"] {
            p.ns.ip(&format!("neighbour add {ip} lladdr 02:00:00:00:00:02 nud reachable dev e0"))?;
            p.until("a neighbour", |p| p.has_neighbour(ip.parse().unwrap()));
        }
        let host = MacAddr([2, 0, 0, 0, 0, 0x99]);
        let ask = Packet::arp_request(host, [192, 0, 2, 2].into(), [192, 0, 2, 1].into()).build();
        p.lab.deliver(0, vec![ask]);
        p.lab.ok("set ip neighbor test0 2001:db8::2 02:00:00:00:00:99");
        for ip in ["192.0.2.2", "2001:db8::2"] {
            p.until("the new address", |p| {
                let shown = p.ns.ip(&format!("neighbour show {ip} dev e0")).unwrap_or_default();
                shown.contains("02:00:00:00:00:99")
            });
        }
        Ok(())
    }

    /// A notice about a neighbour from before it came back with another MAC address is taken later:
    /// it does not undo what the router has learned since.
    fn an_old_notice_does_not_overrule_a_newer_neighbour() {
        let mut p = Pair::new(
            "lcp lcp-sync on
             set interface ip address test0 192.0.2.1/24
             set interface ip address test0 2001:db8::1/64",
        )?;
        p.until_linux("addresses", "2001:db8::1/64");
        let notices = |p: &Pair| -> u64 {
            sync::namespaces(&p.lab.c).iter().map(|n| n.counters.notices).sum()
        };
        let changes = Rc::new(RefCell::new(Vec::new()));
        let seen = changes.clone();
        p.lab.c.subscribe(move |_, change: &NeighborChange| {
            seen.borrow_mut().extend(change.mac.map(|mac| (change.ip, mac)));
        });
        for round in 0..16_u8 {
            for text in ["192.0.2.2", "2001:db8::2"] {
                let (ip, before): (IpAddr, u64) = (text.parse()?, notices(&p));
                let [old, new] = [0x10, 0x80].map(|n| MacAddr([2, 0, 0, 0, 0, n + round]));
                p.ns.ip(&format!("neighbour replace {ip} lladdr {old} nud stale dev e0"))?;
                // Nothing is taken here meanwhile.
                wait_until(WAIT_LIMIT, "the notice", || (notices(&p) > before).then_some(()))?;
                // Paced: the report waits then.
                std::thread::sleep(Duration::from_millis(5));
                p.lab.ok(&format!("set ip neighbor test0 {ip} {new}"));
                changes.borrow_mut().clear();
                p.lab.c.run_once(Some(Duration::from_millis(2)));
                p.until("the same in Linux", |p| {
                    let shown = p.ns.ip(&format!("neighbour show {ip} dev e0"));
                    shown.is_ok_and(|shown| shown.contains(&new.to_string()))
                });
                let undone = changes.borrow().contains(&(ip, old));
                assert!(!undone, "round {round}: {:?}", changes.borrow());
                let now = p.lab.c.state::<Neighbors>().borrow().find(p.phy(), ip);
                assert_eq!(now.and_then(|n| n.mac), Some(new));
            }
        }
        Ok(())
    }

    /// A change that the kernel refuses is ordered once, and again when something has changed.
    fn a_refused_order_is_not_repeated() {
        let mut p = Pair::new("")?;
        p.ns.set_sysctl("net/ipv6/conf/e0/disable_ipv6", "1")?;
        p.lab.ok("set interface ip address test0 2001:db8::1/64");
        p.lab.ok("lcp lcp-sync on");
        p.until("refused", |p| p.refused() > 0);
        let mut settled = |host| {
            p.ns.ip(&format!(
                "neighbour add 198.51.100.{host} lladdr 02:00:00:00:00:09 nud permanent dev e0"
            ))?;
            p.until("a neighbour", |p| p.has_neighbour([198, 51, 100, host].into()));
            anyhow::Ok(p.orders())
        };
        let orders = settled(200)?;
        assert_eq!(settled(201)?, orders);
        assert!(p.has("2001:db8::1/64"), "Linux does not want it away");
        p.ns.set_sysctl("net/ipv6/conf/e0/disable_ipv6", "0")?;
        p.ns.ip("link set e0 mtu 1400")?;
        p.until_linux("IPv6", "2001:db8::1/64");
        Ok(())
    }

    /// An order that the kernel refuses for a passing reason, of which it says nothing.
    fn a_refused_order_is_repeated_after_a_while() {
        let mut p = Pair::new("")?;
        p.ns.set_sysctl("net/ipv6/conf/e0/disable_ipv6", "1")?;
        p.lab.ok("set interface ip address test0 2001:db8::1/64\nlcp lcp-sync on");
        p.until("refused", |p| p.refused() > 0);
        p.ns.set_sysctl("net/ipv6/conf/e0/disable_ipv6", "0")?;
        p.until_linux("IPv6", "2001:db8::1/64");
        assert!(p.has("2001:db8::1/64"));
        Ok(())
    }

    /// Addresses from Linux go with their interface to another table, and stay in Linux where they
    /// make way for what is written.
    fn addresses_that_are_displaced_stay_in_linux() {
        let mut p = Pair::new("lcp lcp-sync on
                               ip table add 7
                               ip6 table add 7")?;
        p.ns.ip("address add 192.0.2.1/24 dev e0")?;
        p.ns.ip("address add 2001:db8::1/64 dev e0")?;
        p.until("found", |p| p.has("192.0.2.1/24") && p.has("2001:db8::1/64"));
        p.lab.ok("set interface ip table test0 7");
        p.lab.ok("set interface ip6 table test0 7");
        p.until("found again", |p| p.has("192.0.2.1/24") && p.has("2001:db8::1/64"));
        p.lab.ok("set interface ip table test0 0");
        p.until("found there, too", |p| p.has("192.0.2.1/24"));
        p.lab.ok("set interface ip address test1 192.0.2.2/24");
        assert!(!p.has("192.0.2.1/24"));
        p.until("refused", |p| sync::counters(&p.lab.c).not_taken == 1);
        assert!(p.linux().contains("192.0.2.1/24") && p.linux().contains("2001:db8::1/64"));
        // One that is deleted here is deleted there.
        p.lab.ok("set interface ip address del test0 2001:db8::1/64");
        p.until("gone", |p| !p.linux().contains("2001:db8::1"));
        Ok(())
    }

    /// Routing daemons reckon costs by it.
    fn a_twin_has_the_speed_of_its_interface() {
        let mut p = Pair::new("")?;
        let said = |p: &Pair| {
            let index = p.ns.link("e0").map_or(0, |link| link.index);
            p.ns.run(move || thalweg_netlink::ethtool::link_modes(index)).unwrap().0
        };
        for mbits in [25_000, 100, 25_000] {
            let phy = p.phy();
            interface::set_speed(&mut p.lab.c, phy, mbits * 1000).unwrap();
            p.until("the speed", |p| said(p) == Some(mbits));
        }
        p.ns.ip("link delete e0")?;
        p.until("the speed of the next twin", |p| said(p) == Some(25_000));
        Ok(())
    }

    /// Many changes of a link come to what the last one says.
    fn a_link_that_flaps_a_thousand_times_is_as_it_was_left() {
        let mut p = Pair::new("lcp lcp-sync on
                               set interface ip address test0 192.0.2.1/24
                               set interface ip address test0 2001:db8::1/64")?;
        p.until_linux("IPv6", "2001:db8::1/64");
        let flaps = |last: &str| -> Vec<String> {
            (0..1000)
                .flat_map(|_| ["down", "up"])
                .chain([last])
                .map(|word| format!("link set e0 {word}"))
                .collect()
        };
        p.ns.ip_batch(&flaps("down"))?;
        p.until("down", |p| !p.view().admin_up);
        p.ns.ip_batch(&flaps("up"))?;
        p.until("up", |p| p.view().admin_up && p.linux().contains("2001:db8::1/64"));
        assert_eq!(p.addresses().len(), 2);
        Ok(())
    }

    fn thousands_of_addresses_are_followed() {
        let count = sized(2_000, 10_000);
        let mut p = Pair::new("lcp lcp-sync on")?;
        let all = |verb: &str| -> Vec<String> {
            let address = |n: usize| format!("10.{}.{}.{}/32", n >> 16, n >> 8 & 255, n & 255);
            (0..count).map(|n| format!("address {verb} {} dev e0", address(n))).collect()
        };
        p.ns.ip_batch(&all("add"))?;
        p.until("all of them", |p| p.addresses().len() == count);
        // Linux has them: no order is needed.
        assert_eq!(p.orders(), 0);
        p.ns.ip_batch(&all("delete"))?;
        p.until("none", |p| p.addresses().is_empty());
        Ok(())
    }

    /// A burst is taken in slices, between which the main thread does other work.
    fn thousands_of_neighbours_hold_up_nothing() {
        let count = sized(4_000_u32, 20_000);
        let mut p = Pair::new("")?;
        p.ns.ip("link set e0 up")?;
        let address = |n: u32| format!("10.77.{}.{}", n >> 8, n & 255);
        let batch = |verb: &str| -> Vec<String> {
            let words = if verb == "add" { "lladdr 02:00:00:00:00:09 nud permanent" } else { "" };
            (0..count).map(|n| format!("neighbour {verb} {} {words} dev e0", address(n))).collect()
        };
        let all = |p: &Pair| -> Vec<bool> {
            let found = p.lab.c.state::<Neighbors>();
            let found = found.borrow();
            let is = |n| address(n).parse().is_ok_and(|ip| found.find(p.phy(), ip).is_some());
            (0..count).map(is).collect()
        };
        for (verb, there) in [("add", true), ("delete", false)] {
            // The main thread does nothing until the kernel has them all.
            p.ns.ip_batch(&batch(verb))?;
            let (start, mut longest) = (Instant::now(), Duration::ZERO);
            while !all(&p).iter().all(|is| *is == there) {
                assert!(start.elapsed() < WAIT_LIMIT, "waited too long");
                let began = processor_time();
                p.lab.c.run_once(Some(Duration::from_millis(2)));
                longest = longest.max(processor_time() - began);
            }
            assert!(longest < Duration::from_millis(100), "{verb}: {longest:?} at once");
        }
        Ok(())
    }

    /// A twin that Linux deletes, renames or moves away is made again, or followed.
    fn twins_are_deleted_renamed_and_moved() {
        let mut p = Pair::new("lcp lcp-sync on
                               set interface ip address test0 192.0.2.1/24")?;
        p.until_linux("IPv4", "192.0.2.1/24");
        p.ns.ip("link delete e0")?;
        p.until_linux("the twin again", "192.0.2.1/24");
        let other = Netns::new("other")?;
        p.ns.ip(&format!("link set e0 netns {}", other.descriptor_path().display()))?;
        p.until_linux("another twin", "192.0.2.1/24");
        p.until("the old one to go", |_| !other.ip("-br link").unwrap().contains("e0"));
        p.ns.ip("link set e0 down")?;
        p.ns.ip("link set e0 name twin")?;
        p.ns.ip("link set twin up")?;
        p.ns.ip("address add 198.51.100.1/24 dev twin")?;
        p.until("found", |p| p.has("198.51.100.1/24"));
        p.lab.ok("set interface ip address test0 203.0.113.1/24");
        p.until("passed", |p| p.ns.ip("address show dev twin").unwrap().contains("203.0.113.1/24"));
        // Another thread follows names.
        p.until("its name", |p| p.lab.cli("show lcp").contains("tap4096 twin"));
        p.lab.ok("lcp delete test0");
        p.until("nothing left", |p| !p.ns.ip("-br link").unwrap().contains("twin"));
        Ok(())
    }

    /// The interface takes frames to links on its twin, while these are up and have addresses.
    fn links_on_twins_have_mac_addresses_of_their_own() {
        let mut p = Pair::new("set interface secondary-mac-address test0 02:00:00:00:00:44 add")?;
        let macs = |p: &Pair| {
            let all = interface::secondary_macs(&p.lab.c, p.phy()).unwrap();
            all.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let (written, virtual_mac) = ("02:00:00:00:00:44", "00:00:5e:00:01:33");
        p.ns.ip(&format!("link add link e0 name v1 address {virtual_mac} type macvlan mode private"))?;
        p.ns.ip("link set e0 up")?;
        p.ns.ip("link set v1 up")?;
        p.ns.ip("link set e0 mtu 1400")?;
        p.until("the link to be seen", |p| p.view().mtu.l3 == 1400);
        assert_eq!(macs(&p), [written], "without an address it is no master");
        for _ in 0..2 {
            p.ns.ip("address add 192.0.2.100/32 dev v1")?;
            p.until("taken", |p| macs(p) == [virtual_mac, written]);
            p.ns.ip("link set v1 down")?;
            p.until("down", |p| macs(p) == [written]);
            p.ns.ip("link set v1 up")?;
            p.until("up", |p| macs(p) == [virtual_mac, written]);
            p.ns.ip("address delete 192.0.2.100/32 dev v1")?;
            p.until("no address", |p| macs(p) == [written]);
        }
        // A found address may equal a written one; the written one stays.
        p.ns.ip(&format!("link set v1 address {written}"))?;
        p.ns.ip("address add 192.0.2.100/32 dev v1")?;
        p.ns.ip("link add link e0 name v2 address 02:00:00:00:00:45 type macvlan mode private")?;
        p.ns.ip("address add 2001:db8::100/128 dev v2")?;
        p.ns.ip("link set v2 up")?;
        p.until("another one", |p| macs(p) == [written, "02:00:00:00:00:45"]);
        p.lab.ok("set interface secondary-mac-address test0 02:00:00:00:00:45 add");
        p.ns.ip("link delete e0")?;
        p.until_linux("the twin again", "e0");
        assert_eq!(macs(&p), [written, "02:00:00:00:00:45"]);
        p.lab.ok("set interface secondary-mac-address test0 02:00:00:00:00:45 del");
        p.ns.ip(&format!("link add link e0 name v1 address {virtual_mac} type macvlan mode private"))?;
        p.ns.ip("address add 192.0.2.100/32 dev v1")?;
        p.ns.ip("link set e0 up")?;
        p.ns.ip("link set v1 up")?;
        p.until("taken again", |p| macs(p) == [virtual_mac, written]);
        p.lab.ok("lcp delete test0");
        assert_eq!(macs(&p), [written]);
        Ok(())
    }

    /// Watching twins does not keep their namespace, and a new one of its name gets twins.
    fn a_namespace_goes_and_comes_back() {
        let name = format!("thalweg-lcp-{}", std::process::id());
        let mut ns = Netns::named(&name)?;
        let mut lab = Lab::of(&FEATURE).start();
        lab.ok("set interface ip address test0 192.0.2.1/24");
        lab.ok("lcp lcp-sync on");
        lab.ok(&format!("lcp create test0 host-if e0 netns {name}"));
        lab.ok("set interface state test0 down");
        for round in 0..2 {
            let mut p = Pair { lab, ns };
            p.until_linux("the address", "192.0.2.1/24");
            p.ns.ip(&format!("address add 198.51.100.{round}/32 dev e0"))?;
            p.until("found", |p| p.has(&format!("198.51.100.{round}/32")));
            Pair { lab, ns } = p;
            ns.remove();
            lab.until("nobody to watch", |lab| sync::namespaces(&lab.c).is_empty());
            let ip = lab.c.state::<Ip<u32>>();
            let sw_if = lab.sw_if(0);
            assert_eq!(ip.borrow().addresses(sw_if).len(), 1, "what was written stays");
            ns = Netns::named(&name)?;
        }
        let mut p = Pair { lab, ns };
        p.until_linux("the address", "192.0.2.1/24");
        // The interface is down, and so is the new twin.
        assert!(!p.linux().contains(",UP"), "{}", p.linux());
        Ok(())
    }
}
