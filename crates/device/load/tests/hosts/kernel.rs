//! The kernel's TCP on the other side: what it says to the hosts' is right, and the other way
//! round.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use thalweg_load::talk::{Exchange, Plan, Pool, Protocol, Talk};
use thalweg_netns::{LinkOptions, Netns, Result, veth};
use thalweg_testkit::lab_test;

use super::Tester;

/// A namespace with the kernel's hosts, and the interface of ours that leads there.
struct Far {
    ns: Netns,
}

/// The kernel's MAC address, which hosts send to.
const MAC: &str = "02:00:00:00:00:02";

impl Far {
    /// Joins this thread's namespace, which must be `here`, to one with the kernel's hosts.
    /// `network` are the kernel's own addresses, `hosts` the tester's.
    fn new(here: &Netns, network: &str, hosts: &str, host_mac: &str, mac: &str) -> Result<Far> {
        let ns = Netns::new("kernel")?;
        let end = LinkOptions::default().mac(mac).address("192.0.2.1/30");
        veth((here, "tester", &LinkOptions::default()), (&ns, "load", &end))?;
        ns.ip_batch(&[
            format!("route add local {network} dev lo"),
            format!("neighbour replace 192.0.2.2 lladdr {host_mac} dev load nud permanent"),
            format!("route add {hosts} via 192.0.2.2 dev load"),
        ])?;
        Ok(Far { ns })
    }

    /// Connects the port that `at` numbers to a host interface.
    fn connect(tester: &mut Tester, at: usize) {
        tester.run(&format!(
            "create host-interface name tester
             set interface state host-tester up
             set interface l2 xconnect load{at} host-tester
             set interface l2 xconnect host-tester load{at}"
        ));
    }
}

fn plan(exchange: &Exchange) -> Plan {
    let mut plan = Plan::of(Talk::exchange("tcp", Protocol::Tcp, 8080, exchange));
    plan.clients = Pool { first: Ipv4Addr::new(16, 0, 0, 1).into(), count: 8 };
    plan.servers = Pool { first: Ipv4Addr::new(48, 0, 0, 1).into(), count: 4 };
    plan.room = 8192;
    plan.late = 60_000_000;
    plan
}

/// Answers each connection: `request` bytes in, `answer` bytes out, until its end.
fn serve(ns: &Netns, request: usize, answer: usize, stop: &Arc<AtomicBool>) -> Result<Server> {
    let listener = ns.run(|| TcpListener::bind("0.0.0.0:8080"))??;
    listener.set_nonblocking(true)?;
    let answered = Arc::new(AtomicU64::new(0));
    let (count, stop) = (answered.clone(), stop.clone());
    let accept = move || {
        let mut talks = Vec::new();
        while !stop.load(Relaxed) {
            match listener.accept() {
                Ok((stream, _)) => {
                    let count = count.clone();
                    talks.push(thread::spawn(move || talk(stream, request, answer, &count)));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // Paced: there is nothing to wait for but the next connection.
                    thread::sleep(Duration::from_millis(1));
                }
                Err(error) => panic!("{error}"),
            }
        }
        talks.into_iter().for_each(|talk| talk.join().unwrap());
    };
    Ok(Server { answered, thread: thread::spawn(accept) })
}

struct Server {
    answered: Arc<AtomicU64>,
    thread: thread::JoinHandle<()>,
}

fn talk(mut stream: TcpStream, request: usize, answer: usize, count: &AtomicU64) {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut bytes = vec![0; request];
    let answer = vec![b'y'; answer];
    while stream.read_exact(&mut bytes).is_ok() {
        assert!(bytes.iter().all(|byte| *byte == b'x'), "the request has other bytes");
        if stream.write_all(&answer).is_err() {
            return;
        }
        count.fetch_add(1, Relaxed);
    }
    // The client has closed first.
    let _ = stream.shutdown(Shutdown::Both);
}

