//! Tenants in separate routing tables with overlapping addresses share an outside interface.

use crate::nat::{FAR, Nat, SHARED, echo, tcp, udp};
use crate::setup;
use thalweg_device::testing::host_mac;
use thalweg_device::testing::ip4::ip;
use thalweg_wire::icmpv4::{self, IcmpRepr};
use thalweg_wire::ipv4::Ipv4View;

const SYN: u8 = 2;
const ACK: u8 = 16;

/// `test0` and `test2` are the insides of two tenants, `test1` is outside.
fn tenants(workers: usize) -> Nat {
    let mut lab = setup().workers(workers).start();
    let [a, b, c, d, e, f] = host_mac(0, 2).0;
    let mac = format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
    let [a, b, c, d, e, f] = host_mac(2, 2).0;
    let other = format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
    lab.ok("set interface ip address del test0 all\n\
         set interface ip address del test2 all\n\
         ip table add 7\n\
         ip table add 8\n\
         set interface ip table test0 7\n\
         set interface ip table test2 8\n\
         set interface ip address test0 10.0.0.1/24\n\
         set interface ip address test2 10.0.0.1/24\n\
         ip route add 198.51.100.0/24 via 10.0.1.2 test1\n\
         ip route add 198.51.100.0/24 table 7 via 10.0.1.2 test1\n\
         ip route add 198.51.100.0/24 table 8 via 10.0.1.2 test1\n\
         nat44 plugin enable sessions 1000\n\
         nat44 add address 192.0.2.1\n\
         set interface nat44 in test0 out test1\n\
         set interface nat44 in test2");
    lab.ok(&format!(
        "set ip neighbor test0 10.0.0.2 {mac} static\nset ip neighbor test2 10.0.0.2 {other} static"
    ));
    lab.c.sync();
    Nat { lab }
}

#[test]
fn tenants_have_the_same_addresses() {
    for workers in [1, 2] {
        let mut n = tenants(workers);
        let host = (ip(0, 2), 5000);
        let mut outside = Vec::new();
        for tenant in [0, 2] {
            let out = n.one(tenant, 1, tcp(host, (FAR, 80), SYN));
            assert_eq!((out.src(), out.dst()), (SHARED, FAR));
            outside.push(out.ports().0);
        }
        assert_ne!(outside[0], outside[1]);
        for (tenant, port) in [0, 2].into_iter().zip(outside) {
            // Packets come often enough to take the fast path.
            for flags in [SYN | ACK, ACK, ACK] {
                let back = n.one(1, tenant, tcp((FAR, 80), (SHARED, port), flags));
                assert_eq!((back.dst(), back.ports()), (host.0, (80, 5000)));
                n.one(tenant, 1, tcp(host, (FAR, 80), ACK));
            }
            let ping = n.one(tenant, 1, echo(host.0, FAR, 9));
            assert_eq!(ping.src(), SHARED);
            // An ICMP error reaches the sender of the packet.
            let sent = n.one(tenant, 1, udp(host, (FAR, 53)));
            let mut error = vec![0; 600];
            let view = Ipv4View::parse(&sent.bytes[14..]).unwrap();
            let len = icmpv4::emit_error(IcmpRepr::unreachable(3), FAR, &view, &mut error).unwrap();
            let out = n.pass_all(1, vec![error[..len].to_vec()]);
            assert_eq!((out.len(), out[0].port, out[0].dst()), (1, tenant, host.0));
        }
        assert_eq!(n.sessions().len(), 6);
        n.close();
    }
}

/// Fragments follow the first one, including those that arrive before it.
#[test]
fn fragments_of_tenants() {
    let mut n = tenants(1);
    let host = (ip(0, 2), 5000);
    for tenant in [0, 2] {
        let port = n.one(tenant, 1, udp(host, (FAR, 53))).ports().0;
        let whole = udp((FAR, 53), (SHARED, port)).payload(&[7; 64]).build();
        assert_eq!(whole.len(), 92);
        let piece = |offset: usize, more: bool| {
            let mut data = whole[..20].to_vec();
            data.extend(&whole[20 + offset..if more { 60 } else { 92 }]);
            let total = (data.len() as u16).to_be_bytes();
            data[2..4].copy_from_slice(&total);
            data[4..6].copy_from_slice(&[9, tenant]);
            let field = (offset as u16 / 8) | if more { 0x2000 } else { 0 };
            data[6..8].copy_from_slice(&field.to_be_bytes());
            data[10..12].fill(0);
            let header: [u8; 20] = data[..20].try_into().unwrap();
            let sum = thalweg_wire::checksum::ipv4_header(&header);
            data[10..12].copy_from_slice(&sum.to_be_bytes());
            data
        };
        let out = n.pass_all(1, vec![piece(40, false), piece(0, true)]);
        assert_eq!(out.len(), 2);
        assert!(out.iter().all(|o| o.port == tenant && o.dst() == host.0), "{out:?}");
    }
    n.close();
}
