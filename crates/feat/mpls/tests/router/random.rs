//! Labels and packets at random.

use crate::lab::{Mpls, labelled, left, router};
use proptest::prelude::*;
use std::collections::BTreeMap;
use thalweg_wire::build::Packet;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]
    /// Labels come and go; each is swapped as a plain map says.
    #[test]
    fn labels_agree_with_a_plain_map(
        ops in prop::collection::vec((16u32..22, any::<bool>(), any::<bool>(), 16u32..0xf_ffff, 1u8..3), 1..25),
    ) {
        let mut lab = router();
        let mut model = BTreeMap::new();
        for (label, eos, add, out, n) in ops {
            let bottom = if eos { "eos" } else { "non-eos" };
            if add {
                lab.ok(&format!("mpls local-label replace {label} {bottom} via 10.0.{n}.2 test{n} out-labels {out}"));
                model.insert((label, eos), (out, n));
            } else {
                let was = model.remove(&(label, eos)).is_some();
                let done = lab.cli(&format!("mpls local-label del {label} {bottom}"));
                prop_assert_eq!(done.contains("no label"), !was, "{}", done);
            }
            for (label, eos) in (16..22).flat_map(|l| [(l, false), (l, true)]) {
                let stack = if eos { vec![label] } else { vec![label, 5000] };
                let sent = lab.forward(0, &labelled(&stack, 64), 1);
                let got = sent.first().map(|frame| (left(frame).labels[0], frame.0));
                let want = model.get(&(label, eos)).map(|(out, n)| ((*out, 0, eos, 63), *n));
                prop_assert_eq!(got, want);
            }
        }
        lab.close();
    }

    /// No bytes disturb the router.
    #[test]
    fn any_bytes_are_accounted_for(
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..40),
        labels in prop::collection::vec(0u32..20, 0..4),
    ) {
        let mut lab = router();
        lab.ok("mpls local-label add 16 eos via 10.0.1.2 test1 out-labels 17");
        lab.ok("mpls local-label add 17 non-eos via mpls-lookup-in-table 0");
        lab.ok("mpls local-label add 18 eos via ip4-lookup-in-table 0");
        lab.ok("mpls local-label add 19 eos via 10.0.1.2 test1 via 10.0.2.2 test2 out-labels 5");
        for bytes in frames {
            let stack: Vec<u8> = labels.iter().flat_map(|l| (l << 12 | 2).to_be_bytes()).collect();
            lab.forward(0, &Packet::new().payload(&[stack, bytes].concat()), 1);
        }
        lab.close();
    }
}
