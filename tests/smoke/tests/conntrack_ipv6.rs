//! Tracking and translation of IPv6 between real kernels, and Open vSwitch doing the same.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use thalweg_smoke::{Config, Ovs, OvsOptions, Router};
use thalweg_testkit::{
    IperfOptions, Lab, LabOptions, Middle, Offloads, PingOptions, Side, accept, connect, iperf3,
    lab_test, ping,
};

use crate::throughput::WORKING_BITS_PER_S;

const LIMIT: Duration = thalweg_testkit::WAIT_LIMIT;
/// Time that nothing may come where nothing is expected.
const SILENCE: Duration = Duration::from_millis(500);

const LEFT: Ipv6Addr = host(2);
const RIGHT: Ipv6Addr = host(3);
/// The left host's address at the right one, if translated.
const SHARED: Ipv6Addr = host(0x100);

const fn host(n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, n)
}

/// The left side opens connections; neighbour discovery and errors about them get through. `IN` is
/// the left port.
const TRACKING: &str = "\
priority=3,icmp6,icmp_type=135,actions=normal
priority=3,icmp6,icmp_type=136,actions=normal
priority=1,ipv6,ct_state=-trk,actions=ct(table=0)
priority=1,ipv6,ct_state=+trk+new,in_port=IN,actions=ct(commit),normal
priority=1,ipv6,ct_state=+trk+est,actions=normal
priority=1,icmp6,ct_state=+trk+rel,actions=normal
priority=0,actions=drop
";

/// The same, and the left side is hidden.
const TRANSLATING: &str = "\
priority=3,icmp6,icmp_type=135,actions=normal
priority=3,icmp6,icmp_type=136,actions=normal
priority=1,ipv6,actions=ct(table=1,nat)
priority=0,actions=drop
table=1,priority=1,ipv6,ct_state=+trk+new,in_port=IN,actions=ct(commit,nat(src=2001:db8:1::100)),normal
table=1,priority=1,ipv6,ct_state=+trk+est,actions=normal
table=1,priority=1,ipv6,ct_state=+trk+rel,actions=normal
";

/// The same, and rules distinguish what belongs to connections by who opened them. In Open vSwitch
/// 3.1, fragments do not match such rules.
const ORIGINALS: &str = "\
priority=3,icmp6,icmp_type=135,actions=normal
priority=3,icmp6,icmp_type=136,actions=normal
priority=1,ipv6,actions=ct(table=1,nat)
priority=0,actions=drop
table=1,priority=1,ipv6,ct_state=+trk+new,in_port=IN,actions=ct(commit,nat(src=2001:db8:1::100)),normal
table=1,priority=2,ipv6,ct_state=+trk+est,ct_ipv6_src=2001:db8:1::2,ct_ipv6_dst=2001:db8:1::3/ffff::ff,ct_nw_proto=6,ct_tp_dst=20000/0xfff0,actions=normal
table=1,priority=2,ipv6,ct_state=+trk+est,nw_frag=yes,actions=normal
table=1,priority=2,icmp6,ct_state=+trk+est,ct_nw_proto=58,ct_tp_src=128,ct_ipv6_src=2001:db8:1::/64,actions=normal
table=1,priority=2,icmp6,ct_state=+trk+rel,ct_ipv6_src=2001:db8:1::2,ct_nw_proto=17,ct_tp_dst=33434,actions=normal
";

/// Hosts in one subnet of IPv6, which know each other's addresses and the shared one.
fn lab(offloads: Offloads) -> Result<Lab> {
    let lab =
        Lab::build(&LabOptions { middle: Middle::Bridge, offloads, ..LabOptions::default() })?;
    let sides: [(&Side, Ipv6Addr, &Side, &[Ipv6Addr]); 2] =
        [(&lab.left, LEFT, &lab.right, &[RIGHT]), (&lab.right, RIGHT, &lab.left, &[LEFT, SHARED])];
    for (side, own, other, known) in sides {
        for (what, value) in [("accept_dad", "0"), ("disable_ipv6", "0")] {
            for dev in ["all", side.dev] {
                side.ns.set_sysctl(&format!("net/ipv6/conf/{dev}/{what}"), value)?;
            }
        }
        side.ns.ip(&format!("-6 address add {own}/64 dev {} nodad", side.dev))?;
        for addr in known {
            let (mac, dev) = (other.mac, side.dev);
            side.ns.ip(&format!("-6 neighbour replace {addr} lladdr {mac} dev {dev}"))?;
        }
    }
    Ok(lab)
}

/// A bridge domain of both interfaces that follows rules.
fn start(lab: &Lab, workers: usize, rules: &str) -> Result<Router> {
    let config = Config::empty().stanza(&format!("cpu {{ workers {workers} }}")).commands(
        "create host-interface name eth0
         create host-interface name eth1
         set interface l2 bridge host-eth0 10
         set interface l2 bridge host-eth1 10
         set interface state host-eth0 up
         set interface state host-eth1 up",
    );
    let router = Router::start(&lab.router, &config)?;
    for rule in rules.lines() {
        router.cli(&format!("flow add 10 {}", rule.replace("IN", "host-eth0")))?;
    }
    Ok(router)
}

