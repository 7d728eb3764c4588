//! Two kernel stacks connected by a pair of rings, with checksums and segmentation left pending, as
//! the kernel does by default between veths.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, Stack, in_namespace, in_rootless_namespace, ip, wait};
use thalweg_device_af_packet::ring::{
    HostPort, Options, RxFrame, RxRing, SendError, TxRing, Version,
};

const LEFT: &str = "10.1.0.1";
const RIGHT: &str = "10.1.0.2";

/// Two stacks and the wire between them.
struct Lab {
    left: Stack,
    right: Stack,
    stop: Arc<AtomicBool>,
    wire: Option<JoinHandle<[HostPort; 2]>>,
}

impl Lab {
    fn new(options: &Options) -> Self {
        let left = Stack::new("eth0", "wire0", &format!("{LEFT}/24"));
        let right = Stack::new("eth0", "wire1", &format!("{RIGHT}/24"));
        let ports = ["wire0", "wire1"].map(|name| HostPort::open(name, options).unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let wire = thread::spawn(move || forward(ports, &flag));
        Self { left, right, stop, wire: Some(wire) }
    }

    fn finish(mut self) -> [HostPort; 2] {
        self.stop.store(true, Ordering::Relaxed);
        let ports = self.wire.take().unwrap().join().unwrap();
        // Namespaces vanish some time after their last thread, and would keep the names.
        for name in ["wire0", "wire1"] {
            ip(&format!("link del {name}"));
        }
        ports
    }
}

fn forward(mut ports: [HostPort; 2], stop: &AtomicBool) -> [HostPort; 2] {
    let sockets = [0, 1].map(|port: usize| Arc::clone(&ports[port].sockets()[0]));
    while !stop.load(Ordering::Relaxed) {
        let [a, b] = &mut ports;
        let moved = pass(&mut a.rx[0], &mut b.tx[0]) + pass(&mut b.rx[0], &mut a.tx[0]);
        if moved == 0 {
            let events = |tx: &TxRing| match tx.pending() {
                0 => libc::POLLIN,
                _ => libc::POLLIN | libc::POLLOUT,
            };
            let (first, second) = (events(&a.tx[0]), events(&b.tx[0]));
            wait(&[(&sockets[0], first), (&sockets[1], second)], Duration::from_millis(50));
        }
    }
    ports
}

/// Moves a burst; returns how many frames moved.
fn pass(rx: &mut RxRing, tx: &mut TxRing) -> usize {
    let count = rx.poll(64, |frame: RxFrame<'_>| {
        let sent = match frame.vlan {
            None => tx.send(frame.vnet, [frame.data]),
            Some(tag) => {
                let (addresses, rest) = frame.data.split_at(12);
                let tag = tag.to_bytes();
                tx.send(frame.vnet, [addresses, &tag[..], rest])
            }
        };
        match sent {
            // A full ring is the receiver's problem: TCP sends again.
            Ok(()) | Err(SendError::Full) => true,
            Err(error) => panic!("{error}: {:?}", frame.vnet),
        }
    });
    tx.kick();
    count
}

fn pattern(len: usize) -> Vec<u8> {
    let mut state = 1u32;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(len)
    .collect()
}

/// Sends `rounds` MiB from left to right over TCP and compares what arrives.
fn tcp(options: &Options, rounds: usize, what: &str) {
    let lab = Lab::new(options);
    let data = Arc::new(pattern(1 << 20));
    let listener = lab.right.run(|| TcpListener::bind((RIGHT, 4000)).unwrap());
    let expect = Arc::clone(&data);
    let served = lab.right.start(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut buffer = vec![0; expect.len()];
        for _ in 0..rounds {
            stream.read_exact(&mut buffer).unwrap();
            assert!(buffer == *expect, "the data changed on its way");
        }
        stream.write_all(b"done").unwrap();
    });
    let elapsed = lab.left.run(move || {
        let mut stream = TcpStream::connect((RIGHT, 4000)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let start = Instant::now();
        (0..rounds).for_each(|_| stream.write_all(&data).unwrap());
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"done");
        start.elapsed()
    });
    served.recv_timeout(PATIENCE).expect("the receiver failed");
    let [a, b] = lab.finish();
    let (rx, tx) = (a.rx[0].stats(), b.tx[0].stats());
    println!(
        "{what}: {rounds} MiB over TCP in {elapsed:?}, {:.1} Gbit/s, frames of {} bytes on average",
        rounds as f64 * 8.0 * 1.048_576e-3 / elapsed.as_secs_f64(),
        rx.bytes / rx.frames
    );
    println!("  rx {rx:?} {:?}\n  tx {tx:?}", a.kernel_stats());
    assert!(rx.bytes / rx.frames > 2000, "no segmentation was left to us");
    assert_eq!((rx.malformed, tx.rejected, tx.refused), (0, 0, 0));
    assert_eq!(rx.truncated, 0);
}

fn versions(test: impl Fn(&Options, &str)) {
    for version in [Version::V2, Version::V3] {
        test(&Options { version, ..Options::default() }, &version.to_string());
    }
}

#[test]
fn tcp_with_offload_passes() {
    in_namespace("wire::tcp_with_offload_passes", || {
        versions(|options, what| tcp(options, 256, what))
    });
}

#[test]
fn tcp_with_offload_passes_large_slots() {
    in_namespace("wire::tcp_with_offload_passes_large_slots", || {
        let size = Some(66 * 1024);
        versions(|options, what| {
            let options = Options { rx_size: size, tx_size: size, ..options.clone() };
            tcp(&options, 256, &format!("{what}, slots of 66 KiB"));
        });
    });
}

#[test]
fn tcp_with_offload_passes_without_root() {
    in_rootless_namespace("wire::tcp_with_offload_passes_without_root", || {
        versions(|options, what| tcp(options, 64, &format!("{what} rootless")));
    });
}

/// Round trips of ICMP echoes in µs, sorted.
fn ping(count: u16) -> Vec<f64> {
    // SAFETY: no pointers; the returned descriptor has no other owner.
    let fd = unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 1);
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        OwnedFd::from_raw_fd(fd)
    };
    // Sending and receiving is the same for all datagram sockets.
    let socket = UdpSocket::from(fd);
    socket.connect((RIGHT, 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut times = Vec::new();
    for sequence in 0..count {
        let mut echo = [0u8; 64];
        echo[0] = 8;
        echo[6..8].copy_from_slice(&sequence.to_be_bytes());
        let sum: u32 =
            echo.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        echo[2..4].copy_from_slice(&(!((sum >> 16) + (sum & 0xffff)) as u16).to_be_bytes());
        let start = Instant::now();
        socket.send(&echo).unwrap();
        let mut answer = [0u8; 128];
        loop {
            let len = socket.recv(&mut answer).unwrap();
            if len == 84 && answer[20] == 0 && answer[26..28] == sequence.to_be_bytes() {
                break;
            }
        }
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    times
}

#[test]
fn ping_passes() {
    in_namespace("wire::ping_passes", || {
        versions(|options, what| {
            let lab = Lab::new(options);
            let times = lab.left.run(|| ping(500));
            let at = |share: f64| times[(times.len() as f64 * share) as usize];
            println!(
                "{what}: ping median {:.0} µs, p99 {:.0} µs, best {:.0} µs",
                at(0.5),
                at(0.99),
                times[0]
            );
            lab.finish();
        });
    });
}
