//! Address translation by two workers between real kernels: several hosts inside, thousands of
//! connections, and mappings that come and go under them.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use thalweg_smoke::{Router, host_pair_with};
use thalweg_testkit::{Lab, LabOptions, Netns, Offloads, PingOptions, lab_test, ping};

/// The address that hosts inside share, and that of a balance.
const SHARED: Ipv4Addr = Ipv4Addr::new(10, 10, 2, 100);
const BALANCE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 10, 2, 101), 80);
const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 10, 2, 2), 8000);
const LIMIT: Duration = thalweg_testkit::WAIT_LIMIT;
/// Hosts inside: 10.10.1.2 to .9.
const HOSTS: std::ops::Range<u8> = 2..10;

fn host(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 10, 1, n)
}

fn lab() -> Result<Lab> {
    let options = LabOptions { offloads: Offloads::OFF, queues: 2, ..LabOptions::default() };
    let lab = Lab::build(&options)?;
    // The outside knows no way to the inside.
    if !lab.right.ns.ip("route show default")?.is_empty() {
        lab.right.ns.ip("route del default")?;
    }
    let _ = lab.right.ns.ip("route del 10.10.1.0/24");
    for n in HOSTS.skip(1) {
        lab.left.ns.ip(&format!("address add {}/24 dev eth0", host(n)))?;
    }
    Ok(lab)
}

/// A connection from an address.
fn dial(ns: &Netns, from: Ipv4Addr, to: SocketAddrV4) -> Result<TcpStream> {
    ns.run(|| {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        bind(&socket, &SocketAddrV4::new(from, 0))?;
        let stream = TcpStream::from(socket);
        stream.set_write_timeout(Some(LIMIT))?;
        stream.set_read_timeout(Some(LIMIT))?;
        // The time for writing limits that for connecting, too.
        connect(&stream, &to).with_context(|| format!("{from} to {to}"))?;
        Ok(stream)
    })?
}

