//! Tag rewrites: against a naive model, as single packets and in frames, with one worker and two.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use thalweg_device::TagRewrite;

/// A tag and its priority bits, at their place in the tag.
type Tag = (VlanTag, u16);

/// The ports of a bridge domain: name, test interface, and the tags that they are known by.
fn ports() -> [(&'static str, u8, Vec<VlanTag>); 4] {
    [
        ("test0.10", 0, vec![dot1q(10)]),
        ("test0.20", 0, vec![VlanTag::dot1ad(30), dot1q(7)]),
        ("test1.40", 1, vec![dot1q(40)]),
        ("test2", 2, vec![]),
    ]
}

fn bridged(workers: usize) -> Lab {
    let mut lab = lab(workers);
    sub(&mut lab, 0, 10, one(10));
    sub(&mut lab, 0, 20, two(VlanTag::dot1ad(30), dot1q(7)));
    sub(&mut lab, 1, 40, TagMatch::Outer { tag: dot1q(40), exact: false });
    lab.cli("create bridge-domain 10");
    lab.ok("set bridge-domain learn 10 disable");
    for (name, ..) in ports() {
        lab.ok(&format!("set interface l2 bridge {name} 10"));
    }
    lab
}

/// Removes and adds tags; `kept` is the priority of what was removed before.
fn edit(tags: &mut Vec<Tag>, kept: &mut u16, pop: usize, push: &[VlanTag]) -> bool {
    if tags.len() < pop {
        return false;
    }
    let outer = tags.first().map_or(0, |tag| tag.1);
    let priority = if pop == 0 && *kept != 0 { *kept } else { outer };
    tags.splice(..pop, push.iter().map(|tag| (*tag, priority)));
    if push.is_empty() {
        *kept = priority;
    }
    true
}

fn bytes(from: u8, tags: &[Tag]) -> Vec<u8> {
    let mut frame = [[2, 0, 0, 0x77, 0, 1], host(from).0].concat();
    for (tag, priority) in tags {
        frame.extend(tag.kind.tpid().to_be_bytes());
        frame.extend((tag.id.0 | priority).to_be_bytes());
    }
    frame.extend([8, 0]);
    frame.extend(udp(ip(1, 1), ip(1, 2), 8).build());
    frame
}

/// Returns the frames that leave if a port receives one with tags.
fn expected(
    lab: &Lab,
    rewrites: &[TagRewrite],
    from: usize,
    tags: &[Tag],
) -> Vec<(SwIfIndex, Vec<u8>)> {
    let ports = ports();
    let (mut tags, mut kept) = (tags.to_vec(), 0);
    let rewrite = &rewrites[from];
    if !rewrite.is_none() && !edit(&mut tags, &mut kept, rewrite.pop.into(), &rewrite.push) {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (to, (_, n, own)) in ports.iter().enumerate().filter(|(to, _)| *to != from) {
        let (mut tags, mut kept) = (tags.clone(), kept);
        let rewrite = &rewrites[to];
        let back = &own[..rewrite.pop.into()];
        if rewrite.is_none() || edit(&mut tags, &mut kept, rewrite.push.len(), back) {
            all.push((lab.sw_if(*n), bytes(from as u8, &tags)));
        }
    }
    all
}

fn a_tag() -> impl Strategy<Value = VlanTag> {
    (any::<bool>(), 1u16..6).prop_map(|(s, id)| if s { VlanTag::dot1ad(id) } else { dot1q(id) })
}

fn rewrite(known: usize) -> impl Strategy<Value = TagRewrite> {
    (0..=known as u8, prop::collection::vec(a_tag(), 0..3)).prop_map(|(pop, mut push)| {
        // A second tag is always 802.1Q.
        push.iter_mut().skip(1).for_each(|tag| tag.kind = TagKind::Dot1q);
        TagRewrite { pop, push }
    })
}

/// A port's frame: it has the tags that the port is known by, with priorities, and maybe others.
fn received() -> impl Strategy<Value = (usize, Vec<u16>, Vec<Tag>)> {
    let priority = || (0u16..16).prop_map(|bits| bits << 12);
    let more = prop::collection::vec((a_tag(), priority()), 0..3);
    (0usize..4, prop::collection::vec(priority(), 2), more)
}

#[test]
fn tags_are_rewritten_as_a_list_would_be() {
    let labs = std::cell::RefCell::new([bridged(1), bridged(2)]);
    let rewrites = ports().map(|(_, _, own)| rewrite(own.len()));
    let frames = prop::collection::vec(received(), 1..60);
    let mut runner = TestRunner::new(Config { cases: 40, ..Config::default() });
    let result = runner.run(&(rewrites, frames), |(rewrites, frames)| {
        let rewrites = rewrites.to_vec();
        let mut labs = labs.borrow_mut();
        let frames: Vec<(usize, Vec<Tag>)> = frames
            .into_iter()
            .map(|(from, priorities, more)| {
                let (_, _, own) = &ports()[from];
                // A port without further tags gets none.
                let takes_more = matches!(from, 2 | 3);
                let more = if takes_more { more } else { Vec::new() };
                (from, own.iter().copied().zip(priorities).chain(more).collect())
            })
            .collect();
        for (lab, at_once) in [(0, 1), (0, 60), (1, 20)] {
            let lab = &mut labs[lab];
            for ((name, ..), rewrite) in ports().iter().zip(&rewrites) {
                lab.ok(&format!("set interface l2 tag-rewrite {name} {rewrite}"));
            }
            let mut want = Vec::new();
            for (from, tags) in &frames {
                want.extend(expected(lab, &rewrites, *from, tags));
            }
            let all: Vec<(u8, Vec<u8>)> = frames
                .iter()
                .map(|(from, tags)| (ports()[*from].1, bytes(*from as u8, tags)))
                .collect();
            for (i, some) in all.chunks(at_once).enumerate() {
                lab.deliver_mixed(i % lab.c.workers(), some.to_vec());
                lab.settle();
            }
            let mut sent = lab.sent();
            sent.sort_unstable();
            want.sort_unstable();
            prop_assert_eq!(sent, want);
        }
        Ok(())
    });
    result.unwrap_or_else(|e| panic!("{e}"));
    labs.into_inner().into_iter().for_each(Lab::close);
}

#[test]
fn a_cross_connect_keeps_priorities_and_counts_what_it_cannot_rewrite() {
    let mut lab = lab(1);
    sub(&mut lab, 0, 10, one(10));
    sub(&mut lab, 1, 20, one(20));
    lab.ok("set interface l2 xconnect test0.10 test1.20\n\
         set interface l2 xconnect test1.20 test0.10\n\
         set interface l2 tag-rewrite test0.10 pop 1\n\
         set interface l2 tag-rewrite test1.20 pop 1");
    let tagged = |id, priority| bytes(5, &[(dot1q(id), priority)]);
    lab.receive(0, vec![tagged(10, 0xb000)]);
    assert_eq!(sent_one(&mut lab), (lab.sw_if(1), tagged(20, 0xb000)));
    lab.receive(1, vec![tagged(20, 0x6000)]);
    assert_eq!(sent_one(&mut lab), (lab.sw_if(0), tagged(10, 0x6000)));
    // Without tag rewrites frames keep their tags.
    lab.ok("set interface l2 tag-rewrite test0.10 disable\n\
         set interface l2 tag-rewrite test1.20 disable");
    lab.receive(0, vec![tagged(10, 0)]);
    assert_eq!(sent_one(&mut lab), (lab.sw_if(1), tagged(10, 0)));
    // Tags that test2 pushes, test0 has to find again on their way back.
    lab.ok("set interface l2 xconnect test2 test0\nset interface l2 xconnect test0 test2\n\
         set interface l2 tag-rewrite test2 push dot1ad 100 200");
    lab.receive(2, vec![bytes(5, &[])]);
    let both = [(VlanTag::dot1ad(100), 0), (dot1q(200), 0)];
    assert_eq!(sent_one(&mut lab), (lab.sw_if(0), bytes(5, &both)));
    lab.receive(0, vec![bytes(5, &both), bytes(5, &both[..1]), bytes(5, &[])]);
    assert_eq!(lab.count("l2-output", "L2 output tag rewrite drops"), 2);
    assert_eq!(sent_one(&mut lab), (lab.sw_if(2), bytes(5, &[])));
    lab.close();
}

#[test]
fn rewrites_need_tags_that_all_frames_have() {
    let mut lab = lab(1);
    sub(&mut lab, 0, 10, one(10));
    sub(&mut lab, 0, 11, TagMatch::AnyInner(dot1q(11)));
    sub(&mut lab, 0, 12, TagMatch::Untagged);
    for (name, words, error) in [
        ("test0.10", "pop 2", "known by 1 VLAN tags"),
        ("test0.11", "translate 2-1 dot1q 5", "known by 1 VLAN tags"),
        ("test0.12", "pop 1", "known by 0 VLAN tags"),
        ("test1", "translate 1-1 dot1q 5", "known by 0 VLAN tags"),
        ("test1", "push dot1q 4095", "VLAN id"),
        ("test1", "push dot1q", "VLAN id"),
        ("test1", "pop 3", "number of tags"),
        ("test1", "push dot1q 1 2 3", "3"),
    ] {
        let answer = lab.cli(&format!("set interface l2 tag-rewrite {name} {words}"));
        assert!(answer.contains(error), "{words}: {answer}");
    }
    lab.ok("set interface l2 tag-rewrite test0.11 translate 1-2 dot1ad 5 6");
    let shown = lab.cli("show interface vtr test0.10 test0.11");
    assert_eq!(shown, "test0.10:  VTR none\ntest0.11:  VTR trans-1-2 dot1ad 5 6\n");
    // Another interface with the same number has none.
    lab.ok("delete sub-interface test0.11");
    lab.cli("create sub-interfaces test0 13");
    assert_eq!(lab.cli("show interface vtr"), "");
    lab.close();
}
