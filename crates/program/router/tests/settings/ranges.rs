//! Every setting can be dumped and loaded: the examples of all setters, with values at the limits
//! and with their words in other places, and all API requests with values at the limits.

use crate::loader::Loader;
use crate::orders::Dice;
use crate::router::{ONE, Router};
use crate::setters::SETTERS;
use thalweg_api::schema::{Kind, MessageDef};
use thalweg_api::trace::Record;
use thalweg_api::{Clients, Hub, Registry, Replayed};
use thalweg_config::declare::{Document, diff};
use thalweg_engine::features;
use thalweg_graph::Control;
use thalweg_program_router::api::typed::{Leaf, Sort, body, fixed, leaves};
use thalweg_testkit::sized;

/// Two routers: one is set, the other loads what that dumps.
struct Pair {
    set: Router,
    loader: Loader,
    hub: Hub<Control>,
    base: Document,
}

impl Pair {
    fn new() -> Pair {
        Pair::with("")
    }

    /// Routers of which the first begins with what these lines set.
    fn with(ground: &str) -> Pair {
        let mut set = Router::prepared();
        set.run(ground);
        let registry =
            Registry::new(thalweg_program_router::api::services(&features(&set.c))).unwrap();
        let hub = Hub::new(registry, Clients::default());
        let base = set.dump();
        let mut loader = Loader::new();
        loader.check(&base).unwrap();
        Pair { set, loader, hub, base }
    }

    /// Returns the current settings; checked, unless they were there in the beginning or before.
    fn check(&mut self) -> Result<Document, String> {
        self.set.settle();
        let dump = self.set.dump();
        self.loader.check(&dump)?;
        Ok(dump)
    }

    fn is_base(&self, dump: &Document) -> bool {
        diff(dump.root(), self.base.root()).is_empty()
    }

    /// Goes back to the beginning, from what was dumped.
    fn reset(&mut self, dump: &Document) {
        if !self.is_base(dump) {
            let base = self.base.clone();
            self.set.become_(&base);
        }
    }

    /// Handles a request; false if it is about the connection only.
    fn request(&mut self, def: &MessageDef, body: Vec<u8>) -> bool {
        let record = Record { at: 0, client: 0, name: def.name_crc(), body };
        let done = self.hub.replay(&mut self.set.c, &record);
        self.set.settle();
        done == Replayed::Done
    }

    fn stop(self) {
        self.set.stop();
        self.loader.stop();
    }
}

/// Numbers at and beyond limits.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "3",
    "63",
    "64",
    "255",
    "256",
    "4095",
    "4096",
    "16383",
    "16384",
    "65535",
    "65536",
    "86400",
    "86401",
    "4194304",
    "448919481",
    "4294967295",
    "4294967296",
];
const ADDRESSES: &[&str] = &["0.0.0.0", "127.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"];
const PREFIXES: &[&str] =
    &["0.0.0.0/0", "10.0.0.0/8", "10.0.0.255/24", "127.0.0.0/8", "224.0.0.0/4"];
const MACS: &[&str] = &["00:00:00:00:00:00", "01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff"];
const FILES: &[&str] =
    &["relative", "'/tmp/a b'", "/tmp/a|b", "/tmp/a#b", "\"/tmp/it's\"", "'/tmp/{'"];
const WORDS: &[&str] = &["'a b'", "a|b", "\"it's\"", "'{'", "a\u{7}", "a\u{202e}b", "-"];

/// Values that may stand in place of a word of an example.
fn others(word: &str) -> &'static [&'static str] {
    let bare = word.trim_matches(',');
    match () {
        () if bare.bytes().all(|b| b.is_ascii_digit()) && !bare.is_empty() => NUMBERS,
        () if bare.parse::<std::net::Ipv4Addr>().is_ok() => ADDRESSES,
        () if bare
            .split_once('/')
            .is_some_and(|(a, _)| a.parse::<std::net::Ipv4Addr>().is_ok()) =>
        {
            PREFIXES
        }
        () if bare.split(':').count() == 6 => MACS,
        () if bare.starts_with('/') => FILES,
        () if ["lab", "yes"].contains(&bare) => WORDS,
        () => &[],
    }
}

/// A long run tries all values of each place. The usual one tries one in this number, others in
/// each place, so that each value has its turn.
const ONE_IN: usize = 12;

/// Lines that were tried on a pair.
#[derive(Default)]
struct Tried {
    taken: usize,
    refused: usize,
    wrong: Vec<String>,
}

