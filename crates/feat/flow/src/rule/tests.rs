use super::key::{self, Words};
use super::*;
use proptest::prelude::*;
use thalweg_conntrack::State;
use thalweg_device::SwIfIndex;

/// Two ports.
struct Ports;

impl Names for Ports {
    fn number(&self, name: &str) -> Option<SwIfIndex> {
        ["port0", "port1"].iter().position(|p| *p == name).map(|n| SwIfIndex(n as u32 + 1))
    }
}

fn parse(text: &str) -> Rule {
    Rule::parse(text, &Ports).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn refused(text: &str) -> String {
    Rule::parse(text, &Ports).expect_err(text).to_string()
}

#[test]
fn the_four_rules_of_stateful_switching() {
    for text in [
        "priority=1,ip,ct_state=-trk,actions=ct(table=0)",
        "priority=1 ip ct_state=-trk actions=ct(table=0)",
        "'priority=1, ip, ct_state=-trk, action=ct(table=0)'",
    ] {
        let rule = parse(text);
        assert_eq!(rule.to_string(), "priority=1,ip,ct_state=-trk,actions=ct(table=0)");
    }
    let new = parse("priority=1,ip,ct_state=+trk+new,in_port=port0,actions=ct(commit),normal");
    let commit = Ct { commit: true, ..Ct::default() };
    assert_eq!(new.actions, [Action::Ct(commit), Action::Normal]);
    let mut words: Words = [0; super::key::WORDS];
    key::IN_PORT.set(&mut words, 1);
    key::DL_TYPE.set(&mut words, 0x800);
    let mut matches = new.matches.clone();
    matches.set_port(SwIfIndex(1));
    assert!(!matches.takes(&words));
    key::set_tracked(&mut words, State::TRACKED | State::NEW, 0, 0, 0);
    assert!(matches.takes(&words));
    key::IN_PORT.set(&mut words, 2);
    assert!(!matches.takes(&words));
    assert_eq!(parse("action=normal").priority, 32768);
    assert_eq!(parse("priority=0,actions=drop").actions, [Action::Drop]);
    assert!(parse("priority=2,arp,actions=normal").matches.is_within(&Match::default()));
}

#[test]
fn what_is_written_is_read_again() {
    for text in [
        "table=3,cookie=0x7,priority=9,tcp,tp_dst=80,ct_state=+est-rpl+trk,actions=output:port1",
        "priority=1,ip,nw_src=10.0.0.0/8,nw_dst=10.1.0.1,actions=resubmit(,4)",
        "priority=1,dl_vlan=7,dl_src=02:00:00:00:00:01,actions=in_port",
        "priority=1,udp,ct_zone=5,ct_mark=0x5/0xf,ct_label=0x1/0x1,actions=ct(commit,force,table=2,\
         zone=9,exec(set_field:0x5/0xf->ct_mark,set_field:0x1->ct_label))",
        "priority=1,icmp,icmp_type=8,icmp_code=0,actions=ct_clear,mod_nw_ttl:3,normal,output:port0",
        "priority=1,tcp,tcp_flags=+syn-ack,actions=mod_dl_dst:02:00:00:00:00:09,normal",
        "priority=1,arp,arp_op=1,arp_spa=10.0.0.1,actions=normal",
        "priority=1,ipv6,actions=note:00.11,normal",
        "priority=1,ipv6,ipv6_src=2001:db8::/32,ipv6_dst=::1/::ff,ipv6_label=0x5/0xff,nw_frag=first,\
         actions=set_field:fd00::1->ipv6_src,set_field:fd00::2->ipv6_dst,dec_ttl,normal",
        "priority=1,ipv6,actions=set_field:fd00::/ffff:ffff:ffff:ffff::->ipv6_src,normal",
        "priority=1,icmp6,icmp_type=136,nd_reserved=0x60000000,nd_options_type=2,actions=drop",
        "priority=1,icmp6,icmp_type=135,nd_target=fe80::1,nd_sll=02:00:00:00:00:01,actions=drop",
        "priority=1,icmp6,icmp_type=136,icmp_code=0,nd_target=fe80::/10,nd_tll=02:00:00:00:00:01,\
         actions=drop",
        "priority=1,tcp6,ipv6_dst=fd00::1,tp_dst=80,actions=ct(commit,table=1,\
         nat(dst=[fd00::2]-[fd00::3]:8080-8090,hash)),mod_tp_src:5",
        "priority=1,vlan_tci=0x1000/0x1000,actions=drop",
        "priority=1,ip,ct_state=+new+trk,ct_nw_proto=6,ct_nw_src=10.0.0.0/8,ct_nw_dst=10.0.0.1,\
         ct_tp_src=0x10/0xf0,ct_tp_dst=80,actions=drop",
        "priority=1,ipv6,ct_state=-inv+trk,ct_ipv6_src=fe80::/10,ct_ipv6_dst=::1/::ff,actions=drop",
        "priority=1,ct_state=+rpl,ct_nw_proto=58,ct_tp_src=128,actions=drop",
        "priority=1,dl_vlan=7,vlan_pcp=3,actions=strip_vlan,mod_vlan_vid:4095,mod_vlan_pcp:7,normal",
        "priority=1,vlan_vid=0x1000/0x1000,actions=push_vlan:0x88a8,mod_vlan_vid:7,normal",
        "priority=1,ip,nw_tos=184,nw_ecn=1,nw_ttl=9,nw_frag=later,actions=dec_ttl,mod_nw_ecn:2,normal",
        "priority=1,ip,ip_dscp=46,nw_frag=not_later,actions=set_field:10.0.0.0/255.0.0.0->nw_src,normal",
        "priority=1,arp,arp_sha=02:00:00:00:00:01,arp_tha=02:00:00:00:00:00/ff:00:00:00:00:00,actions=normal",
        "priority=1,actions=set_field:02:00:00:00:00:00/ff:00:00:00:00:00->eth_src,resubmit(port1,2)",
        "priority=1,actions=load:0x5->NXM_OF_ETH_DST[0..7],load:0x1->NXM_OF_ETH_SRC[47],resubmit:port0",
        "priority=1,tcp,actions=set_field:80/0xff->tcp_dst,load:0x3->NXM_OF_TCP_SRC[8..9],normal",
        "priority=1,udp,actions=set_field:8/0x38->ip_dscp,load:0x1->NXM_NX_IP_TTL[7],normal",
    ] {
        let rule = parse(text);
        assert_eq!(rule.to_string(), text);
        assert_eq!(parse(&rule.to_string()), rule);
    }
    let same = "priority=1,ip,actions=ct(commit,zone=1,exec(load:0x1->NXM_NX_CT_MARK[]))";
    assert!(parse(same).to_string().contains("exec(set_field:0x1->ct_mark)"));
    assert_eq!(parse("ip,actions=port1").actions, [Action::Output("port1".into())]);
    for (text, written) in [
        ("set_field:184->nw_tos,set_field:46->ip_dscp", "mod_nw_tos:184,mod_nw_tos:184"),
        ("set_field:2->nw_ecn,load:1->NXM_NX_IP_ECN[]", "mod_nw_ecn:2,mod_nw_ecn:1"),
        ("load:0xa000001->NXM_OF_IP_SRC[]", "mod_nw_src:10.0.0.1"),
        (
            "load:7->NXM_OF_VLAN_TCI[0..11],load:2->NXM_OF_VLAN_TCI[13..15]",
            "mod_vlan_vid:7,mod_vlan_pcp:2",
        ),
        ("load:46->NXM_OF_IP_TOS[2..7]", "mod_nw_tos:184"),
        ("load:80->OXM_OF_TCP_DST[0..15]", "mod_tp_dst:80"),
        ("set_field:32/224->nw_tos", "set_field:8/0x38->ip_dscp"),
        ("resubmit(in_port,3),goto_table:4", "resubmit(,3),resubmit(,4)"),
    ] {
        assert_eq!(parse(&format!("tcp,actions={text}")).actions_text(), written);
    }
    assert_eq!(
        parse("ip,nw_tos=184,actions=drop").matches,
        parse("ip,ip_dscp=46,actions=drop").matches
    );
    let tag = "dl_vlan=7,actions=pop_vlan,push_vlan:0x8100,set_field:4103->vlan_vid,set_field:2->vlan_pcp";
    assert_eq!(
        parse(tag).actions_text(),
        "strip_vlan,push_vlan:0x8100,mod_vlan_vid:7,mod_vlan_pcp:2"
    );
    assert_eq!(
        parse("vlan_vid=4103,actions=drop").matches,
        parse("dl_vlan=7,actions=drop").matches
    );
    assert_eq!(
        parse("ipv6,actions=set_field:fd00::1/64->ipv6_dst").actions_text(),
        "set_field:fd00::/ffff:ffff:ffff:ffff::->ipv6_dst"
    );
    let solicited = "icmp6,icmp_type=135,nd_target=::1,actions=drop";
    let other = "nd_target=::1,icmpv6_type=135,nw_proto=58,dl_type=0x86dd,actions=drop";
    assert_eq!(parse(solicited).matches, parse(other).matches);
    assert_eq!(parse("ip6,actions=drop").matches, parse("ipv6,actions=drop").matches);
    let original = "ct_state=+est+trk,ipv6,ct_nw_proto=6,ct_tp_dst=80,actions=drop";
    let other = "ct_tp_dst=80,ct_nw_proto=6,ct_state=+est+trk,ipv6,actions=drop";
    assert_eq!(parse(original).matches, parse(other).matches);
    // Fields may precede their prerequisites.
    let a = parse("tp_dst=80,tcp,actions=drop").matches;
    assert_eq!(a, parse("nw_proto=6,tp_dst=80,dl_type=0x0800,actions=drop").matches);
}

#[test]
fn wrong_rules_say_what_is_wrong() {
    for (text, part) in [
        ("priority=1,ip", "actions= is missing"),
        ("priority=70000,actions=drop", "`priority=70000`: a number up to 65535"),
        ("ct_state=+xyz,actions=drop", "flags such as +trk-new"),
        ("in_port=port9,actions=drop", "the name of an interface"),
        ("tp_dst=80,actions=drop", "write tcp, udp or sctp before it"),
        ("nw_src=10.0.0.1,actions=drop", "write ip or arp before it"),
        ("colour=red,actions=drop", "unknown field"),
        ("actions=ct(commit)", "match ip or ipv6"),
        ("ip,ct_state=+inv+trk,actions=ct(commit)", "cannot be committed"),
        ("ip,actions=ct(exec(set_field:1->ct_mark))", "require commit"),
        ("ip,actions=set_field:1->ct_mark", "outside of ct action"),
        ("ip,actions=ct(commit,exec(set_field:1->reg0))", "set_field:VALUE->ct_mark"),
        ("ip,actions=ct(nat(src=10.0.0.1))", "requires commit"),
        ("ip,actions=ct(commit,nat(to=10.0.0.1))", "nat(src=RANGE)"),
        ("ip,actions=mod_tp_src:5", "match tcp or udp"),
        ("actions=mod_nw_src:10.0.0.1", "match ip"),
        ("ip,actions=ct(commit", "missing closing bracket"),
        ("ip,actions=ct(alg=ftp,commit)", "not supported: application payload is not parsed"),
        ("ip,actions=ct(alg=ftp,commit)", "ct takes commit, force"),
        ("actions=meter:1,normal", "not supported: no meters"),
        ("actions=group:5", "not supported: no groups; several outputs make copies; known"),
        ("actions=FLOOD", "not supported: normal floods"),
        ("actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[]", "not supported: no registers"),
        ("actions=push_mpls:0x8847", "not supported: MPLS headers cannot be changed"),
        ("reg3=5,actions=drop", "not supported: no registers"),
        ("tun_metadata12=5,actions=drop", "not supported: no tunnels"),
        ("mpls,actions=drop", "not supported: MPLS headers are not parsed"),
        ("ip,ct_state=+trk+est,ct_ipv6_src=::1,actions=drop", "write ipv6 before it"),
        ("ct_state=+trk+est,ct_nw_src=10.0.0.1,actions=drop", "write ip before it"),
        ("ipv6,ct_ipv6_src=::1,actions=drop", "write ct_state=+trk-inv, or with one of +new"),
        ("ip,ct_state=+trk,ct_nw_proto=6,actions=drop", "write ct_state=+trk-inv, or"),
        ("ip,ct_state=+trk-est,ct_nw_dst=10.0.0.1,actions=drop", "write ct_state=+trk-inv, or"),
        ("ct_state=+trk+est,ct_tp_src=80,actions=drop", "write ct_nw_proto before it"),
        ("ct_state=+trk+est,ct_nw_proto=256,actions=drop", "a number up to 255"),
        ("ct_state=+trk+est,ct_nw_proto=6/7,actions=drop", "a number up to 255"),
        ("ct_state=+est,ct_nw_proto=6,ct_tp_dst=65536,actions=drop", "a number up to 0xffff"),
        ("icmp6,nd_reserved=1,actions=drop", "write icmp6,icmp_type=135 or"),
        ("icmp6,icmp_type=135,nd_reserved=1/1,actions=drop", "a number up to 0xffffffff"),
        ("icmp6,icmp_type=135,nd_options_type=256,actions=drop", "a number up to 255"),
        ("ip,ipv6_src=::1,actions=drop", "write ipv6 before it"),
        ("ipv6,ipv6_dst=10.0.0.1,actions=drop", "an IPv6 address, a prefix, or ADDRESS/MASK"),
        ("ipv6,ipv6_dst=::/129,actions=drop", "an IPv6 address, a prefix, or ADDRESS/MASK"),
        ("ipv6,ipv6_label=0x100000,actions=drop", "a number up to 0xfffff"),
        ("icmp6,nd_target=fe80::1,actions=drop", "write icmp6,icmp_type=135 or"),
        ("icmp6,icmp_type=135,nd_tll=02:00:00:00:00:01,actions=drop", "icmp_type=136 before it"),
        ("ipv6,actions=ct(commit,nat(src=10.0.0.1))", "match the family of nat's addresses"),
        ("ip,actions=ct(commit,nat(src=fd00::1))", "match the family of nat's addresses"),
        ("ipv6,actions=ct(commit,nat(src=[fd00::1]:0))", "IPv6 addresses in brackets"),
        ("ip,actions=set_field:fd00::1->ipv6_src", "the rule has to match ipv6"),
        ("ipv6,actions=set_field:fd00::1/129->ipv6_src", "an IPv6 address, ADDRESS/LENGTH"),
        ("ipv6,actions=mod_nw_src:10.0.0.1", "the rule has to match ip,"),
        ("arp,actions=dec_ttl", "the rule has to match ip or ipv6"),
        ("n_packets=5,actions=drop", "shown by flow dump"),
        ("ip,actions=set_field:5->reg1", "set_field takes eth_src"),
        ("ip,actions=push_vlan:0x800", "push_vlan:0x8100 or 0x88a8 expected"),
        ("ip,actions=mod_vlan_vid:4096", "a VLAN up to 4095"),
        ("ip,actions=mod_vlan_pcp:8", "from 0 to 7"),
        ("ip,actions=set_field:4103->vlan_vid", "has to match a tag"),
        ("dl_vlan=7,actions=pop_vlan,set_field:4103->vlan_vid", "has to match a tag"),
        ("dl_vlan=7,actions=set_field:7->vlan_vid", "4096 + the VLAN expected"),
        ("vlan_vid=7,actions=drop", "4096 + the VLAN"),
        ("ip,nw_tos=185,actions=drop", "a multiple of 4"),
        ("ip,nw_frag=some,actions=drop", "no, yes, first, later or not_later"),
        ("arp,nw_frag=yes,actions=drop", "write ip or ipv6 before it"),
        ("ip,arp_sha=02:00:00:00:00:01,actions=drop", "write arp before it"),
        ("actions=dec_ttl", "match ip"),
        ("ip,actions=dec_ttl(1,2)", "takes no arguments"),
        ("ip,actions=mod_nw_ecn:4", "up to 3"),
        ("actions=set_field:10.0.0.0/255.0.0.0->nw_src", "match ip"),
        ("ip,actions=load:1->NXM_OF_TCP_SRC[0..7]", "match tcp or udp"),
        ("ip,actions=load:256->NXM_OF_IP_SRC[0..7]", "fits into these bits"),
        ("ip,actions=load:1->NXM_OF_IP_SRC[30..32]", "bits of a single field"),
        ("ip,actions=load:1->NXM_OF_IP_SRC[7..0]", "bits of a single field"),
        ("ip,actions=load:1->NXM_OF_VLAN_TCI[]", "bits of a single field"),
        ("ip,actions=load:1->NXM_OF_VLAN_TCI[0..3]", "bits of a single field"),
        ("ip,actions=load:1->NXM_NX_REG0[]", "no registers"),
        ("ip,actions=load:1->NXM_OF_IP_SRC", "load:VALUE->FIELD[FIRST..LAST]"),
        ("ip,actions=load:1->NXM_NX_CT_MARK[]", "outside of ct action"),
        ("ip,actions=set_field:3->nw_tos", "a multiple of 4"),
        ("dl_vlan=7,actions=set_field:4103/0x1001->vlan_vid", "takes no mask"),
        ("ip,actions=resubmit(port9,1)", "the name of an interface"),
        ("ip,actions=resubmit(,255)", "a table from 0 to 254"),
        ("ip,actions=set_field:10.0.0.1->ct_nw_src", "set_field takes eth_src"),
        ("ip,actions=fly", "unknown action; known are normal, drop"),
        ("ip,actions=drop,normal", "drop must be the only action"),
        ("ip,actions=", "an action expected"),
        ("ip,actions=output:port7", "the name of an interface"),
        ("ip,idle_timeout=5,actions=drop", "rules do not time out"),
        ("table=255,actions=drop", "up to 254"),
        ("dl_src=02:00,actions=drop", "an Ethernet address"),
        ("tcp,tcp_flags=+bad,actions=drop", "+syn-ack"),
    ] {
        let e = refused(text);
        assert!(e.contains(part), "{text}: {e}");
    }
}

#[test]
fn seeds_are_read() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/seeds/flow_rule");
    for seed in std::fs::read_dir(seeds).unwrap() {
        let data = std::fs::read(seed.unwrap().path()).unwrap();
        assert!(Rule::parse(&String::from_utf8_lossy(&data), &Ports).is_ok());
        fuzz_rule(&data);
    }
}

