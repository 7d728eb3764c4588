//! Frames through rings on the two ends of a veth pair.

use std::collections::HashMap;

use crate::support::{in_namespace, in_rootless_namespace, ip, until, veth_pair};
use thalweg_device_af_packet::Error;
use thalweg_device_af_packet::ring::{
    Fetch, Fetched, HostPort, Options, RxFrame, RxRing, SendError, Sink, TxRing, TxStats, Version,
};
use thalweg_device_linux::{IfInfo, LinkEvent, LinkMonitor, VnetHdr};
use thalweg_graph::heap::Counting;

const VERSIONS: [Version; 2] = [Version::V2, Version::V3];

fn versions(test: impl Fn(&Options)) {
    for version in VERSIONS {
        test(&Options { version, ..Options::default() });
    }
}

/// A frame of `len` bytes that contains its number; every third has a VLAN tag.
fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2];
    if number.is_multiple_of(3) {
        frame.extend([0x81, 0, 0x20, 100]);
    }
    // An EtherType for experiments, which no stack answers (RFC 5342).
    frame.extend([0x88, 0xb5]);
    frame.extend(number.to_be_bytes());
    let mut state = number;
    frame.resize_with(len, || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    frame
}

/// Sends a frame in two pieces, making room if needed.
fn send(tx: &mut TxRing, frame: &[u8]) {
    let (head, tail) = frame.split_at(frame.len() / 3);
    match tx.send(VnetHdr::default(), [head, tail]) {
        Ok(()) => return,
        Err(SendError::Full) => flush(tx),
        Err(error) => panic!("{} bytes: {error}", frame.len()),
    }
    tx.send(VnetHdr::default(), [head, tail]).unwrap();
}

fn flush(tx: &mut TxRing) {
    until("the transmit ring to drain", &tx.socket().clone(), || (!tx.kick()).then_some(()));
}

/// Receives `count` frames.
fn receive(rx: &mut RxRing, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let socket = rx.socket().clone();
    until("frames", &socket, || {
        rx.poll(count - frames.len(), |frame| {
            let mut bytes = vec![0; frame.len()];
            assert_eq!(frame.copy(0, &mut bytes), frame.len());
            assert_eq!(frame.wire_len, frame.len());
            assert!(frame.timestamp_ns > 1_600_000_000_000_000_000);
            frames.push(bytes);
            true
        });
        (frames.len() == count).then_some(())
    });
    frames
}

/// Every frame that was accepted is in exactly one counter.
fn accepted(stats: &TxStats) -> u64 {
    stats.frames + stats.refused + stats.down + stats.rejected
}

fn every_size(options: &Options, mtu: u32) {
    let _ = std::process::Command::new("ip").args(["link", "del", "left"]).output();
    veth_pair("left", "right", mtu);
    let mut left = HostPort::open("left", options).unwrap();
    let mut right = HostPort::open("right", options).unwrap();
    let (tx, rx) = (&mut left.tx[0], &mut right.rx[0]);
    let mut sent = 0u64;
    let sizes: Vec<usize> = (60..=mtu as usize + 14).collect();
    for burst in sizes.chunks(64) {
        let frames: Vec<_> = burst.iter().map(|&len| frame(len as u32, len)).collect();
        frames.iter().for_each(|frame| send(tx, frame));
        flush(tx);
        sent += frames.len() as u64;
        for (got, want) in receive(rx, burst.len()).iter().zip(&frames) {
            assert!(got == want, "a frame of {} bytes changed", want.len());
        }
    }
    let stats = rx.stats();
    assert_eq!((stats.frames, stats.truncated, stats.malformed), (sent, 0, 0));
    assert_eq!((tx.stats().frames, accepted(&tx.stats())), (sent, sent));
    assert_eq!(tx.stats().bytes, stats.bytes);
    assert_eq!(right.kernel_stats().drops, 0);
    // Frames sent by the veth arrive once, and received frames are not seen as sent.
    assert_eq!(left.rx[0].poll(10, |_| true), 0);
}

#[test]
fn frames_of_every_size_pass() {
    in_namespace("rings::frames_of_every_size_pass", || {
        versions(|options| every_size(options, 9000));
    });
}

