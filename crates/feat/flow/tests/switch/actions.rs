//! Actions that change fields or make copies.

use crate::lab::{CLIENT_MAC, Lab, SERVER_MAC};
use crate::{CLIENT, SERVER};
use thalweg_wire::build::Packet;

/// Copies for which there is no buffer are counted.
#[test]
fn copies_without_buffers_are_counted() {
    let mut lab = Lab::new(1, 64);
    lab.ok("flow add 7 actions=in_port,in_port,in_port,in_port,normal
         set interface flow port0 7");
    let packet = Packet::new().ether(CLIENT_MAC, SERVER_MAC).ipv4(CLIENT, SERVER);
    let frame = packet.udp(5000, 53).payload(b"abcdefg").build();
    let frames = vec![frame; 32];
    let seen = lab.pass(0, &frames).len() as u64;
    lab.c.sync();
    let errors = lab.cli("show errors");
    let line = errors.lines().find(|line| line.contains("copies not sent: no buffers"));
    let missing: u64 =
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    assert!(missing > 0, "{errors}");
    assert_eq!(seen + missing, 32 * 5, "{errors}");
    lab.close();
}
