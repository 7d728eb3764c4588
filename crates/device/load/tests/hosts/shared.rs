//! Two workers share the hosts out: each connection and each packet has one owner, and the books of
//! all balance.

use std::time::{Duration, Instant};

use thalweg_device_load::{Change, DirectionReport, HAND_OFF, Report};
use thalweg_load::stream::{self, Field, Load, Mode, Rate};
use thalweg_load::talk::{Exchange, Opening, Plan, Pool, Protocol, Talk};
use thalweg_netns::{LinkOptions, Netns, veth};
use thalweg_testkit::lab_test;

use super::Tester;

const CONNECTED: &str = "set interface l2 xconnect load0 load1
    set interface l2 xconnect load1 load0";
/// Cable between ports, of which any worker receives any packet.
const CABLED: &str = "create host-interface name left num-rx-queues 2
    create host-interface name right num-rx-queues 2
    set interface state host-left up
    set interface state host-right up
    set interface l2 xconnect load0 host-left
    set interface l2 xconnect host-left load0
    set interface l2 xconnect load1 host-right
    set interface l2 xconnect host-right load1";

fn plan(protocol: Protocol, port: u16, clients: u32, ports: u16) -> Plan {
    let exchange = Exchange { messages: 2, ..Exchange::default() };
    let mut plan = Plan::of(Talk::exchange("kind", protocol, port, &exchange));
    plan.clients = Pool { count: clients, ..plan.clients };
    (plan.ports.1, plan.room, plan.late) = (ports, 4096, 60_000_000);
    plan
}

fn streams() -> stream::Plan {
    let field = |first: u32| Field::count(first, first + 9);
    let stream = |name: &str, mode| stream::Stream {
        rate: Rate::Packets(2000.0),
        mode,
        direction: stream::Direction::Both,
        ..stream::Stream::udp(
            name,
            field(0x1000_0000),
            field(0x3000_0000),
            (Field::one(2000u16), Field::one(80u16)),
        )
    };
    let burst = Mode::Burst { packets: 77 };
    let streams = vec![stream("all", Mode::Continuous), stream("burst", burst)];
    stream::Plan { late: 60_000_000_000, ..stream::Plan::of(streams) }
}

/// Packets handed over, and those for which there was no room.
fn handed_over(tester: &Tester) -> (u64, u64) {
    let all = tester.control.hand_off_views();
    let ours = all.iter().filter(|view| view.queue == HAND_OFF);
    ours.fold((0, 0), |sum, view| (sum.0 + view.packets, sum.1 + view.drops))
}

/// Opens this number of connections of each plan, and waits until all have ended.
fn open_all(tester: &mut Tester, plans: &[Plan], total: u64) -> [Vec<Report>; 2] {
    let ports = tester.ports;
    for at in 0..plans.len() {
        let opening = Opening { rate: 2000.0, hold: None, total: Some(total) };
        thalweg_device_load::set_opening(&mut tester.control, ports[0], at, opening);
    }
    let mut reports = None;
    tester.until("all connections have ended", |control| {
        let answers = thalweg_device_load::ask(control, &ports);
        control.run_once(Some(Duration::from_millis(20)));
        let all = answers.recv_timeout(Duration::from_secs(10)).unwrap();
        let ended =
            |report: &Report| report.counts.begun == total && report.open + report.time_wait == 0;
        let is_done = all[0].iter().all(ended) && all[1].iter().all(|r| r.open + r.time_wait == 0);
        reports = Some(all);
        is_done
    });
    let mut reports = reports.unwrap().into_iter();
    [reports.next().unwrap(), reports.next().unwrap()]
}

fn check_talks([clients, servers]: &[Vec<Report>; 2]) {
    for (clients, servers) in clients.iter().zip(servers) {
        let (c, s) = (clients.counts, servers.counts);
        assert_eq!((c.clean, c.foreign, c.unknown, c.no_tuple), (c.begun, 0, 0, 0), "{c:?}");
        assert_eq!((c.sent, s.sent), (s.received, c.received), "{c:?} {s:?}");
        assert_eq!((s.foreign, s.unknown, s.begun), (0, 0, c.begun), "{s:?}");
        assert!(c.balances(0) && s.balances(0), "{c:?} {s:?}");
    }
}

