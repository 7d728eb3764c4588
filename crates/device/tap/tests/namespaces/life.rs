//! TAPs that the router makes: what the kernel shows of them, and what becomes of them.

use crate::support::{Raw, in_namespace, in_rootless_namespace, ip, run};
use std::time::{Duration, Instant};
use thalweg_buffer::PoolConfig;
use thalweg_device::{SwIfIndex, interface};
use thalweg_device_tap::{FEATURE, Flags, HostSide, TapConfig, create, delete};
use thalweg_engine::Feature;
use thalweg_graph::{Built, Control, EngineConfig, Node, NodeCx, NodeDecl, Verdict};
use thalweg_testkit::WAIT_LIMIT;
use thalweg_wire::MacAddr;

thalweg_graph::errors! {
    ENDED: Error, UNKNOWN, "end of the test";
}

/// Ends what TAPs receive.
static END: Feature = Feature {
    name: "end",
    about: "drops what is received",
    needs: &[&thalweg_device::FEATURE],
    nodes: &[&ETHERNET_INPUT],
    ..Feature::DEFAULT
};

static ETHERNET_INPUT: NodeDecl = NodeDecl {
    name: "ethernet-input",
    errors: ERRORS,
    build: |_| Built::node(End),
    ..NodeDecl::DEFAULT
};

struct End;

impl Node for End {
    fn packet(&mut self, _: &mut NodeCx<'_>, _: thalweg_buffer::PktMut<'_>) -> Verdict {
        Verdict::drop(ENDED)
    }
}

fn router(workers: usize) -> Control {
    let pool = PoolConfig { buffers: 1024, ..PoolConfig::default() };
    let config = EngineConfig { pool, workers: vec![None; workers], ..EngineConfig::default() };
    let mut c = Control::new(config).unwrap();
    let features = thalweg_engine::with_needs(&[&END, &FEATURE]);
    thalweg_engine::start(&mut c, &features).unwrap();
    c
}

fn until(c: &mut Control, what: &str, mut done: impl FnMut(&mut Control) -> bool) {
    let start = Instant::now();
    while !done(c) {
        assert!(start.elapsed() < WAIT_LIMIT, "waited too long for {what}");
        c.run_once(Some(Duration::from_millis(5)));
    }
}

fn named(name: &str) -> TapConfig {
    let host = HostSide { name: Some(name.into()), ..HostSide::default() };
    TapConfig { host, ..TapConfig::default() }
}

fn is_up(c: &Control, sw_if: SwIfIndex) -> bool {
    interface::view(c, sw_if).unwrap().link_up
}

fn exists(device: &str) -> bool {
    ip("-o link show").contains(&format!(": {device}"))
}

/// Sends frames to the router until it has received one.
fn receives(c: &mut Control, sw_if: SwIfIndex, device: &str) {
    let raw = Raw::open(device);
    let before = c.interface_totals(sw_if).rx_packets;
    until(c, "a frame", |c| {
        raw.send(&[2; 60]).unwrap();
        c.interface_totals(sw_if).rx_packets > before
    });
}

#[test]
fn the_kernels_end_is_set_up() {
    in_namespace("life::the_kernels_end_is_set_up", || {
        ip("link set lo up");
        let mut c = router(1);
        let mut config = named("lan0");
        config.host.mac = Some(MacAddr([2, 0, 0, 0, 0, 9]));
        config.host.mtu = Some(4000);
        config.host.ip4 = Some(([192, 0, 2, 1].into(), 24));
        config.host.ip4_gw = Some([192, 0, 2, 254].into());
        config.rx_ring = Some(128);
        let sw_if = create(&mut c, config).unwrap();
        let shown = ip("-d address show dev lan0");
        for want in ["02:00:00:00:00:09", "mtu 4000", "192.0.2.1/24", "UP", "qlen 128", "type tap"]
        {
            assert!(shown.contains(want), "{want} is missing in {shown}");
        }
        assert!(ip("route show default").contains("via 192.0.2.254 dev lan0"));
        let view = interface::view(&c, sw_if).unwrap();
        assert_eq!((view.name.as_str(), view.link_mtu), ("tap0", 4000));
        assert_eq!(view.mac, MacAddr([2, 0xfe, 0, 0, 0, 9]));
        // The carrier is that of the router's end.
        assert!(shown.contains("NO-CARRIER"), "{shown}");
        interface::set_admin(&mut c, sw_if, true).unwrap();
        assert!(ip("link show dev lan0").contains("LOWER_UP"));
        receives(&mut c, sw_if, "lan0");
        interface::set_admin(&mut c, sw_if, false).unwrap();
        assert!(ip("link show dev lan0").contains("NO-CARRIER"));
        delete(&mut c, sw_if).unwrap();
        until(&mut c, "the device to go", |_| !exists("lan0"));
        assert_eq!(c.shut_down().in_use, 0);
    });
}

