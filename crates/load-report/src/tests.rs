use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn report() -> Report {
    let books = Books {
        intended: 1_000_100,
        unsent_late: 60,
        unsent_no_room: 40,
        device: 4_700,
        device_tx: 46,
        received: 995_250,
        ..Books::default()
    };
    let trial = |n, load, loss_ratio| Trial {
        n,
        at_ns: u64::from(n) * 1_500_000_000,
        load,
        duration_s: 1.0,
        effective_s: 1.0,
        loss_ratio,
        judged: 1_000_000,
        directions: BTreeMap::from([("a-b".to_owned(), books)]),
        verdicts: BTreeMap::from([(
            "NDR".to_owned(),
            if loss_ratio > 0.0 { Verdict::High } else { Verdict::Low },
        )]),
        streams: vec![StreamResult {
            name: "small <b>".into(),
            direction: "a-b".into(),
            intended: 1_000_100,
            sent: 1_000_000,
            received: 995_250,
            lost: 4_750,
            missing: vec![[7, 8], [100, 200]],
            ..StreamResult::default()
        }],
        drops: vec![Drop {
            side: "device".into(),
            node: "ct".into(),
            reason: "table | full".into(),
            packets: 4_700,
            foreign: 0,
        }],
        ..Trial::default()
    };
    let cover = Cover {
        count: 1_000_000,
        least_ns: Some(2_900),
        mean_ns: Some(4_000.0),
        most_ns: Some(90_000),
        percentiles: vec![Percentile(0.5, Some(3_210)), Percentile(0.9999, None)],
        beyond: vec![(3_000, 0.9), (4_000, 0.1), (90_000, 0.0)],
    };
    let mut spoiled = trial(3, 1.5e6, 0.1);
    spoiled.invalid = Some("the tester was late".into());
    Report {
        started: "2026-01-02T03:04:05Z".into(),
        ended: "2026-01-02T03:14:05Z".into(),
        command: vec!["thalweg".into(), "load".into(), "ndr".into(), "a b'c".into()],
        machine: Machine {
            cpu: "A & B".into(),
            cores: 2,
            kernel: "6.1".into(),
            ..Machine::default()
        },
        transport: Transport { kind: "process".into(), ..Transport::default() },
        profile: Profile {
            name: "imix".into(),
            fingerprint: "0011".into(),
            canonical: serde_json::json!({"version": 1}),
        },
        device: Device { name: "thalweg".into(), ..Device::default() },
        self_check: SelfCheck { transport: Some(2e6), ..SelfCheck::default() },
        goals: vec![Goal { name: "NDR".into(), ..Goal::default() }],
        results: vec![Found {
            goal: "NDR".into(),
            unit: "pps".into(),
            lower: Some(951_000.0),
            upper: Some(960_000.0),
            conditional_throughput: 951_000.0,
            limited_by: Some(LimitedBy {
                row: "device".into(),
                node: "ct".into(),
                reason: "table | full".into(),
                share: 0.989,
            }),
            first_lost: Some(FirstLost {
                scheduled_ns: Some(7_000),
                stream: "small".into(),
                sequence: Some(7),
                grade: Grade::Seen,
                node: "ct".into(),
                reason: "full".into(),
            }),
            repeats: vec![950e3, 951e3, 952e3],
            median: Some(951_000.0),
            interval95: Some([950e3, 952e3]),
            ..Found::default()
        }],
        trials: vec![trial(1, 951_000.0, 0.0), trial(2, 960_000.0, 0.00475), spoiled],
        latency: vec![Latency {
            load: 475e3,
            class: "small".into(),
            scheduled: cover.clone(),
            floor: Some(cover),
            jitter_ns: Some(800),
            ..Latency::default()
        }],
        series: Some(Series {
            step_ms: 100,
            values: BTreeMap::from([
                ("sent".to_owned(), vec![1.0, 2.0, 3.0]),
                ("active".to_owned(), vec![10.0, 12.0]),
            ]),
        }),
        notes: vec!["a note".into()],
        ..Report::new(Kind::Search)
    }
}

