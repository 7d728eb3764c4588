//! Address translation where much happens: many connections, ports that run out, a router that
//! dies.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use thalweg_smoke::{Config, Router};
use thalweg_testkit::{
    IperfOptions, Lab, LabOptions, Offloads, accept, connect as tcp_connect, iperf3, join,
    lab_test, wait_until_seen,
};

use crate::throughput::working_rate;

/// The address that hosts inside share.
const SHARED: Ipv4Addr = Ipv4Addr::new(10, 10, 2, 100);
const LIMIT: Duration = thalweg_testkit::WAIT_LIMIT;

fn lab(offloads: Offloads) -> Result<Lab> {
    let lab = Lab::build(&LabOptions { offloads, ..LabOptions::default() })?;
    // The outside knows no way to the inside.
    if !lab.right.ns.ip("route show default")?.is_empty() {
        lab.right.ns.ip("route del default")?;
    }
    let _ = lab.right.ns.ip("route del 10.10.1.0/24");
    Ok(lab)
}

/// Translation is there before the first packet can pass; `more` comes in between.
fn config(more: &str) -> Config {
    Config::empty()
        .commands(
            "create host-interface name eth0
             create host-interface name eth1
             set interface ip address host-eth0 10.10.1.1/24
             set interface ip address host-eth1 10.10.2.1/24
             nat44 plugin enable sessions 20000
             nat44 add address 10.10.2.100
             set interface nat44 in host-eth0 out host-eth1",
        )
        .commands(more)
        .commands("set interface state host-eth0 up\nset interface state host-eth1 up")
}

/// The byte that comes as the `n`th.
fn byte(n: u64) -> u8 {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Sends until it is no longer wanted, then `more` bytes, at no more than `per_second` bytes a
/// second. Returns the number of bytes sent.
fn send(mut to: TcpStream, wanted: &AtomicBool, more: u64, per_second: u64) -> Result<u64> {
    let (start, mut n, mut bytes) = (Instant::now(), 0, more);
    while n < bytes {
        if wanted.load(Ordering::Relaxed) {
            bytes = n + more;
        }
        let chunk: Vec<u8> = (n..(n + 8192).min(bytes)).map(byte).collect();
        to.write_all(&chunk).with_context(|| format!("behind {n} bytes"))?;
        n += chunk.len() as u64;
        let due = Duration::from_secs_f64(n as f64 / per_second as f64);
        // Paced: `per_second` bytes.
        thread::sleep(due.saturating_sub(start.elapsed()));
    }
    to.shutdown(Shutdown::Write)?;
    Ok(n)
}

/// Receives to the end, each byte as it was sent.
fn receive(mut from: TcpStream) -> Result<u64> {
    let (mut n, mut chunk) = (0, [0; 65_536]);
    loop {
        let got = from.read(&mut chunk).with_context(|| format!("behind {n} bytes"))?;
        if got == 0 {
            return Ok(n);
        }
        ensure!((n..).zip(&chunk[..got]).all(|(i, b)| byte(i) == *b), "other bytes behind {n}");
        n += got as u64;
    }
}

fn counted(router: &Router, name: &str) -> Result<u64> {
    router.json("show nat44 summary")?[name].as_u64().context(name.to_owned())
}

/// A server that sends as many bytes as it is asked for, and ends; it serves until it is dropped.
fn http(lab: &Lab, port: u16) -> Result<()> {
    let listener = lab.right.ns.run(|| TcpListener::bind((lab.right.addr, port)))??;
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || -> std::io::Result<()> {
                stream.set_read_timeout(Some(LIMIT))?;
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte)?;
                    request.push(byte[0]);
                }
                let text = "HTTP/1.1 200 OK\r\nContent-Length: 20000\r\nConnection: close\r\n\r\n";
                stream.write_all(text.as_bytes())?;
                stream.write_all(&[b'x'; 20_000])
            });
        }
    });
    Ok(())
}

