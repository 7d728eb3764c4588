//! Path MTUs of addresses.

use crate::router;
use thalweg_device::testing::ip6::{framed, ip};
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv6::Icmp6View;
use thalweg_wire::ipv6::Ipv6View;

#[test]
fn packets_above_the_path_mtu_are_answered() {
    let mut lab = router();
    let to = |host, len| {
        let data = vec![7; len];
        framed(0, 2, &Packet::new().ipv6(ip(0, 2), ip(1, host)).udp(1, 2).payload(&data).build())
    };
    lab.ok(&format!("set ip pmtu {} 1300", ip(1, 2)));
    lab.settle();
    lab.receive(0, vec![to(2, 1252), to(3, 1400)]);
    assert_eq!(lab.sent().len(), 2);
    lab.receive(0, vec![to(2, 1253)]);
    let sent = lab.sent_one(0);
    let error = Ipv6View::parse(&sent[14..]).expect("an IPv6 packet");
    let error = Icmp6View::parse(error.payload()).expect("an ICMPv6 message");
    assert_eq!((error.kind(), error.code(), error.rest()), (2, 0, 1300), "packet too big");
    assert_eq!(lab.count("ip6-path-mtu", "ip6 path MTU exceeded"), 1);
    let said = lab.cli(&format!("set ip pmtu {} 1279", ip(1, 2)));
    assert!(said.contains("between 1280 and 65534"), "{said}");
    lab.ok(&format!("set ip pmtu del {}", ip(1, 2)));
    lab.settle();
    lab.receive(0, vec![to(2, 1400)]);
    assert_eq!(lab.sent().len(), 1);
    lab.close();
}
