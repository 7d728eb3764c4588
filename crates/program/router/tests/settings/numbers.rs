//! No number leaves its width: each number of each example, and each field of each request, becomes
//! those at the ends of all types. Debug builds stop at sums, products and times that do not fit.

use crate::router::{ONE, Router};
use crate::setters::SETTERS;
use thalweg_api::schema::Kind;
use thalweg_api::trace::Record;
use thalweg_api::{Clients, Hub, Registry};
use thalweg_config::declare::Document;
use thalweg_engine::features;
use thalweg_program_router::api::typed::{body, leaves};
use thalweg_testkit::sized;

/// Numbers at the ends of types, and what only looks like a number.
const ENDS: &[&str] = &[
    "0",
    "1",
    "127",
    "128",
    "255",
    "256",
    "32767",
    "32768",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "-1",
    "0.0000000001",
    "1e9",
    "1e308",
    "nan",
    "inf",
];

/// Lines that set nothing which could last; each with what must be there before.
const ONCE: &[&str] = &[
    "packet-generator new { name x limit 5 rate 1000 size 64-100 maxframe 7 worker 0 \
     interface pg0 node ethernet-input data { IP4: 2.0.1 -> 2.0.2 UDP: 10.0.0.1 -> 10.0.0.2 \
     ttl 2 UDP: 1234 -> 2345 incrementing 22 } }\npacket-generator enable-stream x",
    "packet-generator new { name x interface pg0 data { IP4: 2.0.1 -> 2.0.2 } }\n\
     packet-generator configure x limit 5 rate 1000 size 64-100 maxframe 7",
    "packet-generator new { name x interface pg0 data { IP4: 2.0.1 -> 2.0.2 } }\n\
     packet-generator configure x size 64+100",
    "packet-generator capture pg0 pcap /tmp/numbers.pcap count 5",
    "trace add pg-input 5",
    "trace add pg-input 5\nshow trace max 5",
    "classify table mask l3 ip4 src buckets 2 memory-size 2 skip 0 match 1",
    "classify table mask hex ffff buckets 2 skip 1 match 1",
    "classify filter trace mask l3 ip4 src match l3 ip4 src 10.0.0.1",
    "pcap trace rx tx max 5 max-bytes-per-pkt 64 intfc any file /tmp/numbers.pcap",
    "pcap dispatch trace on max 5 file /tmp/numbers.pcap buffer-trace pg-input 5",
    "set clock adjust 604800",
    "nat44 plugin enable\nnat44 del session in 10.0.0.1:80 tcp vrf 0 external-host 10.0.0.2:80",
    "nat44 plugin enable\nset nat frame-queue-nelts 64",
    "show ip fib table 0",
    "show ip fib 10.0.0.1/24",
    "show ip6 fib table 0",
    "show mpls fib table 0",
    "show interface 1",
    "show adj 5",
    "show load-balance 5",
    "show bridge-domain 10 detail",
    "show conntrack zone 5",
    "show errors verbose 5",
    "show runtime max 5",
    "show logging last 5",
    "show nat44 sessions i2o 10.0.0.1 80 tcp",
    "show sflow last 5",
    "show ip6 mld pg0 5",
    "clear conntrack zone 5",
    "test log notice class 5",
];

/// The places of numbers in a line, behind some bytes.
fn numbers(line: &str, from: usize) -> Vec<std::ops::Range<usize>> {
    let mut all: Vec<std::ops::Range<usize>> = Vec::new();
    let digits = line.bytes().enumerate().skip(from).filter(|(_, b)| b.is_ascii_digit());
    for (at, _) in digits {
        match all.last_mut().filter(|last| last.end == at) {
            Some(last) => last.end = at + 1,
            None => all.push(at..at + 1),
        }
    }
    all
}

/// Lines with another number in one place.
fn others(line: &str, from: usize) -> Vec<String> {
    let places = numbers(line, from);
    let each = places
        .iter()
        .flat_map(|at| ENDS.iter().map(|end| [&line[..at.start], end, &line[at.end..]].concat()));
    each.collect()
}

/// The router as it was, or another one: what was done twice has to be taken back twice, which no
/// document can express.
fn back(mut router: Router, base: &Document) -> Router {
    let file = router.dir.path().join("base.yaml");
    std::fs::write(&file, base.to_yaml().unwrap()).unwrap();
    if router.attempt(&format!("config apply {}", file.display())).is_ok() {
        return router;
    }
    router.stop();
    Router::prepared()
}

#[test]
fn commands_keep_numbers_within_their_width() {
    let _one = ONE.lock();
    let mut router = Router::prepared();
    let base = router.dump();
    let setters = SETTERS.iter().flat_map(|(path, all)| all.iter().map(move |e| (path.len(), *e)));
    let once = ONCE.iter().map(|example| (0, *example));
    let (mut taken, mut refused) = (0, 0);
    for (turn, (path, example)) in setters.chain(once).enumerate() {
        let (before, last) = example.rsplit_once('\n').unwrap_or(("", example));
        // Lines before are varied only of what is done once: others are examples, too.
        let from = path;
        let step = sized(8, 1);
        let varied = others(last, from).into_iter().map(|line| (before.to_owned(), line));
        let early = others(before, 0).into_iter().filter(|_| path == 0);
        let early = early.map(|before| (before, last.to_owned()));
        for (before, line) in varied.chain(early).skip(turn % step).step_by(step) {
            let _ = router.attempt(&before);
            match router.attempt(&line) {
                Ok(_) => taken += 1,
                Err(_) => refused += 1,
            }
            router.settle();
        }
        // Far in the future, all that has a time is due.
        router.run("set clock adjust 604800");
        router.settle();
        let _ = router.attempt("packet-generator disable-stream");
        let _ = router.attempt("packet-generator delete x");
        router = back(router, &base);
    }
    router.stop();
    assert!(taken > 100 && refused > 100, "{taken} taken, {refused} refused");
}

/// Requests that go to devices of the kernel, or begin what takes its time.
const ELSEWHERE: &[&str] =
    &["tap_", "cli", "af_packet", "want_ping", "config", "memclnt", "sockclnt"];

#[test]
fn requests_keep_numbers_within_their_width() {
    let _one = ONE.lock();
    let mut router = Router::prepared();
    let registry =
        Registry::new(thalweg_program_router::api::services(&features(&router.c))).unwrap();
    let mut hub = Hub::new(registry, Clients::default());
    let base = router.dump();
    let requests = hub.registry().messages();
    let requests = requests.into_iter().filter(|def| {
        def.kind == Kind::Request && !ELSEWHERE.iter().any(|of| def.name.starts_with(of))
    });
    let mut tried = 0;
    for def in requests {
        let usual = leaves(def);
        for at in 0..usual.len() {
            // All other fields at one end, and at the other.
            for others in 0..3 {
                for value in usual[at].boundaries() {
                    let mut all = usual.clone();
                    for leaf in all.iter_mut().filter(|_| others > 0) {
                        let values = leaf.boundaries();
                        leaf.bytes = values[(tried + others) % values.len()].clone();
                    }
                    all[at].bytes = value;
                    tried += 1;
                    if sized(tried % 6 == 0, true) {
                        let record =
                            Record { at: 0, client: 0, name: def.name_crc(), body: body(&all) };
                        hub.replay(&mut router.c, &record);
                    }
                }
            }
        }
        router.settle();
        router = back(router, &base);
    }
    router.stop();
    assert!(tried > 1000, "{tried}");
}
