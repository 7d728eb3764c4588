use proptest::prelude::*;
use thalweg_load::stream::{
    Caching, Direction, Field, Layer, Mode, Rate, Senders, Side, Size, Start, Steps, Sum, Values,
};
use thalweg_load::talk::{Gaps, Protocol, Step};

use super::*;

fn parse(text: &str) -> Result<Profile, String> {
    Profile::parse("p.yaml", text, &[]).map_err(|problems| problems.to_string())
}

fn builtin(name: &str, tunables: &[(&str, &str)]) -> Profile {
    let set: Vec<(String, String)> =
        tunables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Profile::builtin(name, &set).unwrap_or_else(|problems| panic!("{problems}"))
}

/// A profile's canonical form is a profile that sends the same.
fn check_canonical(profile: &Profile) {
    let text = profile.canonical().to_string();
    let again = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again.pairs, profile.pairs, "{text}");
    assert_eq!(again.fingerprint(), profile.fingerprint());
}

#[test]
fn every_builtin_profile_has_a_canonical_form() {
    let mut prints = std::collections::BTreeSet::new();
    for profile in BUILTINS {
        let profile = builtin(profile.name, &[]);
        check_canonical(&profile);
        assert!(!profile.about.is_empty());
        assert!(prints.insert(profile.fingerprint()));
    }
}

#[test]
fn imix_is_that_of_trex() {
    let profile = builtin("imix", &[]);
    let [pair] = &profile.pairs[..] else { panic!() };
    let of = |n: usize| {
        let stream = &pair.streams[n];
        (stream.size.clone(), stream.rate, stream.start)
    };
    assert_eq!(of(0), (Size::One(64), Rate::Packets(28.0), Start::After(0)));
    assert_eq!(of(1), (Size::One(594), Rate::Packets(16.0), Start::After(100)));
    assert_eq!(of(2), (Size::One(1518), Rate::Packets(4.0), Start::After(200)));
    let Layer::Ipv4 { source, destination, .. } = &pair.streams[0].layers[0] else { panic!() };
    assert_eq!(*source, Field::count(0x1000_0001u32, 0x1000_00feu32));
    assert_eq!(*destination, Field::count(0x3000_0001u32, 0x3000_00feu32));
    assert_eq!(pair.streams[0].direction, Direction::Both);
}

#[test]
fn bench_takes_the_tunables_of_trex() {
    let one = |tunables: &[(&str, &str)]| builtin("bench", tunables).pairs[0].streams[0].clone();
    let source = |stream: &Stream| match &stream.layers[0] {
        Layer::Ipv4 { source, .. } => source.values.clone(),
        layer => panic!("{layer:?}"),
    };
    let plain = one(&[("size", "128"), ("vm", "none")]);
    assert_eq!((plain.size.clone(), source(&plain)), (Size::One(128), Values::One(0x1000_0004)));
    let udp =
        Layer::Udp { source: Field::one(1025u16), destination: Field::one(12u16), sum: Sum::Zero };
    assert_eq!(plain.layers[1], udp);
    let count = Field::count(0x1000_0004u32, 0x1000_00feu32).values;
    for vm in ["var1", "var2", "cached", "tuple"] {
        assert_eq!(source(&one(&[("vm", vm)])), count, "{vm}");
    }
    assert!(matches!(source(&one(&[("vm", "random")])), Values::Random { .. }));
    let sizes = one(&[("vm", "size"), ("size", "512")]).size;
    assert_eq!(sizes, Size::Range { least: 64, most: 512, random: true });
    assert_eq!(one(&[("size", "imix")]).size, Size::imix());
    assert!(!one(&[("flow", "no-fs")]).tagged);
    for vm in ["none", "var1", "var2", "random", "tuple", "size", "cached"] {
        check_canonical(&builtin("bench", &[("vm", vm), ("size", "100")]));
    }
}

