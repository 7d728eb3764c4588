//! Both ends together, over the kernel's own sockets.
//!
//! The families of samples and drops need modules that not every kernel has. If they are missing,
//! the group `notify` of the controller stands in for theirs: it is there on every kernel, and
//! passes on whatever is sent to it.

use super::psample::{RX_GROUP, TX_GROUP};
use super::receive::read_datagram;
use super::*;
use rustix::io::Errno;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use thalweg_netlink::Family;
use thalweg_netlink::wire::{self, Header};
use thalweg_netlink::{Port, Protocol};
use thalweg_sflow::value::Text;

/// Reads until `done`, or for a minute.
fn read_until(receiver: &mut Receiver, mut done: impl FnMut(Event<'_>) -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        let went = receiver.poll(Duration::from_millis(200), |event| {
            if done(event) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if went.unwrap().is_break() {
            return true;
        }
    }
    false
}

/// Reads all that has been sent: it is in the socket by then.
fn read_all(receiver: &mut Receiver, mut handle: impl FnMut(Event<'_>)) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut some = true;
    while some {
        assert!(Instant::now() < deadline, "there is no end of what was sent");
        some = false;
        let went = receiver.poll(Duration::ZERO, |event| {
            some = true;
            handle(event);
            ControlFlow::Continue(())
        });
        assert!(went.unwrap().is_continue());
    }
}

/// A receiver of status and counters with so much room. Joining is for the privileged: others get
/// `None`, after the refusal was looked at. The scenarios with namespaces run privileged.
fn listener(receive_buffer: usize) -> Option<Receiver> {
    let channels = vec![Channel::Usersock];
    let mut receiver =
        Receiver::new(ReceiverConfig { channels, receive_buffer, ..ReceiverConfig::default() });
    let mut reported = String::new();
    let joined = read_until(&mut receiver, |event| {
        if let Event::Notice(notice) = &event {
            reported = notice.to_string();
        }
        matches!(event, Event::Notice(Notice::Joined(_) | Notice::Refused(..)))
    });
    assert!(joined, "{reported}");
    if reported.starts_with("counters: cannot listen") {
        assert!(reported.contains("CAP_NET_ADMIN is needed"), "{reported}");
        assert!(!receiver.hears(Channel::Usersock));
        return None;
    }
    assert_eq!(reported, "counters: listening");
    Some(receiver)
}

#[test]
fn counters_reach_a_listener() {
    let Some(mut receiver) = listener(receive::RECEIVE_BUFFER) else { return };
    assert!(receiver.hears(Channel::Usersock) && receiver.descriptors().count() == 1);
    assert!(listeners(Channel::Usersock).unwrap().sockets >= 1);

    let mut sender = Multicast::open(Channel::Usersock).unwrap();
    // Other tests use the group, too: the name identifies ours.
    let name = format!("nl-{}", std::process::id());
    let port = PortCounters {
        name: Text(name.as_bytes()),
        index: 3,
        rx_packets: 5,
        sequence: Some(sender.next_sequence()),
        ..PortCounters::default()
    };
    sender.push(|out, header| port.encode(out, header));
    assert_eq!(sender.stats(), &SendStats::default(), "it waits for others");
    sender.flush();
    let sent = SendStats { sent: 1, datagrams: 1, ..SendStats::default() };
    assert_eq!(sender.stats(), &sent);
    assert!(read_until(&mut receiver, |event| {
        matches!(event, Event::Message(Message::Counters(c)) if c == port)
    }));
}

/// A listener is notified of each overrun with the exact number of lost datagrams, and
/// the sender's side sees it too.
#[test]
fn an_overrun_is_reported_with_its_number() {
    const SENT: u64 = 2000;
    let Some(mut receiver) = listener(4096) else { return };
    let mut sender = Multicast::open(Channel::Usersock).unwrap();
    sender.set_limit(0);
    for _ in 0..2 {
        for _ in 0..SENT {
            sender.push(|out, header| Status::default().encode(out, header));
        }
        let (mut heard, mut lost) = (0, 0);
        // Read to the last one: the kernel reports losses again only when nothing is left to read.
        // Other tests may use the group, too.
        read_all(&mut receiver, |event| match event {
            Event::Message(_) => heard += 1,
            Event::Notice(Notice::Overrun(Channel::Usersock, datagrams)) => lost += datagrams,
            Event::Notice(other) => panic!("{other}"),
        });
        let seen_by_sender = listeners(Channel::Usersock).unwrap();
        assert!(lost > 0 && heard > 0 && heard + lost >= SENT, "{heard} heard, {lost} lost");
        assert!(seen_by_sender.lost >= lost, "{seen_by_sender:?}, {lost} lost");
    }
    assert_eq!((sender.stats().sent, sender.stats().failed), (2 * SENT, 0));
}

#[test]
fn a_missing_family_is_reported_once_with_what_to_do() {
    for channel in [Channel::Psample, Channel::Dropmon] {
        let (family, group, module) = channel.family().unwrap();
        if let Some(found) = Family::resolve(family).unwrap() {
            // The kernel has this group.
            assert!(found.group(group).is_some());
            continue;
        }
        let error = Multicast::open(channel).unwrap_err().to_string();
        let expected = format!("this kernel has no {family} family: modprobe {module}");
        assert!(error.starts_with(&expected), "{error}");
        let mut receiver = Receiver::new(ReceiverConfig {
            channels: vec![channel],
            retry: Duration::ZERO,
            ..ReceiverConfig::default()
        });
        let mut reported = Vec::new();
        for _ in 0..10 {
            let note = |event: Event<'_>| {
                if let Event::Notice(notice) = event {
                    reported.push(notice.to_string());
                }
                ControlFlow::Continue(())
            };
            assert!(receiver.poll(Duration::ZERO, note).unwrap().is_continue());
        }
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert!(reported[0].contains(&expected), "{reported:?}");
    }
}