#[test]
fn names_and_numbers_are_vpps() {
    in_rootless_namespace("life::names_and_numbers_are_vpps", || {
        let mut c = router(1);
        let name = |c: &Control, sw_if| interface::view(c, sw_if).unwrap().name;
        let make =
            |c: &mut Control, id, flags| create(c, TapConfig { id, flags, ..TapConfig::default() });
        let first = make(&mut c, None, Flags::default()).unwrap();
        let tun = make(&mut c, None, Flags::TUN).unwrap();
        let high = make(&mut c, Some(8192), Flags::default()).unwrap();
        let all = [first, tun, high].map(|i| name(&c, i));
        assert_eq!(all, ["tap0", "tun1", "tap8192"]);
        assert!(exists("tap0") && exists("tun0"), "named by the kernel");
        assert!(!interface::view(&c, tun).unwrap().ethernet);
        let error = make(&mut c, Some(1), Flags::default()).unwrap_err();
        assert!(error.to_string().contains("already exists"), "{error}");
        delete(&mut c, tun).unwrap();
        let again = make(&mut c, Some(1), Flags::default()).unwrap();
        assert_eq!(name(&c, again), "tap1");
        let lan = TapConfig { if_name: Some("lan".into()), ..TapConfig::default() };
        let lan_if = create(&mut c, lan.clone()).unwrap();
        assert_eq!(name(&c, lan_if), "lan");
        assert!(create(&mut c, lan).unwrap_err().to_string().contains("`lan'"));
    });
}

#[test]
fn a_port_of_a_bridge() {
    in_namespace("life::a_port_of_a_bridge", || {
        let mut c = router(1);
        let mut config = named("lan0");
        config.host.bridge = Some("br7".into());
        let error = create(&mut c, config.clone()).unwrap_err().to_string();
        assert!(error.contains("no bridge \"br7\""), "{error}");
        assert!(!exists("lan0"), "what was made is gone");
        ip("link add br7 type bridge");
        create(&mut c, config).unwrap();
        assert!(ip("link show dev lan0").contains("master br7"));
    });
}

#[test]
fn a_persistent_device_stays_and_is_taken_over() {
    in_namespace("life::a_persistent_device_stays_and_is_taken_over", || {
        let config = TapConfig { flags: Flags::PERSIST, ..named("keep0") };
        let mut c = router(1);
        let sw_if = create(&mut c, config.clone()).unwrap();
        ip("address add 192.0.2.1/24 dev keep0");
        delete(&mut c, sw_if).unwrap();
        c.finish_late();
        assert!(exists("keep0"));
        // The device is free at once, whatever workers have of it yet.
        let sw_if = create(&mut c, config).unwrap();
        interface::set_admin(&mut c, sw_if, true).unwrap();
        assert!(ip("address show dev keep0").contains("192.0.2.1/24"), "it lost its address");
        receives(&mut c, sw_if, "keep0");
    });
}

#[test]
fn a_deleted_device_is_made_again() {
    in_namespace("life::a_deleted_device_is_made_again", || {
        let mut c = router(1);
        let mut config = named("lan0");
        config.host.ip4 = Some(([192, 0, 2, 1].into(), 24));
        let sw_if = create(&mut c, config).unwrap();
        interface::set_admin(&mut c, sw_if, true).unwrap();
        for _ in 0..3 {
            let before = ip("-o link show dev lan0");
            ip("link del lan0");
            until(&mut c, "another device", |c| is_up(c, sw_if) && exists("lan0"));
            assert_ne!(before, ip("-o link show dev lan0"));
            assert!(ip("address show dev lan0").contains("192.0.2.1/24"));
            receives(&mut c, sw_if, "lan0");
        }
    });
}

