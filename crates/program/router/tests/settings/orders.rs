//! The order of settings does not matter: a configuration with every setter comes to the same end
//! in any order, and what cannot be set yet is kept and set as soon as it can be.

use crate::router::{ONE, Router};
use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;
use thalweg_config::declare::{Document, Node, Step, Value, diff};
use thalweg_program_router::configuration::catalog;
use thalweg_testkit::sized;

/// A configuration with all that can be set without a device.
const ALL: &str = "\
interfaces:
  pg0: {mac: '02:fe:00:00:00:00', addresses: [10.0.0.1/24, 10.1.0.1/24], mtu: 1400, sflow: true}
  pg1: {mac: '02:fe:00:00:00:01', addresses: [10.0.0.1/24], mtu: 9000, state: down}
  pg2: {mac: '02:fe:00:00:00:02', l2xc: pg3, mtu: 2000}
  pg3: {mac: '02:fe:00:00:00:03', l2xc: pg2, mtu: 2000}
  pg4: {mac: '02:fe:00:00:00:04'}
  pg5: {mac: '02:fe:00:00:00:05'}
  sink9: {}
loopbacks:
  loop3: {mac: '02:00:00:00:00:33', mtu: 8000, addresses: [10.255.0.1/32]}
  loop4: {}
bridgedomains:
  bd10: {interfaces: [pg4, pg5], settings: {learn: false, mac-age-minutes: 5}}
  bd20: {interfaces: [loop4], settings: {unicast-flood: false}}
sflow: {sampling-rate: 2000, header-bytes: 64}
thalweg:
  interfaces:
    pg0: {index: 1, sampling-rate: 9, nat44: in, tag: lab, mtu-ip4: 1280, neighbors: {10.0.0.2: '02:00:00:00:00:02 static'}}
    pg1: {index: 2, ip-table: 7, promiscuous: true, nat44: out, nat44-address: pool}
    pg2: {index: 3}
    pg3: {index: 4}
    pg5: {index: 6}
    pg4: {index: 5, flow: 1, split-horizon-group: 3}
    sink9: {index: 60}
    loop3: {index: 7, state: down, link-mtu: 8500, flow: 9}
    loop4: {index: 8, state: down}
  reserved-indices: {loop8: 70}
  bridgedomains:
    bd10: {learn-limit: 100, tag: a b, l2fib: {'02:00:00:00:00:01': pg4 static, '02:00:00:00:00:03': filter}}
  l2: {default-learn-limit: 50, scan-delay: 25}
  ip-tables:
    0: {routes: {10.9.0.0/16: 10.0.0.2, 10.8.0.0/16: 10.9.0.1, 0.0.0.0/0: [10.8.0.1, 10.1.0.9 pg0 weight 3], 10.7.0.0/16: drop, 10.6.0.0/16: 10.7.7.7 next-hop-table 8}}
    7: {routes: {10.9.0.0/16: 10.0.0.2 pg1, 10.5.0.0/16: pg1}}
    8: {routes: {10.7.0.0/16: pg0}}
  ip-neighbors: {limit: 1000, age: 30}
  route-counters: true
  flow: {rules: {1: ['priority=1,ip,in_port=pg4,actions=output:pg5', 'priority=0,actions=drop'], 7: ['table=3,arp,actions=normal']}}
  conntrack: {limit: 5000, when-full: recycle, tcp-seq-chk: false, zone-limits: {5: 10}, timeouts: {default: icmp_first=9}}
  sflow: {direction: both, drop-limit: 5, speed-rates: {10G: 7}, sub-agent: 7, host-interval: 0, agent-address: 192.0.2.9}
  nat44:
    sessions: 1000
    inside-vrf: 3
    forwarding: true
    mss-clamping: 1400
    port-assignment: port-range 2000 - 3999
    table-full: refuse
    sessions-per-host: 9
    session-limits: [100 vrf 3, 50 vrf 4]
    timeouts: {udp: 30, icmp: 7}
    addresses: [192.0.2.1 - 192.0.2.9, 192.0.2.20 tenant-vrf 7]
    static-mappings: [tcp local 10.0.0.2 80 external 192.0.2.1 8080, udp local 10.0.0.2 53 external pg1 53]
    identity-mappings: [10.0.0.2 tcp 80]
    load-balancing: [protocol tcp external 192.0.2.1:81 local 10.0.0.2:81 probability 50 local 10.0.0.3:81 probability 50]
    vrf-tables: [7 reaches 9, 8 reaches 7]
  metrics: {listen: none}
";

/// Numbers that look random, the same in each run.
pub struct Dice(pub u64);

impl Dice {
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        // xorshift64*, Marsaglia and Vigna.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }

    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.below(at + 1));
        }
    }
}

/// The document with all keys in another order.
fn shuffled(node: &Node, dice: &mut Dice) -> Node {
    match &node.value {
        Value::Map(map) => {
            let each = map.iter().map(|(k, n)| (k.clone(), shuffled(n, dice)));
            let mut all: Vec<(String, Node)> = each.collect();
            dice.shuffle(&mut all);
            Value::Map(all.into_iter().collect()).into()
        }
        _ => node.clone(),
    }
}