impl Tried {
    /// Tries each line after `before`: a line that is taken is dumped and loads, one that is
    /// refused changes nothing.
    fn lines(&mut self, pair: &mut Pair, before: &str, lines: impl Iterator<Item = String>) {
        // The settings before a line, unless one has changed them.
        let mut prepared = None;
        for line in lines {
            let was = match prepared.take() {
                Some(was) => was,
                None => {
                    pair.set.run(before);
                    pair.check().unwrap_or_else(|e| panic!("{before}\n  {e}"))
                }
            };
            let done = match pair.set.attempt(&line) {
                Ok(_) => {
                    self.taken += 1;
                    pair.check().map(|dump| pair.reset(&dump))
                }
                Err(e) => {
                    self.refused += 1;
                    pair.set.settle();
                    if diff(was.root(), pair.set.dump().root()).is_empty() {
                        prepared = Some(was);
                        Ok(())
                    } else {
                        Err(format!("was refused, but has changed something: {e}"))
                    }
                }
            };
            if let Err(e) = done {
                self.wrong.push(format!("{before}\n{line}\n  {e}"));
                std::mem::replace(pair, Pair::new()).stop();
            }
        }
        if let Some(was) = prepared {
            pair.reset(&was);
        }
    }

    fn end(self, pair: Pair, least: usize) {
        pair.stop();
        let Tried { taken, refused, wrong } = self;
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(taken > least && refused > least, "{taken} taken, {refused} refused");
    }
}

/// Returns the lines that prepare the last one of an example, and the words of that one.
fn last_line(example: &str) -> (&str, Vec<&str>) {
    let (before, last) = example.rsplit_once('\n').unwrap_or(("", example));
    (before, last.split_whitespace().collect())
}

#[test]
fn commands_take_exactly_what_documents_take() {
    let _one = ONE.lock();
    let (mut pair, mut tried, mut places) = (Pair::new(), Tried::default(), 0);
    for (path, examples) in SETTERS {
        for example in *examples {
            let (before, words) = last_line(example);
            let skip = path.split(' ').count();
            let varied = words.iter().enumerate().skip(skip);
            let lines = varied.flat_map(|(at, word)| {
                let line = |other| [&words[..at], &[other], &words[at + 1..]].concat().join(" ");
                let all = others(word);
                let one_in = sized(ONE_IN, 1).min(all.len()).max(1);
                places += usize::from(!all.is_empty());
                let some = all.iter().copied().skip(places % one_in).step_by(one_in);
                some.map(line).collect::<Vec<_>>()
            });
            tried.lines(&mut pair, before, lines);
        }
    }
    tried.end(pair, sized(40, 300));
}

/// Moves some neighbouring words of a command to another place behind its path.
fn moved(words: &[&str], skip: usize, dice: &mut Dice) -> String {
    let (path, options) = words.split_at(skip);
    let mut options = options.to_vec();
    let n = options.len();
    let first = dice.below(n);
    let group: Vec<&str> = options.drain(first..n.min(first + 1 + dice.below(3))).collect();
    let to = dice.below(options.len() + 1);
    options.splice(to..to, group);
    [path, &options].concat().join(" ")
}

/// A command that takes its words in any order sets what is dumped, and what loads, in each.
#[test]
fn commands_with_words_in_another_order_are_dumped_or_refused() {
    let _one = ONE.lock();
    let (mut pair, mut tried, mut dice) = (Pair::new(), Tried::default(), Dice(48));
    for (path, examples) in SETTERS {
        for example in *examples {
            let (before, words) = last_line(example);
            let skip = path.split(' ').count();
            if words.len() < skip + 2 {
                continue;
            }
            let mut lines: Vec<String> =
                (0..sized(8, 60)).map(|_| moved(&words, skip, &mut dice)).collect();
            lines.sort();
            lines.dedup();
            lines.retain(|line| *line != words.join(" "));
            tried.lines(&mut pair, before, lines.into_iter());
        }
    }
    tried.end(pair, sized(20, 60));
}

/// Requests that set nothing which could last, do something outside, or answer only.
const ACTIONS: &[&str] = &[
    "cli",
    "cli_inband",
    "pcap_trace_on",
    "pcap_trace_off",
    "pg_capture",
    "pg_enable_disable",
    "trace_",
    "classify_",
    "want_",
    "show_",
    "control_ping",
    "api_trace",
    // Make devices of the kernel, which only one router can have: papi and scenarios try them.
    "tap_create",
    "lcp_itf_pair_add_del",
];

