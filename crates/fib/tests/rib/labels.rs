//! Labels of paths.

use crate::{Family, forwarding, lab, prefix, table};
use std::collections::BTreeSet;
use thalweg_device::testing::Lab;
use thalweg_fib::rib::{Labels, Path, Source};
use thalweg_fib::{Dpo, Kind, LinkType};
use thalweg_tables::{Address, Prefix};
use thalweg_wire::mpls::Label;

fn labels(all: &[u32]) -> Labels {
    let all: Vec<Label> = all.iter().map(|l| Label(*l)).collect();
    Labels::new(&all).expect("labels")
}

/// The label words at the end of an object's rewrite.
fn words(lab: &Lab, dpo: Dpo) -> Vec<(u32, bool, u8)> {
    let (_, header) = forwarding(lab, |f| f.table().rewrite(dpo));
    let entry = |word: &[u8; 4]| {
        let e = thalweg_wire::mpls::Entry(u32::from_be_bytes(*word));
        (e.label().0, e.is_bottom(), e.ttl())
    };
    header.get(14..).unwrap_or_default().as_chunks().0.iter().map(entry).collect()
}

#[test]
fn labels_are_part_of_an_mpls_adjacency() {
    let lab = lab();
    let before = forwarding(&lab, |f| f.len());
    let mut t = table::<u32>(&lab);
    let next_hop = u32::of(1, 2).to_ip();
    let path = Path::via(next_hop, Some(lab.sw_if(1)));
    let to = prefix(u32::of(40, 0), 8);
    for stack in [&[16, 17][..], &[16, 3, 17], &[3], &[16, 17, 18, 19, 20, 21, 22, 23]] {
        let path = Path { labels: labels(stack), ..path };
        t.set(&lab.c, to, Source::Static, vec![path]).expect("a route");
        let dpo = t.view(to).expect("the route").dpo;
        let mac = thalweg_device::MacAddr::new(2, 0, 0, 0, 1, 2);
        forwarding(&lab, |f| f.set_neighbor(&lab.c, lab.sw_if(1), next_hop, Some(mac)));
        let sent: Vec<u32> = stack.iter().copied().filter(|l| *l != 3).collect();
        let last = sent.len().wrapping_sub(1);
        let want: Vec<(u32, bool, u8)> =
            sent.iter().enumerate().map(|(i, l)| (*l, i == last, 64)).collect();
        assert_eq!(words(&lab, dpo), want);
        let link = if sent.is_empty() { LinkType::Ip4 } else { LinkType::Mpls };
        let state = forwarding(&lab, |f| f.table().get(dpo).state());
        assert_eq!((state.kind, forwarding(&lab, |f| f.link(dpo))), (Kind::REWRITE, Some(link)));
        assert_eq!(usize::from(state.mtu), 9000 - 4 * sent.len());
        forwarding(&lab, |f| f.set_neighbor(&lab.c, lab.sw_if(1), next_hop, None));
        assert_eq!(forwarding(&lab, |f| f.table().get(dpo).state().kind), Kind::INCOMPLETE);
    }
    t.clear(&lab.c);
    assert_eq!(forwarding(&lab, |f| f.len()), before);
    lab.close();
}

#[test]
fn labels_of_a_recursive_next_hop_come_after_those_of_its_route() {
    let lab = lab();
    let before = forwarding(&lab, |f| f.len());
    let mut t = table::<u32>(&lab);
    let far = u32::of(41, 9);
    for n in [1, 2] {
        let mac = thalweg_device::MacAddr::new(2, 0, 0, 0, n, 2);
        let host = u32::of(n, 2).to_ip();
        forwarding(&lab, |f| f.set_neighbor(&lab.c, lab.sw_if(n), host, Some(mac)));
    }
    let hop = |n: u8, stack: &[u32]| {
        let path = Path::via(u32::of(n, 2).to_ip(), Some(lab.sw_if(n)));
        Path { labels: labels(stack), ..path }
    };
    let vpn = prefix(u32::of(40, 0), 8);
    let own = Path { labels: labels(&[100]), ..Path::via(far.to_ip(), None) };
    t.set(&lab.c, vpn, Source::Static, vec![own]).expect("a route");
    for (paths, want) in [
        (vec![hop(1, &[17])], vec![vec![17, 100]]),
        (vec![hop(1, &[17]), hop(2, &[18])], vec![vec![17, 100], vec![18, 100]]),
        (vec![hop(2, &[3])], vec![vec![100]]),
        (vec![hop(2, &[])], vec![vec![100]]),
    ] {
        t.set(&lab.c, Prefix::host(far), Source::Static, paths).expect("a route");
        for mac in [None, Some(thalweg_device::MacAddr::new(2, 0, 0, 0, 7, 2))] {
            for n in [1, 2] {
                let host = u32::of(n, 2).to_ip();
                forwarding(&lab, |f| f.set_neighbor(&lab.c, lab.sw_if(n), host, mac));
            }
        }
        let group = t.view(vpn).expect("the route").dpo;
        let got: BTreeSet<Vec<u32>> = (0..64)
            .map(|hash| forwarding(&lab, |f| f.table().resolve(group, || hash)))
            .map(|dpo| words(&lab, dpo).into_iter().map(|w| w.0).collect())
            .collect();
        assert_eq!(got, want.into_iter().collect());
    }
    t.clear(&lab.c);
    for n in [1, 2] {
        let host = u32::of(n, 2).to_ip();
        forwarding(&lab, |f| f.set_neighbor(&lab.c, lab.sw_if(n), host, None));
    }
    assert_eq!(forwarding(&lab, |f| f.len()), before);
    lab.close();
}