/// Samples in packed datagrams over a generic family's group, as far as we may send to one.
#[test]
fn packed_samples_reach_a_listener() {
    let controller = Family::resolve("nlctrl").unwrap().unwrap();
    let group = controller.group("notify").unwrap();
    let listener = Port::open(Protocol::Generic).unwrap();
    listener.set_receive_buffer(1 << 20);
    listener.join(group).unwrap();
    let mut sender = Multicast::generic(&controller, "nlctrl", "notify").unwrap();
    let data = [7; 128];
    let sample = |n: u32| PacketSample {
        input: 1,
        original_length: 1000 + n,
        group: if n.is_multiple_of(2) { RX_GROUP } else { TX_GROUP },
        group_sequence: n / 2 + 1,
        rate: 100,
        data: &data[..n as usize % 129],
        protocol: Some(1),
        ..PacketSample::default()
    };
    const SAMPLES: u64 = 200;
    let mut first = Vec::new();
    // Other users of this group may fill the listener's buffer, which the kernel says only once its
    // turn comes: all is sent again then.
    for round in 1..=100 {
        for n in 0..SAMPLES as u32 {
            sender.push(|out, header| sample(n).encode(out, header));
            if first.is_empty() {
                first.extend_from_slice(sender.waiting());
            }
        }
        sender.flush();
        let stats = sender.stats();
        if stats.failed > 0 {
            // Sending to groups of the kernel's is for the privileged.
            assert!(stats.last_error.as_deref().unwrap().contains("CAP_NET_ADMIN"), "{stats:?}");
            assert_eq!(stats.failed, SAMPLES);
            return;
        }
        assert_eq!((stats.sent, stats.failed), (round * SAMPLES, 0));
        assert!(stats.datagrams < 10 * round, "{stats:?}");
        let own = wire::Messages::new(&first).next().unwrap().unwrap().header.port;
        if heard(&listener, own, controller.id, SAMPLES as u32, sample) {
            return;
        }
    }
    panic!("the listener was overrun repeatedly");
}

/// True if all samples come that were sent from a port, in order and as they were; false if the
/// listener has lost what others sent.
fn heard<'a>(
    listener: &Port,
    own: u32,
    family: u16,
    samples: u32,
    sample: impl Fn(u32) -> PacketSample<'a>,
) -> bool {
    let (mut buffer, mut next, mut overrun) = (vec![0; 65536], 0, false);
    loop {
        let length = match listener.receive(&mut buffer) {
            Ok(length) => length,
            Err(Errno::NOBUFS) => {
                overrun = true;
                continue;
            }
            Err(Errno::AGAIN) if overrun => return false,
            // Samples were delivered before sending returned.
            Err(error) => panic!("{next} of {samples}: {error}"),
        };
        for raw in wire::Messages::new(&buffer[..length]).map(Result::unwrap) {
            if raw.header.port == own && !overrun {
                assert!(length <= send::DATAGRAM_BYTES);
                let read = Message::decode(Channel::Psample, family, &raw);
                assert_eq!(read, Ok(Some(Message::Sample(sample(next)))));
                next += 1;
            }
        }
        if next == samples {
            return true;
        }
    }
}

#[test]
fn what_does_not_fit_goes_alone() {
    let controller = Family::resolve("nlctrl").unwrap().unwrap();
    let mut sender = Multicast::generic(&controller, "nlctrl", "notify").unwrap();
    sender.set_limit(500);
    for length in [10, 10, 400, 2000, 10] {
        let sample = PacketSample { data: &[1; 2000][..length], ..PacketSample::default() };
        sender.push(|out, header| sample.encode(out, header));
    }
    sender.flush();
    sender.flush();
    let stats = sender.stats();
    assert_eq!(stats.sent + stats.failed, 5);
    assert!(stats.failed == 5 || stats.datagrams == 4, "{stats:?}");
}

#[test]
fn malformed_messages_are_notices_and_others_are_passed_over() {
    let mut datagram = Vec::new();
    Status { uptime_s: 1, ..Status::default() }.encode(&mut datagram, Header::default());
    wire::Writer::new(&mut datagram, Header { kind: 77, ..Header::default() }).finish();
    let mut w = wire::Writer::new(&mut datagram, Header { kind: 2, ..Header::default() });
    w.u32(9, 9);
    w.finish();
    datagram.extend([1, 2, 3]);
    let mut seen = Vec::new();
    let mut note = |event: Event<'_>| {
        seen.push(match event {
            Event::Message(message) => format!("{message:?}"),
            Event::Notice(notice) => notice.to_string(),
        });
        ControlFlow::Continue(())
    };
    let _ = read_datagram(Channel::Usersock, 0, &datagram, &mut note);
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert!(seen[0].starts_with("Status"), "{seen:?}");
    assert!(seen[1].contains("attribute 1 (the interface's number) is missing"), "{seen:?}");
    assert!(seen[2].ends_with("3 bytes are left, less than a header"), "{seen:?}");
}
