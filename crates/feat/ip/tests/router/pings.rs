//! `ping`, with hosts that answer, late, twice or never.

use crate::{bare, router};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use thalweg_device::interface;
use thalweg_device::testing::ip4::{framed, ip};
use thalweg_device::testing::{Lab, host_mac};
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv4::IcmpView;
use thalweg_wire::ipv4;

/// Answers each echo request after the delays that `how` returns, one per reply.
fn host(how: impl Fn(u16) -> Vec<Duration>) -> impl FnMut(&mut Lab) {
    let mut waiting: VecDeque<(Instant, u8, Vec<u8>)> = VecDeque::new();
    move |lab| {
        for (sw_if, frame) in lab.sent() {
            let v = ipv4::check(&frame[14..]).expect("sound");
            let icmp = IcmpView::parse(v.payload()).expect("icmp");
            assert!(icmp.checksum_ok());
            assert_eq!((icmp.kind(), v.ttl()), (8, 255));
            let echo = icmp.echo().expect("an echo request");
            let reply = Packet::new().ipv4(v.dst(), v.src()).ttl(61);
            let reply = reply.icmp_echo_reply(echo.id, echo.seq).payload(icmp.payload()).build();
            let n = sw_if.0 as u8 - 1;
            for delay in how(echo.seq) {
                waiting.push_back((Instant::now() + delay, n, framed(n, 2, &reply)));
            }
        }
        let now = Instant::now();
        waiting.retain(|(at, n, frame)| {
            let due = *at <= now;
            if due {
                lab.deliver(*n, vec![frame.clone()]);
            }
            !due
        });
    }
}

/// A time such as `.1352`, in milliseconds.
fn time(line: &str) -> f64 {
    let (_, rest) = line.split_once(" time=").expect("a time");
    let (number, rest) = rest.split_once(' ').expect("a unit");
    assert!(rest.starts_with("ms") && !number.starts_with("0."), "{line}");
    format!("0{number}").parse().expect("a number")
}

/// Output of a ping to a host that answers at once. One of five runs ends within `limit`; in the
/// others the processors may be busy with something else.
fn soon(lab: &mut Lab, line: &str, limit: Duration) -> String {
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        let text = lab.run(line, None, host(|_| vec![Duration::ZERO]));
        times.push(start.elapsed());
        if start.elapsed() < limit {
            return text;
        }
    }
    panic!("`{line}' took {times:?}");
}

#[test]
fn replies_are_printed_as_they_come() {
    let mut lab = router();
    // The last reply ends it.
    let text = soon(&mut lab, "ping 10.0.1.2 interval 0.05", Duration::from_secs(1));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7, "{text}");
    for (i, line) in lines[..5].iter().enumerate() {
        let want = format!("116 bytes from 10.0.1.2: icmp_seq={} ttl=61 time=", i + 1);
        assert!(line.starts_with(&want), "{line}");
        assert!(time(line) > 0.0, "{line}");
    }
    let least = lines[..5].iter().map(|line| time(line)).fold(f64::MAX, f64::min);
    assert!(least < 50.0, "{text}");
    assert_eq!(lines[5..], ["", "Statistics: 5 sent, 5 received, 0% packet loss"]);
    lab.close();
}

#[test]
fn short_intervals_and_large_packets() {
    let mut lab = router();
    let line = "ping 10.0.1.2 repeat 200 interval 0.0005 size 1400";
    let text = soon(&mut lab, line, Duration::from_secs(2));
    assert!(text.starts_with("1416 bytes from 10.0.1.2: icmp_seq=1 "), "{text}");
    assert!(text.ends_with("\nStatistics: 200 sent, 200 received, 0% packet loss\n"), "{text}");
    let text = lab.run("ping 10.0.1.2 repeat 10 burst 5 interval 0.01 size 0", None, {
        host(|_| vec![Duration::ZERO])
    });
    assert!(text.ends_with("\nStatistics: 50 sent, 50 received, 0% packet loss\n"), "{text}");
    lab.close();
}

#[test]
fn lost_late_and_duplicate_replies_are_distinguished() {
    let mut lab = router();
    let ms = Duration::from_millis;
    let how = move |seq| match seq {
        1 => vec![ms(1), ms(5)],
        3 => vec![ms(1100)],
        // The last request's timeout leaves time for the late reply.
        2 | 6 => vec![],
        _ => vec![ms(1)],
    };
    let text = lab.run("ping 10.0.1.2 repeat 6 interval 0.3", None, host(how));
    let lines: Vec<&str> = text.lines().collect();
    let line = |seq: u16, end: &str| {
        let start = format!("116 bytes from 10.0.1.2: icmp_seq={seq} ");
        lines.iter().any(|l| l.starts_with(&start) && l.ends_with(end))
    };
    assert!(line(1, " ms") && line(1, " ms (duplicate)") && line(4, " ms"), "{text}");
    assert!(line(3, " ms (late)") && line(5, " ms"), "{text}");
    assert!(!lines.iter().any(|l| l.contains("icmp_seq=2 ")), "{text}");
    let sum = "Statistics: 6 sent, 3 received, 50% packet loss, 1 late, 1 duplicate";
    assert_eq!(lines.last(), Some(&sum));
    lab.close();
}