/// A connection, a datagram of several fragments and a ping, each answered; an error about a
/// datagram; and what may not come in. Returns both ends of the connection.
fn talk(lab: &Lab) -> Result<(TcpStream, TcpStream)> {
    ping(&lab.left.ns, RIGHT, &PingOptions { count: 3, ..PingOptions::default() })?
        .all_answered()?;
    let bind = |side: &Side, at: SocketAddr| side.ns.run(|| UdpSocket::bind(at))?.context("bind");
    let (asks, answers) =
        (bind(&lab.left, (LEFT, 5303).into())?, bind(&lab.right, (RIGHT, 6000).into())?);
    for socket in [&asks, &answers] {
        socket.set_read_timeout(Some(LIMIT))?;
    }
    let (sent, mut got) = ([7; 4000], [0; 5000]);
    asks.send_to(&sent, (RIGHT, 6000))?;
    let (length, from) = answers.recv_from(&mut got).context("the datagram did not come")?;
    ensure!(got[..length] == sent, "{length} bytes came");
    answers.send_to(&got[..length], from)?;
    let (length, from) = asks.recv_from(&mut got).context("the answer did not come")?;
    ensure!(got[..length] == sent && from == (RIGHT, 6000).into(), "{length} bytes from {from}");

    let listener = lab.right.ns.run(|| TcpListener::bind((RIGHT, 20_000)))??;
    let mut client = lab.left.ns.run(|| connect(SocketAddr::from((RIGHT, 20_000))))??;
    let (mut server, _) = accept(&listener)?;
    client.write_all(b"there")?;
    server.read_exact(&mut got[..5])?;
    server.write_all(b"back")?;
    client.read_exact(&mut got[..4])?;

    // Nobody listens there, which the right host's kernel says.
    asks.connect((RIGHT, 33_434))?;
    asks.send(b"who is there")?;
    let refused = asks.recv(&mut got).err().context("nobody answers on that port")?;
    ensure!(refused.kind() == ErrorKind::ConnectionRefused, "{refused}");

    // The other way round, nothing comes in.
    let listens = bind(&lab.left, (LEFT, 7000).into())?;
    listens.set_read_timeout(Some(SILENCE))?;
    answers.send_to(b"unasked", (LEFT, 7000))?;
    ensure!(listens.recv(&mut got).is_err(), "the right host got in");
    Ok((client, server))
}

/// The lines of a list of connections, without what is chosen at random.
fn lines(text: &str, client: &TcpStream) -> Result<Vec<String>> {
    let port = format!("={}", client.local_addr()?.port());
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| {
            let line = line.replace(&port, "=PORT");
            let words = line.split(',').map(|word| match word.find("id=") {
                Some(at) if line.starts_with("icmp") => format!("{}id=ID", &word[..at]),
                _ => word.to_owned(),
            });
            words.collect::<Vec<String>>().join(",")
        })
        .collect();
    lines.sort();
    Ok(lines)
}

/// Returns Open vSwitch's list after the same traffic under the same rules.
fn of_open_vswitch(rules: &str) -> Result<Vec<String>> {
    let lab = lab(Offloads::OFF)?;
    let ovs = Ovs::start(&lab.router, &["eth0", "eth1"], &OvsOptions::default())?;
    let rules: Vec<String> = rules.lines().map(|rule| rule.replace("IN", "1")).collect();
    ovs.add_flows(&rules.iter().map(String::as_str).collect::<Vec<_>>())?;
    let (client, _server) = talk(&lab)?;
    lines(&ovs.appctl(&["dpctl/dump-conntrack"])?, &client)
}

fn of_router(workers: usize, rules: &str) -> Result<Vec<String>> {
    let lab = lab(Offloads::OFF)?;
    let router = start(&lab, workers, rules)?;
    let (client, _server) = talk(&lab)?;
    let found = lines(&router.cli("show conntrack")?, &client)?;
    router.stop()?;
    Ok(found)
}

lab_test! {
    /// The same packets pass, and the same connections are listed, as with Open vSwitch, with and
    /// without translation, and on two workers.
    fn open_vswitch_tracks_the_same() {
        for rules in [TRACKING, TRANSLATING, ORIGINALS] {
            let theirs = of_open_vswitch(rules)?;
            ensure!(theirs.len() == 4, "{theirs:#?}");
            for workers in [1, 2] {
                let ours = of_router(workers, rules)?;
                // Ports may have to be others, to lead to the worker.
                let same = workers == 1 || rules == TRACKING;
                ensure!(ours.len() == theirs.len(), "{ours:#?} {theirs:#?}");
                ensure!(!same || ours == theirs, "{workers}: {ours:#?} {theirs:#?}");
            }
        }
        Ok(())
    }

    /// TCP with the kernel's offloads, whose checksums devices complete, in both directions.
    fn connections_of_ipv6_are_translated() {
        for (workers, offloads) in [(1, Offloads::ON), (2, Offloads::OFF)] {
            let lab = lab(offloads)?;
            let router = start(&lab, workers, TRANSLATING)?;
            for reverse in [false, true] {
                let options = IperfOptions {
                    duration: Duration::from_secs(1),
                    reverse,
                    ..IperfOptions::default()
                };
                let result = iperf3(&lab.left.ns, &lab.right.ns, RIGHT, &options)?;
                ensure!(result.bits_per_s > WORKING_BITS_PER_S, "{result:?}");
            }
            let shown = router.cli("show conntrack")?;
            ensure!(shown.contains(&format!("reply=(src={RIGHT},dst={SHARED},")), "{shown}");
            for side in [&lab.left, &lab.right] {
                let snmp = side.ns.snmp()?;
                ensure!(snmp["Tcp.InCsumErrors"] == 0, "{}: bad checksums", side.ns.label());
            }
            router.stop()?;
        }
        Ok(())
    }
}