fn begin_streams(tester: &mut Tester, trial: u8) {
    for change in [Change::Begin(trial), Change::Load(Load::Times(1.0)), Change::Judging(true)] {
        thalweg_device_load::change_streams(&mut tester.control, tester.ports, change);
    }
}

/// Ends the streams, and returns their books once nothing is on its way.
fn end_streams(tester: &mut Tester) -> [DirectionReport; 2] {
    let ports = tester.ports;
    let stop = Change::Load(Load::Times(0.0));
    thalweg_device_load::change_streams(&mut tester.control, ports, stop);
    let mut books = None;
    tester.until("the streams have arrived", |control| {
        let answers = thalweg_device_load::ask_streams(control, ports);
        control.run_once(Some(Duration::from_millis(20)));
        let both = answers.recv_timeout(Duration::from_secs(10)).unwrap();
        let arrived = both.iter().flat_map(|way| &way.streams).all(|stream| {
            stream.all.sent.sent > 0 && stream.all.sent.sent == stream.all.received.packets
        });
        books = Some(both);
        arrived
    });
    books.unwrap()
}

fn check_streams(books: &[DirectionReport; 2]) {
    for way in books {
        assert_eq!((way.port.foreign, way.port.returned, way.port.stale), (0, 0, 0), "{way:?}");
        assert_eq!(way.streams.len(), 2);
        assert_eq!(way.streams[1].all.sent.sent, 77, "one worker sends a burst");
        for stream in &way.streams {
            assert!(stream.all.balances() && stream.judged.balances(), "{stream:?}");
            assert_eq!((stream.judged.lost, stream.judged.missing.len()), (0, 0), "{stream:?}");
            let times = stream.latency.count();
            assert_eq!(times, stream.judged.received.packets, "all workers' times are there");
        }
    }
}

#[test]
fn connections_of_few_and_of_many_clients_have_one_owner() {
    let mut tester = Tester::with(2);
    tester.run(CONNECTED);
    for (clients, ports) in [(65_536, 64_512), (1, 4000), (3, 3000), (1, 1), (2, 1), (17, 3)] {
        let plans = [
            plan(Protocol::Tcp, 80, clients, ports),
            plan(Protocol::Udp, 80, clients, ports),
            plan(Protocol::Tcp, 443, 65_536, 64_512),
        ];
        let all: Vec<&Plan> = plans.iter().collect();
        let (control, hosts) = (&mut tester.control, tester.ports);
        thalweg_device_load::set_hosts(control, hosts, &all, None, 1).unwrap();
        if clients == 1 && ports == 1 || clients == 2 {
            // One connection at a time for each pair of address and port: most are not begun.
            let opening = Opening { rate: 100.0, hold: Some(1), total: Some(3) };
            thalweg_device_load::set_opening(control, hosts[0], 0, opening);
            tester.until("three have ended", |control| {
                let answers = thalweg_device_load::ask(control, &hosts);
                control.run_once(Some(Duration::from_millis(20)));
                let all = answers.recv_timeout(Duration::from_secs(10)).unwrap();
                all[0][0].counts.completed == 3
            });
            continue;
        }
        let reports = open_all(&mut tester, &plans, 41);
        check_talks(&reports);
    }
    // Nothing moves a packet to another worker here.
    assert_eq!(handed_over(&tester), (0, 0));
}

#[test]
fn streams_and_connections_of_two_workers_balance() {
    let mut tester = Tester::with(2);
    tester.run(CONNECTED);
    let plans = [plan(Protocol::Tcp, 80, 65_536, 64_512), plan(Protocol::Udp, 80, 1, 4000)];
    let all: Vec<&Plan> = plans.iter().collect();
    let (control, ports) = (&mut tester.control, tester.ports);
    thalweg_device_load::set_hosts(control, ports, &all, Some(&streams()), 1).unwrap();
    begin_streams(&mut tester, 1);
    let reports = open_all(&mut tester, &plans, 501);
    check_talks(&reports);
    check_streams(&end_streams(&mut tester));
    let times = thalweg_device_load::ask_times(&mut tester.control, ports);
    let times = times.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(times.half <= times.longest && times.longest.is_some(), "{times:?}");
}