#[test]
fn silence_ends_with_all_lost() {
    let mut lab = router();
    let start = Instant::now();
    let text = lab.run("ping 10.0.1.2 repeat 3 interval 0.01", None, host(|_| vec![]));
    assert_eq!(text, "\nStatistics: 3 sent, 0 received, 100% packet loss\n");
    let took = start.elapsed();
    assert!(took > Duration::from_secs(1) && took < Duration::from_secs(3), "{took:?}");
    // A next hop that is down does not answer either; a route to nowhere is reported at once.
    lab.up(1, false);
    let text = lab.run("ping 10.0.1.2 repeat 1", None, |_| {});
    assert_eq!(text, "\nStatistics: 1 sent, 0 received, 100% packet loss\n");
    lab.ok("ip route add 192.0.2.0/24 prohibit");
    let text = lab.run("ping 192.0.2.1", None, |_| {});
    assert!(text.contains("route 192.0.2.0/24 to 192.0.2.1 is dpo-prohibit"), "{text}");
    lab.close();
}

#[test]
fn ctrl_c_shows_the_statistics() {
    let mut lab = router();
    // The command is cancelled before the second request, long after the first one's reply.
    let after = Some(Duration::from_millis(500));
    let text = lab.run("ping 10.0.1.2", after, host(|_| vec![Duration::ZERO]));
    let end = "\nStatistics: 1 sent, 1 received, 0% packet loss\n";
    assert!(text.ends_with(end) && text.lines().count() == 3, "{text}");
    // Replies after the end are ignored.
    let text = lab.run("ping 10.0.1.2 repeat 1", Some(Duration::ZERO), host(|_| vec![]));
    assert_eq!(text, "\nStatistics: 1 sent, 0 received, 100% packet loss\n");
    lab.close();
}

#[test]
fn the_router_answers_itself() {
    let mut lab = router();
    for own in [ip(0, 1), ip(2, 1)] {
        let text = lab.run(&format!("ping {own} repeat 3 interval 0.01"), None, |_| {});
        assert_eq!(text.matches(&format!("116 bytes from {own}: icmp_seq=")).count(), 3, "{text}");
        assert!(text.ends_with("\nStatistics: 3 sent, 3 received, 0% packet loss\n"), "{text}");
    }
    assert!(lab.sent().is_empty());
    lab.close();
}

#[test]
fn sources_and_tables() {
    let mut lab = bare().start();
    lab.ok("ip table add 7\n\
         set interface ip table test1 7\n\
         set interface ip address test1 10.0.1.1/24\n\
         set interface ip address test1 10.0.77.1/24\n\
         set interface ip address test0 10.0.0.1/24");
    lab.neighbor(1, ip(1, 2), host_mac(1, 2));
    lab.neighbor(1, ip(77, 2), host_mac(1, 2));
    lab.neighbor(0, ip(0, 2), host_mac(0, 2));
    let from = |lab: &mut Lab, line: &str| {
        let mut from = None;
        let text = lab.run(line, None, |lab| {
            for (_, frame) in lab.sent() {
                from = Some(ipv4::check(&frame[14..]).expect("sound").src());
            }
        });
        (from, text)
    };
    for (line, want) in [
        ("ping 10.0.1.2 table-id 7 repeat 1", ip(1, 1)),
        ("ping 10.0.77.2 table-id 7 repeat 1", ip(77, 1)),
        ("ping 10.0.1.2 source test1 repeat 1", ip(1, 1)),
        ("ping 10.0.0.2 repeat 1 ipv4", ip(0, 1)),
    ] {
        let (found, text) = from(&mut lab, line);
        assert_eq!(found, Some(want), "{line}: {text}");
    }
    let (_, text) = from(&mut lab, "ping 10.0.1.2 repeat 1");
    assert!(text.contains("no route to 10.0.1.2 in table 0"), "{text}");
    let (_, text) = from(&mut lab, "ping 10.0.0.2 source test2 repeat 1");
    assert!(text.contains("`test2' has no IPv4 address"), "{text}");
    lab.close();
}

