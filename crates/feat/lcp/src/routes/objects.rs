//! Next-hop objects of the kernel, and of `zebra`, are numbered groups of the forwarding table, one
//! for the packets of each version that routes lead to it.

use super::{KernelRoutes, Origin, paths_of, refused};
use std::collections::BTreeMap;
use std::fmt::Display;
use thalweg_device_linux::routes::NextHop;
use thalweg_feat_ip::table::{self, Followed};
use thalweg_feat_ip::{Path, PathKind, RouteError, Version};
use thalweg_fib::forwarding::UNRESOLVED;
use thalweg_fib::{Forwarding, Member};
use thalweg_graph::Control;

struct Group {
    number: u32,
    /// The object that it leads to; `None` if no hop is over a twin.
    followed: Option<Followed>,
}

/// An object.
#[derive(Default)]
struct Object {
    hops: Vec<NextHop>,
    /// Groups for packets of IPv4 and IPv6.
    groups: [Option<Group>; 2],
}

/// All objects.
#[derive(Default)]
pub(super) struct Objects {
    all: BTreeMap<(Origin, u32), Object>,
    /// Numbers given so far.
    numbers: u32,
}

impl Objects {
    /// The next hops of an object.
    pub(super) fn hops(&self, origin: Origin, object: u32) -> Option<&[NextHop]> {
        self.all.get(&(origin, object)).map(|o| &o.hops[..])
    }

    /// Returns a number that no group has had: routes to a former one may still be there.
    fn number(&mut self) -> u32 {
        self.numbers = self.numbers.wrapping_add(1);
        self.numbers
    }
}

fn at(version: Version) -> usize {
    usize::from(version == Version::V6)
}

/// Applies an object of the kernel: routes that name it follow.
pub(super) fn set(c: &mut Control, origin: Origin, object: u32, hops: Vec<NextHop>) {
    let state = c.state::<KernelRoutes>();
    let known: Vec<Version> = {
        let mut state = state.borrow_mut();
        let of = state.objects.all.entry((origin, object)).or_default();
        of.hops = hops;
        [Version::V4, Version::V6].into_iter().filter(|v| of.groups[at(*v)].is_some()).collect()
    };
    for version in known {
        lead(c, origin, object, version, true);
    }
}

/// Removes an object to which no route leads.
pub(super) fn remove(c: &mut Control, origin: Origin, object: u32) {
    let state = c.state::<KernelRoutes>();
    let Some(gone) = state.borrow_mut().objects.all.remove(&(origin, object)) else { return };
    for (group, version) in gone.groups.into_iter().zip([Version::V4, Version::V6]) {
        let Some(group) = group else { continue };
        refused::object(c, (origin, object, version), Ok(()));
        c.state::<Forwarding>().borrow_mut().remove_numbered(c, group.number);
        unfollow(c, version, group.followed);
    }
}

/// Removes all objects of an origin.
pub(super) fn forget(c: &mut Control, origin: Origin) {
    let all: Vec<u32> = {
        let state = c.state::<KernelRoutes>();
        let state = state.borrow();
        let of = state.objects.all.range((origin, 0)..=(origin, u32::MAX));
        of.map(|((_, object), _)| *object).collect()
    };
    for object in all {
        remove(c, origin, object);
    }
}

/// Returns the path of a route that leads to an object; none if that is not known, or no hop is
/// over a twin.
pub(super) fn paths(c: &mut Control, origin: Origin, object: u32, version: Version) -> Vec<Path> {
    let state = c.state::<KernelRoutes>();
    let known = {
        let state = state.borrow();
        let Some(of) = state.objects.all.get(&(origin, object)) else { return Vec::new() };
        of.groups[at(version)].as_ref().map(|group| (group.number, group.followed.is_some()))
    };
    let (number, leads) = match known {
        Some(known) => known,
        None => {
            {
                let mut state = state.borrow_mut();
                let number = state.objects.number();
                if let Some(of) = state.objects.all.get_mut(&(origin, object)) {
                    of.groups[at(version)] = Some(Group { number, followed: None });
                }
            }
            lead(c, origin, object, version, false)
        }
    };
    // One that leads nowhere now may lead somewhere later: routes are offered again then.
    if leads { vec![Path::special(PathKind::Group(number))] } else { Vec::new() }
}

/// Tries again to make a group lead to the hops of its object.
pub(super) fn lead_again(c: &mut Control, origin: Origin, object: u32, version: Version) {
    lead(c, origin, object, version, true);
}

/// Makes the group of an object lead to its hops; returns its number, and whether it leads
/// anywhere. If that has changed and routes lead to it (`in_use`), they are taken again.
fn lead(
    c: &mut Control,
    origin: Origin,
    object: u32,
    version: Version,
    in_use: bool,
) -> (u32, bool) {
    let state = c.state::<KernelRoutes>();
    let (number, hops) = {
        let state = state.borrow();
        let Some(of) = state.objects.all.get(&(origin, object)) else { return (0, false) };
        let Some(group) = &of.groups[at(version)] else { return (0, false) };
        (group.number, of.hops.clone())
    };
    let is_blackhole = hops.is_empty();
    let paths = match is_blackhole {
        true => vec![Path::special(PathKind::Drop)],
        false => paths_of(c, origin.id, &hops),
    };
    let followed = match paths.is_empty() {
        true => Ok(None),
        false => follow(c, version, paths).map(Some),
    };
    let why = followed.as_ref().err().map(ToString::to_string);
    let followed = followed.unwrap_or_default();
    let leads = followed.is_some();
    let f = c.state::<Forwarding>();
    // Routes keep the group also while it leads nowhere: it gets other members later.
    let end = followed.as_ref().map_or(UNRESOLVED, |followed| followed.dpo);
    let done = {
        let mut f = f.borrow_mut();
        f.retain(end);
        f.set_numbered(c, number, vec![Member::of(end)])
    };
    let why = why.or(done.err().map(|e| e.to_string()));
    let done = why.as_ref().map_or(Ok(()), |why| Err(why as &dyn Display));
    refused::object(c, (origin, object, version), done);
    let before = {
        let mut state = state.borrow_mut();
        let group = state.objects.all.get_mut(&(origin, object));
        let group = group.and_then(|of| of.groups[at(version)].as_mut());
        group.and_then(|group| std::mem::replace(&mut group.followed, followed))
    };
    if in_use && before.is_some() != leads {
        super::offer(c, origin, &hops);
    }
    unfollow(c, version, before);
    (number, leads)
}

fn follow(c: &Control, version: Version, paths: Vec<Path>) -> Result<Followed, RouteError> {
    match version {
        Version::V4 => table::follow::<u32>(c, paths),
        Version::V6 => table::follow::<u128>(c, paths),
    }
}

fn unfollow(c: &Control, version: Version, followed: Option<Followed>) {
    let Some(followed) = followed else { return };
    match version {
        Version::V4 => table::unfollow::<u32>(c, followed),
        Version::V6 => table::unfollow::<u128>(c, followed),
    }
}