/// Fields that change nothing which a document says, and why that is right.
const NOT_SETTINGS: &[(&str, &str, &str)] = &[
    ("ip_route_add_del", "is_multipath", "adds to a route that is there"),
    ("ip_route_add_del", "route.stats_index", "is for replies"),
    ("ip_route_add_del", "route.paths[0].table_id", "is for next hops without an interface"),
    ("ip_route_add_del", "route.paths[0].rpf_id", "is refused, but for none"),
    ("add_del_ip_punt_redirect_v2", "punt.paths[0].table_id", "as in routes"),
    ("ip_path_mtu_update", "pmtu.client_index", "is a header's, by mistake of the schema"),
    ("ip_path_mtu_update", "pmtu.context", "is a header's, by mistake of the schema"),
    ("ip_table_add_del_v2", "create_mfib", "there are no multicast routes"),
    ("nat44_add_del_static_mapping_v2", "pool_ip_address", "counts with match_pool only"),
];

fn number(leaf: &mut Leaf, n: u64) {
    let length = leaf.bytes.len();
    leaf.bytes = n.to_be_bytes()[8 - length..].to_vec();
}

/// A request that sets something, as far as names of fields tell.
fn usual(def: &MessageDef) -> Vec<Leaf> {
    let mut all = leaves(def);
    for leaf in &mut all {
        let name = leaf.path.rsplit('.').next().unwrap_or_default().to_owned();
        match (leaf.sort, name.as_str()) {
            (
                Sort::Bool,
                "is_add" | "enable" | "enable_disable" | "is_specified" | "promisc_on",
            ) => {
                leaf.bytes = vec![1];
            }
            (Sort::Int(_), "sw_if_index" | "rx_sw_if_index" | "hw_if_index") => number(leaf, 1),
            (Sort::Int(_), "tx_sw_if_index") => number(leaf, 2),
            (Sort::Int(_), "external_sw_if_index") => number(leaf, 0xffff_ffff),
            (Sort::Int(_), "bd_id") => number(leaf, 10),
            (Sort::Int(1), "len") => number(leaf, 24),
            (Sort::Int(_), "protocol") => number(leaf, 6),
            (Sort::Int(_), n) if n.contains("port") => number(leaf, 80),
            (Sort::Int(_), n) if n.contains("mtu") => number(leaf, 1400),
            (Sort::Int(_), n) if n.contains("instance") => number(leaf, 7),
            (Sort::Int(_), "table_id" | "vrf_id") => number(leaf, 0),
            (Sort::Int(_), "flags") if def.name == "sw_interface_set_flags" => number(leaf, 1),
            (Sort::Int(_), "flags") if def.name.starts_with("nat44") => number(leaf, 0x20),
            (Sort::Int(_), "probability" | "weight") => number(leaf, 1),
            (Sort::Int(_), n) if n.contains("limit") || n.contains("max_") => number(leaf, 100),
            (Sort::Int(_), n) if n.contains("rate") || n.contains("sampling") => number(leaf, 500),
            (Sort::Int(_), "udp" | "tcp_established" | "tcp_transitory" | "icmp") => {
                number(leaf, 77)
            }
            (Sort::Int(_), n) if n.contains("age") || n.contains("delay") => number(leaf, 9),
            (Sort::Int(_), n) if n.contains("value") || n.contains("bytes") => number(leaf, 128),
            (Sort::Int(_), n) if n.contains("seconds") || n.contains("interval") => {
                number(leaf, 30)
            }
            (Sort::Ip4 | Sort::Ip, n) => {
                let last = if n.contains("external") || n.contains("last") { 7 } else { 3 };
                leaf.bytes[..4].copy_from_slice(&[10, 0, 0, last]);
            }
            (Sort::Mac, _) => leaf.bytes = vec![2, 0, 0, 0, 0, 7],
            (Sort::Text(n), _) => leaf.bytes = fixed("lab", n),
            _ => {}
        }
        let is_meant = |(request, path, _): &&(&str, &str, u64)| {
            def.name.starts_with(request) && *path == leaf.path
        };
        if let Some((_, _, n)) = SPECIAL.iter().find(is_meant) {
            number(leaf, *n);
        }
    }
    all
}

