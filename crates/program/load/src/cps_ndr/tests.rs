//! Searches of the device in this process.

use super::*;
use crate::device::{Books, Device};
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn args(line: &str) -> Result<Args, String> {
    let words = std::iter::once("cps-ndr").chain(line.split_whitespace());
    Line::try_parse_from(words).map(|line| line.args).map_err(|error| error.to_string())
}

#[test]
fn options_are_those_of_cps_ndr() {
    let short = "-i 8 -T 30 -e 0.02 -u 1 -n 1 -s 20 -w 0 -m 1k -M 100k -r 3 -a 0 -f 1m -v";
    let args = args(short).unwrap();
    assert_eq!(
        (args.min_cps, args.max_cps, args.traffic.max_flows),
        (1000, 100_000, Some(1_000_000))
    );
    let plan = args.traffic.plan();
    assert_eq!(plan.talks.iter().map(|talk| talk.share).collect::<Vec<_>>(), [10, 990]);
    assert_eq!(
        plan.talks.iter().map(|talk| talk.limit).collect::<Vec<_>>(),
        [Some(10_000), Some(990_000)]
    );
    plan.check().unwrap();
}

#[test]
fn what_is_out_of_bounds_is_said() {
    for (line, text) in [
        ("-T 0", "value out of bounds [1, 600]: '0'"),
        ("-m 99", "value out of bounds [100, 1000000]: '99'"),
        ("-s 1457", "value out of bounds [20, 1456]: '1457'"),
        ("-u 100.1", "value out of bounds [0, 100]: '100.1'"),
        ("-M x", "not a number: 'x'"),
        ("-r 2.5", "value out of bounds [3, 20]: '2.5'"),
    ] {
        let error = args(line).err().unwrap();
        assert!(error.contains(text), "{line}: {error}");
    }
}

fn run(line: &str, commands: &str) -> (Ended, Books) {
    // However slow the machine is.
    let args = args(&format!("{line} --late 10000")).unwrap();
    let traffic = &args.traffic;
    let work = traffic.work(args.max_cps as f64).unwrap();
    let device = Device::inside(traffic.under.device, commands, &work.hosts(1, 1)).unwrap();
    let life = traffic.life();
    let mut tester = Tester { device, life, forgiven: 0.0, rate: 0.0, stopped: &|| false };
    let mut ended = Ended::new(&args);
    iterate(&args, &mut tester, &mut ended, &|line| println!("{line}"), &|| 0).unwrap();
    let books = tester.device.books().unwrap();
    tester.device.close().unwrap();
    (ended, books)
}

#[test]
fn clean_device_is_good() {
    let (ended, books) = run("-m 100 -M 300 -i 1 -u 10", "");
    let best = ended.best.expect("a good sample");
    assert_eq!((ended.range.lower, ended.range.upper), (200.0, 300.0));
    let counts = books.clients.counts;
    assert_eq!(counts.clean, counts.begun - u64::from(books.clients.open), "{counts:?}");
    assert_eq!(best.lost_percent(), 0.0);
    let lines = best.lines(true, false);
    let pattern = "▲▲▲ Flows: active ";
    assert!(lines.len() == 1 && lines[0].starts_with(pattern), "{lines:?}");
    assert_eq!(lines[0].matches("p/s)").count(), 2, "{lines:?}");
}

/// A table that is too small for the rate loses connections, and the drop is named.
#[test]
fn limit_of_the_device_is_named() {
    let limit = "set conntrack limit 5";
    let (ended, _) = run("-m 100 -M 5k -i 1 -w 20", limit);
    let worst = ended.worst.expect("a bad trial");
    assert!(!worst.tester && ended.best.is_none());
    let (spot, packets) = worst.drops.most().expect("a drop");
    assert!(packets > 0, "{spot}");
    let lines = worst.sample.lines(false, true);
    assert!(lines.iter().any(|line| line.starts_with("err dropped: ")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("err client: ")), "{lines:?}");
}

#[test]
fn file_has_the_shape_of_trex() {
    let args = args("-m 100 -M 300 -i 1").unwrap();
    let sample = Sample { rate: 200.0, seconds: 1.0, ..Sample::default() };
    let read =
        |best| -> serde_json::Value { serde_json::from_str(&output::text(&args, best)).unwrap() };
    let all = read(Some(&sample));
    for key in ["global", "0", "1", "total", "traffic", "latency", "conntrack_ndr_profile"] {
        assert!(all.get(key).is_some(), "{key}");
    }
    assert_eq!(all["global"]["tx_expected_cps"], 200.0);
    assert_eq!(read(None).as_object().unwrap().len(), 1);
}

#[test]
fn options_of_a_server_are_refused_with_a_reason() {
    assert!(args("").unwrap().server.refuse().is_ok());
    for line in ["-S trex1", "-p 4501", "-P 4500", "-t 5", "--server localhost"] {
        let error = args(line).unwrap().server.refuse().unwrap_err().to_string();
        assert!(error.contains("there is no TRex server"), "{line}: {error}");
    }
}