/// A place for names of namespaces that other tests do not see.
fn own_names() {
    run("mount", "-t tmpfs none /run");
    std::fs::create_dir("/run/netns").unwrap();
}

#[test]
fn a_namespace_goes_and_comes_back() {
    in_namespace("life::a_namespace_goes_and_comes_back", || {
        own_names();
        let mut c = router(2);
        let mut config = TapConfig { rx_queues: 2, ..named("lan0") };
        config.host.namespace = Some("lab".into());
        let error = create(&mut c, config.clone()).unwrap_err().to_string();
        assert!(error.contains("ip netns add"), "{error}");
        ip("netns add lab");
        let sw_if = create(&mut c, config).unwrap();
        interface::set_admin(&mut c, sw_if, true).unwrap();
        assert!(!exists("lan0"));
        for _ in 0..3 {
            // Changes in there are followed.
            ip("-n lab link set lan0 mtu 1400");
            until(&mut c, "the MTU", |c| interface::view(c, sw_if).unwrap().link_mtu == 1400);
            ip("-n lab link set lan0 down");
            until(&mut c, "the link to go down", |c| !is_up(c, sw_if));
            ip("netns del lab");
            until(&mut c, "the end of the namespace", |c| {
                let shown =
                    thalweg_engine::commands(c).into_iter().find(|d| d.path() == "show tap");
                let mut out = thalweg_cli::Output::default();
                let mut args = thalweg_cli::Args::parse("").unwrap();
                shown.unwrap().run(c, &mut args, &mut out).unwrap();
                out.as_str().contains("no network namespace")
            });
            ip("netns add lab");
            until(&mut c, "the link", |c| is_up(c, sw_if));
            assert!(ip("-n lab link show dev lan0").contains("LOWER_UP"));
        }
        delete(&mut c, sw_if).unwrap();
        until(&mut c, "the device to go", |_| !ip("-n lab -o link show").contains("lan0"));
    });
}

#[test]
fn what_is_missing_is_named() {
    in_namespace("life::what_is_missing_is_named", || {
        let mut c = router(1);
        let mut error = |config: TapConfig| create(&mut c, config).unwrap_err().to_string();
        ip("link add taken0 type veth peer name taken1");
        assert!(error(named("taken0")).contains("there is a device \"taken0\" already"));
        let attach = |name: &str| TapConfig { flags: Flags::ATTACH, ..named(name) };
        assert!(error(attach("taken0")).contains("is not a TAP device"));
        assert!(error(attach("none0")).contains("no device \"none0\" to attach to"));
        assert!(error(named("sixteen-or-more-")).contains("1 to 15 characters"));
        ip("tuntap add tun7 mode tun");
        assert!(error(attach("tun7")).contains("is not a TAP device"));
        ip("tuntap add one0 mode tap");
        let two = TapConfig { rx_queues: 2, ..attach("one0") };
        assert!(error(two).contains("2 queue(s)"));
        // One queue can be one of several.
        ip("tuntap add two0 mode tap multi_queue");
        let first = create(&mut c, attach("two0")).unwrap();
        ip("tuntap add busy0 mode tap");
        create(&mut c, attach("busy0")).unwrap();
        let mut error = |config: TapConfig| create(&mut c, config).unwrap_err().to_string();
        assert!(error(attach("busy0")).contains("in use"));
        let mut elsewhere = named("x0");
        elsewhere.host.namespace = Some("/etc/hostname".into());
        assert!(error(elsewhere).contains("not a network namespace"));
        run("mount", "-t tmpfs none /dev/net");
        let text = error(named("x0"));
        assert!(text.contains("no /dev/net/tun") && text.contains("modprobe tun"), "{text}");
        delete(&mut c, first).unwrap();
    });
}

#[test]
fn without_privilege_the_capability_is_named() {
    in_namespace("life::without_privilege_the_capability_is_named", || {
        let mut c = router(1);
        // SAFETY: numbers only; concerns this thread, which ends with the test.
        let done = unsafe { libc::syscall(libc::SYS_setresuid, 65_534, 65_534, 65_534) };
        assert_eq!(done, 0);
        let error = create(&mut c, named("x0")).unwrap_err().to_string();
        assert!(error.contains("CAP_NET_ADMIN"), "{error}");
    });
}