#[test]
fn connections_are_those_of_the_article() {
    let profile = builtin("cps-long", &[]);
    let [pair] = &profile.pairs[..] else { panic!() };
    let [flows] = &pair.flows[..] else { panic!("{:?}", pair.flows) };
    let [udp, tcp] = &flows.plan.talks[..] else { panic!() };
    assert_eq!((udp.protocol, udp.port, udp.share), (Protocol::Udp, 5353, 1));
    assert_eq!((tcp.protocol, tcp.port, tcp.share), (Protocol::Tcp, 8080, 99));
    assert_eq!(tcp.client[2], Step::Repeat { from: 0, times: 500 });
    assert_eq!(tcp.server[1], Step::Wait { least: 50_000, most: 50_000 });
    assert_eq!(tcp.fill, (b'x', b'y'));
    assert_eq!((flows.plan.clients.count, flows.plan.servers.count), (65_536, 256));
    assert_eq!((flows.plan.ports, flows.share), ((1024, 64_512), 100));
    let short = builtin("cps-short", &[("size", "100"), ("messages", "2")]);
    let tcp = &short.pairs[0].flows[0].plan.talks[1];
    assert_eq!(tcp.client[..2], [Step::Send { bytes: 100 }, Step::Expect { count: 100 }]);
}

#[test]
fn labels_of_the_article_fit_small_packets() {
    let profile = builtin("mpls", &[]);
    let plan = profile.pairs[0].plan().unwrap();
    for side in [Side::A, Side::B] {
        let mut senders = Senders::new(&plan, side, 1, 0).unwrap();
        let stream = side as usize;
        assert!(senders.sends(stream) && senders.tagged(stream));
        senders.set_load(stream::Load::Times(1.0), 0);
        let mut out: Vec<Vec<u8>> = Vec::new();
        senders.poll(0, 10, &mut out);
        let label = if side == Side::A { 16 } else { 17 };
        assert_eq!(out[0][12..18], [0x88, 0x47, 0, label >> 4, label << 4 | 1, 64]);
    }
    assert_eq!(builtin("l2xc", &[]).pairs.len(), 2);
}

