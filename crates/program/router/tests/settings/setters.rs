//! Every command that sets something, and examples.

/// Objects that are there before a command is tried.
pub const PRELUDE: &str = "
    create packet-generator interface pg0
    create packet-generator interface pg1
    create loopback interface instance 3
    set interface mac address pg0 02:fe:00:00:00:10
    set interface mac address pg1 02:fe:00:00:00:11";

/// Commands that set something, each with lines that show it.
pub const SETTERS: &[(&str, &[&str])] = &[
    ("create loopback interface", &["create loopback interface instance 7 mac 02:00:00:00:07:07"]),
    (
        "create packet-generator interface",
        &[
            "create packet-generator interface pg5",
            "create packet-generator interface pg6 mode ip4",
            "create packet-generator interface pg7 hw-addr 02:00:00:00:07:07",
        ],
    ),
    (
        "create bridge-domain",
        &[
            "create bridge-domain 10",
            "create bridge-domain 10 learn 0 uu-flood 0 mac-age 5 learn-limit 100 bd-tag lab",
            "create bridge-domain 10 flood 0 forward 0",
            "create bridge-domain 10 arp-term 1 arp-ufwd 1",
            "create bridge-domain 10\ncreate bridge-domain 20\ncreate bridge-domain 10 del",
        ],
    ),
    (
        "set bridge-domain",
        &[
            "create bridge-domain 10\nset bridge-domain learn 10 disable\n\
             set bridge-domain forward 10 disable\nset bridge-domain flood 10 disable\n\
             set bridge-domain uu-flood 10 disable\nset bridge-domain mac-age 10 30\n\
             set bridge-domain learn-limit 10 7\nset bridge-domain tag 10 lab",
            "set bridge-domain default-learn-limit 50\ncreate bridge-domain 10",
            "set bridge-domain scan-delay 25",
            "create bridge-domain 10\nset bridge-domain arp term 10\n\
             set bridge-domain arp-ufwd 10\n\
             set bridge-domain arp entry 10 192.0.2.1 02:00:00:00:00:01\n\
             set bridge-domain arp entry 10 192.0.2.2 02:00:00:00:00:02\n\
             set bridge-domain arp entry 10 2001:db8::1 02:00:00:00:00:01\n\
             set bridge-domain arp entry 10 192.0.2.2 02:00:00:00:00:02 del",
            "create bridge-domain 10\n\
             set bridge-domain arp entry 10 192.0.2.1 02:00:00:00:00:01\n\
             set bridge-domain arp entry 10 del-all",
        ],
    ),
    (
        "bvi create",
        &[
            "bvi create",
            "bvi create mac 02:00:00:00:07:07 instance 7\nset interface l2 bridge bvi7 10 bvi",
        ],
    ),
    ("bvi delete", &["bvi create instance 1\nbvi create instance 2\nbvi delete bvi1"]),
    (
        "set interface l2 bridge",
        &[
            "set interface l2 bridge pg0 10\nset interface l2 bridge pg1 10 3",
            "set interface l2 bridge loop3 10 bvi\nset interface l2 bridge pg0 10\n\
             set interface ip address loop3 10.0.0.1/24\nset interface l2 bridge pg1 10 uu-fwd 2",
            "set interface l2 xconnect pg0 pg1\nset interface l2 bridge pg0 10\n\
             set interface l2 bridge pg0 20",
        ],
    ),
    (
        "l2fib add",
        &["set interface l2 bridge pg0 10\nl2fib add 02:00:00:00:00:01 10 pg0 static\n\
             l2fib add 02:00:00:00:00:02 10 pg0\nl2fib add 02:00:00:00:00:03 10 filter"],
    ),
    (
        "l2fib del",
        &["set interface l2 bridge pg0 10\nl2fib add 02:00:00:00:00:01 10 pg0 static\n\
             l2fib del 02:00:00:00:00:01 10"],
    ),
    (
        "create sub-interfaces",
        &[
            "create sub-interfaces pg0 100\ncreate sub-interfaces pg1 7-9\n\
             set interface state pg0 up\nset interface state pg0.100 up\n\
             set interface ip address pg0.100 10.0.0.1/24\nset interface mtu packet 1400 pg0.100",
            "create sub-interfaces pg0 1 default\ncreate sub-interfaces pg0 2 untagged\n\
             create sub-interfaces pg0 3 dot1q any\ncreate sub-interfaces pg0 4 dot1ad any",
            "create sub-interfaces pg0 5 dot1q 10 exact-match\n\
             create sub-interfaces pg0 11 dot1q 11\n\
             create sub-interfaces pg0 4294967295 dot1ad 12 inner-dot1q 4094 exact-match\n\
             create sub-interfaces pg0 13 dot1q 13 inner-dot1q 14\n\
             create sub-interfaces pg0 15 dot1ad 13 inner-dot1q any\n\
             set interface l2 xconnect pg0.13 pg1\nset interface l2 bridge pg0.15 10",
            "create sub-interfaces loop3 100\n\
             create sub-interfaces loop3 200 dot1ad 5 inner-dot1q 6 exact-match\n\
             set interface ip address loop3.100 10.0.0.1/24",
        ],
    ),
    (
        "set interface l2 tag-rewrite",
        &[
            "create sub-interfaces pg0 100\ncreate sub-interfaces pg0 200 dot1q 5 inner-dot1q 6\n\
             set interface l2 bridge pg0.100 10\nset interface l2 tag-rewrite pg0.100 pop 1\n\
             set interface l2 bridge pg0.200 10\nset interface l2 tag-rewrite pg0.200 pop 2",
            "create sub-interfaces pg0 100-101\nset interface l2 xconnect pg0.100 pg0.101\n\
             set interface l2 tag-rewrite pg0.100 translate 1-1 dot1q 7\n\
             set interface l2 tag-rewrite pg0.101 translate 1-2 dot1ad 8 9",
            "create sub-interfaces pg0 200 dot1q 5 inner-dot1q 6 exact-match\n\
             create sub-interfaces pg0 201 dot1q 5 inner-dot1q 7 exact-match\n\
             set interface l2 tag-rewrite pg0.200 translate 2-1 dot1q 7\n\
             set interface l2 tag-rewrite pg0.201 translate 2-2 dot1q 7 8",
            "set interface l2 tag-rewrite pg0 push dot1ad 100\n\
             set interface l2 tag-rewrite pg1 push dot1q 100 4094",
            "create sub-interfaces pg0 100\nset interface l2 bridge pg0.100 10\n\
             set interface l2 tag-rewrite pg0.100 push dot1q 7\n\
             set interface l2 tag-rewrite pg0.100 disable",
        ],
    ),
    (
        "delete sub-interface",
        &["create sub-interfaces pg0 100-102\nset interface ip address pg0.101 10.0.0.1/24\n\
             delete sub-interface pg0.101"],
    ),
    ("create sink interface", &["create sink interface", "create sink interface instance 9"]),
    ("delete loopback interface", &["delete loopback interface intfc loop3"]),
    ("delete packet-generator interface", &["delete packet-generator interface pg0"]),
    (
        "flow add",
        &[
            "flow add 1 priority=1,ip,ct_state=+trk+new,in_port=pg0,actions=ct(commit),normal\n\
             flow add 1 'priority=0 actions=drop'\nflow add 7 table=3,cookie=5,arp,actions=output:pg1",
            "flow add 1 'tcp6,ipv6_src=2001:db8::/32,ct_state=+trk+new,actions=ct(commit,nat(dst=[fd00::2]-[fd00::3]:80)),normal'\n\
             flow add 1 'icmp6,icmp_type=135,nd_target=fe80::1,actions=normal'\n\
             flow add 1 'ipv6,ipv6_label=5,actions=set_field:fd00::1->ipv6_dst,normal'",
        ],
    ),
    (
        "flow del",
        &["flow add 1 ip,actions=normal\nflow add 1 arp,actions=normal\nflow del 1 strict ip"],
    ),
    (
        "ip route",
        &[
            "ip route add 10.9.0.0/16 via 10.0.0.2 pg0 out-labels 18 17 via 10.0.1.2 pg1 weight 2 \
             out-labels implicit-null\nip route add 10.8.0.0/16 via 10.9.0.1 out-labels 100\nip route add 10.7.0.0/16 via via-label 33 \
             weight 2 out-labels 44 via via-label 34",
            "set interface ip address pg0 10.0.0.1/24\nip route add 10.9.0.0/16 via 10.0.0.2",
            "set interface ip address pg0 10.0.0.1/24\n\
             ip route add 10.9.0.0/16 via 10.0.0.2 pg0 weight 3 via 10.0.0.3 pg0",
            "ip route add 10.9.0.0/16 via 10.0.0.2 pg0 weight 3 preference 1 via 10.0.0.3",
            "ip route add 10.9.0.0/16 via pg0\nip route add 10.9.1.0/24 via drop",
            "ip route add 10.9.0.0/16 local\nip route add 10.8.0.0/16 unreachable\n\
             ip route add 10.7.0.0/16 prohibit",
            "ip table add 7\nip route add 10.9.0.0/16 table 7 via pg1",
            "set interface ip address pg0 10.0.0.1/24\nip route add 10.9.0.0/16 via 10.0.0.2\n\
             ip route add 10.8.0.0/16 via 10.9.0.1\nip route add 0.0.0.0/0 via 10.8.0.1",
            "ip route add 10.9.0.0/16 via pg0\nip route replace 10.9.0.0/16 via pg1",
            "set interface state local0 up\nip route add 10.9.0.0/16 via local0",
            "ip route add count 20 10.9.0.0/24 via pg0\nip route del 10.9.3.0/24",
            "ip table add 7\nip route add 10.9.0.0/16 table 7 via pg0\n\
             ip route add 10.8.0.0/16 via 10.9.0.1 next-hop-table 7",
            "ip table add 7\nip route add 10.9.0.0/16 via ip4-lookup-in-table 7\n\
             ip route add 10.8.0.0/16 table 7 via lookup in table 0\n\
             ip route add 10.7.0.0/16 via rx-ip4 pg1",
        ],
    ),
    (
        "ip6 table",
        &[
            "ip6 table add 7",
            "ip6 table add 7 name lab",
            "ip6 table add 7\nip6 table unreachables 7 on\nip6 table unreachables 0 on",
            "ip6 table add 7\nip6 table del 7\n\
             set interface ip address pg0 2001:db8::1/64\nip route add ::/0 via 2001:db8::2\n\
             ip route add 2001:db8:9::/48 via fe80::7 pg1\nip route add 2001:db8:8::/48 via drop",
        ],
    ),
    (
        "set interface ip6 table",
        &["ip6 table add 7\nset interface ip6 table pg0 7\n\
             set interface ip address pg0 2001:db8::1/64\n\
             set interface ip address pg1 2001:db8::1/64\n\
             set interface ip address pg1 fe80::7/128"],
    ),
    ("enable ip6 interface", &["enable ip6 interface pg0\nenable ip6 interface loop3"]),
    (
        "disable ip6 interface",
        &["enable ip6 interface pg0\nenable ip6 interface pg1\ndisable ip6 interface pg0"],
    ),
    ("adjacency counters", &["adjacency counters enable"]),
    (
        "ip table",
        &[
            "ip table add 7",
            "ip table add 7 name lab",
            "ip table add 0 name lab",
            "ip table add 7\nip table unreachables 7 on\nip table unreachables 0 on",
            "ip table add 7\nip table add 4294967295\nip table del 7",
        ],
    ),
    (
        "set arp proxy",
        &["ip table add 7\nset arp proxy start 10.0.0.1 end 10.0.0.9\n\
             set arp proxy table-id 7 start 10.1.0.1 end 10.1.0.1\n\
             set arp proxy start 10.2.0.1 end 10.2.0.9\nset arp proxy del start 10.2.0.1 end 10.2.0.9"],
    ),
    ("set ip arp proxy", &["ip table add 7\nset ip arp proxy 10.0.0.1 - 10.0.0.9 table-id 7"]),
    (
        "set interface ip directed-broadcast",
        &[
            "set interface ip address pg0 10.0.0.1/24\nset interface ip directed-broadcast pg0 enable\n\
             set interface ip directed-broadcast pg1 enable\n\
             set interface ip directed-broadcast pg1 disable",
        ],
    ),
    (
        "set interface tcp-mss-clamp",
        &["set interface tcp-mss-clamp pg0 ip4 enable ip4-mss 1400 ip6 disable\n\
             set interface tcp-mss-clamp pg1 ip4 rx ip4-mss 64\n\
             set interface tcp-mss-clamp loop3 ip4 tx ip4-mss 65535\n\
             set interface tcp-mss-clamp pg1 ip4 disable ip6 disable\n\
             set interface tcp-mss-clamp pg1 ip6 rx ip6-mss 1380\n\
             set interface tcp-mss-clamp pg0 ip6 enable ip6-mss 65535"],
    ),
    (
        "lcp default",
        &[
            "lcp default netns dataplane",
            "lcp default netns dataplane\nlcp default clear netns\nlcp default netns edge",
        ],
    ),
    ("lcp lcp-sync", &["lcp lcp-sync on"]),
    (
        "lcp lcp-sync-unnumbered",
        &[
            "lcp lcp-sync-unnumbered disable",
            "lcp lcp-sync-unnumbered on\nlcp lcp-sync-unnumbered off",
        ],
    ),
    ("lcp lcp-auto-subint", &["lcp lcp-auto-subint enable", "lcp lcp-auto-subint on"]),
    ("lcp fpm", &["lcp fpm enable", "lcp fpm ::1\nlcp fpm [fd00::1]:99\nlcp fpm 127.0.0.2"]),
    ("lcp fpm-hold", &["lcp fpm-hold 7"]),
    (
        "lcp ethertype",
        &["lcp ethertype enable lldp\nlcp ethertype enable 8809\nlcp ethertype disable 0x8809"],
    ),
    (
        "lcp osi-proto",
        &["lcp osi-proto enable 0x83\nlcp osi-proto enable 129\nlcp osi-proto disable 0x81"],
    ),
    (
        "set punt class",
        &["set punt class bgp 7\nset punt class ospf 8\nset punt class bfd 9\n\
             set punt class isis 10\nset punt class nd 11\nset punt class vrrp 12\n\
             set punt class ldp 20\nset punt class pim 21\nset punt class igmp 22\n\
             set punt class icmp 13\nset punt class dhcp 14\nset punt class lldp 15\n\
             set punt class tcp 16\nset punt class other 0\nset punt class arp 9\n\
             set punt class arp default"],
    ),
    (
        "ip punt redirect",
        &[
            "ip punt redirect add rx all via 10.0.0.2 pg0 via 10.0.0.3 pg1 weight 3",
            "set interface ip address pg0 10.0.0.1/24\n\
             ip punt redirect add rx pg1 via 10.0.0.2\nip punt redirect rx loop3 via pg0\n\
             ip punt redirect add rx pg0 via pg1\nip punt redirect del rx pg0",
            "ip table add 7\nip punt redirect rx all via 10.0.0.2 next-hop-table 7\n\
             ip punt redirect rx pg0 via lookup in table 7",
        ],
    ),
    (
        "ip6 punt redirect",
        &["ip6 punt redirect add rx all via fe80::2 pg0\nip6 punt redirect rx pg1 via 2001:db8::2"],
    ),
    (
        "set ip pmtu",
        &["ip table add 7\nip6 table add 7\nset ip pmtu 10.0.0.2 1400\n\
             set ip pmtu 10.0.0.2 68 table 7\nset ip pmtu 10.0.0.3 65534\n\
             set ip pmtu del 10.0.0.3\nset ip pmtu 2001:db8::2 1280\n\
             set ip pmtu 2001:db8::2 1400 table 7"],
    ),
    (
        "set interface proxy-arp",
        &["set interface proxy-arp pg0 enable\nset interface proxy-arp pg1 enable\n\
             set interface proxy-arp pg1 disable"],
    ),
    (
        "ip6 nd",
        &[
            "enable ip6 interface pg0\nip6 nd pg0 no ra-suppress",
            "enable ip6 interface pg0\n\
             ip6 nd pg0 ra-managed-config-flag ra-other-config-flag ra-lifetime 1800\n\
             ip6 nd pg0 ra-interval 20 10 ra-initial 2 8 ra-send-unicast ra-cease ra-suppress",
            "enable ip6 interface pg0\n\
             ip6 nd pg0 ra-suppress-link-layer ra-hop-limit 32 ra-preference high\n\
             ip6 nd pg0 ra-reachable-time 30000 ra-retransmit-time 1000\n\
             ip6 nd pg0 rdnss 2001:db8::53 dnssl lab.example\n\
             ip6 nd pg0 route 2001:db8:8::/48 lifetime infinite preference low\n\
             ip6 nd pg0 route 2001:db8:9::/48 preference medium",
            "enable ip6 interface pg0\nip6 nd pg0 prefix 2001:db8::/64\n\
             ip6 nd pg0 prefix 2001:db8:1::/64 3600 1800 off-link no-autoconfig no-advertise\n\
             ip6 nd pg0 prefix 2001:db8:2::/64 infinite decrement\n\
             ip6 nd pg0 prefix 2001:db8:3::/64 infinite 7",
            "enable ip6 interface pg0\nip6 nd pg0 ra-lifetime 1800\n\
             ip6 nd pg0 prefix 2001:db8::/64\nip6 nd pg0 no prefix 2001:db8::/64\n\
             ip6 nd pg0 no ra-lifetime",
            "enable ip6 interface pg0\nip6 nd pg0 ra-lifetime 1800\nip6 nd pg0 ra-default\n\
             ip6 nd pg0 prefix 2001:db8::/64 no-onlink",
        ],
    ),
    (
        "ip6 nd address autoconfig",
        &[
            "enable ip6 interface pg0\nip6 nd address autoconfig pg0 default-route\n\
             enable ip6 interface pg1\nip6 nd address autoconfig pg1",
            "enable ip6 interface pg0\nip6 nd address autoconfig pg0\n\
             ip6 nd address autoconfig pg0 disable",
        ],
    ),
    ("set ip6 dad", &["set ip6 dad enable", "set ip6 dad enable transmits 3 delay 0.25"]),
    (
        "set ip6 nd proxy",
        &["set ip6 nd proxy pg0 2001:db8::9\nset ip6 nd proxy pg1 2001:db8::9\n\
             set ip6 nd proxy pg1 2001:db8::a\nset ip6 nd proxy pg1 del 2001:db8::a"],
    ),
    ("enable ip4 interface", &["enable ip4 interface pg0\nenable ip4 interface loop3"]),
    (
        "disable ip4 interface",
        &["enable ip4 interface pg0\nenable ip4 interface pg1\ndisable ip4 interface pg0"],
    ),
    (
        "set conntrack",
        &[
            "set conntrack limit 5000\nset conntrack when-full recycle",
            "set conntrack tcp-seq-chk disable\nset conntrack checksums disable",
            "set conntrack events /tmp/thalweg-settings-test.events",
            "set conntrack zone-limit 5 10\nset conntrack zone-limit default 20",
            "set conntrack timeouts 5 udp_first=1 udp_single=2 tcp_established=30\n\
             set conntrack timeouts default icmp_first=9",
        ],
    ),
    (
        "set interface flow",
        &["flow add 1 ip,actions=normal\nset interface flow pg0 1\nset interface flow loop3 9"],
    ),
    (
        "set interface index",
        &[
            "set interface index loop9 40\ncreate loopback interface instance 9",
            "delete packet-generator interface pg0\ncreate loopback interface instance 4",
        ],
    ),
    (
        "set interface ip address",
        &[
            "set interface ip address pg0 10.0.0.1/24\nset interface ip address pg0 10.0.0.9/24",
            "set interface ip address loop3 10.255.0.1/32",
            "set interface ip address pg0 10.0.0.1/24\nset interface ip address pg0 10.1.0.1/24\n\
             set interface ip address pg0 10.2.0.1/24\nset interface ip address pg0 10.3.0.1/24\n\
             set interface ip address pg0 10.4.0.1/24\nset interface ip address pg0 10.5.0.1/24\n\
             set interface ip address pg0 10.6.0.1/24\nset interface ip address del pg0 10.2.0.1/24\n\
             set interface ip address pg0 10.7.0.1/24",
        ],
    ),
    (
        "set interface ip table",
        &[
            "ip table add 7\nset interface ip table pg0 7\nset interface ip address pg0 10.0.0.1/24\n\
             set interface ip address pg1 10.0.0.1/24",
        ],
    ),
    (
        "set interface l2 xconnect",
        &[
            "set interface l2 xconnect pg0 pg1\nset interface l2 xconnect pg1 pg0",
            "set interface l2 xconnect loop3 pg0",
        ],
    ),
    (
        "set interface l3",
        &[
            "set interface l2 xconnect pg0 pg1\nset interface l2 xconnect pg1 pg0\nset interface l3 pg0",
        ],
    ),
    ("set interface mac address", &["set interface mac address loop3 02:00:00:00:00:33"]),
    (
        "set interface secondary-mac-address",
        &["create sub-interfaces pg0 100\n\
             set interface secondary-mac-address pg0 02:00:00:00:00:34 add\n\
             set interface secondary-mac-address pg0.100 02:00:00:00:00:33 add\n\
             set interface secondary-mac-address loop3 02:00:00:00:00:35 add\n\
             set interface secondary-mac-address loop3 02:00:00:00:00:35 del"],
    ),
    (
        "set interface l2 learn",
        &["set interface l2 bridge pg0 10\nset interface l2 learn pg0 disable"],
    ),
    (
        "set interface l2 forward",
        &["create sub-interfaces pg0 100\nset interface l2 bridge pg0.100 10\n\
             set interface l2 forward pg0.100 disable"],
    ),
    (
        "set interface l2 flood",
        &["set interface l2 bridge pg0 10\nset interface l2 flood pg0 disable\n\
             set interface l2 bridge pg1 10\nset interface l2 flood pg1 disable\n\
             set interface l2 flood pg0 enable"],
    ),
    (
        "set interface l2 uu-flood",
        &["set interface l2 bridge loop3 10 bvi\nset interface l2 uu-flood loop3 disable"],
    ),
    (
        "set interface l2 arp-term",
        &["set interface l2 bridge pg1 10 uu-fwd\nset interface l2 arp-term pg1 disable"],
    ),
    (
        "set interface l2 efp-filter",
        &["create sub-interfaces pg0 100\nset interface l2 bridge pg0.100 10\n\
             set interface l2 efp-filter pg0.100\nset interface l2 efp-filter pg1 enable"],
    ),
    (
        "set interface mtu",
        &[
            "set interface mtu 1500 pg0",
            "set interface mtu packet 1400 pg0",
            "set interface mtu 8000 loop3\nset interface mtu packet 100 loop3",
            "set interface mtu ip4 1280 pg0\nset interface mtu ip6 1300 pg0\n\
             set interface mtu mpls 1400 pg0",
            "set interface mtu 40000 pg0",
        ],
    ),
    (
        "set interface mpls",
        &["mpls table add 0\nset interface mpls pg0 enable\nset interface mpls loop3 enable"],
    ),
    ("mpls table", &["mpls table add 0\nmpls table add 7 name core"]),
    (
        "mpls local-label",
        &[
            "mpls table add 0\nmpls local-label add 16 eos via 10.0.0.2 pg0 out-labels 17",
            "mpls table add 0\nmpls table add 5\nip table add 7\n\
             mpls local-label replace 16 non-eos via 10.0.0.2 pg0 out-labels 18 17 via pg1 weight 3 preference 2\n\
             mpls local-label add 17 eos via ip4-lookup-in-table 7\n\
             mpls local-label add 18 via mpls-lookup-in-table 5\n\
             mpls local-label add 19 eos table 5 via rx-ip4 pg1\n\
             mpls local-label add implicit-null eos table 5 via drop",
            "mpls table add 0\nmpls table add 5\nip table add 7\n\
             mpls local-label add 16 eos via 192.0.2.9 out-labels 21 17 uniform via 192.0.2.8 weight 2\n\
             mpls local-label add 17 eos table 5 via 192.0.2.9 next-hop-table 7 out-labels 18\n\
             mpls local-label add 18 192.0.2.0/24\n\
             mpls local-label add 18 198.51.100.0/24 table 7 mpls-table 5\n\
             mpls local-label add 19 eos via l2-input-on pg0\n\
             mpls local-label add 20 eos via l2-input-on pg1 pop-pw-cw\n\
             mpls local-label add 22 via via-label 23 out-labels 24 25 via via-label 26 weight 2",
            "mpls table add 0\nip6 table add 7\nip table add 8\n\
             mpls local-label add 16 eos via 2001:db8::2 pg0\n\
             mpls local-label add 17 eos via ip6-lookup-in-table 7 out-labels implicit-null uniform\n\
             mpls local-label add 18 eos via rx-ip6 pg1\n\
             mpls local-label add 19 eos via 2001:db8:9::1 next-hop-table 7\n\
             mpls local-label add 20 2001:db8:5::/48\n\
             mpls local-label add 21 2001:db8:5::/48 table 7\n\
             ip route add 2001:db8:5::/48 table 7 via 192.0.2.9 next-hop-table 8 out-labels 21\n\
             ip route add 2001:db8:5::/48 via 192.0.2.9 out-labels 22 ttl 9 exp 5 23",
        ],
    ),
    (
        "mpls tunnel",
        &[
            "mpls tunnel add via 10.0.0.2 pg0 out-labels 17 18",
            "mpls tunnel add mpls-tunnel5 l2-only control-word via 192.0.2.9 out-labels 17\n\
             mpls tunnel add mpls-tunnel7 l2-only via 10.0.0.2 pg0 out-labels 17\n\
             mpls tunnel set mpls-tunnel7 via 10.0.0.3 pg0 out-labels 18 uniform weight 3 preference 2\n\
             mpls tunnel add mpls-tunnel7 via mpls-tunnel5 out-labels 19\n\
             mpls tunnel add mpls-tunnel7 via via-label 40 out-labels 41\n\
             set interface state mpls-tunnel7 up\nset interface l2 xconnect mpls-tunnel7 pg1\n\
             set interface tag mpls-tunnel5 wire",
        ],
    ),
    ("set interface promiscuous", &["set interface promiscuous on pg0"]),
    (
        "set interface unnumbered",
        &[
            "set interface unnumbered pg0 use loop3\nset interface unnumbered loop3 use pg1",
            "set interface unnumbered pg0 use pg1\nset interface unnumbered pg0 use local0\n\
             set interface unnumbered local0 use pg0\nset interface ip address pg0 10.0.0.1/24",
            "set interface unnumbered pg0 use pg1\nset interface unnumbered pg1 use loop3\n\
             set interface unnumbered del pg0",
        ],
    ),
    (
        "set interface state",
        &[
            "set interface state pg0 up\nset interface state loop3 up",
            "set interface state local0 up",
        ],
    ),
    ("set interface tag", &["set interface tag pg0 lab\nset interface tag loop3 yes"]),
    (
        "set ip neighbor",
        &["set interface ip address pg0 10.0.0.1/24\n\
             set ip neighbor pg0 10.0.0.2 02:00:00:00:00:02 static\n\
             set ip neighbor pg0 10.0.0.3 02:00:00:00:00:03 static no-fib-entry\n\
             set ip neighbor pg1 10.0.0.2 02:00:00:00:00:05 static"],
    ),
    (
        "set ip neighbor-config",
        &[
            "set ip neighbor-config ip4 limit 100 age 30 recycle",
            "set ip neighbor-config ip4 age 0",
            "set ip neighbor-config ip4 interface-limit 50",
            "set ip neighbor-config ip6 limit 100 age 30",
        ],
    ),
    ("metrics", &["metrics listen 127.0.0.1:0"]),
    (
        "nat44 plugin",
        &[
            "nat44 plugin enable sessions 1000",
            "nat44 plugin enable sessions 1000 inside-vrf 3 outside-vrf 4\n\
             nat44 add static mapping tcp local 10.0.0.2 80 external 192.0.2.1 80\n\
             nat44 add static mapping tcp local 10.0.0.2 80 external 192.0.2.1 81 vrf 0",
        ],
    ),
    (
        "nat44 add address",
        &[
            "nat44 add address 192.0.2.1 - 192.0.2.9\nnat44 add address 192.0.2.20 tenant-vrf 7\n\
             nat44 add address 192.0.2.1 twice-nat",
            "nat44 add address 192.0.2.1 - 192.0.2.9\nnat44 add address 192.0.2.4 del",
        ],
    ),
    (
        "nat44 add interface address",
        &[
            "nat44 add interface address pg0",
            "nat44 add interface address pg1 twice-nat",
            "nat44 add interface address pg1 twice-nat\nnat44 add interface address pg1",
        ],
    ),
    (
        "nat44 add static mapping",
        &[
            "nat44 add static mapping tcp local 10.0.0.2 80 external 192.0.2.1 8080 vrf 3",
            "nat44 add static mapping tcp local 10.0.0.2 80 external 192.0.2.1 8080 tag lab",
            "nat44 add static mapping icmp local 10.0.0.2 7 external 192.0.2.1 8",
            "nat44 add static mapping local 10.0.0.2 external 192.0.2.1\n\
             nat44 add static mapping udp local 10.0.0.2 53 external pg1 53 out2in-only",
            "nat44 add static mapping tcp local 10.0.0.2 80 external 192.0.2.1 80 twice-nat\n\
             nat44 add static mapping tcp local 10.0.0.2 82 external 192.0.2.1 82 twice-nat exact 10.9.9.9\n\
             nat44 add static mapping tcp local 10.0.0.2 81 external 192.0.2.1 81 self-twice-nat",
        ],
    ),
    (
        "nat44 add identity mapping",
        &[
            "nat44 add identity mapping 10.0.0.2 icmp 7 vrf 5",
            "nat44 add identity mapping 10.0.0.2 tcp 80 tag 'in the lab'",
            "nat44 add identity mapping 10.0.0.2 tcp 80\nnat44 add identity mapping external pg0 udp 9",
        ],
    ),
    (
        "nat44 add load-balancing static mapping",
        &[
            "nat44 add load-balancing static mapping protocol tcp external 192.0.2.1:80 \
             local 10.0.0.2:8080 probability 30 local 10.0.0.3:8080 vrf 4 probability 70 affinity 60",
            "nat44 add load-balancing static mapping protocol udp external 192.0.2.1:53 \
             local 10.0.0.2:53 probability 50 local 10.0.0.3:53 probability 50 out2in-only",
            "nat44 add load-balancing static mapping protocol tcp external 192.0.2.1:81 \
             local 10.0.0.2:81 probability 50 local 10.0.0.3:81 probability 50 twice-nat tag lab",
            "nat44 add load-balancing static mapping protocol tcp external 192.0.2.1:82 \
             local 10.0.0.2:82 probability 50 local 10.0.0.3:82 probability 50 self-twice-nat",
        ],
    ),
    (
        "nat44 add load-balancing back-end",
        &[
            "nat44 add load-balancing static mapping protocol tcp external 192.0.2.1:80 \
             local 10.0.0.2:8080 probability 30\n\
           nat44 add load-balancing back-end protocol tcp external 192.0.2.1:80 \
             local 10.0.0.3:8080 vrf 4 probability 70",
            "nat44 add load-balancing static mapping protocol udp external 192.0.2.1:53 \
             local 10.0.0.2:53 probability 30\n\
           nat44 add load-balancing back-end protocol udp external 192.0.2.1:53 \
             local 10.0.0.3:53 probability 70",
        ],
    ),
    ("nat44 forwarding", &["nat44 forwarding enable"]),
    ("nat mss-clamping", &["nat mss-clamping 1400"]),
    (
        "nat addr-port-assignment-alg",
        &[
            "nat addr-port-assignment-alg map-e psid 10 psid-offset 6 psid-len 6",
            "nat addr-port-assignment-alg port-range 2000 - 3999",
        ],
    ),
    (
        "set nat44 session limit",
        &["set nat44 session limit 100 vrf 3\nset nat44 session limit 9 per-host"],
    ),
    ("nat44 vrf table", &["nat44 vrf table add 7\nnat44 vrf table add 8\nnat44 vrf table del 8"]),
    (
        "nat44 vrf route",
        &["nat44 vrf table add 7\nnat44 vrf route add table 7 9\nnat44 vrf route add table 7 0\n\
             nat44 vrf table add 8\nnat44 vrf route add table 8 7\nnat44 vrf route add table 7 8\n\
             nat44 vrf route del table 7 0"],
    ),
    (
        "nat44 log",
        &[
            "nat44 log syslog 127.0.0.1:9 rate 5",
            "nat44 log ipfix 127.0.0.1:9",
            "nat44 log ipfix 127.0.0.1:9 domain 7 src-port 4739 rate 5",
            "nat44 log file /tmp/thalweg-settings-test.log",
        ],
    ),
    (
        "nat ipfix logging",
        &[
            "nat44 log ipfix 127.0.0.1:9\nnat ipfix logging domain 7 src-port 4740",
            "nat44 log ipfix 127.0.0.1:9 rate 5\nnat ipfix logging disable\nnat ipfix logging enable",
            "nat44 log ipfix 127.0.0.1:9\nnat ipfix logging disable",
        ],
    ),
    ("set nat workers", &["set nat workers 0", "set nat workers 0\nset nat workers all"]),
    ("set nat44 table-full", &["set nat44 table-full refuse"]),
    (
        "nat44 save",
        &[
            "nat44 plugin enable sessions 1000\nnat44 save /tmp/no-such-sessions every 86400 restore",
        ],
    ),
    (
        "set nat timeout",
        &["set nat timeout udp 30 tcp-established 100", "set nat timeout icmp 7 tcp-transitory 9"],
    ),
    (
        "set interface nat44",
        &[
            "set interface nat44 in pg0 out pg1",
            "set interface nat44 in pg0 out pg0",
            "set interface nat44 in pg0 out pg1 output-feature",
        ],
    ),
    (
        "sflow agent-address",
        &[
            "sflow agent-address 192.0.2.9",
            "sflow agent-address auto dev lo prefer 10.0.0.0/8 exclude 127.0.0.0/8",
        ],
    ),
    (
        "sflow datagram-bytes",
        &[
            "sflow datagram-bytes 1200",
            "sflow datagram-bytes 200\nsflow header-bytes 256",
            "sflow header-bytes 64\nsflow datagram-bytes 65507",
        ],
    ),
    (
        "set punt limit",
        &[
            "set punt limit ip4-no-udp-listener 7",
            "set punt limit ip4-unknown-protocol 0\nset punt limit ip4-icmp-message 4294967295",
            "set punt limit ip4-no-udp-listener default\nset punt limit ip4-no-udp-listener 9",
        ],
    ),
    (
        "set punt",
        &[
            "set punt udp 53\nset punt ipv6 udp all\nset punt ipv4 all",
            "set punt 0\nset punt 65535\nset punt ipv6 9\nset punt ipv6 del 9",
        ],
    ),
    ("sflow host-interval", &["sflow host-interval 0"]),
    ("sflow sub-agent", &["sflow sub-agent 7"]),
    ("sflow uuid", &["sflow uuid 5FD8A3F0-7d0c-4a3e-9a52-1c1e3b1f0a77"]),
    (
        "sflow collector",
        &[
            "sflow collector add 127.0.0.1 port 16343\nsflow collector add ::1\nsflow collector add 127.0.0.2",
            "sflow collector add 127.0.0.1 port 7 namespace lab",
            "sflow collector add localhost port 7000 dev lo\nsflow collector add fe80::1%lo port 7",
        ],
    ),
    (
        "sflow enable-disable",
        &[
            "sflow enable-disable pg0\nsflow enable-disable loop3 rate 500",
            "sflow enable-disable pg0 rate 0",
            "sflow enable-disable pg0 rate auto\nsflow enable-disable pg1 rate auto",
            "sflow enable-disable pg0 rate 9\nsflow enable-disable pg0 rate default",
            "sflow enable-disable pg0 enable\nsflow enable-disable pg0 disable\nsflow enable-disable pg1",
        ],
    ),
    ("sflow direction", &["sflow direction tx", "sflow enable-disable pg0\nsflow direction both"]),
    ("sflow sub-interfaces", &["sflow sub-interfaces enable"]),
    (
        "sflow drop-monitoring",
        &["sflow drop-monitoring enable", "sflow drop-monitoring disable limit 5"],
    ),
    ("sflow netlink", &["sflow netlink disable", "sflow netlink auto group 7 8"]),
    ("sflow header-bytes", &["sflow header-bytes 64", "sflow header-bytes 256"]),
    ("sflow polling-interval", &["sflow polling-interval 30", "sflow polling-interval 1"]),
    (
        "sflow sampling-rate",
        &[
            "sflow sampling-rate 1000",
            "sflow sampling-rate 10",
            "sflow sampling-rate 0",
            "sflow sampling-rate 7 speed 10G\nsflow sampling-rate 8 speed 2500M",
        ],
    ),
];