lab_test! {
    /// A transfer goes on through a router that is killed and starts again.
    fn a_connection_outlives_the_router() {
        let lab = lab(Offloads::ON)?;
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("sessions");
        let save = format!("nat44 save {} every 1", file.display());
        let mut router = Router::start(&lab.router, &config(&save))?;
        let listener = lab.right.ns.run(|| TcpListener::bind((lab.right.addr, 8000)))??;
        let near = lab.left.ns.run(|| tcp_connect((lab.right.addr, 8000)))??;
        let (far, peer) = accept(&listener)?;
        ensure!(peer.ip() == SHARED, "the outside saw {peer}");
        let (more, rate) = (1_000_000, 500_000);
        let wanted = Arc::new(AtomicBool::new(true));
        let both = [(near.try_clone()?, far.try_clone()?), (far, near)];
        let transfers: Vec<_> = both
            .into_iter()
            .map(|(from, to)| {
                let wanted = wanted.clone();
                let sender = thread::spawn(move || send(from, &wanted, more, rate));
                (sender, thread::spawn(move || receive(to)))
            })
            .collect();
        let seen = std::time::SystemTime::now();
        // A file that was begun after the connection stood.
        wait_until_seen(LIMIT, "sessions in the file", || {
            let at = std::fs::metadata(&file).and_then(|file| file.modified());
            let since = at.map(|at| at.duration_since(seen).unwrap_or_default());
            match since {
                Ok(since) if since > Duration::from_millis(1100) => Ok(()),
                other => Err(format!("written {other:?} after the connection")),
            }
        })?;
        let restore = format!("nat44 restore {}\n{save}", file.display());
        router.kill_and_start(&config(&restore))?;
        ensure!(counted(&router, "total-tcp-sessions")? == 1, "the session did not come back");
        wanted.store(false, Ordering::Relaxed);
        for (sent, received) in transfers {
            let bytes = join(sent, 2 * LIMIT, "a sender")??;
            let n = join(received, LIMIT, "a receiver")??;
            ensure!(n == bytes, "{n} bytes of {bytes}");
        }
        ensure!(counted(&router, "sessions-created")? == 1, "another session was made");
        router.stop().map(drop)
    }

    /// Thousands of them, by real programs too, and some that stay.
    fn many_connections() {
        let lab = lab(Offloads::ON)?;
        let router = Router::start(&lab.router, &config("set nat timeout tcp-transitory 5"))?;
        http(&lab, 8080)?;
        let working = working_rate(&lab)?;
        let url = format!("http://{}:8080/[1-1500]", lab.right.addr);
        thread::scope(|s| -> Result<()> {
            let transfer = s.spawn(|| {
                let options =
                    IperfOptions { duration: Duration::from_secs(3), ..IperfOptions::default() };
                iperf3(&lab.left.ns, &lab.right.ns, lab.right.addr, &options)
            });
            let clients: Vec<_> = (0..2)
                .map(|_| {
                    s.spawn(|| -> Result<()> {
                        let out = lab.left.ns.command("curl")
                            .args(["-sS", "--max-time", "60", "-o", "/dev/null"])
                            .args(["-w", "%{http_code} %{size_download}\n", &url])
                            .deadline(3 * LIMIT)
                            .run()?;
                        let good = out.stdout.lines().filter(|l| *l == "200 20000").count();
                        ensure!(good == 1500, "{good} of 1500: {}", out.stderr);
                        Ok(())
                    })
                })
                .collect();
            for client in clients {
                client.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
            }
            let result = transfer.join().map_err(|_| anyhow::anyhow!("iperf3 panicked"))??;
            let (got, least) = (result.bits_per_s / 1e6, working / 1e6);
            ensure!(got > least, "{got:.1} Mbit/s, not {least:.1}");
            Ok(())
        })?;
        // A client's port that is used again soon finds its session still there.
        let made = counted(&router, "sessions-created")?;
        ensure!(made >= 2000, "{made} sessions of 3000 connections");
        wait_until_seen(LIMIT, "sessions to end", || match counted(&router, "total-tcp-sessions") {
            Ok(n) if n <= 2 => Ok(()),
            other => Err(format!("{other:?}")),
        })?;
        router.stop().map(drop)
    }

    /// Each hop says where it is, the one behind the translator too.
    fn traceroute_through_the_translator() {
        let lab = lab(Offloads::OFF)?;
        let router = Router::start(&lab.router, &config(""))?;
        for kind in ["-I", "-U"] {
            let out = lab.left.ns.command("traceroute")
                .args(["-n", "-q", "1", "-w", "3", "-m", "4", kind, &lab.right.addr.to_string()])
                .run()?;
            let hops: Vec<&str> =
                out.stdout.lines().skip(1).filter_map(|l| l.split_whitespace().nth(1)).collect();
            ensure!(hops == ["10.10.1.1", "10.10.2.2"], "{kind}: {}", out.stdout);
        }
        router.stop().map(drop)
    }

    /// The sender gets an error at once when no port is left, and the log has it.
    fn ports_run_out() {
        let lab = lab(Offloads::OFF)?;
        let router =
            Router::start(&lab.router, &config("nat addr-port-assignment-alg port-range 2000 - 2039"))?;
        let listener = lab.right.ns.run(|| TcpListener::bind((lab.right.addr, 8000)))??;
        let connect = || lab.left.ns.run(|| tcp_connect((lab.right.addr, 8000)));
        let mut kept = Vec::new();
        for _ in 0..40 {
            kept.push((connect()??, accept(&listener)?));
        }
        for (_, (_, peer)) in &kept {
            ensure!((2000..2040).contains(&peer.port()), "{peer}");
        }
        let start = Instant::now();
        let refused = connect()?.err().context("a connection without a port")?;
        ensure!(refused.kind() == ErrorKind::HostUnreachable, "{refused}");
        ensure!(start.elapsed() < Duration::from_secs(5), "it took {:?}", start.elapsed());
        ensure!(router.error_count("nat44-ed-in2out", "out of ports")? >= 1);
        router.await_log("is out of ports")?;
        // Connections that stand are not disturbed.
        for (near, (far, _)) in &mut kept {
            near.write_all(b"still")?;
            let mut got = [0; 5];
            far.read_exact(&mut got)?;
        }
        router.stop().map(drop)
    }

    /// Sessions are noted, each when it begins and when it ends.
    fn sessions_are_noted() {
        let lab = lab(Offloads::OFF)?;
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("log");
        let more = format!("set nat timeout tcp-transitory 1\nnat44 log file {}", file.display());
        let router = Router::start(&lab.router, &config(&more))?;
        let listener = lab.right.ns.run(|| TcpListener::bind((lab.right.addr, 8000)))??;
        for _ in 0..20 {
            let near = lab.left.ns.run(|| tcp_connect((lab.right.addr, 8000)))??;
            let (far, _) = accept(&listener)?;
            drop((far, near));
        }
        let lines = wait_until_seen(LIMIT, "40 records", || {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let lines: Vec<serde_json::Value> =
                text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
            if lines.len() >= 40 { Ok(lines) } else { Err(text) }
        })?;
        let of = |event: &str| lines.iter().filter(|l| l["event"] == event).count();
        ensure!((of("nat44-session-create"), of("nat44-session-delete")) == (20, 20), "{lines:?}");
        let whole = |l: &&serde_json::Value| {
            let text = |key: &str| l[key].as_str().unwrap_or_default().to_owned();
            text("inside").starts_with("10.10.1.2:")
                && text("outside").starts_with("10.10.2.100:")
                && text("external") == "10.10.2.2:8000"
        };
        ensure!(lines.iter().filter(whole).count() == 40, "{lines:?}");
        let shown = router.json("show nat44 log")?;
        ensure!(shown["written"] == 40 && shown["lost"] == 0, "{shown}");
        router.stop().map(drop)
    }
}
