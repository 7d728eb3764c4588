//! The commands about interfaces, run as a user types them.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use thalweg_cli::CommandTree;
use thalweg_device::{
    Caps, Device, DeviceError, FEATURE, InterfaceSpec, Interfaces, Mode, SwIfIndex, Transmit,
    interface,
};
use thalweg_engine::Feature;
use thalweg_graph::{
    Built, Control, EngineConfig, Inject, Kind, Node, NodeCx, NodeDecl, Verdict, clock,
};
use thalweg_wire::MacAddr;

thalweg_graph::errors! { UNWANTED: Error, UNKNOWN, "no protocol here"; }

/// Stand-in for the next node of received frames.
static ETHERNET_INPUT: NodeDecl = NodeDecl {
    name: "ethernet-input",
    errors: ERRORS,
    build: |_| Built::node(Refuse),
    ..NodeDecl::DEFAULT
};

struct Refuse;

impl Node for Refuse {
    fn packet(&mut self, _: &mut NodeCx<'_>, _: thalweg_buffer::PktMut<'_>) -> Verdict {
        Verdict::drop(UNWANTED)
    }
}

static STUBS: Feature = Feature { name: "stubs", nodes: &[&ETHERNET_INPUT], ..Feature::DEFAULT };

struct Lab {
    c: Control,
    tree: CommandTree<Control>,
}

impl Lab {
    fn new() -> Lab {
        let pool = thalweg_buffer::PoolConfig { buffers: 512, ..Default::default() };
        let mut c = Control::new(EngineConfig { pool, ..Default::default() }).unwrap();
        thalweg_engine::start(&mut c, &[&FEATURE, &STUBS]).unwrap();
        Lab { c, tree: CommandTree::new(FEATURE.commands.to_vec()).unwrap() }
    }

    /// Output of a command; panics if it fails.
    fn run(&mut self, line: &str) -> String {
        let (text, result) = self.tree.run_line(&mut self.c, line);
        assert!(result.is_ok(), "{line}: {result:?}");
        text
    }

    /// Error of a command.
    fn fail(&mut self, line: &str) -> String {
        self.tree.run_line(&mut self.c, line).1.unwrap_err().to_string()
    }

    fn finish(mut self) {
        assert_eq!(self.c.shut_down().in_use, 0);
    }
}

#[test]
fn interfaces_are_shown_in_vpps_columns() {
    let mut lab = Lab::new();
    assert_eq!(lab.run("create loopback interface"), "loop0\n");
    assert_eq!(lab.run("create loop interface instance 10 mac 02:00:00:00:00:aa"), "loop10\n");
    assert_eq!(lab.run("create sink interface"), "sink0\n");
    lab.run("set int state loop0 up");
    lab.run("set interface mtu packet 1500 loop0");
    lab.run("set interface mtu loop10 8000");
    let sw_if = interface::find(&lab.c, "loop0").unwrap();
    let node = interface::view(&lab.c, sw_if).unwrap().output;
    for _ in 0..3 {
        lab.c.inject(0, Inject { node, bytes: vec![0; 60], tx_if: sw_if, ..Inject::default() });
    }
    lab.c.sync();
    lab.c.sync();
    let sink = interface::find(&lab.c, "sink0").unwrap();
    interface::set_mode(&mut lab.c, sw_if, Mode::CrossConnect(sink)).unwrap();
    let all = [
        "show int",
        "show int sink0 loop0",
        "show int addr",
        "show interface features loop0",
        "show hardware-interfaces",
        "show hard brief loop0",
        "show interface rx-placement",
        "show interface loop0 | json-pretty",
        "show hardware-interfaces loop0 | json-pretty",
        "show interface address loop0 | json",
        "show interface loop0 features | json",
    ];
    let text: String = all.iter().map(|l| format!("# {l}\n{}", lab.run(l))).collect();
    thalweg_testkit::golden!("tests/golden/show.txt", text);
    lab.run("clear interfaces");
    assert!(!lab.run("show int").contains("tx packets"));
    lab.finish();
}