/// Hosts are replaced while packets are on their way: none is taken for one of the new ones.
#[test]
fn hosts_are_replaced_under_load() {
    let mut tester = Tester::with(2);
    tester.run(CONNECTED);
    let streams = streams();
    for trial in 0..20u8 {
        let plans = [plan(Protocol::Tcp, 80, 1 + u32::from(trial) * 7, 4000)];
        let all: Vec<&Plan> = plans.iter().collect();
        let (control, ports) = (&mut tester.control, tester.ports);
        let streams = (trial % 3 > 0).then_some(&streams);
        thalweg_device_load::set_hosts(control, ports, &all, streams, trial.into()).unwrap();
        let opening = Opening { rate: 50_000.0, hold: None, total: None };
        thalweg_device_load::set_opening(control, ports[0], 0, opening);
        for change in [Change::Begin(trial), Change::Load(Load::Times(10.0))] {
            thalweg_device_load::change_streams(control, ports, change);
        }
        control.run_once(Some(Duration::from_millis(10)));
    }
    tester.control.sync();
    let plans = [plan(Protocol::Tcp, 8080, 65_536, 64_512)];
    let (control, ports) = (&mut tester.control, tester.ports);
    thalweg_device_load::set_hosts(control, ports, &[&plans[0]], None, 99).unwrap();
    let [clients, servers] = open_all(&mut tester, &plans, 300);
    assert_eq!(clients[0].counts.clean, 300, "{clients:?} {servers:?}");
}

/// A worker without a processor for a while: its connections were not opened in time, and the
/// counters say so.
#[test]
fn a_worker_that_stood_still_is_late() {
    let mut tester = Tester::with(2);
    tester.run(CONNECTED);
    let mut plan = plan(Protocol::Tcp, 80, 65_536, 64_512);
    plan.late = 10_000;
    let (control, ports) = (&mut tester.control, tester.ports);
    thalweg_device_load::set_hosts(control, ports, &[&plan], Some(&streams()), 1).unwrap();
    tester.open(1000.0);
    tester.control.ask(|worker| {
        if worker.index() == 1 {
            // Paced: the worker has no processor for this long.
            std::thread::sleep(Duration::from_millis(300));
        }
    });
    // Half of the connections of 0.3 s, but for those that may be late: they are counted at the
    // worker's next turn.
    let (mut longest, end) = (0, Instant::now() + Duration::from_secs(120));
    loop {
        let [clients, _] = tester.reports();
        longest = longest.max(clients.longest_turn);
        if clients.counts.unsent >= 100 {
            break;
        }
        assert!(Instant::now() < end, "{:?}", clients.counts);
    }
    assert!(longest >= 290_000, "{longest}");
}

lab_test! {
    /// The kernel deals packets to both workers by a hash of its own: each reaches its owner.
    fn packets_that_another_worker_receives_are_handed_over() {
        let here = Netns::new("tester")?;
        here.run(|| {
            let end = LinkOptions::default();
            veth((&here, "left", &end), (&here, "right", &end))?;
            let mut tester = Tester::with(2);
            tester.run(CABLED);
            let plans = [plan(Protocol::Tcp, 80, 65_536, 64_512), plan(Protocol::Udp, 80, 1, 4000)];
            let all: Vec<&Plan> = plans.iter().collect();
            let (control, ports) = (&mut tester.control, tester.ports);
            thalweg_device_load::set_hosts(control, ports, &all, Some(&streams()), 1).unwrap();
            begin_streams(&mut tester, 1);
            let reports = open_all(&mut tester, &plans, 501);
            check_talks(&reports);
            check_streams(&end_streams(&mut tester));
            let (packets, drops) = handed_over(&tester);
            assert!(packets > 500 && drops == 0, "{packets} handed over, {drops} dropped");
            Ok(())
        })?
    }
}