#[test]
fn the_statistics_have_json() {
    let mut lab = router();
    let line = "ping 10.0.1.2 repeat 2 interval 0.01 | json";
    let text = lab.run(line, None, host(|_| vec![Duration::ZERO]));
    let v: serde_json::Value = serde_json::from_str(&text).expect("json");
    assert_eq!((v["sent"].as_u64(), v["received"].as_u64()), (Some(2), Some(2)));
    assert_eq!(v["replies"][1]["seq"], 2);
    lab.close();
}

/// Deletes an interface once the first request is answered, and makes others until one has its
/// index. Returns the output, and by which interfaces requests have left, one after the other.
fn replaced(lab: &mut Lab, line: &str, n: u8, table: &str) -> (String, Vec<u8>) {
    let (old, mut out_by, mut is_deleted) = (lab.sw_if(n), Vec::new(), false);
    let table = table.to_owned();
    let text = lab.run(line, None, |lab| {
        let sent = lab.sent();
        out_by.extend(sent.iter().map(|(sw_if, _)| lab.number(*sw_if)));
        let Some((sw_if, frame)) = sent.first().filter(|_| !is_deleted) else { return };
        let v = ipv4::check(&frame[14..]).expect("sound");
        let icmp = IcmpView::parse(v.payload()).expect("icmp");
        let echo = icmp.echo().expect("an echo request");
        let reply = Packet::new().ipv4(v.dst(), v.src()).ttl(61);
        let reply = reply.icmp_echo_reply(echo.id, echo.seq).payload(icmp.payload()).build();
        let number = lab.number(*sw_if);
        lab.deliver(number, vec![framed(number, 2, &reply)]);
        lab.settle();
        out_by.extend(lab.sent().iter().map(|(sw_if, _)| lab.number(*sw_if)));
        interface::delete(&mut lab.c, old).expect("an interface");
        lab.until("the index", |lab| interface::view(&lab.c, old).is_err());
        let made: Vec<u8> = (20..40).take_while(|n| lab.interface(*n) != old).collect();
        let new = lab.number(old);
        assert!(made.len() < 20 && new >= 20);
        lab.ok(&format!("set interface ip table test{new} {table}"));
        lab.ok(&format!("set interface ip address test{new} 10.0.{new}.1/24"));
        is_deleted = true;
    });
    out_by.dedup();
    (text, out_by)
}

#[test]
fn a_session_leaves_the_interface_that_has_the_index_of_its_own() {
    let mut lab = router();
    lab.ok("ip table add 9");
    // A route by another interface takes over: no request is looked up in the new one's table.
    lab.ok("ip route add 0.0.0.0/0 via 10.0.2.2 test2");
    lab.ok("ip route add 0.0.0.0/0 via drop table 9");
    let (text, out_by) = replaced(&mut lab, "ping 10.0.1.2 repeat 99 interval 0.01", 1, "9");
    assert_eq!(out_by, [1, 2], "{text}");
    assert!(text.contains("\nStatistics: 99 sent, 1 received, "), "{text}");
    lab.close();
}

#[test]
fn a_session_ends_with_its_source() {
    let mut lab = router();
    let line = "ping 10.0.1.2 repeat 99 interval 0.01 source test0";
    let (text, out_by) = replaced(&mut lab, line, 0, "0");
    assert_eq!(out_by, [1], "{text}");
    assert!(text.contains(" sent, 1 received, "), "{text}");
    assert!(text.contains("the source `test0' is deleted"), "{text}");
    lab.close();
    // Without any route left, the error is that of a new session.
    let mut lab = router();
    let (text, out_by) = replaced(&mut lab, "ping 10.0.1.2 repeat 99 interval 0.01", 1, "0");
    assert_eq!(out_by, [1], "{text}");
    assert!(text.contains("no egress interface: no route to 10.0.1.2 in table 0"), "{text}");
    lab.close();
}

#[test]
fn a_session_follows_its_source_to_another_table() {
    let mut lab = router();
    lab.ok("ip table add 9");
    let (mut seen, mut is_moved) = (Vec::new(), false);
    let text = lab.run("ping 10.0.1.2 repeat 99 interval 0.01 source test0", None, |lab| {
        for (sw_if, frame) in lab.sent() {
            let v = ipv4::check(&frame[14..]).expect("sound");
            seen.push((lab.number(sw_if), v.src()));
            seen.dedup();
            if std::mem::replace(&mut is_moved, true) {
                continue;
            }
            lab.ok("set interface ip address del test0 10.0.0.1/24");
            lab.ok("set interface ip table test0 9");
            lab.ok("set interface ip address test0 10.9.0.1/24");
            lab.ok("ip route add 10.0.1.0/24 via 10.0.2.2 test2 table 9");
        }
    });
    assert_eq!(seen, [(1, ip(0, 1)), (2, "10.9.0.1".parse().expect("an address"))], "{text}");
    lab.close();
}