#[test]
fn settings_take_and_mistakes_are_explained() {
    let mut lab = Lab::new();
    lab.run("create loopback interface");
    lab.run("set interface mac address loop0 02fe.0000.0001");
    lab.run("set int promiscuous on loop0");
    let v = interface::view(&lab.c, SwIfIndex(1)).unwrap();
    assert_eq!((v.mac, v.promiscuous), (MacAddr([2, 0xfe, 0, 0, 0, 1]), true));
    lab.run("set interface mtu ip4 1400 loop0");
    lab.run("set interface mtu mpls loop0 1300");
    lab.run("set interface mtu 1500 1");
    assert_eq!(interface::view(&lab.c, SwIfIndex(1)).unwrap().mtu, [1500, 1400, 0, 1300].into());
    lab.run("set int promiscuous off loop0");
    lab.run("set int state loop0 up");
    lab.run("set int state loop0 down");

    for (line, want) in [
        ("set int state loop1 up", "did you mean loop0?"),
        ("set int state loop0 sideways", "expected `up' or `down'"),
        ("set interface mtu 60 loop0", "MTU must be between 68 and"),
        ("set interface mtu 15OO loop0", "bad MTU `15OO' (argument 1): expected a number"),
        ("set interface mtu loop0 15OO", "bad MTU `15OO' (argument 2): expected a number"),
        ("set interface mtu loop9 1500", "bad interface `loop9' (argument 1)"),
        ("set interface mtu 1500 loop9", "bad interface `loop9' (argument 2)"),
        ("set interface mtu packet 65522 loop0", "MTU must be between 68 and 65521, not 65522"),
        ("set interface mac address loop0 01:00:5e:00:00:01", "not a unicast MAC address"),
        ("show interface loop7", "bad interface `loop7'"),
        ("show interface loop0 address bogus", "unexpected `bogus'"),
        ("show hardware bogus", "expected an interface"),
        ("create loopback interface instance 0", "`loop0` already exists"),
        ("delete loopback interface intfc local0", "this is a local interface"),
        ("set interface rx-mode loop0 polling", "a receive mode is not supported"),
        ("set interface rx-mode loop0 lazy", "expected `polling', `interrupt' or `adaptive'"),
        ("delete loopback interface loop0", "expected `intfc' and an interface"),
    ] {
        let text = lab.fail(line);
        assert!(text.contains(want), "{line}: {text}");
    }
    lab.run("delete loopback interface intfc loop0");
    assert!(lab.fail("show int loop0").contains("local0"));
    lab.finish();
}

/// A trace is read after the interface that it names has gone, and another one has its index.
/// A document saves these settings, and a router must take them back from there.
#[test]
fn a_tag_is_one_that_a_document_takes() {
    let mut lab = Lab::new();
    lab.run("create loopback interface");
    let name = thalweg_config::declare::Name::Any;
    for tag in ["?", "a b", "a#", "a'", "a{", "a\\", "\u{1b}", &"x".repeat(64)] {
        let set = interface::set_tag(&mut lab.c, SwIfIndex(1), tag);
        assert!(set.is_err() && !name.takes(tag), "{tag}");
    }
    for tag in ["a?", "?a", "help", "-", "all", "comment", "disable", "\u{e9}", &"x".repeat(63)] {
        interface::set_tag(&mut lab.c, SwIfIndex(1), tag).unwrap();
        assert!(name.takes(tag), "{tag}");
        lab.run(&format!("set interface tag loop0 {tag}"));
        assert_eq!(interface::view(&lab.c, SwIfIndex(1)).unwrap().tag, tag);
    }
}

#[test]
fn a_mac_address_of_zeros_is_refused() {
    let mut lab = Lab::new();
    for zeros in ["00:00:00:00:00:00", "01:00:5e:00:00:01"] {
        let error = lab.fail(&format!("create loopback interface mac {zeros}"));
        assert!(error.contains("not a unicast MAC address"), "{error}");
    }
    lab.run("create loopback interface");
    let error = lab.fail("set interface mac address loop0 00:00:00:00:00:00");
    assert!(error.contains("not a unicast MAC address"), "{error}");
}

