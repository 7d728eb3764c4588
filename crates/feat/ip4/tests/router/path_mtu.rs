//! Path MTUs of addresses.

use crate::{bare, router, setup};
use thalweg_buffer::{GsoKind, Offload};
use thalweg_device::testing::ip4::{framed, icmp_error, ip, udp};
use thalweg_device::testing::{Lab, host_mac};
use thalweg_wire::ipv4::Ipv4View;

/// The lengths of the packets that have left by `test1` since the last call, in order.
fn lengths(lab: &mut Lab) -> Vec<usize> {
    let test1 = lab.sw_if(1);
    let length = |(sw_if, frame): (_, Vec<u8>)| {
        assert_eq!(sw_if, test1);
        let packet = Ipv4View::parse(&frame[14..]).expect("an IPv4 packet");
        assert_eq!(frame[..6], host_mac(1, 2).0);
        packet.total_len().into()
    };
    lab.sent().into_iter().map(length).collect()
}

#[test]
fn packets_above_the_path_mtu_are_cut_or_answered() {
    for workers in [1, 2] {
        let mut lab = setup().workers(workers).buffers(4096).start();
        lab.ok("ip route add 192.0.2.0/24 via 10.0.1.2");
        let to = |n: u8, len| udp(ip(0, 2), [192, 0, 2, n].into(), len);
        lab.ok("set ip pmtu 192.0.2.1 1000");
        lab.settle();
        lab.receive_packet(0, 2, to(1, 972));
        assert_eq!(lengths(&mut lab), [1000]);
        lab.receive_packet(0, 2, to(1, 973));
        assert_eq!(lengths(&mut lab), [996, 25]);
        assert_eq!(lab.count("ip4-path-mtu", "fragments sent"), 2);
        lab.receive_packet(0, 2, to(1, 973).dont_fragment());
        let error = icmp_error(0, 2, &lab.sent_one(0));
        assert_eq!((error.kind, error.code), (3, 4));
        assert_eq!(error.mtu, Some(1000));
        // Others are not concerned.
        lab.receive_packet(0, 2, to(2, 1200).dont_fragment());
        assert_eq!(lengths(&mut lab), [1228]);
        lab.ok("set ip pmtu 192.0.2.1 1300");
        lab.settle();
        lab.receive_packet(0, 2, to(1, 1200).dont_fragment());
        assert_eq!(lengths(&mut lab), [1228]);
        assert_eq!(lab.cli("show ip pmtu").trim(), "[0] [tbl:0] 192.0.2.1 pmtu:1300");
        lab.ok("set ip pmtu del 192.0.2.1");
        lab.settle();
        lab.receive_packet(0, 2, to(1, 1400).dont_fragment());
        assert_eq!(lengths(&mut lab), [1428]);
        assert!(!lab.cli("show interface features test1").contains("path-mtu"));
        lab.close();
    }
}

#[test]
fn a_gso_packet_is_cut_into_segments_first() {
    let mut lab = router();
    lab.ok("ip route add 192.0.2.0/24 via 10.0.1.2\nset ip pmtu 192.0.2.1 1000");
    lab.settle();
    let frame = |len| framed(0, 2, &udp(ip(0, 2), [192, 0, 2, 1].into(), len).build());
    let offload = |size| Offload {
        needs_csum: true,
        csum_start: 34,
        csum_offset: 6,
        gso: GsoKind::Udp,
        gso_size: size,
        ..Offload::default()
    };
    // Its segments suit the path.
    lab.receive_offload(0, frame(2400), offload(800));
    lab.settle();
    assert_eq!(lab.count("ip4-path-mtu", "fragments sent"), 0);
    lab.sent();
    lab.receive_offload(0, frame(2400), offload(1200));
    lab.settle();
    assert_eq!(lengths(&mut lab), [996, 252, 996, 252]);
    lab.close();
}

#[test]
fn a_path_mtu_is_one_of_a_table() {
    let mut lab = bare().start();
    lab.ok("ip table add 7\nset interface ip table test0 7\nset interface ip table test1 7");
    lab.ok(
        "set interface ip address test0 10.0.0.1/24\nset interface ip address test1 10.0.1.1/24",
    );
    lab.neighbor(1, ip(1, 2), host_mac(1, 2));
    let packet = || udp(ip(0, 2), ip(1, 2), 1100);
    lab.ok("set ip pmtu 10.0.1.2 600");
    lab.settle();
    lab.receive_packet(0, 2, packet());
    assert_eq!(lengths(&mut lab), [1128]);
    lab.ok("set ip pmtu 10.0.1.2 600 table 7");
    lab.settle();
    lab.receive_packet(0, 2, packet());
    assert_eq!(lengths(&mut lab), [596, 552]);
    for (words, why) in [
        ("10.0.1.2 67", "between 68 and 65534"),
        ("10.0.1.2 65535", "between 68 and 65534"),
        ("10.0.1.2 600 table 9", "no IPv4 table 9"),
        ("del 10.0.1.9", "no path MTU for 10.0.1.9"),
        ("10.0.1.2", "path MTU"),
    ] {
        let said = lab.cli(&format!("set ip pmtu {words}"));
        assert!(said.contains(why), "{words}: {said}");
    }
    // An interface that comes later looks at them, too, and takes nothing along.
    lab.cli("create sub-interfaces test1 7");
    assert!(lab.cli("show interface features test1.7").contains("ip4-path-mtu"));
    lab.ok("delete sub-interface test1.7");
    lab.close();
}
