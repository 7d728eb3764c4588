//! The load tester's hosts over a link that does what the bytes say: it delivers, loses, repeats,
//! delays and changes frames, with checksums made right again. All connections must be accounted
//! for.
#![no_main]

use std::collections::VecDeque;

use thalweg_load::talk::{Clients, CloseBy, Exchange, Opening, Plan, Protocol, Servers, Talk};
use thalweg_wire::{ipv4, tcp};

/// Makes the TCP checksum of a frame right, if it has one.
fn mend(frame: &mut [u8]) {
    let Some(packet) = frame.get(14..) else { return };
    let Ok(ip) = ipv4::Ipv4View::parse(packet) else { return };
    let (pseudo, at, length) = (ip.pseudo_header(), 14 + ip.header_len(), ip.payload().len());
    if let Some(segment) = frame.get_mut(at..at + length) {
        let _ = tcp::fill_checksum(pseudo, segment);
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some(([how, messages], steps)) = data.split_first_chunk::<2>() else { return };
    let closes = [CloseBy::Client, CloseBy::Server, CloseBy::Both, CloseBy::Reset, CloseBy::Never];
    let close = closes[usize::from(*how) % closes.len()];
    let exchange =
        Exchange { messages: u16::from(messages % 3), answer: 3000, close, ..Exchange::default() };
    let mut plan = Plan::of(Talk::exchange("fuzz", Protocol::Tcp, 80, &exchange));
    (plan.clients.count, plan.ports, plan.room) = (2, (1024, 4), 8);
    let (Ok(mut clients), Ok(mut servers)) = (Clients::new(&plan, 1, 0), Servers::new(&plan, 1, 0))
    else {
        return;
    };
    clients.set_opening(Opening { rate: 1e4, hold: None, total: None }, 0);
    let mut ways: [VecDeque<Vec<u8>>; 2] = Default::default();
    let mut now = 0;
    for [operation, value] in steps.as_chunks::<2>().0 {
        let to_server = usize::from(operation & 1);
        let mut frame = ways[to_server].pop_front().unwrap_or_default();
        match operation >> 1 & 7 {
            0 => frame.clear(),
            1 => ways[to_server].push_back(frame.clone()),
            2 => now += u64::from(*value) * 10_000,
            3 => {
                let at = 34 + usize::from(operation >> 4);
                if let Some(byte) = frame.get_mut(at) {
                    *byte = *value;
                }
                mend(&mut frame);
            }
            4 => {
                if let Some(byte) = frame.get_mut(usize::from(*value)) {
                    *byte ^= operation >> 4 | 1;
                }
            }
            5 => ways[to_server].push_back(std::mem::take(&mut frame)),
            6 => frame.truncate(usize::from(*value)),
            _ => {}
        }
        now += 100;
        let mut sent = Vec::new();
        if to_server == 1 {
            servers.receive(now, &frame, &mut sent);
            servers.poll(now, 16, &mut sent);
        } else {
            clients.receive(now, &frame, &mut sent);
            clients.poll(now, 16, &mut sent);
        }
        ways[1 - to_server].extend(sent);
        ways.iter_mut().for_each(|way| way.truncate(64));
        assert!(clients.counts().balances(clients.open().0.into()), "{:?}", clients.counts());
        assert!(servers.counts().balances(servers.open().0.into()), "{:?}", servers.counts());
    }
    clients.abandon();
    servers.abandon();
    assert_eq!((clients.open(), servers.open()), ((0, 0), (0, 0)));
});