#[test]
fn traces_name_the_interface_of_their_time() {
    let mut lab = Lab::new();
    lab.run("create loopback interface instance 3");
    let sw_if = interface::find(&lab.c, "loop3").unwrap();
    let before = clock::ticks();
    assert_eq!(lab.c.interface_name_at(sw_if, before), "loop3");
    lab.run("delete loopback interface intfc loop3");
    assert_eq!(lab.c.interface_name_at(sw_if, before), "loop3 (deleted)");
    let between = clock::ticks();
    assert_eq!(lab.c.interface_name_at(sw_if, between), format!("deleted-{sw_if}"));
    lab.run("create loopback interface instance 4");
    assert_eq!(interface::find(&lab.c, "loop4"), Ok(sw_if), "the index is used again");
    let names = lab.c.state::<Interfaces>().borrow().names();
    for (at, name) in [(before, "loop3 (deleted)"), (clock::ticks(), "loop4")] {
        assert_eq!(lab.c.interface_name_at(sw_if, at), name);
        assert_eq!(names.at(sw_if, at), name);
    }
    lab.finish();
}

#[test]
fn names_complete() {
    let mut lab = Lab::new();
    lab.run("create loopback interface");
    lab.run("create loopback interface");
    let offers = |line: &str| -> Vec<String> {
        lab.tree.complete(&lab.c, line, line.len()).into_iter().map(|c| c.word).collect()
    };
    assert_eq!(offers("set int state lo"), ["local0", "loop0", "loop1"]);
    assert_eq!(offers("set int state loop0 "), ["down", "up"]);
    assert_eq!(offers("delete loopback interface intfc "), ["loop0", "loop1"]);
    assert_eq!(offers("show interface loop1"), ["loop1"]);
    assert_eq!(offers("set int mtu pa"), ["packet"]);
    assert_eq!(offers("set interface promiscuous on loop"), ["loop0", "loop1"]);
    assert_eq!(offers("set interface rx-mode loop0 q"), ["queue"]);
    assert_eq!(offers("set interface rx-mode loop0 queue 0 p"), ["polling"]);
    lab.finish();
}

#[test]
fn the_lists_are_current() {
    thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(8))]
    #[test]
    fn no_line_panics(lines in proptest::collection::vec(
        "(show|set|create|delete|clear) (int|interface|loopback|hard|sink)( [a-z0-9:]{0,8}| mtu| state| loop0| up){0,4}",
        1..40,
    )) {
        let mut lab = Lab::new();
        for line in lines {
            let _ = lab.tree.run_line(&mut lab.c, &line);
        }
        lab.finish();
    }
}

static RESTLESS_TX: NodeDecl =
    NodeDecl { name: "restless-tx", kind: Kind::Tx, ..NodeDecl::DEFAULT };

/// Reports a changed link, speed and offloads from each call, as a device does that answers at
/// once; sub-interfaces follow each report.
struct Restless(Cell<bool>);

impl Restless {
    fn report(&self, c: &mut Control, sw_if: SwIfIndex) {
        let up = !self.0.replace(!self.0.get());
        // Drivers do the same: an interface that has gone meanwhile needs no report.
        let _ = interface::set_link(c, sw_if, up);
        let _ = interface::set_speed(c, sw_if, 1000 + u32::from(up));
        let _ = interface::refresh_caps(c, sw_if);
    }

    fn report_all(&self, c: &mut Control) {
        let all = interface::find(c, "restless0");
        all.into_iter().for_each(|sw_if| self.report(c, sw_if));
    }
}

impl Device for Restless {
    fn dev_type(&self) -> &'static str {
        "restless"
    }
    fn set_admin(&self, c: &mut Control, sw_if: SwIfIndex, up: bool) -> Result<(), DeviceError> {
        self.report(c, sw_if);
        interface::set_link(c, sw_if, up)
    }
    fn set_promiscuous(&self, c: &mut Control, _: bool) -> Result<(), DeviceError> {
        self.report_all(c);
        Ok(())
    }
    fn set_mac(&self, c: &mut Control, _: MacAddr) -> Result<bool, DeviceError> {
        self.report_all(c);
        Ok(true)
    }
    fn set_mtu(&self, c: &mut Control, _: u32) -> Result<bool, DeviceError> {
        self.report_all(c);
        Ok(true)
    }
    fn caps(&self) -> Option<Caps> {
        Some(Caps { tx_csum: self.0.get(), ..Caps::default() })
    }
}

