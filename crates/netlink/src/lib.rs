//! Netlink: sockets that never wait for long, the kernel's links and routes, and its generic
//! families.
//!
//! Messages that are sent to the kernel are made by the crates `netlink-packet-*`, which know its
//! structures; so are single attributes of replies read. Whole messages are taken apart by
//! [`wire`]: it borrows, it believes no length, and an attribute that nobody knows is left alone,
//! where `netlink-packet-*` refuses the message. Frequent messages, such as PSAMPLE's, are read
//! with it, too.

#![forbid(unsafe_code)]

mod address;
pub mod ethtool;
mod family;
pub mod fib;
pub mod fpm;
pub mod label;
mod link;
mod monitor;
mod neighbour;
mod notices;
mod route;
mod setup;
mod socket;
pub mod wire;

pub use address::LinkAddress;
pub use family::Family;
pub use link::{Link, LinkStats};
pub use monitor::{LinkChange, LinkMonitor};
pub use neighbour::{Neighbour, delete_neighbour, set_neighbour};
pub use notices::{Group, Notice, Notices};
pub use route::{Route, tables};
pub use setup::{
    LinkSettings, add_address, add_default_route, add_vlan, delete_address, delete_link,
};
pub use socket::{HIGHEST_SENDABLE_GROUP, Port, Protocol, Question, SocketRow, rows, socket_table};

/// Entry for fuzzing: reads a datagram as notices, and checks what their readers rely on.
///
/// # Panics
/// If something is read that cannot be.
pub fn fuzz_notices(data: &[u8]) {
    for raw in wire::Messages::new(data).flatten() {
        match Notice::parse(raw.header.kind, raw.payload) {
            Some(Notice::Link(link) | Notice::LinkGone(link)) => {
                assert!(link.vlan.is_none_or(|(_, id)| id < 4096), "{link:?}");
                assert!(link.lower != Some(0) && link.master != Some(0), "{link:?}");
                assert!(link.mac != Some([0; 6]), "{link:?}");
            }
            Some(Notice::Address(a) | Notice::AddressGone(a)) => {
                let bits = if a.ip.is_ipv4() { 32 } else { 128 };
                assert!(a.prefix_length <= bits && a.peer != Some(a.ip), "{a:?}");
            }
            Some(Notice::Neighbour(n) | Notice::NeighbourGone(n)) => {
                assert!(!n.is_valid() || n.mac.is_some(), "{n:?}");
            }
            Some(Notice::LabelInput(input)) => assert!(input.index > 0, "{input:?}"),
            Some(Notice::Lost) | None => {}
        }
    }
}

/// Entry for fuzzing: reads a datagram as links, addresses, neighbours and routes, and as the
/// register of generic families.
pub fn fuzz_datagram(data: &[u8]) {
    for raw in wire::Messages::new(data).flatten() {
        let _ = Link::parse(raw.payload);
        let _ = Route::parse(raw.payload);
        let _ = LinkAddress::parse(raw.payload);
        let _ = Neighbour::parse(raw.payload);
        if let Some(route) = fib::RouteMessage::parse(raw.payload) {
            let _ = route.hops().count();
        }
        if let Some(route) = label::LabelMessage::parse(raw.payload) {
            assert!(route.label < 1 << 20, "{route:?}");
            let _ = route.hops().count();
        }
        let _ = label::LabelInput::parse(raw.payload);
        if let Some(object) = fib::NextHopMessage::parse(raw.payload) {
            let _ = object.members().count();
        }
        Family::default().learn(raw.payload);
    }
}