/// Commands that set something, but need a device of the kernel: `tests/smoke` has them.
pub const WITH_A_DEVICE: &[&str] = &[
    "create host-interface",
    "create tap",
    "delete host-interface",
    "delete tap",
    "lcp create",
    "lcp delete",
    "set host-interface",
    "set interface rx-mode",
    "set interface rx-placement",
];

/// Commands that set nothing which could last, and why.
pub const ACTIONS: &[(&str, &str)] = &[
    ("packet-generator ", "a test is started, and ends"),
    ("config ", "works on the whole"),
    ("show ", "looks"),
    ("flow dump", "looks"),
    ("lcp resync", "lists the kernel's routes again"),
    ("api trace", "requests are kept, or done again"),
    ("clear ", "forgets what was counted or learned"),
    ("l2fib flush-mac", "forgets what was learned"),
    ("sflow agent-config", "takes several settings at once, which have commands of their own"),
    ("pcap trace", "packets are captured, once"),
    ("trace ", "the next packets are traced, and some of them shown"),
    ("classify ", "chooses packets for a trace or capture, once"),
    ("set trace timestamp-format", "how traces are printed"),
    ("set clock adjust", "moves a clock, which begins again with the router"),
    ("test ", "tests something, once"),
    ("lcp param", "words of VPP, of which `off' is what holds"),
    ("buffer metadata tracking", "answers that there is none"),
    ("debug ", "answers that there is nothing"),
    ("event-logger ", "answers that there is none"),
    ("interface collect detailed-stats", "answers that all interfaces do"),
    ("pcap dispatch trace", "packets are captured, once"),
    ("ping", "asks"),
    ("arping", "asks"),
    ("set interface l2 tag-rewrite", "says what is so anyway"),
    ("nat44 restore", "brings back what packets have begun"),
    ("nat44 del session", "ends what packets have begun"),
    ("set nat frame-queue-nelts", "agrees to the length that queues have, or refuses"),
    ("set ip neighbor-advertise", "packets are sent"),
];