fn restless(lab: &mut Lab) -> SwIfIndex {
    let spec = InterfaceSpec {
        name: "restless0".into(),
        mac: MacAddr([2, 0, 0, 0, 0, 9]),
        mtu: 1500,
        speed_kbps: 0,
        link_up: true,
        caps: Caps::default(),
        device: Box::new(Restless(Cell::new(true))),
        input: None,
    };
    let mut build = |_, _| Built::node(Refuse);
    interface::create(&mut lab.c, spec, Transmit::Own(&RESTLESS_TX, &mut build)).unwrap()
}

#[test]
fn a_driver_may_call_back_from_every_call() {
    for sub_state in ["up", "down"] {
        for accepts_all in [false, true] {
            let mut lab = Lab::new();
            let sw_if = restless(&mut lab);
            lab.run("set interface state restless0 up");
            lab.run("create sub-interfaces restless0 100");
            lab.run(&format!("set interface state restless0.100 {sub_state}"));
            let sub = interface::find(&lab.c, "restless0.100").unwrap();
            interface::accept_all(&mut lab.c, sub, accepts_all).unwrap();
            for line in [
                "set interface promiscuous on restless0.100",
                "set interface mac address restless0 02:00:00:00:00:08",
                "set interface mtu restless0 1400",
                "set interface state restless0 down",
                "set interface state restless0 up",
            ] {
                lab.run(line);
            }
            interface::delete(&mut lab.c, sw_if).unwrap();
            let begun = Instant::now();
            while interface::find(&lab.c, "restless0").is_ok() {
                assert!(begun.elapsed() < thalweg_testkit::WAIT_LIMIT, "it does not go");
                lab.c.run_once(Some(Duration::from_millis(1)));
            }
            assert!(interface::find(&lab.c, "restless0.100").is_err());
            lab.finish();
        }
    }
}

/// A worker may get no processor for long: only what it may still have under way is waited for.
#[test]
fn of_many_interfaces_that_went_down_the_first_waits_for_all() {
    let mut lab = Lab::new();
    for n in 0..4 {
        lab.run(&format!("create loopback interface instance {n}"));
    }
    // The last never was up.
    for n in 0..3 {
        lab.run(&format!("set interface state loop{n} up"));
        lab.run(&format!("set interface state loop{n} down"));
    }
    lab.run("delete loopback interface intfc loop0");
    let (end, ends) = mpsc::channel::<()>();
    let ends = Arc::new(Mutex::new(ends));
    let _busy = lab.c.begin_asking(move |_| _ = ends.lock().map(|ends| ends.recv()));
    let began = Instant::now();
    for n in 1..4 {
        lab.run(&format!("delete loopback interface intfc loop{n}"));
    }
    let took = began.elapsed();
    drop(end);
    // A delete that waits gives up after a second without an answer.
    assert!(took < Duration::from_millis(900), "{took:?}");
    assert!(interface::find(&lab.c, "loop3").is_err());
    lab.c.shut_down();
}

/// A wait that was given up says nothing of what the worker has under way.
#[test]
fn an_interface_waits_for_a_worker_that_did_not_answer_another() {
    let mut lab = Lab::new();
    for n in 0..2 {
        lab.run(&format!("create loopback interface instance {n}"));
        lab.run(&format!("set interface state loop{n} up"));
        lab.run(&format!("set interface state loop{n} down"));
    }
    for n in 0..2 {
        let (end, ends) = mpsc::channel::<()>();
        let ends = Arc::new(Mutex::new(ends));
        let _busy = lab.c.begin_asking(move |_| _ = ends.lock().map(|ends| ends.recv()));
        let began = Instant::now();
        lab.run(&format!("delete loopback interface intfc loop{n}"));
        let took = began.elapsed();
        drop(end);
        assert!(took > Duration::from_millis(500), "loop{n}: {took:?}");
        // One that responds again is waited for.
        while !lab.c.sync() {}
    }
    lab.c.shut_down();
}