#[test]
fn json_is_read_back() {
    let report = report();
    assert_eq!(Report::read(&report.json()).unwrap(), report);
    // Readers ignore what they do not know.
    let more = report.json().replacen('{', "{\"new\": [1], ", 1);
    assert_eq!(Report::read(&more).unwrap(), report);
    for (text, wanted) in [
        ("{\"version\": 2}", "a report of version 2; this program reads version 1"),
        ("[]", "a report of version 0"),
        ("", "no report: "),
    ] {
        let error = Report::read(text).unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{error}");
    }
}

#[test]
fn books_balance_and_show_what_is_not_explained() {
    let books = report().trials[0].directions["a-b"];
    assert_eq!((books.sent(), books.lost(), books.unexplained()), (1_000_000, 4_750, 4));
    let twice = Books { device: 9_000, ..books };
    assert_eq!(twice.unexplained(), -4_296, "counted twice");
    let rows = books.rows();
    assert_eq!(rows.len(), 14);
    assert_eq!((rows[3], rows[13]), (("sent", 1_000_000), ("unexplained", 4)));
}

#[test]
fn markdown_has_a_headline_and_all_tables() {
    let text = report().markdown();
    for wanted in [
        "# Load test of thalweg\n",
        "**NDR: 951.0 k pps, 95 % \\[950.0 k, 952.0 k] of 3 searches; limited by device, ct, \
         table \\| full (98.9 % of loss).**",
        "- Profile: imix (0011)\n",
        "| share of the tester's limit used | 48 % |",
        "| trials that do not count | 1 of 3: the tester was late |",
        "| NDR | 951.0 k | 960.0 k | 951.0 k | – | pps | device, ct, table \\| full | small #7 at \
         7.00 µs, seen: ct, full |",
        "| small at 475.0 k | 1,000,000 | 2.90 µs | 3.21 µs | – | – | – | – | 90.00 µs | 800 ns |",
        "|  | 951.0 k (a-b) | 960.0 k (a-b) |\n| --- | --: | --: |\n| intended | 1,000,100 |",
        "| unexplained | 4 | 4 |",
        "| 1 | 951.0 k | 1.00 s | 1,000,000 | 0 of 1,000,000 (\\< 3e-6) | NDR met |",
        "| 3 | 1.500 M | 1.00 s | 1,000,000 | 10.0000 % | the tester was late |",
        "| small \\<b> a-b at 951.0 k | 1,000,100 | 1,000,000 | 995,250 | 4,750 | 0 | 0 | 0 | #7, \
         #100–199 |",
        "    thalweg load ndr 'a b'\\''c'\n",
    ] {
        assert!(text.contains(wanted), "{wanted}\n---\n{text}");
    }
}

/// Names of streams and devices, chosen by others, get into the report.
#[test]
fn names_are_text_everywhere_in_markdown() {
    let odd = "<script>|*x*\x1b[31m\r\n# [l](javascript:x) &lt;";
    let mut report = report();
    report.device.name = odd.into();
    report.notes = vec![odd.into()];
    report.command.push(odd.into());
    report.results[0].goal = odd.into();
    report.trials[0].streams[0].name = odd.into();
    report.trials[0].directions = BTreeMap::from([(odd.to_owned(), Books::default())]);
    let mut after = report.clone();
    after.profile.name = odd.into();
    let compared = compare(&report, &after, true).unwrap().markdown();
    let (text, command) = report
        .markdown()
        .split_once("## To repeat")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    for text in [&text, &compared] {
        assert!(text.contains("\\<script>") && !text.contains(['\x1b', '\r']), "{text}");
        assert_eq!(text.matches("<script").count(), text.matches("\\<script").count(), "{text}");
        assert!(!text.contains("\n# \\[l") && !text.contains(" &lt;"), "{text}");
    }
    assert!(command.contains("\\u{1b}[31m") && !command.contains('\x1b'), "{command}");
}