#[test]
fn frames_larger_than_a_slot_pass_in_order() {
    in_namespace("rings::frames_larger_than_a_slot_pass_in_order", || {
        versions(|options| {
            let small = Options { rx_size: Some(2048), tx_size: Some(2048), ..options.clone() };
            every_size(&small, 9000);
            let plain = Options { offload: false, ..small };
            every_size(&plain, 9000);
        });
    });
}

/// Appends frames to one buffer; large ones are fetched into pieces of some length.
struct Pieces {
    bytes: Vec<u8>,
    piece: usize,
    ends: Vec<usize>,
    fetched: usize,
}

impl Sink for Pieces {
    fn take(&mut self, frame: RxFrame<'_>) -> bool {
        self.bytes.extend_from_slice(frame.data);
        self.ends.push(self.bytes.len());
        true
    }

    fn fetch(&mut self, len: usize, fetch: Fetch<'_>) -> Option<bool> {
        let from = self.bytes.len();
        self.bytes.resize(from + len, 0);
        match fetch.into(self.bytes[from..].chunks_mut(self.piece)) {
            Fetched::Copied(_) => {
                self.ends.push(self.bytes.len());
                self.fetched += 1;
                Some(true)
            }
            Fetched::Missing => Some(false),
            Fetched::TooManyPieces => {
                self.bytes.truncate(from);
                None
            }
        }
    }
}

#[test]
fn large_frames_go_in_pieces_few_or_many_without_allocation() {
    in_namespace("rings::large_frames_go_in_pieces_few_or_many_without_allocation", || {
        const FRAMES: usize = 64;
        veth_pair("left", "right", 9000);
        let options = Options {
            version: Version::V2,
            rx_size: Some(2048),
            tx_size: Some(2048),
            ..Options::default()
        };
        let mut left = HostPort::open("left", &options).unwrap();
        let mut right = HostPort::open("right", &options).unwrap();
        // No number that is a multiple of three: the kernel takes tags out of frames.
        let frames: Vec<_> = (0..FRAMES).map(|n| frame(3 * n as u32 + 1, 3000 + 90 * n)).collect();
        for piece in [9014, 2048, 150, 100, 7] {
            let asked = Counting::allocations();
            for frame in &frames {
                left.tx[0].send(VnetHdr::default(), frame.chunks(piece)).unwrap();
            }
            assert_eq!(Counting::allocations(), asked, "sending in pieces of {piece} bytes");
            flush(&mut left.tx[0]);
            let rx = &mut right.rx[0];
            let mut got = Pieces {
                bytes: Vec::with_capacity(10_000 * FRAMES),
                piece,
                ends: Vec::with_capacity(FRAMES),
                fetched: 0,
            };
            until("all frames", &rx.socket().clone(), || {
                let asked = Counting::allocations();
                rx.poll_into(FRAMES, &mut got);
                assert_eq!(
                    Counting::allocations(),
                    asked,
                    "receiving into pieces of {piece} bytes"
                );
                (got.ends.len() == FRAMES).then_some(())
            });
            let starts = std::iter::once(0).chain(got.ends.iter().copied());
            for ((from, to), want) in starts.zip(&got.ends).zip(&frames) {
                assert!(got.bytes[from..*to] == want[..], "{} bytes changed", want.len());
            }
            let few = frames.iter().filter(|frame| frame.len().div_ceil(piece) <= 64).count();
            assert_eq!(got.fetched, few, "in pieces of {piece} bytes");
        }
        assert_eq!(left.tx[0].stats().large, 5 * FRAMES as u64);
        assert_eq!(right.rx[0].stats().large, 5 * FRAMES as u64);
    });
}

#[test]
fn rings_work_without_root_and_locked_memory() {
    in_rootless_namespace("rings::rings_work_without_root_and_locked_memory", || {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the pointer is to a live structure.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const none) }, 0);
        versions(|options| every_size(options, 1500));
    });
}

