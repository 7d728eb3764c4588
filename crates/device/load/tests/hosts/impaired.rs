//! Lines that lose, damage, repeat and delay: books balance, and what was lost is counted where.

use thalweg_device_load::What;
use thalweg_load::talk::{Exchange, Plan, Protocol, Talk};

use super::Tester;

const CONNECTED: &str = "set interface l2 xconnect load0 load1
    set interface l2 xconnect load1 load0";

fn plan(exchange: &Exchange) -> Plan {
    let mut plan = Plan::of(Talk::exchange("tcp", Protocol::Tcp, 8080, exchange));
    plan.room = 65_536;
    plan.late = 60_000_000;
    plan
}

#[test]
fn a_port_without_impairment_loses_nothing() {
    let mut tester = Tester::new();
    tester.run(CONNECTED);
    tester.run("load impair load0 lose 2\nload impair load0 none");
    let plan = plan(&Exchange::default());
    tester.give_clients(&plan);
    tester.give_servers(&plan);
    let [clients, servers] = tester.open_and_end(10_000.0, 2000);
    assert_eq!(clients.counts.clean, clients.counts.begun);
    assert_eq!(clients.counts.received, servers.counts.sent);
    assert_eq!(tester.count("lost on purpose"), 0);
}

/// The arc counts how often a feature is wanted: impairments that replace each other want it once.
#[test]
fn none_ends_what_several_commands_have_begun() {
    let mut tester = Tester::new();
    let nodes = |tester: &Tester| -> Vec<&str> {
        let all = tester.control.enabled_features(tester.ports[0]);
        all.into_iter().flat_map(|(_, names)| names).filter(|name| *name == "load-impair").collect()
    };
    tester.run("load impair load0 lose 2\nload impair load0 damage 5\nload impair load0 lose 9");
    assert_eq!(nodes(&tester), ["load-impair"]);
    tester.run("load impair load0 none");
    assert!(nodes(&tester).is_empty());
    tester.run("load impair load0 none\nload impair load0 lose 3");
    assert_eq!(nodes(&tester), ["load-impair"]);
    tester.run("load impair load0 delay 5");
    assert!(nodes(&tester).is_empty(), "a delay is not the node's");
}

#[test]
fn each_packet_lost_is_counted_by_the_node_that_lost_it() {
    let mut tester = Tester::new();
    tester.run(CONNECTED);
    tester.run("load impair load0 lose 50 seed 7\nload impair load1 lose 100 seed 8");
    let plan = plan(&Exchange { messages: 3, ..Exchange::default() });
    tester.give_clients(&plan);
    tester.give_servers(&plan);
    let [clients, servers] = tester.open_and_end(5000.0, 2000);
    let (c, s) = (clients.counts, servers.counts);
    assert!(c.syn_retries + c.data_retries + c.fast_retries > 0, "{c:?}");
    // Connections with packets sent twice are not clean, but nearly all complete.
    assert!(c.completed > c.clean && c.completed >= c.begun * 99 / 100, "{c:?}");
    let lost = c.sent + s.sent - c.received - s.received;
    assert_eq!(lost, tester.count("lost on purpose"));
    assert!(lost > 100, "{lost}");
}

#[test]
fn only_the_sizes_asked_for_are_lost() {
    let mut tester = Tester::new();
    tester.run(CONNECTED);
    // Answers of 1000 bytes go the other way: none of them is lost.
    tester.run("load impair load0 lose 1 min-bytes 1000\nload impair load1 lose 3 min-bytes 1000");
    let exchange = Exchange { request: 100, answer: 1000, ..Exchange::default() };
    let plan = plan(&exchange);
    tester.give_clients(&plan);
    tester.give_servers(&plan);
    let [clients, servers] = tester.open_and_end(2000.0, 500);
    let (c, s) = (clients.counts, servers.counts);
    assert_eq!(c.sent, s.received, "nothing that clients send is that long");
    assert_eq!(s.sent - c.received, tester.count("lost on purpose"));
    assert!(s.data_retries > 0, "{s:?}");
}

