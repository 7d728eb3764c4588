//! Types and helpers shared by the API messages.

use crate::message_types::{LcpItfHostType, LcpItfPairDetails};
use crate::pairs::{Made, Pair, PairView};
use crate::{Error, Wanted, options, pairs};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Retval};
use thalweg_buffer::SwIfIndex;
use thalweg_device::api_types::view;
use thalweg_engine::setting::Refused;
use thalweg_graph::Control;

impl LcpItfPairDetails {
    fn of(view: &PairView) -> LcpItfPairDetails {
        let is_tun = view.pair.made == Made::Tun;
        LcpItfPairDetails {
            phy_sw_if_index: InterfaceIndex(view.pair.phy.get()),
            host_sw_if_index: InterfaceIndex(view.pair.host.get()),
            vif_index: view.ifindex,
            host_if_name: view.name.as_str().into(),
            host_if_type: if is_tun { LcpItfHostType::TUN } else { LcpItfHostType::TAP },
            netns: view.pair.namespace.as_deref().unwrap_or_default().into(),
        }
    }
}

/// Sends pairs from a number on; returns the cursor, which is all ones at the end.
pub(crate) fn send(
    all: &[PairView],
    cursor: u32,
    out: &mut Details<LcpItfPairDetails>,
) -> (Retval, u32) {
    for pair in all.iter().filter(|pair| pair.number >= cursor as usize) {
        if out.is_full() {
            return (Retval::EAGAIN, pair.number as u32);
        }
        out.send(&LcpItfPairDetails::of(pair));
    }
    (Retval(0), u32::MAX)
}

/// Returns whether a pair is as one is wanted; `usual` is the namespace of those that name none.
fn is_as(pair: &Pair, wanted: &Wanted, usual: Option<&str>) -> bool {
    let namespace = wanted.namespace.as_deref().or(usual);
    let namespace = namespace.filter(|name| *name != options::OWN_NAMESPACE);
    let is_there = match pair.made {
        // It is where that of its parent is.
        Made::Vlan { .. } => wanted.namespace.is_none() || pair.namespace.as_deref() == namespace,
        Made::Tap | Made::Tun => pair.namespace.as_deref() == namespace,
    };
    pair.name == wanted.name && (pair.made == Made::Tun) == wanted.tun && is_there
}

/// A request for a pair.
pub(crate) struct Request<'a> {
    pub(crate) is_add: bool,
    pub(crate) sw_if_index: InterfaceIndex,
    pub(crate) name: &'a str,
    pub(crate) kind: LcpItfHostType,
    pub(crate) netns: &'a str,
}

/// Makes or deletes a pair; returns the router's end of one that was made.
pub(crate) fn add_del(c: &mut Control, rq: &Request<'_>) -> Result<Option<SwIfIndex>, Retval> {
    let phy = view(c, rq.sw_if_index)?.sw_if;
    let refused = |e: Error| Retval::from(Refused::from(e));
    if !rq.is_add {
        crate::delete(c, phy).map_err(refused)?;
        return Ok(None);
    }
    let kept = c.state::<pairs::Pairs>().borrow_mut().keep(phy);
    let wanted = Wanted {
        phy,
        name: rq.name.to_owned(),
        namespace: Some(rq.netns.to_owned()).filter(|netns| !netns.is_empty()),
        tun: rq.kind == LcpItfHostType::TUN,
    };
    let usual = options::get(c).namespace;
    // A replacement of all pairs names one that is there.
    match pairs::get(c, phy).filter(|view| kept && is_as(&view.pair, &wanted, usual.as_deref())) {
        Some(view) => Ok(Some(view.pair.host)),
        None if kept => {
            crate::delete(c, phy).map_err(refused)?;
            crate::create(c, &wanted).map(Some).map_err(refused)
        }
        None => crate::create(c, &wanted).map(Some).map_err(refused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use thalweg_fib::Dpo;

    #[test]
    fn a_replacement_that_names_another_place_or_kind_is_another_pair() {
        let pair = |namespace: Option<&str>, made: Made| Pair {
            phy: SwIfIndex(1),
            host: SwIfIndex(2),
            name: "e0".into(),
            namespace: namespace.map(Into::into),
            made,
            to: [Dpo(0); 2],
            counts: Arc::new([]),
            stale: true,
        };
        let wanted = |name: &str, namespace: Option<&str>, tun| Wanted {
            phy: SwIfIndex(1),
            name: name.into(),
            namespace: namespace.map(Into::into),
            tun,
        };
        let [tap, tun] = [Made::Tap, Made::Tun].map(|made| pair(Some("a"), made));
        assert!(is_as(&tap, &wanted("e0", Some("a"), false), None));
        assert!(is_as(&tap, &wanted("e0", None, false), Some("a")));
        assert!(is_as(&tun, &wanted("e0", Some("a"), true), None));
        for other in [
            wanted("e1", Some("a"), false),
            wanted("e0", Some("b"), false),
            wanted("e0", None, false),
            wanted("e0", Some(options::OWN_NAMESPACE), false),
            wanted("e0", Some("a"), true),
        ] {
            assert!(!is_as(&tap, &other, None), "{other:?}");
        }
        let own = pair(None, Made::Tap);
        assert!(is_as(&own, &wanted("e0", Some(options::OWN_NAMESPACE), false), Some("a")));
        assert!(!is_as(&own, &wanted("e0", None, false), Some("a")));
    }
}
