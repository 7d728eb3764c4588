//! Paths whose next hop is a label: they follow the label's own paths, with its labels before
//! theirs (`via-label`).

use crate::Mpls;
use crate::via::Via;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use thalweg_feat_ip::table::{Followed, follow, unfollow};
use thalweg_fib::rib::{Path, PathKind};
use thalweg_fib::{Forwarding, LinkType, Version, ViaLabel, ViaLabelsDue};
use thalweg_graph::Control;

/// Time for which objects are resolved before other work gets its turn.
const SLICE: Duration = Duration::from_millis(1);
/// Objects resolved between two looks at the clock.
const AT_ONCE: usize = 16;
/// Time after which objects without users are forgotten, and those that led to themselves tried
/// again.
const TIDY: Duration = Duration::from_millis(500);
/// Objects tried again at once.
const TRIED: usize = 256;

/// Labels that objects follow.
#[derive(Default)]
struct Following {
    held: BTreeMap<ViaLabel, (Version, Followed)>,
    /// Labels that led to themselves, or by too many levels, when they were resolved: other routes
    /// may have changed that.
    looping: BTreeSet<ViaLabel>,
}

pub(crate) fn init(c: &mut Control) {
    c.insert(Following::default());
    c.subscribe(|c, _: &ViaLabelsDue| resolve_some(c));
    c.every(TIDY, |c| {
        tidy(c);
        true
    });
}

/// Resolves objects that are due for about a millisecond, and goes on later.
fn resolve_some(c: &mut Control) {
    let begin = Instant::now();
    while begin.elapsed() < SLICE {
        for _ in 0..AT_ONCE {
            let due = c.state::<Forwarding>().borrow_mut().take_due();
            let Some(key) = due else { return };
            resolve(c, key);
        }
    }
    c.after(Duration::ZERO, resolve_some);
}

/// Makes an object follow the present paths of its label.
fn resolve(c: &Control, key: ViaLabel) {
    let followed = match (paths(c, &key), key.link) {
        (paths, _) if paths.is_empty() => None,
        (paths, LinkType::Ip6) => follow::<u128>(c, paths).ok().map(|f| (Version::V6, f)),
        (paths, _) => follow::<u32>(c, paths).ok().map(|f| (Version::V4, f)),
    };
    let to = followed.map(|(_, followed)| followed.dpo);
    let leads = c.state::<Forwarding>().borrow_mut().set_via_label(c, &key, to);
    let following = c.state::<Following>();
    let mut following = following.borrow_mut();
    match followed {
        Some(_) if !leads => _ = following.looping.insert(key),
        _ => _ = following.looping.remove(&key),
    }
    let old = match followed {
        Some(new) => following.held.insert(key, new),
        None => following.held.remove(&key),
    };
    drop(following);
    old.into_iter().for_each(|old| release(c, old));
}

/// The paths of a label with its labels before those of an object. One with too many labels is
/// left out.
fn paths(c: &Control, key: &ViaLabel) -> Vec<Path> {
    let mpls = c.state::<Mpls>();
    let mpls = mpls.borrow();
    let path = |via: &Via| match via {
        Via::Path(path) if path.kind == PathKind::Normal => {
            let labels = key.labels.following(&path.labels.sent())?;
            Some(Path { labels, ..*path })
        }
        _ => None,
    };
    mpls.followed(key.label).iter().filter_map(path).collect()
}

fn release(c: &Control, held: (Version, Followed)) {
    match held {
        (Version::V4, followed) => unfollow::<u32>(c, followed),
        (Version::V6, followed) => unfollow::<u128>(c, followed),
    }
}

/// Forgets objects that nobody uses, and tries those again that led to themselves.
fn tidy(c: &mut Control) {
    let unused = c.state::<Forwarding>().borrow_mut().release_via_labels(c);
    for key in unused {
        let following = c.state::<Following>();
        following.borrow_mut().looping.remove(&key);
        let held = following.borrow_mut().held.remove(&key);
        held.into_iter().for_each(|held| release(c, held));
    }
    let again: Vec<ViaLabel> = {
        let following = c.state::<Following>();
        let mut following = following.borrow_mut();
        (0..TRIED).map_while(|_| following.looping.pop_first()).collect()
    };
    again.into_iter().for_each(|key| resolve(c, key));
}