/// Values that a request needs so that it sets something.
const SPECIAL: &[(&str, &str, u64)] = &[
    ("bridge_domain_add_del", "bd_id", 20),
    ("bridge_domain_add_del", "flood", 1),
    ("bridge_flags", "flags", 1),
    ("sw_interface_set_l2_bridge", "rx_sw_if_index", 3),
    ("sw_interface_set_l2_xconnect", "rx_sw_if_index", 3),
    ("l2fib_add_del", "sw_if_index", 2),
    ("sw_interface_set_table", "sw_if_index", 3),
    ("sw_interface_set_table", "vrf_id", 7),
    ("ip_table_add_del", "table.table_id", 9),
    ("nat44_add_del_identity_mapping", "sw_if_index", 0xffff_ffff),
    ("nat44_ed_add_del_vrf_route", "table_vrf_id", 7),
    ("nat44_ed_add_del_vrf_route", "vrf_id", 9),
    ("nat44_lb_static_mapping_add_del_local", "external_port", 81),
    ("nat44_lb_static_mapping_add_del_local", "protocol", 6),
    ("nat_set_workers", "worker_mask", 1),
    ("create_subif", "sub_id", 12),
    // Two tags, exact.
    ("create_subif", "sub_if_flags", 4 | 16),
    ("create_subif", "outer_vlan_id", 100),
    ("create_subif", "inner_vlan_id", 200),
    ("create_vlan_subif", "vlan_id", 100),
    ("delete_subif", "sw_if_index", 4),
    ("l2_interface_vlan_tag_rewrite", "sw_if_index", 4),
    ("l2_interface_vlan_tag_rewrite", "vtr_op", 6),
    ("l2_interface_vlan_tag_rewrite", "push_dot1q", 1),
    ("l2_interface_vlan_tag_rewrite", "tag1", 100),
    ("l2_interface_vlan_tag_rewrite", "tag2", 200),
    ("sflow_direction_set", "sampling_D", 2),
    ("sflow_drop_monitoring_set", "drop_M", 1),
    ("sflow_polling_interval_set", "polling_S", 30),
    ("pg_create_interface", "interface_id", 5),
];

/// Settings before a request is tried: its neighbours' ground.
const GROUND: &str = "
    set interface ip address pg0 10.0.0.1/24
    ip table add 7
    create bridge-domain 10
    set interface l2 bridge pg1 10
    create sub-interfaces pg0 300
    nat44 plugin enable sessions 1000
    nat44 vrf table add 7
    nat44 add load-balancing static mapping protocol tcp external 10.0.0.7:81 local 10.0.0.4:8080 probability 5";

#[test]
fn requests_take_exactly_what_documents_take() {
    let _one = ONE.lock();
    let mut pair = Pair::with(GROUND);
    let mut wrong = Vec::new();
    let mut requests = pair.hub.registry().messages();
    requests.retain(|def| {
        def.kind == Kind::Request && !ACTIONS.iter().any(|a| def.name.starts_with(a))
    });
    requests.retain(|def| {
        let looks = ["_dump", "_get", "_details", "_lookup", "_lookup_v2"];
        !looks.iter().any(|l| def.name.ends_with(l))
    });
    let (mut setters, mut fields, mut silent, mut quiet) = (0, 0, Vec::new(), Vec::new());
    for def in requests {
        let usual = usual(def);
        if !pair.request(def, body(&usual)) {
            continue;
        }
        let first = match pair.check() {
            Ok(dump) => dump,
            Err(e) => {
                wrong.push(format!("{}: {e}", def.name));
                std::mem::replace(&mut pair, Pair::with(GROUND)).stop();
                continue;
            }
        };
        let sets = !pair.is_base(&first);
        setters += usize::from(sets);
        if !sets {
            quiet.push(def.name);
        }
        pair.reset(&first);
        for (at, leaf) in usual.iter().enumerate() {
            let unused = leaf.path.contains("label_stack");
            let is_this =
                |(m, f, _): &(&str, &str, &str)| def.name.starts_with(m) && *f == leaf.path;
            let known = unused || NOT_SETTINGS.iter().any(is_this);
            let must_hear = sets && !known;
            let mut values = leaf.boundaries();
            values.retain(|v| *v != leaf.bytes);
            // Labels behind the first are many, and alike.
            let one_in = if unused { values.len().max(1) } else { ONE_IN };
            let enough = sized(values.len().div_ceil(one_in), values.len());
            let turn = fields % values.len().max(1);
            values.rotate_left(turn);
            fields += 1;
            let mut heard = false;
            for (tried, value) in values.into_iter().enumerate() {
                if tried >= enough && (heard || !must_hear) {
                    break;
                }
                let mut changed = usual.clone();
                changed[at].bytes = value;
                let what = format!("{}: {} = {:x?}", def.name, leaf.path, changed[at].bytes);
                pair.request(def, body(&changed));
                match pair.check() {
                    Ok(dump) => {
                        heard |= !diff(dump.root(), first.root()).is_empty();
                        pair.reset(&dump);
                    }
                    Err(e) => {
                        wrong.push(format!("{what}: {e}"));
                        std::mem::replace(&mut pair, Pair::with(GROUND)).stop();
                    }
                }
            }
            if must_hear && !heard {
                silent.push(format!("{}: {}", def.name, leaf.path));
            }
        }
    }
    pair.stop();
    eprintln!("no change by {quiet:?}\nsilent {}", silent.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let why = "these fields are neither honoured nor refused:";
    assert!(silent.is_empty(), "{why}\n{}", silent.join("\n"));
    assert!(setters > 30, "{setters}");
}
