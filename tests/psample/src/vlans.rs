//! VLANs of the kernel's 8021q, whose tags travel outside of the packets: a device takes them out
//! of what it receives and puts them into what it sends. The router is between two hosts of the
//! kernel's, with offloads on.

use crate::guest::{LIMIT, cli, passed};
use anyhow::{Context, Result, ensure};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};
use thalweg_netns::Netns;

/// Bytes of a TCP connection: many segments, of which the kernel makes few large ones.
const BYTES: usize = 1 << 20;
/// MTU of devices below VLANs: with 1500, the kernel's would drop a full packet with two tags.
const MTU: u32 = 1600;
/// Time after which a question is asked again.
const AGAIN: Duration = Duration::from_millis(500);

/// Commands of the router: sub-interfaces with one tag and with two, a port that gets tags with a
/// priority only, two that are bridged with their tags removed.
const ROUTER: &str = "create host-interface name ra hw-addr 02:00:00:00:00:0a
create host-interface name rb hw-addr 02:00:00:00:00:0b
set interface state host-ra up
set interface state host-rb up
create sub-interfaces host-ra 10
create sub-interfaces host-ra 27 dot1ad 20 inner-dot1q 7 exact-match
create sub-interfaces host-rb 30
set interface ip address host-ra 10.50.0.1/24
set interface ip address host-ra.10 10.10.0.1/24
set interface ip address host-ra.27 10.27.0.1/24
set interface ip address host-rb.30 10.30.0.1/24
create sub-interfaces host-ra 40
create sub-interfaces host-rb 41
set interface l2 bridge host-ra.40 40
set interface l2 bridge host-rb.41 40
set interface l2 tag-rewrite host-ra.40 pop 1
set interface l2 tag-rewrite host-rb.41 pop 1
set interface state host-ra.10 up
set interface state host-ra.27 up
set interface state host-rb.30 up
set interface state host-ra.40 up
set interface state host-rb.41 up";

/// Two hosts, each with a device to the router.
struct Hosts {
    a: Netns,
    b: Netns,
}

impl Hosts {
    fn new() -> Result<Hosts> {
        let (a, b) = (Netns::new("a")?, Netns::new("b")?);
        // The first process is in the router's namespace.
        for (host, own, other) in [(&a, "va", "ra"), (&b, "vb", "rb")] {
            host.ip(&format!("link add name {own} type veth peer name {other} netns 1"))?;
            host.ip(&format!("link set {own} up mtu {MTU}"))?;
        }
        for dev in ["ra", "rb"] {
            crate::guest::run(&format!("ip link set {dev} up mtu {MTU}"))?;
        }
        let vlan = |host: &Netns, under: &str, name: &str, kind: &str, address: &str| {
            host.ip(&format!("link add link {under} name {name} type vlan {kind}"))?;
            if !address.is_empty() {
                host.ip(&format!("address add {address} dev {name}"))?;
            }
            host.ip(&format!(
                "link set {name} up mtu {}",
                if address.is_empty() { MTU } else { 1500 }
            ))
        };
        vlan(&a, "va", "va.10", "id 10", "10.10.0.2/24")?;
        vlan(&a, "va", "va.20", "protocol 802.1ad id 20", "")?;
        vlan(&a, "va.20", "va.27", "id 7", "10.27.0.2/24")?;
        vlan(&a, "va", "va.40", "id 40 egress-qos-map 0:5", "10.40.0.2/24")?;
        vlan(&a, "va", "va.0", "id 0 egress-qos-map 0:6", "10.50.0.2/24")?;
        vlan(&b, "vb", "vb.30", "id 30", "10.30.0.2/24")?;
        vlan(&b, "vb", "vb.41", "id 41", "10.40.0.3/24")?;
        // Answers to what has a priority only come without a tag, and not to this device.
        a.ip("neigh add 10.50.0.1 lladdr 02:00:00:00:00:0a dev va.0 nud permanent")?;
        a.ip("route add 10.30.0.0/24 via 10.10.0.1")?;
        b.ip("route add default via 10.30.0.1")?;
        Ok(Hosts { a, b })
    }