#[test]
fn drops_of_a_full_ring_are_counted() {
    in_namespace("rings::drops_of_a_full_ring_are_counted", || {
        versions(|options| {
            let _ = std::process::Command::new("ip").args(["link", "del", "left"]).output();
            veth_pair("left", "right", 1500);
            let options = Options { rx_per_block: Some(64), ..options.clone() };
            let mut left = HostPort::open("left", &options).unwrap();
            let mut right = HostPort::open("right", &options).unwrap();
            let total = 60_000u64;
            for number in 0..total {
                send(&mut left.tx[0], &frame(1 + 3 * number as u32, 200));
            }
            flush(&mut left.tx[0]);
            let mut got = 0;
            let rx = &mut right.rx[0];
            // The last V3 block takes its millisecond.
            until("the waiting frames", &rx.socket().clone(), || {
                got += rx.poll(usize::MAX, |_| true) as u64;
                (got + rx.socket().kernel_stats().drops == total).then_some(())
            });
            let stats = right.kernel_stats();
            assert_eq!(stats.packets, total);
            assert!(stats.drops > 0 && got > 0, "{stats:?}, {got} received");
            // The ring works on afterwards.
            send(&mut left.tx[0], &frame(7, 100));
            flush(&mut left.tx[0]);
            assert_eq!(receive(&mut right.rx[0], 1), [frame(7, 100)]);
        });
    });
}

#[test]
fn stopping_early_loses_nothing() {
    in_namespace("rings::stopping_early_loses_nothing", || {
        versions(|options| {
            let _ = std::process::Command::new("ip").args(["link", "del", "left"]).output();
            veth_pair("left", "right", 1500);
            let mut left = HostPort::open("left", options).unwrap();
            let mut right = HostPort::open("right", options).unwrap();
            let frames: Vec<_> = (0..100).map(|number| frame(number, 100)).collect();
            frames.iter().for_each(|frame| send(&mut left.tx[0], frame));
            flush(&mut left.tx[0]);
            let rx = &mut right.rx[0];
            let mut got = Vec::new();
            until("frames one by one", &rx.socket().clone(), || {
                let given = rx.poll(usize::MAX, |frame| {
                    let mut bytes = vec![0; frame.len()];
                    frame.copy(0, &mut bytes);
                    got.push(bytes);
                    false
                });
                assert!(given <= 1);
                (got.len() == frames.len()).then_some(())
            });
            assert!(got == frames);
            assert!(!rx.is_ready());
        });
    });
}

#[test]
fn flows_spread_over_queues() {
    in_namespace("rings::flows_spread_over_queues", || {
        versions(|options| {
            let _ = std::process::Command::new("ip").args(["link", "del", "left"]).output();
            veth_pair("left", "right", 1500);
            let options = Options { rx_queues: 4, tx_queues: 2, ..options.clone() };
            let mut left = HostPort::open("left", &options).unwrap();
            let mut right = HostPort::open("right", &options).unwrap();
            assert_eq!((left.rx.len(), left.tx.len()), (4, 2));
            let (flows, rounds) = (64u16, 10);
            for round in 0..rounds {
                for flow in 0..flows {
                    send(&mut left.tx[round % 2], &udp(flow));
                }
                left.tx.iter_mut().for_each(flush);
            }
            let mut queues: HashMap<u16, (usize, usize)> = HashMap::new();
            let mut total = 0;
            for queue in 0..4 {
                // All queues share one device: wait at each in turn.
                let rx = &mut right.rx[queue];
                let expect = rx.socket().clone();
                until("the queue's frames", &expect, || {
                    rx.poll(usize::MAX, |frame| {
                        let flow = u16::from_be_bytes([frame.data[34], frame.data[35]]);
                        let entry = queues.entry(flow).or_insert((queue, 0));
                        assert_eq!(entry.0, queue, "flow {flow} changed its queue");
                        entry.1 += 1;
                        true
                    });
                    (rx.stats().frames == expect.kernel_stats().packets).then_some(())
                });
                assert!(rx.stats().frames > 0, "queue {queue} got nothing");
                total += rx.stats().frames;
            }
            assert_eq!(total, u64::from(flows) * rounds as u64);
            assert!(queues.values().all(|(_, count)| *count == rounds));
            // Own frames are seen on no queue either.
            assert!(left.rx.iter().all(|rx| !rx.is_ready()));
        });
    });
}