#[test]
fn matches_within_others() {
    let m = |text: &str| Rule::parse_match(text, &Ports).unwrap().matches;
    assert!(m("tcp,tp_dst=80").is_within(&m("ip")));
    assert!(m("ip,nw_src=10.1.0.0/16").is_within(&m("ip,nw_src=10.0.0.0/8")));
    assert!(!m("ip").is_within(&m("tcp")));
    assert!(!m("ip,nw_src=11.1.0.0/16").is_within(&m("ip,nw_src=10.0.0.0/8")));
    assert!(Rule::parse_match("ip,actions=drop", &Ports).is_err());
}

/// Values, masks, fields and bits, most of which are valid together.
fn settings() -> impl Strategy<Value = String> {
    let number = || {
        prop_oneof![
            4 => (0u64..300).prop_map(|n| n.to_string()),
            1 => any::<u64>().prop_map(|n| format!("{n:#x}")),
            2 => any::<[u8; 4]>().prop_map(|[a, b, c, d]| format!("{a}.{b}.{c}.{d}")),
            2 => any::<[u8; 6]>().prop_map(|m| m.map(|byte| format!("{byte:02x}")).join(":")),
        ]
    };
    const NAMES: &[&str] = &[
        "eth_src",
        "dl_dst",
        "vlan_vid",
        "vlan_pcp",
        "nw_src",
        "ip_dst",
        "nw_tos",
        "ip_dscp",
        "nw_ecn",
        "nw_ttl",
        "tp_src",
        "tcp_dst",
        "NXM_OF_ETH_SRC",
        "NXM_OF_VLAN_TCI",
        "NXM_OF_IP_SRC",
        "OXM_OF_IPV4_DST",
        "NXM_OF_IP_TOS",
        "NXM_NX_IP_ECN",
        "NXM_NX_IP_TTL",
        "NXM_OF_TCP_SRC",
        "OXM_OF_IP_DSCP",
        "ct_mark",
        "reg0",
    ];
    let bits = prop_oneof![
        Just("[]".to_owned()),
        (0u32..64).prop_map(|n| format!("[{n}]")),
        (0u32..50, 0u32..20).prop_map(|(n, more)| format!("[{n}..{}]", n + more)),
        Just(String::new()),
    ];
    let mask = prop_oneof![Just(String::new()), number().prop_map(|mask| format!("/{mask}"))];
    (any::<bool>(), number(), mask, prop::sample::select(NAMES), bits).prop_map(
        |(load, value, mask, name, bits)| match load {
            true => format!("load:{value}->{name}{bits}"),
            false => format!("set_field:{value}{mask}->{name}"),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn fields_to_set_are_read_or_refused(text in settings()) {
        if let Ok(rule) = Rule::parse(&format!("tcp,dl_vlan=7,actions={text}"), &Ports) {
            let written = rule.to_string();
            prop_assert_eq!(&parse(&written), &rule, "{} is written as {}", text, written);
            prop_assert_eq!(parse(&written).to_string(), written);
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[a-z_=,() +/.:0-9>-]{0,60}", rest: String) {
        let _ = Rule::parse(&text, &Ports);
        let _ = Rule::parse(&format!("{text}{rest}"), &Ports);
        if let Ok(rule) = Rule::parse(&format!("ip,ct_state=+trk,actions={text}"), &Ports) {
            prop_assert_eq!(&parse(&rule.to_string()), &rule);
        }
    }
}
