//! Reasons why packets are dropped: every counter of every node, by its number.

use thalweg_graph::Control;
use thalweg_sflow::DiscardReason;
use thalweg_sflow_agent::netlink::dropmon;

/// One reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The node that drops.
    pub node: String,
    /// The node's words.
    pub text: &'static str,
    /// The node, as VPP names a group of traps.
    pub group: String,
    /// The reason, as VPP names a trap.
    pub trap: String,
    /// The reason in sFlow.
    pub code: DiscardReason,
}

/// All reasons by number.
pub type Reasons = Vec<Reason>;

/// Returns all present reasons.
pub(crate) fn all(c: &Control) -> Reasons {
    let nodes = c.nodes();
    let reason = |(node, error): &(thalweg_graph::NodeId, &'static thalweg_graph::ErrorDecl)| {
        let node = nodes.get(usize::from(node.0)).map_or("?", |n| &n.name);
        Reason {
            node: node.into(),
            text: error.text,
            group: trap_name(node),
            trap: trap_name(error.text),
            code: DiscardReason(u32::from(error.discard)),
        }
    };
    c.errors().iter().map(reason).collect()
}

fn trap_name(text: &str) -> String {
    let mut name = Vec::new();
    dropmon::trap_name(text, &mut name);
    String::from_utf8_lossy(&name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The engine does not know sFlow, and has names of its own for the reasons in use.
    #[test]
    fn reasons_have_one_number() {
        for (name, code) in thalweg_graph::discard::ALL {
            let known = DiscardReason::ALL.iter().find(|(reason, _)| reason.0 == u32::from(*code));
            let spelt = known.map(|(_, known)| known.to_ascii_uppercase());
            assert_eq!(spelt.as_deref(), Some(*name));
        }
    }

    #[test]
    fn names_are_spelt_as_receivers_know_them() {
        assert_eq!(trap_name("ip4-input"), "vpp_ip4-input");
        assert_eq!(trap_name("ip4 ttl <= 1"), "vpp_ip4_ttl_<=_1");
    }
}