/// Lets the tester's clients talk with the kernel's servers.
fn with_kernel_servers(exchange: &Exchange, impairment: &str, connections: u64) -> Result<()> {
    let here = Netns::new("tester")?;
    here.run(|| {
        let far = Far::new(&here, "48.0.0.0/24", "16.0.0.0/24", "02:00:00:00:00:01", MAC)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (request, answer) = (exchange.request as usize, exchange.answer as usize);
        let server = serve(&far.ns, request, answer, &stop)?;
        let mut tester = Tester::new();
        Far::connect(&mut tester, 0);
        tester.run(impairment);
        tester.give_clients(&plan(exchange));
        let [clients, _] = tester.open_and_end(500.0, connections);
        stop.store(true, Relaxed);
        server.thread.join().unwrap();
        let c = clients.counts;
        assert_eq!((c.reset, c.wrong, c.bad_checksum), (0, 0, 0), "{c:?}");
        // A segment that comes late finds the kernel's end closed, which answers with a reset that
        // fits nothing.
        assert!(c.unexpected == 0 || impairment.contains("jitter"), "{c:?}");
        assert_eq!(c.completed, c.begun, "{c:?}");
        let answered = server.answered.load(Relaxed);
        assert_eq!(answered, c.begun * u64::from(exchange.messages), "{c:?}");
        if impairment.is_empty() {
            assert_eq!(c.clean, c.begun, "{c:?}");
        } else {
            assert!(c.clean < c.begun, "{c:?}");
        }
        Ok(())
    })?
}

/// Lets the kernel's clients talk with the tester's servers.
fn with_kernel_clients(exchange: &Exchange, impairment: &str, connections: usize) -> Result<()> {
    let here = Netns::new("tester")?;
    here.run(|| {
        let mac = "02:00:00:00:00:01";
        let far = Far::new(&here, "16.0.0.0/24", "48.0.0.0/24", MAC, mac)?;
        let mut tester = Tester::new();
        Far::connect(&mut tester, 1);
        tester.run(impairment);
        tester.give_servers(&plan(exchange));
        let Exchange { messages, request, answer, .. } = *exchange;
        let ns = far.ns.clone();
        let clients = thread::spawn(move || {
            ns.run(move || {
                let request = vec![b'x'; request as usize];
                let mut bytes = vec![0; answer as usize];
                for number in 0..connections {
                    let server = Ipv4Addr::new(48, 0, 0, 1 + (number % 4) as u8);
                    let mut stream = TcpStream::connect((server, 8080)).unwrap();
                    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                    for _ in 0..messages {
                        stream.write_all(&request).unwrap();
                        stream.read_exact(&mut bytes).unwrap();
                        assert!(bytes.iter().all(|byte| *byte == b'y'), "other bytes");
                    }
                    stream.shutdown(Shutdown::Write).unwrap();
                    assert_eq!(stream.read(&mut bytes).unwrap(), 0, "more than the answers");
                }
            })
            .unwrap();
        });
        tester.until("the kernel's clients end", |_| clients.is_finished());
        clients.join().unwrap();
        let mut report = tester.reports()[1];
        while report.open > 0 {
            tester.control.run_once(Some(Duration::from_millis(5)));
            report = tester.reports()[1];
        }
        let s = report.counts;
        assert_eq!((s.reset, s.wrong, s.bad_checksum, s.unexpected), (0, 0, 0, 0), "{s:?}");
        assert_eq!((s.begun, s.completed), (connections as u64, connections as u64), "{s:?}");
        Ok(())
    })?
}

fn exchange(messages: u16, request: u32, answer: u32) -> Exchange {
    Exchange { messages, request, answer, ..Exchange::default() }
}

lab_test! {
    fn the_kernel_answers_our_clients() {
        with_kernel_servers(&exchange(1, 20, 20), "", 300)?;
        with_kernel_servers(&exchange(5, 3000, 20_000), "", 50)
    }

    fn the_kernel_answers_our_clients_over_a_line_that_loses() {
        let impairment = "load impair load0 lose 20 seed 3";
        with_kernel_servers(&exchange(3, 2000, 5000), impairment, 100)
    }

    fn the_kernel_answers_our_clients_over_a_line_that_reorders() {
        let impairment = "load impair load0 delay 200 jitter 3000 repeat 10 seed 5";
        with_kernel_servers(&exchange(3, 8000, 2000), impairment, 100)
    }

    fn our_servers_answer_the_kernel() {
        with_kernel_clients(&exchange(1, 20, 20), "", 100)?;
        with_kernel_clients(&exchange(4, 20_000, 3000), "", 20)
    }

    fn our_servers_answer_the_kernel_over_a_line_that_loses() {
        let impairment = "load impair load1 lose 20 seed 4";
        with_kernel_clients(&exchange(2, 2000, 8000), impairment, 20)
    }
}