#[test]
fn html_is_one_page_with_plots_and_nothing_active() {
    let page = report().html().unwrap();
    for wanted in [
        "Loss by rate",
        "The search",
        "Latency: share",
        "Where packets were lost",
        "Rates over time",
        "Connections over time",
        "A &amp; B",
        "small &lt;b&gt;",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
    assert!(!page.contains("<script") && !page.contains("http://www.w3.org/1999/xlink"));
    assert_eq!(page.matches("<svg").count(), 6);
    // A report with nothing in it is a page, too.
    assert!(Report::default().html().unwrap().contains("</html>"));
    assert!(Report::default().markdown().starts_with("# Load test of a device"));
}

#[test]
fn a_tester_that_is_the_limit_is_never_called_the_device() {
    let mut limited = report();
    limited.results[0].tester_limit = true;
    let text = limited.markdown();
    assert!(text.contains("NDR: ≥ 951.0 k pps"), "{text}");
    assert!(!text.contains("limited by device"), "{text}");
}

#[test]
fn reports_compare_if_they_are_of_the_same_thing() {
    let (before, mut after) = (report(), report());
    after.results[0].median = Some(1_154_000.0);
    after.results[0].interval95 = Some([1_150e3, 1_160e3]);
    let compared = compare(&before, &after, false).unwrap();
    assert_eq!(compared.results[0].verdict(), "faster");
    let text = compared.markdown();
    assert!(text.contains("| NDR pps | 951.0 k | 1.154 M | +21.35% |"), "{text}");
    assert!(compared.html().contains("+21.35%"));
    after.results[0].tester_limit = true;
    let verdict = compare(&before, &after, false).unwrap().results[0].verdict();
    assert_eq!(verdict, "at least so much: the tester is the limit now");
    after.results[0] = before.results[0].clone();
    let same = compare(&before, &after, false).unwrap();
    assert_eq!(same.results[0].verdict(), "no difference seen");
    type Change = fn(&mut Report);
    let changes: [(&str, Change); 5] = [
        ("kind", |r| r.kind = Kind::Run),
        ("profile", |r| r.profile.fingerprint = "0012".into()),
        ("transport", |r| r.transport.kind = "af_packet".into()),
        ("machine", |r| r.machine.cores = 4),
        ("goals", |r| r.goals[0].sum_s = 21.0),
    ];
    for (what, change) in changes {
        let mut other = report();
        change(&mut other);
        let differs = compare(&before, &other, false).unwrap_err();
        assert_eq!(differs.iter().map(|fact| fact.what).collect::<Vec<_>>(), [what]);
        let anyway = compare(&before, &other, true).unwrap();
        assert!(anyway.notes[0].starts_with("Not comparable: "), "{:?}", anyway.notes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any numbers make a page, a text, and books that add up.
    #[test]
    fn any_numbers_are_reported(
        numbers in prop::collection::vec(any::<u64>(), 12),
        loads in prop::collection::vec(any::<f64>(), 3),
        times in prop::collection::vec((any::<u64>(), any::<f64>()), 0..5),
    ) {
        let mut report = report();
        let books = Books {
            intended: numbers[0], unsent_late: numbers[1], unsent_no_room: numbers[2],
            link_in: numbers[3] >> 8, device_rx: numbers[4] >> 8, device: numbers[5] >> 8,
            device_kept: numbers[6] >> 8, device_tx: numbers[7] >> 8, link_out: numbers[8] >> 8,
            tester_rx: numbers[9] >> 8, damaged: numbers[10] >> 8, received: numbers[11],
        };
        report.trials[0].directions.insert("b-a".into(), books);
        for (trial, load) in report.trials.iter_mut().zip(loads) {
            (trial.load, trial.loss_ratio) = (load, load);
        }
        report.latency[0].scheduled.beyond = times;
        prop_assert!(report.html().unwrap().ends_with("</html>\n"));
        prop_assert!(report.markdown().starts_with("# "));
        let rows = books.rows();
        prop_assert_eq!(rows.len(), 14);
    }
}

#[test]
fn rates_and_lives_tell_whether_connections_grow() {
    let verdict = |begun: f64, seen: f64, life: f64| {
        let connections = Connections {
            begun_per_s: Some(begun),
            active_mean: Some(seen),
            life_mean_s: Some(life),
            ..Connections::default()
        };
        connections.little().unwrap().ends_with(": stationary")
    };
    // Lives are counted in milliseconds: 0.9 ms may count as 1.2.
    assert!(verdict(300.0, 0.26, 0.00122));
    assert!(verdict(10_000.0, 0.445, 0.000_106));
    assert!(verdict(1000.0, 100.0, 0.105));
    assert!(!verdict(1000.0, 100.0, 0.15));
    assert!(!verdict(100_000.0, 100.0, 0.0015));
}