/// Sends back what it hears, on each connection.
fn echo(ns: &Netns, at: SocketAddrV4) -> Result<()> {
    let listener = ns.run(|| TcpListener::bind(at))??;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut stream = stream;
                let mut buffer = [0; 64];
                while let Ok(n @ 1..) = stream.read(&mut buffer) {
                    if stream.write_all(&buffer[..n]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    Ok(())
}

fn lives(stream: &mut TcpStream) -> Result<()> {
    stream.write_all(b"still there?")?;
    let mut got = [0; 12];
    stream.read_exact(&mut got)?;
    ensure!(&got == b"still there?");
    Ok(())
}

/// Returns how many of them live.
fn alive(all: &mut [TcpStream]) -> usize {
    all.iter_mut().filter_map(|s| lives(s).ok()).count()
}

/// N connections of each host, one behind the other; how many were made.
fn converse(lab: &Lab, each: usize) -> Result<usize> {
    thread::scope(|scope| {
        let all: Vec<_> = HOSTS
            .map(|n| {
                scope.spawn(move || {
                    let one = |_: &usize| {
                        dial(&lab.left.ns, host(n), SERVER).and_then(|mut s| lives(&mut s)).is_ok()
                    };
                    (0..each).filter(one).count()
                })
            })
            .collect();
        all.into_iter().map(|t| t.join().map_err(|_| anyhow!("a host panicked"))).sum()
    })
}

fn workers_with_sessions(router: &Router) -> Result<BTreeSet<u64>> {
    let sessions = router.json("show nat44 sessions")?;
    let all = sessions.as_array().context("a list of sessions")?;
    Ok(all.iter().filter_map(|s| s["worker"].as_u64()).collect())
}

lab_test! {
    fn mappings_come_and_go_under_connections() {
        let lab = lab()?;
        let config = host_pair_with("num-rx-queues 2").stanza("cpu { workers 2 }").commands(
            "nat44 plugin enable sessions 20000
             nat44 add address 10.10.2.100
             set interface nat44 in host-eth0 out host-eth1",
        );
        let router = Router::start(&lab.router, &config)?;
        echo(&lab.right.ns, SERVER)?;
        let made = converse(&lab, 400)?;
        ensure!(made == 3200, "{made} of 3200 connections");
        ensure!(workers_with_sessions(&router)?.len() == 2, "one worker has all sessions");

        // The address becomes a host's name, too.
        let dial_out = |n: u8| dial(&lab.left.ns, host(n), SERVER);
        let mut all = HOSTS.chain(HOSTS).chain(HOSTS).map(dial_out).collect::<Result<Vec<_>>>()?;
        ensure!(alive(&mut all) == 24);
        router.cli("nat44 add static mapping local 10.10.1.4 external 10.10.2.100")?;
        let left = alive(&mut all);
        ensure!(left == 24, "{left} of 24 connections live behind the mapping");
        let made = converse(&lab, 10)?;
        ensure!(made == 80, "{made} of 80 connections behind the mapping");
        echo(&lab.left.ns, SocketAddrV4::new(host(4), 2222))?;
        for _ in 0..10 {
            let to = SocketAddrV4::new(SHARED, 2222);
            lives(&mut dial(&lab.right.ns, *SERVER.ip(), to)?)?;
        }
        ensure!(alive(&mut all) == 24);

        // A balance gets another host, and loses one.
        router.cli(
            "nat44 add load-balancing static mapping protocol tcp external 10.10.2.101:80 \
             local 10.10.1.2:8080 probability 50 local 10.10.1.3:8080 probability 50",
        )?;
        for n in HOSTS.take(4) {
            echo(&lab.left.ns, SocketAddrV4::new(host(n), 8080))?;
        }
        let call = |_| dial(&lab.right.ns, *SERVER.ip(), BALANCE);
        let mut callers = (0..24).map(call).collect::<Result<Vec<_>>>()?;
        ensure!(alive(&mut callers) == 24);
        for n in [4, 5] {
            router.cli(&format!(
                "nat44 add load-balancing back-end protocol tcp external 10.10.2.101:80 \
                 local 10.10.1.{n}:8080 probability 50"
            ))?;
            let left = alive(&mut callers);
            ensure!(left == 24, "{left} of 24 callers live behind host {n}");
        }
        callers.extend((0..24).map(call).collect::<Result<Vec<_>>>()?);
        ensure!(alive(&mut callers) == 48);
        ensure!(alive(&mut all) == 24);
        router.stop_busy().map(drop)
    }

    /// Inside hosts connect to one of them by its external address, which is the router's own, with
    /// translation on output.
    fn hosts_inside_call_each_other_with_output_feature() {
        let lab = lab()?;
        let config = host_pair_with("num-rx-queues 2").stanza("cpu { workers 2 }").commands(
            "nat44 plugin enable sessions 20000
             nat44 add interface address host-eth1
             set interface nat44 in host-eth0 output-feature
             set interface nat44 out host-eth1 output-feature
             nat44 add static mapping tcp local 10.10.1.3 8080 external host-eth1 80",
        );
        let router = Router::start(&lab.router, &config)?;
        echo(&lab.right.ns, SERVER)?;
        echo(&lab.left.ns, SocketAddrV4::new(host(3), 8080))?;
        let name = SocketAddrV4::new(Ipv4Addr::new(10, 10, 2, 1), 80);
        for n in HOSTS {
            for _ in 0..10 {
                lives(&mut dial(&lab.left.ns, host(n), name)?)?;
            }
        }
        for _ in 0..10 {
            lives(&mut dial(&lab.right.ns, *SERVER.ip(), name)?)?;
        }
        let made = converse(&lab, 10)?;
        ensure!(made == 80, "{made} of 80 connections to the outside");
        // The router's own address is the router's still.
        let options = PingOptions { count: 3, ..PingOptions::default() };
        ping(&lab.left.ns, *name.ip(), &options)?.all_answered()?;
        router.stop_busy().map(drop)
    }
}