const LONG: &str = "
version: 1
tunables: {port: 99, net: 7}
pools: {c: {v4: [10.0.0.1, 10.0.0.9, 10.0.1.0-10.0.1.3]}}
streams:
- name: first
  layers:
  - ethernet: {source: 2:0:0:0:0:1-2:0:0:0:0:9}
  - vlan: {id: {inc: 1-100, step: 3, start: 7}, pcp: 5, service: true}
  - vlan: {id: 9}
  - mpls: {label: {random: 16-99, seed: 4, distinct: 5}, exp: 3, ttl: 9, bottom: false}
  - ipv4: {source: \"10.${net}.0.1\", destination: {list: [1.1.1.1, 2.2.2.2], with: mpls.label},
           ttl: 3, dscp: 46, id: {dec: 1-9}, df: true, options: \"01 01 01 00\"}
  - tcp: {source: {inc: 1-9, after: vlan.id}, destination: \"${port}\", flags: syn|ack, checksum: wrong}
  - payload: {text: hello, pattern: inc}
  size: {inc: 100-200}
  rate: 10 %
  mode: {bursts: {packets: 3, every: 1ms, count: 2}}
  times: 2
  cache: off
- name: second
  pair: 0
  layers: [{ipv6: {source: \"2001:db8::1-2001:db8::9\", destination: \"2001:db8::ff\", flow: 5}}, icmp]
  frame: 200
  after: {stream: first, pause: 1s}
  fixed_rate: true
  direction: a-b
- {name: third, pair: 3, between: [c, 20.0.0.0/24], vary: nested, icmp: {}, size: aag, measure: none}
- {name: arp, pair: 3, layers: [{arp: {sender: 10.0.0.1, target: 10.0.0.2-10.0.0.9}}, {raw: {hex: 00 ff}}]}
flows:
- {name: held, tcp: {client: 10.1.0.0/24, server: 10.2.0.1, port: 80, retry: {first: 1s, times: 2}, keepalive: 5s},
   hold: 1000, gaps: exponential, life: 10-50s, ramp: 10s exponential, total: 5k}
- name: steps
  udp: {client: 10.1.0.0/24, ports: 5000-5999, server: 10.2.0.1, port: 53, idle: 10s}
  client: [{send: 10 x \"a\"}, {expect: 1 datagram}, {wait: 1-2ms}, {repeat: {times: 3, of: [{send: 5}, {expect: 1}]}}]
  server: [{expect: 1}, {send: 20 x 7}, {repeat: {times: 3, of: [{expect: 1}, {send: 9}]}}, close]
";

#[test]
fn long_forms_are_read() {
    let profile = parse(LONG).unwrap();
    assert_eq!(profile.pairs.iter().map(|pair| pair.number).collect::<Vec<_>>(), [0, 3]);
    let [first, second] = &profile.pairs[0].streams[..] else { panic!() };
    assert_eq!(first.mode, Mode::Bursts { packets: 3, every: 1_000_000, count: 2 });
    assert_eq!((first.rate, first.times, first.caching), (Rate::Percent(10.0), 2, Caching::Off));
    assert_eq!(first.size, Size::Range { least: 100, most: 200, random: false });
    assert_eq!(second.size, Size::One(204));
    assert_eq!(second.start, Start::Behind { stream: 0, pause: 1_000_000_000 });
    let Layer::Tcp { source, destination, flags, sum, .. } = &first.layers[5] else { panic!() };
    assert_eq!(source.steps, Steps::After("vlan.id".into()));
    assert_eq!((destination, flags, *sum), (&Field::one(99u8), &Field::one(0x12u8), Sum::Wrong));
    let Layer::Ipv4 { source, .. } = &first.layers[4] else { panic!() };
    assert_eq!(*source, Field::one(0x0a07_0001u32));
    let third = &profile.pairs[1].streams[0];
    assert_eq!(third.size, Size::Shares(vec![(64, 1), (64, 1), (1518, 1)]));
    let Layer::Ipv4 { source, destination, .. } = &third.layers[0] else { panic!() };
    assert!(matches!(&source.values, Values::List(list) if list.len() == 6));
    assert_eq!(destination.steps, Steps::After("ipv4.source".into()));
    let [held, steps] = &profile.pairs[0].flows[..] else { panic!() };
    assert_eq!((held.hold, held.total), (Some(1000), Some(5000)));
    assert_eq!(held.ramp, Some(Ramp { time: 10_000_000, exponential: true }));
    let wait = Step::Wait { least: 10_000_000, most: 50_000_000 };
    assert_eq!(held.plan.talks[0].client[2], wait);
    assert_eq!((held.plan.times.first, held.plan.times.retries), (1_000_000, 2));
    assert_eq!((held.plan.times.keepalive, held.plan.gaps), (Some(5_000_000), Gaps::Exponential));
    let talk = &steps.plan.talks[0];
    assert_eq!(talk.fill, (b'a', 7));
    assert_eq!(talk.client[5], Step::Repeat { from: 3, times: 3 });
    assert_eq!((steps.plan.ports, steps.plan.patience), ((5000, 1000), 10_000_000));
    // No side gives up while the other one lives on in silence.
    assert_eq!(held.plan.patience, 30_000_000 + 50_000_000);
    check_canonical(&profile);
}

#[test]
fn waits_may_be_exponential() {
    let flow = |rest: &str| {
        parse(&format!(
            "version: 1\nflows:\n- {{tcp: {{client: 1.0.0.1, server: 2.0.0.1, port: 80}}, {rest}}}\n"
        ))
    };
    let profile = flow("life: exp 30s, exchange: {wait: exp 5ms}").unwrap();
    let talk = &profile.pairs[0].flows[0].plan.talks[0];
    assert_eq!(talk.client[2], Step::Pause { mean: 30_000_000 });
    assert_eq!(talk.server[1], Step::Pause { mean: 5_000 });
    check_canonical(&profile);
    let profile = flow("client: [{send: 1}, {wait: exp 1s}], server: [{expect: 1}]").unwrap();
    assert_eq!(profile.pairs[0].flows[0].plan.talks[0].client[1], Step::Pause { mean: 1_000_000 });
    check_canonical(&profile);
    for wrong in ["life: exp 0s", "life: exp 226s", "life: exp", "exchange: {wait: exp -1s}"] {
        let error = flow(wrong).unwrap_err().to_string();
        assert!(error.contains("exp 50ms"), "{wrong}: {error}");
    }
    let error = flow("gaps: odd").unwrap_err().to_string();
    assert!(error.contains("even") && error.contains("exponential"), "{error}");
}

#[test]
fn mistakes_have_their_place_and_what_would_be_right() {
    let stream = |rest: &str| {
        format!("version: 1\nstreams:\n- {{between: [1.0.0.1, 2.0.0.1], udp: [1, 2], {rest}}}\n")
    };
    let cases = [
        ("streams: []".to_owned(), "p.yaml:1:1: `version' is missing: this program reads `version: 1'"),
        ("version: 2".into(), "p.yaml:1:10: version: `2' is not a whole number from 1 to 1"),
        (
            "version: 1".into(),
            "p.yaml:1:1: neither `streams' nor `flows': it would send nothing",
        ),
        (
            "version: 1\nstraems: []".into(),
            "p.yaml:2:10: straems: unknown key `straems'; did you mean `streams'?",
        ),
        (
            stream("seize: 9"),
            "p.yaml:3:53: streams[0].seize: unknown key `seize'; did you mean `size'?",
        ),
        (
            stream("size: 9"),
            "p.yaml:3:52: streams[0].size: 9 bytes with FCS; it must be 64 to 9216",
        ),
        (
            stream("size: 100-64"),
            "p.yaml:3:52: streams[0].size: 100-64 runs backwards; use 64-100",
        ),
        (
            stream("rate: 10 apples"),
            "p.yaml:3:52: streams[0].rate: `10 apples' is not a rate, as 28 pps, 5 kpps, 2 Mbps, \
             2 Mbps-l1 or 10 %",
        ),
        (
            "version: 1\npools: {clients: {v4: 1.0.0.9-1.0.0.1}}".into(),
            "p.yaml:2:23: pools.clients.v4: `1.0.0.9-1.0.0.1' runs backwards; use 1.0.0.1-1.0.0.9",
        ),
        (
            "version: 1\npools: {clients: {v4: 1.0.0.0/24}}\nstreams:\n- {between: [clinets, clients]}"
                .into(),
            "p.yaml:4:14: streams[0].between[0]: no pool `clinets'; did you mean `clients'?",
        ),
        (
            "version: 1\nstreams:\n- layers: [{mpls: {label: 16}}, {ipv4: {source: 1.1.1.1}}]".into(),
            "p.yaml:3:33: streams[0].layers[1]: ipv4 needs `destination', or the stream `between' \
             with such pools",
        ),
        (
            stream("after: {stream: other}"),
            "p.yaml:3:3: streams[0].after: no stream `other' of this pair to start after",
        ),
        (
            stream("size: \"${seize}\""),
            "p.yaml:3:52: streams[0].size: no tunable `seize'; tunables: ",
        ),
        (
            "version: 1\nstreams:\n- layers: [{vlan: {id: 5000}}]\n  between: [1.0.0.1, 1.0.0.2]"
                .into(),
            "p.yaml:3:11: streams[0].vlan.id: 5000 is too large: at most 4095",
        ),
        (
            "version: 1\nflows:\n- {tcp: {client: 1.0.0.1, server: 1.0.0.2, port: 80}, hold: none}".into(),
            "p.yaml:3:61: flows[0].hold: `none' is not a whole number from 1 to 1073741824",
        ),
        ("a: [".into(), "p.yaml:"),
    ];
    for (text, wanted) in cases {
        let error = parse(&text).unwrap_err();
        assert!(error.starts_with(wanted), "{text}\n got: {error}\nwant: {wanted}");
    }
    // All streams are looked at.
    let two = "version: 1\nstreams:\n- {size: 1}\n- {size: 2}\n";
    assert_eq!(parse(two).unwrap_err().lines().count(), 2);
    let error = Profile::builtin("imx", &[]).unwrap_err().to_string();
    assert_eq!(error, "imx: no built-in profile of that name; did you mean `imix'?");
    let error = Profile::builtin("bench", &[("sise".into(), "1".into())]).unwrap_err().to_string();
    assert_eq!(error, "bench: tunables: no tunable `sise'; did you mean `size'?");
}

/// Plain scalars are what they are in the text, whatever YAML 1.1 takes them for.
#[test]
fn words_keep_their_text() {
    let profile = parse(
        "version: 1\ntunables: {t: 1.50}\nstreams:\n\
         - {name: no, between: [1.0.0.1, 2.0.0.1], payload: {text: y}, vary: off, cache: off}\n\
         - {name: 012, between: [1.0.0.1, 2.0.0.1], udp: [010, 1_000], payload: {text: 1.50}}\n\
         - {name: ~, between: [1.0.0.1, 2.0.0.1], udp: [0x10, 1e3], payload: {hex: 0010, fill: y}}\n\
         - {name: \"${t}\", layers: [{vlan: {id: 1, service: on}}, {ipv4: {source: 1.0.0.1, \
           destination: 2.0.0.1}}], fixed_rate: Yes}\n",
    )
    .unwrap();
    let streams = &profile.pairs[0].streams;
    let names: Vec<&str> = streams.iter().map(|stream| stream.name.as_str()).collect();
    assert_eq!(names, ["no", "012", "stream2", "1.50"]);
    let payload = |n: usize| match streams[n].layers.last() {
        Some(Layer::Payload { bytes, fill }) => (bytes.clone(), *fill),
        layer => panic!("{layer:?}"),
    };
    assert_eq!(payload(0).0, b"y");
    assert_eq!(payload(1).0, b"1.50");
    assert_eq!(payload(2), (vec![0, 16], stream::Fill::Byte(b'y')));
    for n in [1, 2] {
        let Layer::Udp { source, destination, .. } = &streams[n].layers[1] else { panic!() };
        assert_eq!(source.values, Values::One([10, 16][n - 1]));
        assert_eq!(destination.values, Values::One(1000));
    }
    assert!(matches!(streams[3].layers[0], Layer::Vlan { service: true, .. }));
    assert!(streams[3].fixed_rate);
    assert_eq!(profile.tunables, [("t".to_owned(), "1.50".to_owned())]);
    check_canonical(&profile);
}

#[test]
fn packets_of_connections_fit_into_ethernet() {
    let flow = |first: &str, kind: &str, rest: &str| {
        parse(&format!(
            "version: 1\nflows:\n- {kind}: {{client: \"{first}\", server: \"{first}\", port: 80{rest}\n"
        ))
    };
    for (first, mss, datagram) in [("1.0.0.1", 1460, 1472), ("2001:db8::1", 1440, 1452)] {
        let profile = flow(first, "tcp", "}").unwrap();
        assert_eq!(profile.pairs[0].flows[0].plan.mss, mss);
        check_canonical(&profile);
        let error = flow(first, "tcp", &format!(", mss: {}}}", mss + 1)).unwrap_err();
        assert!(error.contains(&format!("whole number from 1 to {mss}")), "{error}");
        let answer = |bytes| flow(first, "udp", &format!("}}\n  exchange: {{answer: {bytes}}}"));
        check_canonical(&answer(datagram).unwrap());
        let error = answer(datagram + 1).unwrap_err();
        assert!(error.starts_with("p.yaml:4:13: flows[0].exchange: flow0, server"), "{error}");
        assert!(error.ends_with(&format!("it must have 1 to {datagram}")), "{error}");
    }
}

#[test]
fn connections_that_nobody_closes_are_held() {
    let flow = |rest: &str| {
        parse(&format!(
            "version: 1\nflows:\n- {{tcp: {{client: 1.0.0.1, server: 2.0.0.1, port: 80}}, {rest}}}\n"
        ))
    };
    check_canonical(&flow("close: never, hold: 5").unwrap());
    let error = flow("close: never").unwrap_err();
    let wanted = "p.yaml:3:62: flows[0].close: nobody ever closes these connections";
    assert!(error.starts_with(wanted) && error.contains("`hold: 1000'"), "{error}");
    let error = flow("client: [await_close], server: [await_close]").unwrap_err();
    assert!(error.starts_with("p.yaml:3:63: flows[0].client: nobody"), "{error}");
}

#[test]
fn what_is_wrong_with_a_flow_has_its_own_place() {
    let good = "- {tcp: {client: 1.0.0.1, server: 2.0.0.1, port: 80}}\n";
    for (bad, wanted) in [
        (
            "- udp: {client: 1.0.0.1, server: 2.0.0.1, port: 81}\n  exchange: {request: 2000}\n",
            "p.yaml:5:13: flows[1].exchange: flow1, client: step 1: a message of 2000 bytes",
        ),
        (
            "- tcp: {client: 1.0.0.1, server: 2.0.0.1, port: 80}\n  name: b\n",
            "p.yaml:4:49: flows[1].tcp.port: flow0 and b: they have the same protocol and port",
        ),
        (
            "- tcp: {client: 1.0.0.1, server: 2.0.0.0/15, port: 80}\n",
            "p.yaml:4:34: flows[1].tcp.server: 131072 addresses of servers",
        ),
        (
            "- tcp: {client: 1.0.0.1, server: \"::1\", port: 80}\n",
            "p.yaml:4:34: flows[1].tcp.server: clients 1.0.0.1 and servers ::1",
        ),
    ] {
        let error = parse(&format!("version: 1\nflows:\n{good}{bad}")).unwrap_err();
        assert!(error.starts_with(wanted) && error.lines().count() == 1, "{error}\n{wanted}");
    }
}

#[test]
fn hostile_documents_end_in_an_error() {
    let deep = format!("version: 1\nstreams: {}{}", "[".repeat(5000), "]".repeat(5000));
    let mut bomb = String::from("version: 1\nabout: x\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..12 {
        let last = n - 1;
        let part = vec![format!("*a{last}"); 10].join(", ");
        bomb.push_str(&format!("a{n}: &a{n} [{part}]\n"));
    }
    let mut lists =
        String::from("version: 1\npools: {a: {v4: [16.0.0.0/17, 17.0.0.0/17]}}\nstreams:\n");
    lists.push_str(&"- {between: [a, a], udp: [1, 2]}\n".repeat(4000));
    let long = "x".repeat(600_000);
    let defaults = format!(
        "version: 1\ndefaults: {{about: 1, payload: {{text: {long}}}}}\nstreams:\n{}",
        "- {}\n".repeat(4000)
    );
    let tunables = format!(
        "version: 1\ntunables: {{a: {}}}\nstreams:\n- {{name: \"{}\"}}\n",
        "y".repeat(200),
        "${a}".repeat(100_000)
    );
    let drawn = "- {layers: [{ipv4: {source: {random: 0.0.0.0/0, distinct: 65536}, \
                 destination: 1.1.1.1}}]}\n";
    let distinct = format!("version: 1\nstreams:\n{}", drawn.repeat(4000));
    let sizes = format!(
        "version: 1\ndefaults: {{between: [1.1.1.1, 2.2.2.2], size: 64-9216}}\nstreams:\n{}",
        "- {}\n".repeat(4000)
    );
    let cache = format!(
        "version: 1\ndefaults: {{between: [1.1.1.1, 2.2.2.2], cache: 40000}}\nstreams:\n{}",
        "- {}\n".repeat(4000)
    );
    let numbers = "version: 1\nstreams: [{times: 99999999999999999999999999999999999999999999}]";
    let huge = "version: 1\nflows: [{tcp: {client: \"::/0\", server: \"::1\", port: 1}}]";
    for text in [&deep, &bomb, &lists, &defaults, &tunables, &distinct, &sizes, &cache] {
        let error = parse(text).unwrap_err();
        assert!(error.len() < 2_000_000, "{}", error.len());
    }
    for text in
        [numbers, huge, "version: 1\nstreams: [{rate: 1e400}]", "\0", "version: 1\nstreams: {a: b}"]
    {
        parse(text).unwrap_err();
    }
    assert!(parse(&"#".repeat(MAX_TEXT + 1)).unwrap_err().contains("longer than 1 MiB"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A document with anything in it is a profile, or has a problem; and what is a profile has a
    /// canonical form.
    #[test]
    fn damaged_documents_do_no_harm(
        cuts in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..12usize, prop_oneof![
                Just("${port}"), Just("*x"), Just("&x"), Just("0-"), Just("-1"), Just("1e9"),
                Just("{inc: 1-2}"), Just("[]"), Just("{}"), Just("~"), Just("99999999999"),
                Just("ipv4.source"), Just("\n"), Just("random"), Just(""), Just(": "), Just("imix"),
            ]), 0..4),
    ) {
        let mut text = LONG.to_owned();
        for (at, length, put) in cuts {
            let at = at.index(text.len());
            let end = (at + length).min(text.len());
            text.replace_range(at..end, put);
        }
        if let Ok(profile) = parse(&text) {
            check_canonical(&profile);
        }
    }
}

#[test]
fn examples_of_the_manual_are_profiles() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/load-profiles.md");
    let page = std::fs::read_to_string(path).unwrap();
    let blocks: Vec<&str> =
        page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 5);
    for block in blocks {
        check_canonical(&parse(block).unwrap_or_else(|error| panic!("{error}\n{block}")));
    }
    for builtin in BUILTINS {
        assert!(page.contains(&format!("| `{}` |", builtin.name)), "{}", builtin.name);
    }
    for key in streams::KEYS.iter().chain(&flows::KEYS) {
        assert!(page.contains(&format!("`{key}`")), "{key} is not in the manual");
    }
}

#[test]
fn ramps_reach_the_whole() {
    let ramp = |exponential| Ramp { time: 1000, exponential };
    let shares = [0, 500, 1000, 5000].map(|at| ramp(false).share(at));
    assert_eq!(shares, [0.0, 0.5, 1.0, 1.0]);
    let shares = [0, 500, 1000].map(|at| ramp(true).share(at));
    assert_eq!(shares, [1.0 / 1024.0, 1.0 / 32.0, 1.0]);
}