/// A UDP datagram whose source port is the flow.
fn udp(flow: u16) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x08, 0];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend(flow.to_be_bytes());
    frame.extend([0, 9, 0, 26, 0, 0]);
    frame.resize(60, 0);
    frame
}

fn link_state(monitor: &mut LinkMonitor, ifindex: u32, running: bool) {
    let mut seen = false;
    // The monitor cannot be borrowed for its descriptor and its events at once.
    until("the link to change", &std::io::stdin(), || {
        crate::support::wait(&[(&*monitor, libc::POLLIN)], crate::support::PATIENCE);
        for event in monitor.events() {
            if let LinkEvent::Changed(info) = event
                && info.ifindex == ifindex
            {
                seen |= info.is_running() == running;
            }
        }
        seen.then_some(())
    });
}

#[test]
fn link_down_and_up_again() {
    in_namespace("rings::link_down_and_up_again", || {
        versions(|options| {
            let _ = std::process::Command::new("ip").args(["link", "del", "left"]).output();
            veth_pair("left", "right", 1500);
            let mut monitor = LinkMonitor::open().unwrap();
            let mut left = HostPort::open("left", options).unwrap();
            let mut right = HostPort::open("right", options).unwrap();
            let ifindex = left.info.ifindex;
            let burst = |tx: &mut TxRing| {
                (0..20).for_each(|number| send(tx, &frame(number, 300)));
                tx.kick();
            };
            burst(&mut left.tx[0]);
            receive(&mut right.rx[0], 20);

            // The peer goes down: no carrier, each frame is refused.
            ip("link set right down");
            link_state(&mut monitor, ifindex, false);
            burst(&mut left.tx[0]);
            assert_eq!(left.tx[0].stats().refused, 20);
            assert_eq!(left.tx[0].pending(), 0);

            // The device itself goes down: frames wait for nothing.
            ip("link set left down");
            burst(&mut left.tx[0]);
            burst(&mut left.tx[0]);
            assert_eq!(left.tx[0].stats().down, 40);
            let large = vec![0; 5000];
            let vnet =
                VnetHdr { gso_type: VnetHdr::GSO_UDP_L4, gso_size: 1000, ..Default::default() };
            let refused = left.tx[0].send(vnet, [&large[..]]);
            assert_eq!(refused, Err(SendError::Down));

            // Frames that waited are not sent when the device comes back.
            ip("link set left up");
            ip("link set right up");
            link_state(&mut monitor, ifindex, true);
            burst(&mut left.tx[0]);
            flush(&mut left.tx[0]);
            assert_eq!(receive(&mut right.rx[0], 20).len(), 20);
            assert!(!right.rx[0].is_ready());
            let stats = left.tx[0].stats();
            assert_eq!((stats.frames, stats.rejected), (40, 0));
            assert_eq!(accepted(&stats), 5 * 20 + 1);
            assert!(right.sockets()[0].take_error().is_some(), "going down leaves an error");
            assert!(right.sockets()[0].take_error().is_none());

            // The device goes and stays away.
            ip("link del left");
            until("the device to go", &std::io::stdin(), || {
                let gone =
                    |event| matches!(event, LinkEvent::Gone(info) if info.ifindex == ifindex);
                monitor.events().any(gone).then_some(())
            });
            burst(&mut left.tx[0]);
            assert_eq!(left.tx[0].stats().down, 61);
        });
    });
}

