//! Packets that wait for longer than a grace period never meet another object than theirs.

#![allow(clippy::expect_used)]

use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};
use thalweg_device::testing::{Lab, NO_ETHERNET};
use thalweg_fib::{Dpo, Forwarding, LinkType, Parked, Peer};

/// The next step.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The main thread makes an adjacency for a neighbour that never was.
    Make,
    /// The main thread deletes one that exists.
    Delete(usize),
    /// The worker begins its next loop: it holds no object any more but those of parked packets.
    Loop,
    /// The worker forwards a packet by one of the adjacencies, and parks it.
    Park(usize),
    /// The worker takes up one of the packets that wait.
    Unpark(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Make),
        3 => any::<usize>().prop_map(Step::Delete),
        3 => Just(Step::Loop),
        2 => any::<usize>().prop_map(Step::Park),
        2 => any::<usize>().prop_map(Step::Unpark),
    ];
    prop::collection::vec(step, 1..120)
}

/// A neighbour, by its number.
fn peer(number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number))
}

fn run(steps: &[Step]) -> Result<usize, TestCaseError> {
    let lab = Lab::of(&thalweg_fib::FEATURE)
        .with(&NO_ETHERNET)
        .workers(0)
        .buffers(256)
        .interfaces(1)
        .start();
    let (state, sw_if) = (lab.c.state::<Forwarding>(), lab.sw_if(0));
    let table = state.borrow().table().clone();
    // The only worker.
    let mut worker = lab.c.domain().register().expect("a reader");
    worker.enter();
    let (mut live, mut made): (Vec<(Dpo, u32)>, u32) = (Vec::new(), 0);
    let mut waiting: Vec<(Parked, u32)> = Vec::new();
    // Objects that the worker holds in this loop.
    let mut in_hand: Vec<(Dpo, u32)> = Vec::new();
    let mut lost = 0;
    for step in steps {
        match *step {
            Step::Make => {
                made += 1;
                let to = Peer::Neighbor(peer(made));
                let dpo = state.borrow_mut().adjacency(&lab.c, sw_if, LinkType::Ip4, to);
                live.push((dpo.expect("room"), made));
            }
            Step::Delete(n) if !live.is_empty() => {
                let (dpo, _) = live.remove(n % live.len());
                state.borrow_mut().release(&lab.c, dpo);
            }
            Step::Loop => {
                in_hand.clear();
                worker.enter();
            }
            Step::Park(n) if !live.is_empty() => {
                let (dpo, number) = live[n % live.len()];
                waiting.push((table.park(dpo), number));
            }
            Step::Unpark(n) if !waiting.is_empty() => {
                let (parked, number) = waiting.remove(n % waiting.len());
                match table.unpark(parked) {
                    Dpo(0) => {
                        prop_assert!(live.iter().all(|l| l.1 != number), "it exists");
                        lost += 1;
                    }
                    dpo => in_hand.push((dpo, number)),
                }
            }
            Step::Delete(_) | Step::Park(_) | Step::Unpark(_) => {}
        }
        for (dpo, number) in &in_hand {
            prop_assert_eq!(table.get(*dpo).next_hop(), Some(peer(*number)));
        }
    }
    Ok(lost)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn packets_that_wait_keep_their_adjacency_or_lose_it(steps in steps()) {
        run(&steps)?;
    }
}

#[test]
fn an_index_is_in_use_again_while_a_packet_waits() {
    use Step::{Delete, Loop, Make, Park, Unpark};
    let steps = [Make, Park(0), Delete(0), Loop, Make, Make, Unpark(0), Loop];
    assert_eq!(run(&steps).expect("no fault"), 1);
}