fn document() -> Document {
    let (document, wrong) = catalog().unwrap().load("all", ALL).unwrap();
    assert!(wrong.is_empty(), "{wrong:?}");
    document
}

/// Returns a router's output, by line, without the numbers that objects got.
fn shown(router: &mut Router) -> BTreeMap<String, usize> {
    let text = router.run("show interface address\nshow ip fib");
    let mut all = BTreeMap::new();
    for line in text.lines() {
        let mut words: Vec<&str> = Vec::new();
        for word in line.split_whitespace() {
            let is_number = word.starts_with(['[', '(']) || word.starts_with("index:");
            if !is_number && words.last() != Some(&"idx") {
                words.push(word);
            }
        }
        *all.entry(words.join(" ")).or_default() += 1;
    }
    all
}

/// Runs the steps of a plan in some order; each as soon as what it needs is there. Steps that need
/// an interface, a table or a bridge domain are tried before that, too: they are refused, and
/// change nothing.
fn run(router: &mut Router, steps: &[Step], dice: &mut Dice) {
    let keys: HashSet<&str> = steps.iter().map(|s| s.key.as_str()).collect();
    let mut done: HashSet<&str> = HashSet::new();
    let mut left: Vec<&Step> = steps.iter().collect();
    let first = |step: &Step, done: &HashSet<&str>| {
        // The commands' nature explains these: a default is for what is made later, an index too.
        let default = step.key.starts_with("bridge bd") && !step.key[7..].contains(' ');
        let index = step.key.strip_prefix("interface ").map(|name| format!("index {name}"));
        let missing = |key: &str| keys.contains(key) && !done.contains(key);
        default && missing("l2 default-learn-limit")
            || index.is_some_and(|key| missing(&key))
            || step.key.starts_with("interface ")
                && keys.iter().any(|k| k.starts_with("index ") && !done.contains(k))
    };
    let mut errors = Vec::new();
    while !left.is_empty() {
        dice.shuffle(&mut left);
        let before = left.len();
        errors.clear();
        left.retain(|step| {
            let unmet: Vec<&String> = step
                .needs
                .iter()
                .filter(|n| keys.contains(n.as_str()) && !done.contains(n.as_str()))
                .collect();
            // A bridge domain that is not there is made for its first port.
            let makes: &[&str] = match step.key.starts_with("bridge port ") {
                true => &["interface "],
                false => &["interface ", "bridge bd", "ip-table "],
            };
            let is_early = unmet
                .iter()
                .all(|n| !n.starts_with("ip-table of") && makes.iter().any(|m| n.starts_with(m)));
            if first(step, &done) || !is_early || !unmet.is_empty() && dice.below(8) > 0 {
                return true;
            }
            match router.attempt(&step.command) {
                Ok(_) => {
                    done.insert(&step.key);
                    false
                }
                Err(e) => {
                    errors.push(format!("{}: {e}", step.command));
                    true
                }
            }
        });
        let stuck = left.len() == before && dice.below(64) == 0;
        assert!(!stuck, "these cannot be set in this order: {}", errors.join("\n"));
    }
    router.settle();
}

fn compare(what: &str, router: &mut Router, end: &Document, seen: &BTreeMap<String, usize>) {
    let all: Vec<String> =
        diff(end.root(), router.dump().root()).iter().map(ToString::to_string).collect();
    assert!(all.is_empty(), "{what}: {}", all.join("\n"));
    let now = shown(router);
    let lost = seen.iter().filter(|(line, n)| now.get(*line) != Some(n));
    let lost: Vec<&String> = lost.map(|(line, _)| line).collect();
    assert!(lost.is_empty(), "{what}: not shown: {lost:?}\n{now:?}");
}

/// Orders that are tried. Faults in the order of a few steps show in the first dozens, and of three
/// or more in a long run.
fn orders() -> RangeInclusive<u64> {
    1..=sized(30, 250)
}

#[test]
fn commands_come_to_the_same_end_in_any_order() {
    let _one = ONE.lock();
    let goal = document();
    let mut router = Router::start();
    router.become_(&goal);
    router.settle();
    let (end, seen) = (router.dump(), shown(&mut router));
    let steps = Document::default().plan_to(&end).steps;
    assert!(steps.len() > 80, "{}", steps.len());
    for order in orders() {
        router.become_(&Document::default());
        run(&mut router, &steps, &mut Dice(order));
        compare(&format!("order {order}"), &mut router, &end, &seen);
    }
    router.stop();
}

#[test]
fn documents_come_to_the_same_end_in_any_order() {
    let _one = ONE.lock();
    let goal = document();
    let mut router = Router::start();
    router.become_(&goal);
    router.settle();
    let (end, seen) = (router.dump(), shown(&mut router));
    let catalog = catalog().unwrap();
    for order in orders() {
        router.become_(&Document::default());
        let other = shuffled(goal.root(), &mut Dice(order));
        let other = catalog.check("shuffled", other).unwrap();
        router.become_(&other);
        router.settle();
        compare(&format!("order {order}"), &mut router, &end, &seen);
    }
    router.stop();
}
