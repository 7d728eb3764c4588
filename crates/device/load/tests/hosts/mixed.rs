//! Several kinds of hosts behind the same ports: each hears what is for it.

use thalweg_device_load::Change;
use thalweg_load::stream::{self, Field, Load};
use thalweg_load::talk::{Exchange, Opening, Plan, Protocol, Talk};

use super::Tester;

const CONNECTED: &str = "set interface l2 xconnect load0 load1
    set interface l2 xconnect load1 load0";

fn udp_to_port_80() -> stream::Stream {
    let address = |address: [u8; 4]| Field::one(u32::from_be_bytes(address));
    let (source, destination) = (address([16, 0, 0, 5]), address([48, 0, 0, 5]));
    stream::Stream::udp("s", source, destination, (Field::one(2000u16), Field::one(80u16)))
}

fn group(protocol: Protocol, port: u16) -> Plan {
    let exchange = Exchange { messages: 2, ..Exchange::default() };
    let mut plan = Plan::of(Talk::exchange("kind", protocol, port, &exchange));
    (plan.room, plan.late) = (65_536, 60_000_000);
    plan
}

#[test]
fn streams_and_groups_of_connections_share_ports() {
    let mut tester = Tester::new();
    tester.run(CONNECTED);
    // The same clients and servers: only the servers' ports tell them apart.
    let groups = [group(Protocol::Tcp, 80), group(Protocol::Tcp, 443), group(Protocol::Udp, 80)];
    // A stream with addresses and ports of the connections: only its tag tells it apart.
    let mut stream = udp_to_port_80();
    stream.direction = stream::Direction::Both;
    stream.rate = stream::Rate::Packets(2000.0);
    let mut streams = stream::Plan::of(vec![stream]);
    streams.late = 60_000_000_000;
    let plans: Vec<&Plan> = groups.iter().collect();
    let (control, ports) = (&mut tester.control, tester.ports);
    thalweg_device_load::set_hosts(control, ports, &plans, Some(&streams), 1).unwrap();
    thalweg_device_load::change_streams(control, ports, Change::Begin(1));
    thalweg_device_load::change_streams(control, ports, Change::Load(Load::Times(1.0)));
    thalweg_device_load::change_streams(control, ports, Change::Judging(true));
    for at in 0..groups.len() {
        let opening = Opening { rate: 1000.0, hold: None, total: Some(200 + 100 * at as u64) };
        thalweg_device_load::set_opening(control, ports[0], at, opening);
    }
    tester.until("all connections have ended", |control| {
        let answers = thalweg_device_load::ask(control, &ports);
        control.run_once(Some(std::time::Duration::from_millis(20)));
        let Ok(reports) = answers.recv_timeout(std::time::Duration::from_secs(10)) else {
            return false;
        };
        let ended = |(at, report): (usize, &thalweg_device_load::Report)| {
            report.counts.begun == 200 + 100 * at as u64 && report.open + report.time_wait == 0
        };
        reports[0].len() == 3 && reports[0].iter().enumerate().all(ended)
    });
    let control = &mut tester.control;
    thalweg_device_load::change_streams(control, ports, Change::Load(Load::Times(0.0)));
    let mut books = None;
    tester.until("the streams have arrived", |control| {
        let answers = thalweg_device_load::ask_streams(control, ports);
        control.run_once(Some(std::time::Duration::from_millis(20)));
        books = answers.recv_timeout(std::time::Duration::from_secs(10)).ok();
        let sent = |of: &thalweg_device_load::DirectionReport| {
            let all = &of.streams[0].all;
            all.sent.sent > 0 && all.sent.sent == all.received.packets
        };
        books.as_ref().is_some_and(|both| both.iter().all(sent))
    });
    let books = books.unwrap();
    let times = thalweg_device_load::ask_times(&mut tester.control, ports);
    tester.control.run_once(Some(std::time::Duration::from_millis(20)));
    let times = times.recv_timeout(std::time::Duration::from_secs(10)).unwrap();
    assert!(times.half <= times.longest && times.longest.is_some(), "{times:?}");
    for direction in &books {
        assert_eq!(direction.port.foreign, 0, "{direction:?}");
        assert_eq!(direction.streams[0].judged.lost, 0, "{direction:?}");
    }
    let answers = thalweg_device_load::ask(&mut tester.control, &ports);
    tester.control.run_once(Some(std::time::Duration::from_millis(20)));
    let reports = answers.recv_timeout(std::time::Duration::from_secs(10)).unwrap();
    for (clients, servers) in reports[0].iter().zip(&reports[1]) {
        let (c, s) = (clients.counts, servers.counts);
        assert_eq!((c.clean, c.foreign, c.unknown), (c.begun, 0, 0), "{c:?}");
        assert_eq!((c.sent, s.sent), (s.received, c.received), "{c:?} {s:?}");
        assert_eq!((s.foreign, s.unknown), (0, 0), "{s:?}");
    }
}

/// The graph drops some packets of a stream: the very ones that are missing are noted, with reason
/// and interface.
#[test]
fn packets_that_the_graph_drops_are_noted() {
    let mut tester = Tester::new();
    tester.run(CONNECTED);
    tester.run("load impair load0 lose 10 seed 5");
    let mut stream = udp_to_port_80();
    stream.rate = stream::Rate::Packets(1000.0);
    let mut streams = stream::Plan::of(vec![stream]);
    streams.late = 60_000_000_000;
    let (control, ports) = (&mut tester.control, tester.ports);
    thalweg_device_load::set_streams(control, ports, &streams, 9).unwrap();
    thalweg_device_load::witness(control, 3, 9).unwrap();
    for change in [Change::Begin(3), Change::Load(Load::Times(1.0)), Change::Judging(true)] {
        thalweg_device_load::change_streams(control, ports, change);
    }
    tester.until("packets are lost", |control| {
        control.run_once(Some(std::time::Duration::from_millis(100)));
        let reasons = control.errors().iter().enumerate();
        let reasons = reasons.filter(|(_, (_, decl))| decl.text == "lost on purpose");
        reasons.map(|(index, _)| control.error_count(0, index as u32)).sum::<u64>() >= 20
    });
    let control = &mut tester.control;
    thalweg_device_load::change_streams(control, ports, Change::Load(Load::Times(0.0)));
    let (answers, dropped) = (
        thalweg_device_load::ask_streams(control, ports),
        thalweg_device_load::ask_dropped(control),
    );
    control.run_once(Some(std::time::Duration::from_millis(100)));
    let limit = std::time::Duration::from_secs(10);
    let ([there, _], dropped) = (answers.recv_timeout(limit).unwrap(), dropped.recv_timeout(limit));
    let dropped = dropped.unwrap();
    let missing = there.streams[0].judged.missing.iter().cloned().flatten().take(10);
    let number = |dropped: &thalweg_device_load::Dropped| match dropped.what {
        thalweg_device_load::What::Stream(tag) => u64::from(tag.sequence),
        thalweg_device_load::What::Talk(flow) => panic!("{flow}"),
    };
    let noted = dropped.iter().map(number).take(10);
    assert!(missing.eq(noted), "{dropped:?} {:?}", there.streams[0].judged.missing);
    for one in &dropped {
        assert_eq!(one.rx, ports[0]);
        let (_, decl) = &tester.control.errors()[one.reason as usize];
        assert_eq!(decl.text, "lost on purpose");
    }
}