#[test]
fn settings_change_while_open() {
    in_namespace("rings::settings_change_while_open", || {
        veth_pair("left", "right", 1500);
        let mut left = HostPort::open("left", &Options::default()).unwrap();
        let mut right = HostPort::open("right", &Options::default()).unwrap();
        for bypass in [false, true] {
            left.set_qdisc_bypass(bypass).unwrap();
            assert_eq!(left.sockets()[0].qdisc_bypass(), bypass);
            send(&mut left.tx[0], &frame(1, 100));
            flush(&mut left.tx[0]);
            assert_eq!(receive(&mut right.rx[0], 1), [frame(1, 100)]);
        }
        for (on, word) in
            [(true, "promiscuity 1"), (true, "promiscuity 1"), (false, "promiscuity 0")]
        {
            left.set_promiscuous(on).unwrap();
            let shown = ip("-d link show left");
            assert!(shown.contains(word), "{shown}");
        }
        // The MTU decides what is too long.
        let long = frame(1, 1600);
        let too_long = left.tx[0].send(VnetHdr::default(), [&long[..]]);
        assert!(matches!(too_long, Err(SendError::TooLong { len: 1600, .. })), "{too_long:?}");
        ip("link set left mtu 2000");
        ip("link set right mtu 2000");
        left.set_mtu(2000);
        send(&mut left.tx[0], &long);
        flush(&mut left.tx[0]);
        assert_eq!(receive(&mut right.rx[0], 1), [long]);
    });
}

#[test]
fn bad_frames_are_refused_and_counted() {
    in_namespace("rings::bad_frames_are_refused_and_counted", || {
        veth_pair("left", "right", 1500);
        let mut left = HostPort::open("left", &Options::default()).unwrap();
        let tx = &mut left.tx[0];
        let bytes = frame(1, 100);
        let mut refuse = |vnet, bytes: &[u8]| tx.send(vnet, [bytes]).unwrap_err();
        assert_eq!(refuse(VnetHdr::default(), &bytes[..13]), SendError::TooShort(13));
        let beyond = VnetHdr { flags: 1, csum_start: 90, csum_offset: 9, ..Default::default() };
        assert!(matches!(refuse(beyond, &bytes), SendError::Offload(_)));
        let strange = VnetHdr { gso_type: 77, gso_size: 1, ..Default::default() };
        assert!(matches!(refuse(strange, &bytes), SendError::Offload(_)));
        let huge = vec![0; 70_000];
        let gso = VnetHdr { gso_type: 1, gso_size: 1000, ..Default::default() };
        assert!(matches!(refuse(gso, &huge), SendError::TooLong { .. }));
        let stats = left.tx[0].stats();
        assert_eq!((stats.bad_length, stats.bad_offload), (2, 2));

        // One that only the kernel sees through: TCP segments of a frame that is not TCP.
        let odd = VnetHdr { gso_type: 1, gso_size: 10, flags: 1, csum_start: 90, ..gso };
        left.tx[0].send(odd, [&bytes[..]]).unwrap();
        send(&mut left.tx[0], &bytes);
        flush(&mut left.tx[0]);
        let stats = left.tx[0].stats();
        assert_eq!(accepted(&stats), 2, "{stats:?}");
        drop(left);

        let plain = Options { offload: false, ..Options::default() };
        let mut left = HostPort::open("left", &plain).unwrap();
        let refused = left.tx[0].send(gso, [&bytes[..]]);
        assert_eq!(refused, Err(SendError::NoOffload));
    });
}

#[test]
fn errors_help() {
    in_namespace("rings::errors_help", || {
        veth_pair("left", "right", 1500);
        let open = |name: &str| HostPort::open(name, &Options::default());
        let missing = open("eth7").unwrap_err().to_string();
        assert!(missing.contains("left") && missing.contains("right"), "{missing}");
        let port = open("left").unwrap();
        let again = open("left").unwrap_err();
        assert!(matches!(again, Error::AlreadyAttached(_)), "{again}");
        drop(port);
        open("left").unwrap();
        // Drop privileges over this namespace.
        let denied = std::thread::spawn(|| {
            // SAFETY: drops the capabilities of this thread's effective user.
            let result = unsafe { libc::syscall(libc::SYS_setresuid, 65_534, 65_534, 65_534) };
            if result != 0 {
                // A user namespace with one user has no other to become.
                return None;
            }
            Some(HostPort::open("right", &Options::default()).unwrap_err())
        });
        if let Some(error) = denied.join().unwrap() {
            assert!(error.to_string().contains("CAP_NET_RAW"), "{error}");
        }
        let info = IfInfo::query("left").unwrap();
        assert!(info.is_up() && info.is_running() && info.mtu == 1500);
        assert_eq!(info.speed_mbps, Some(10_000), "what veth says");
    });
}