    /// Sends datagrams from an address of a's to one of b's until one arrives, and returns them
    /// likewise unless only one way leads there.
    fn datagrams(&self, from: Ipv4Addr, to: Ipv4Addr, both_ways: bool) -> Result<()> {
        let open = |host: &Netns, address: Ipv4Addr| -> Result<UdpSocket> {
            let socket = host.run(|| UdpSocket::bind((address, 0)))??;
            socket.set_read_timeout(Some(AGAIN))?;
            Ok(socket)
        };
        let (a, b) = (open(&self.a, from)?, open(&self.b, to)?);
        let pairs = [(&a, &b), (&b, &a)];
        for (sender, receiver) in pairs.into_iter().take(if both_ways { 2 } else { 1 }) {
            let begin = Instant::now();
            let mut bytes = [0; 100];
            loop {
                sender.send_to(&[7; 60], receiver.local_addr()?)?;
                if let Ok((n, source)) = receiver.recv_from(&mut bytes) {
                    ensure!(n == 60 && source == sender.local_addr()?, "{n} bytes from {source}");
                    break;
                }
                ensure!(begin.elapsed() < LIMIT, "no datagram from {from} to {to}");
            }
        }
        Ok(())
    }

    /// Sends bytes by TCP from an address of a's to one of b's, and back.
    fn tcp(&self, from: Ipv4Addr, to: Ipv4Addr) -> Result<()> {
        let listener = self.b.run(|| TcpListener::bind((to, 0)))??;
        let address = listener.local_addr()?;
        let data: Vec<u8> = (0..BYTES).map(|i| (i % 251) as u8).collect();
        let deadlines = |stream: &TcpStream| -> Result<()> {
            stream.set_read_timeout(Some(LIMIT))?;
            Ok(stream.set_write_timeout(Some(LIMIT))?)
        };
        let back = std::thread::scope(|scope| -> Result<Vec<u8>> {
            let server = scope.spawn(|| -> Result<()> {
                let (mut stream, peer) = listener.accept()?;
                ensure!(peer.ip() == from, "a connection from {peer}");
                deadlines(&stream)?;
                let mut got = vec![0; BYTES];
                stream.read_exact(&mut got)?;
                Ok(stream.write_all(&got)?)
            });
            let mut stream = self.a.run(|| TcpStream::connect_timeout(&address, LIMIT))??;
            deadlines(&stream)?;
            stream.write_all(&data)?;
            let mut back = Vec::new();
            stream.read_to_end(&mut back)?;
            server.join().map_err(|_| anyhow::anyhow!("the server panicked"))??;
            Ok(back)
        })?;
        ensure!(back == data, "{} bytes came back, {BYTES} were sent", back.len());
        Ok(())
    }
}

pub(crate) fn vlans() -> Result<()> {
    let hosts = Hosts::new()?;
    for line in ROUTER.lines() {
        cli(line).with_context(|| line.to_owned())?;
    }
    let ip = |net, host| Ipv4Addr::new(10, net, 0, host);
    hosts.datagrams(ip(10, 2), ip(30, 2), true)?;
    hosts.tcp(ip(10, 2), ip(30, 2))?;
    passed("between two VLANs: datagrams, and TCP with offloads");
    hosts.a.ip("route replace 10.30.0.0/24 via 10.27.0.1")?;
    hosts.datagrams(ip(27, 2), ip(30, 2), true)?;
    hosts.tcp(ip(27, 2), ip(30, 2))?;
    passed("from behind two tags of different kinds: datagrams, and TCP with offloads");
    hosts.a.ip("route replace 10.30.0.0/24 via 10.50.0.1 dev va.0")?;
    hosts.datagrams(ip(50, 2), ip(30, 2), false)?;
    passed("tags with a priority only are as none");
    hosts.datagrams(ip(40, 2), ip(40, 3), true)?;
    hosts.tcp(ip(40, 2), ip(40, 3))?;
    passed("bridged between two VLANs: datagrams, and TCP with offloads");
    cli("delete host-interface name ra")?;
    cli("delete host-interface name rb")?;
    Ok(())
}
