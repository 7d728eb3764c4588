//! Very many labels behind one neighbour.

use crate::lab::{Mpls, labelled, router};
use thalweg_device::testing::Lab;
use thalweg_fib::Forwarding;

/// Labels behind one next hop.
const MANY: u32 = 100_000;

/// Binds very many labels to next hops.
fn bind_many(lab: &mut Lab, vias: &str) {
    let lines: String = (0..MANY)
        .map(|n| {
            format!(
                "mpls local-label add {} eos {}\n",
                16 + n,
                vias.replace('N', &(20 + n).to_string())
            )
        })
        .collect();
    lab.ok(&lines);
}

/// Number of objects and of words stored since the start.
fn work(lab: &Lab) -> (usize, u64, u64) {
    let f = lab.c.state::<Forwarding>();
    let f = f.borrow();
    (f.len(), f.stores(), f.visits())
}

/// Binds the same number of prefixes, by one next hop.
fn bind_prefixes(lab: &mut Lab) {
    let done = format!("ip route add 48.0.0.0/32 count {MANY} via 1.1.1.1 out-labels 5");
    let done = lab.cli(&done);
    assert!(done.contains("routes/sec"), "{done}");
}

#[test]
fn a_failure_costs_the_same_however_many_labels_there_are() {
    let mut lab = router();
    lab.ok("ip route add 1.1.1.1/32 via 10.0.1.2 test1 out-labels 17 via 10.0.2.2 test2 out-labels 18 preference 1");
    let before = work(&lab);
    bind_many(&mut lab, "via 1.1.1.1 out-labels N");
    bind_prefixes(&mut lab);
    let after = work(&lab);
    assert!(after.0 - before.0 < 10, "labels and prefixes share what they meet");
    lab.up(1, false);
    let work = work(&lab);
    assert!(work.1 - after.1 < 20 && work.2 - after.2 < 20, "{after:?} {work:?}");
    let left = lab.one(0, &labelled(&[16 + MANY / 2], 64));
    assert_eq!((left.by, left.labels), (2, vec![(18, 0, false, 64), (20 + MANY / 2, 0, true, 63)]));
    lab.close();
}

#[test]
fn an_interface_with_very_many_labels_goes_in_slices() {
    let mut lab = router();
    bind_many(&mut lab, "via 10.0.1.2 test1 out-labels N");
    let gone = lab.sw_if(1);
    thalweg_device::interface::delete(&mut lab.c, gone).expect("deleted");
    let left = |lab: &Lab| {
        let mpls = lab.c.state::<thalweg_feat_mpls::Mpls>();
        let mpls = mpls.borrow();
        mpls.len(thalweg_fib::TableId(0))
    };
    // The call is back long before all have gone.
    assert!(left(&lab) > 10_000, "{}", left(&lab));
    lab.until("all labels gone", |lab| {
        let mpls = lab.c.state::<thalweg_feat_mpls::Mpls>();
        let mpls = mpls.borrow();
        mpls.len(thalweg_fib::TableId(0)) == 6
    });
    lab.ok("mpls table add 5");
    lab.ok("mpls local-label add 16 eos table 5 via 10.0.2.2 test2 out-labels 17");
    lab.ok("mpls table del 5");
    lab.settle();
    lab.close();
}
