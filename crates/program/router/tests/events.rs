//! Subscribers of events may do whatever a command can, also to what the event is about.

#![allow(clippy::expect_used, clippy::panic)]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use thalweg_cli::CommandTree;
use thalweg_device::{InterfaceEvent, Interfaces, Mode};
use thalweg_feat_ip::AddressesChanged;
use thalweg_feat_l2::PortsChanged;
use thalweg_feat_neighbor::NeighborChange;
use thalweg_graph::{Control, EngineConfig};
use thalweg_program_router::features::FEATURES;

type Tree = Rc<CommandTree<Control>>;
type Log = Rc<RefCell<Vec<String>>>;

fn router() -> (Control, Tree) {
    let pool = thalweg_buffer::PoolConfig { buffers: 1024, ..Default::default() };
    let mut c = Control::new(EngineConfig { pool, ..EngineConfig::default() }).expect("an engine");
    thalweg_engine::start(&mut c, FEATURES).expect("a graph");
    let tree = thalweg_engine::command_tree(&c).expect("commands");
    (c, Rc::new(tree))
}

fn run(c: &mut Control, tree: &Tree, line: &str) -> String {
    let (text, result) = tree.run_line(c, line);
    assert!(result.is_ok(), "{line}: {result:?}");
    text
}

fn up(c: &Control, name: &str) -> bool {
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    all.iter().any(|v| v.name == name && v.admin_up)
}

#[test]
fn interfaces_change_while_others_learn_of_a_change() {
    let (mut c, tree) = router();
    let log = Log::default();
    let (copy, commands) = (log.clone(), tree.clone());
    c.subscribe(move |c, event| {
        let name = |i| c.interface_name(i);
        match *event {
            InterfaceEvent::Created(i) => {
                let name = name(i);
                copy.borrow_mut().push(format!("created {name}"));
                run(c, &commands, &format!("set interface state {name} up"));
            }
            InterfaceEvent::State(i) => {
                let name = name(i);
                let up = up(c, &name);
                copy.borrow_mut().push(format!("{name} {}", if up { "up" } else { "down" }));
                if up && name == "loop1" {
                    run(c, &commands, "set interface state loop1 down");
                }
            }
            InterfaceEvent::Deleted(i) => {
                let name = name(i);
                copy.borrow_mut().push(format!("deleted {name}"));
                if name == "loop0" {
                    // Delete it once more, and another one; a new one is another interface.
                    let again = commands.run_line(c, "delete loopback interface intfc loop0").1;
                    assert!(again.is_err());
                    run(c, &commands, "delete loopback interface intfc loop1");
                    run(c, &commands, "create loopback interface instance 7");
                }
            }
            _ => {}
        }
    });
    // The last subscriber sees each change after the first one, in the same order.
    let (order, first) = (Log::default(), log.clone());
    let copy = order.clone();
    c.subscribe(move |c, event: &InterfaceEvent| {
        if let InterfaceEvent::Created(i) | InterfaceEvent::Deleted(i) = event {
            let name = c.interface_name(*i);
            assert!(first.borrow().iter().any(|l| l.ends_with(&name)), "{event:?}");
            copy.borrow_mut().push(name);
        }
    });
    run(&mut c, &tree, "create loopback interface");
    run(&mut c, &tree, "create loopback interface");
    assert_eq!(
        log.take(),
        ["created loop0", "loop0 up", "created loop1", "loop1 up", "loop1 down"]
    );
    run(&mut c, &tree, "delete loopback interface intfc loop0");
    let seen = log.take();
    assert_eq!(seen[..3], ["loop0 down", "deleted loop0", "deleted loop1"]);
    assert!(up(&c, "loop7"));
    let left: Vec<String> =
        c.state::<Interfaces>().borrow().iter().map(|v| v.name.clone()).collect();
    assert_eq!(left, ["local0", "loop7"]);
    assert_eq!(order.take(), ["loop0", "loop1", "loop0", "loop1", "loop7"]);
    assert_eq!(c.shut_down().in_use, 0);
}

#[test]
fn addresses_change_while_others_learn_of_a_change() {
    let (mut c, tree) = router();
    let n = Rc::new(Cell::new(0));
    let (count, commands) = (n.clone(), tree.clone());
    c.subscribe(move |c, &AddressesChanged { sw_if, .. }| {
        count.set(count.get() + 1);
        let name = c.interface_name(sw_if);
        match count.get() {
            1 => run(c, &commands, &format!("set interface ip address {name} 10.0.1.1/24")),
            2 => run(c, &commands, &format!("set interface ip address del {name} 10.0.0.1/24")),
            3 => run(c, &commands, &format!("delete loopback interface intfc {name}")),
            _ => String::new(),
        };
    });
    run(&mut c, &tree, "create loopback interface");
    run(&mut c, &tree, "set interface ip address loop0 10.0.0.1/24");
    assert!(n.get() >= 3);
    assert!(!run(&mut c, &tree, "show interface").contains("loop0"));
    let fib = run(&mut c, &tree, "show ip fib");
    assert!(!fib.contains("10.0."), "{fib}");
    assert_eq!(c.shut_down().in_use, 0);
}

#[test]
fn neighbours_change_while_others_learn_of_a_change() {
    let (mut c, tree) = router();
    let n = Rc::new(Cell::new(0));
    let (count, commands) = (n.clone(), tree.clone());
    c.subscribe(move |c, change: &NeighborChange| {
        count.set(count.get() + 1);
        match (count.get(), change.mac) {
            (1, Some(_)) => run(c, &commands, "set ip neighbor loop0 10.0.0.2 02:00:00:00:00:09"),
            (2, Some(_)) => run(c, &commands, "set ip neighbor loop0 10.0.0.3 02:00:00:00:00:03"),
            (3, Some(_)) => run(c, &commands, "set ip neighbor del loop0 10.0.0.2"),
            (4, None) => run(c, &commands, "delete loopback interface intfc loop0"),
            _ => String::new(),
        };
    });
    for line in [
        "create loopback interface",
        "set interface state loop0 up",
        "set interface ip address loop0 10.0.0.1/24",
        "set ip neighbor loop0 10.0.0.2 02:00:00:00:00:02",
    ] {
        run(&mut c, &tree, line);
    }
    assert!(n.get() >= 5, "{}", n.get());
    assert!(!run(&mut c, &tree, "show ip neighbors").contains("10.0.0"));
    let fib = run(&mut c, &tree, "show ip fib");
    assert!(!fib.contains("10.0.0"), "{fib}");
    assert_eq!(c.shut_down().in_use, 0);
}

#[test]
fn bridge_ports_change_while_others_learn_of_a_change() {
    let (mut c, tree) = router();
    let n = Rc::new(Cell::new(0));
    let (count, commands) = (n.clone(), tree.clone());
    c.subscribe(move |c, _: &PortsChanged| {
        count.set(count.get() + 1);
        match count.get() {
            1 => run(c, &commands, "set interface l2 bridge loop0 20"),
            2 => run(c, &commands, "set interface l2 xconnect loop0 loop1"),
            3 => run(c, &commands, "delete loopback interface intfc loop1"),
            _ => String::new(),
        };
    });
    run(&mut c, &tree, "create loopback interface");
    run(&mut c, &tree, "create loopback interface");
    run(&mut c, &tree, "set interface l2 bridge loop0 10");
    assert!(n.get() >= 3);
    let routed = c.state::<Interfaces>().borrow().iter().all(|v| v.mode == Mode::Routed);
    assert!(routed, "{}", run(&mut c, &tree, "show mode"));
    assert_eq!(c.shut_down().in_use, 0);
}