#[test]
fn damage_is_found_by_checksums() {
    let mut tester = Tester::new();
    tester.run(CONNECTED);
    tester.run("load impair load0 damage 20");
    let plan = plan(&Exchange::default());
    tester.give_clients(&plan);
    tester.give_servers(&plan);
    let [clients, servers] = tester.open_and_end(5000.0, 2000);
    let damaged = tester.count("damaged on purpose");
    assert!(damaged > 100, "{damaged}");
    // Segments with another length of header are invalid.
    let found = servers.counts.bad_checksum + servers.counts.foreign;
    assert_eq!(found, damaged);
    assert!(servers.counts.bad_checksum > found * 9 / 10, "{found}");
    assert!(clients.counts.completed >= clients.counts.begun * 99 / 100);
}

#[test]
fn packets_that_take_time_arrive_in_other_orders() {
    let mut tester = Tester::new();
    tester.run(CONNECTED);
    tester.run(
        "load impair load0 delay 500 jitter 2000 repeat 10
         load impair load1 delay 500 jitter 2000",
    );
    let exchange = Exchange { request: 8000, answer: 8000, ..Exchange::default() };
    let plan = plan(&exchange);
    tester.give_clients(&plan);
    tester.give_servers(&plan);
    let [clients, servers] = tester.open_and_end(1000.0, 300);
    let (c, s) = (clients.counts, servers.counts);
    assert!(c.completed >= c.begun * 99 / 100, "{c:?}");
    assert!(s.reordered > 0 && s.duplicates > 0, "{s:?}");
    // Twins were received, but never sent.
    assert!(s.received > c.sent, "{s:?} {c:?}");
}

/// The first packets of connections that are dropped in a window are noted, with their place.
#[test]
fn dropped_packets_of_connections_are_noted() {
    let mut tester = Tester::new();
    tester.run(CONNECTED);
    tester.run("load impair load0 lose 10 seed 3\nload witness trial 1 seed 1");
    let plan = plan(&Exchange::default());
    tester.give_clients(&plan);
    tester.give_servers(&plan);
    tester.open_and_end(5000.0, 300);
    assert!(tester.count("lost on purpose") > 0);
    assert_eq!(tester.said("show load witness"), "", "not in the window");
    tester.run("load witness trial 2 seed 1\nload witness window");
    tester.open_and_end(5000.0, 900);
    let answers = thalweg_device_load::ask_dropped(&mut tester.control);
    let mut noted = None;
    tester.until("the witness answers", |_| {
        noted = answers.try_recv().ok();
        noted.is_some()
    });
    let noted = noted.unwrap();
    // One reason has no more, however many are dropped.
    assert_eq!(noted.len(), 16);
    for dropped in &noted {
        let What::Talk(flow) = dropped.what else { panic!("{dropped:?}") };
        assert!(plan.has(&flow), "{flow}");
        assert_eq!(dropped.rx, tester.ports[0]);
        let place = thalweg_device_load::place(&tester.control, dropped);
        assert_eq!((place.0.as_str(), place.1.as_str()), ("load-impair", "lost on purpose"));
    }
    // The window has ended: nothing is noted any more.
    tester.open_and_end(5000.0, 1200);
    assert_eq!(tester.said("show load witness"), "");
    tester.run("load witness trial 3 seed 1\nload witness window");
    tester.open_and_end(5000.0, 1500);
    let said = tester.said("show load witness");
    let first = said.lines().next().unwrap_or_default();
    assert!(first.starts_with("tcp from 16.0."), "{said}");
    assert!(first.ends_with(": load-impair, lost on purpose, received by load0"), "{said}");
}

#[test]
fn what_cannot_be_is_refused() {
    let mut tester = Tester::new();
    for (line, why) in [
        ("load impair local0 lose 5", "not a port of the load tester"),
        ("load impair local0 delay 5", "other Ethernet interfaces can lose and damage"),
        ("load impair load0", "missing impairment"),
        ("load witness trial 256 seed 1", "from 0 to 255"),
        ("load witness trial 1", "seed"),
        ("load witness", "window"),
        ("load impair load0 lose 0", "1"),
        ("load impair load0 delay 99999999999", "10000000"),
    ] {
        let said = tester.refused(line);
        assert!(said.contains(why), "{line}: {said}");
    }
}
