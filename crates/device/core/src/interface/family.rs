//! Sub-interfaces on the main thread: how they come and go, and what they take over from their
//! parent.
//!
//! They have no nodes: their frames leave by their parent's output node. Changes of all
//! sub-interfaces of a parent are made in slices.

use super::delete::delete_one;
use super::subs::{Subs, TagMatch};
use super::*;
use crate::SwIfIndex;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use thalweg_graph::clock;

/// Maximum time that a slice takes, but for its last step.
const SLICE: Duration = Duration::from_millis(2);

/// The sub-interfaces of an interface.
pub(super) struct Children {
    pub(super) subs: Arc<Subs>,
    all: BTreeSet<SwIfIndex>,
}

/// Interfaces whose sub-interfaces follow a change, or go.
#[derive(Default)]
pub(super) struct Follow {
    /// First sub-interface that is left to do, by parent.
    jobs: BTreeMap<SwIfIndex, SwIfIndex>,
    is_running: bool,
}

/// The next step.
enum Step {
    /// A sub-interface takes over its parent's properties.
    Refresh(SwIfIndex),
    /// An interface without sub-interfaces goes.
    Delete(SwIfIndex),
}

struct SubDevice;

impl Device for SubDevice {
    fn dev_type(&self) -> &'static str {
        "sub-interface"
    }
    fn kind(&self) -> Kind {
        Kind::Sub
    }
    fn set_mtu(&self, _c: &mut Control, _mtu: u32) -> Result<bool, DeviceError> {
        Ok(false)
    }
}

/// Returns the driver of all sub-interfaces.
pub(super) fn device() -> DeviceRef {
    Rc::new(SubDevice)
}

pub(super) fn going(name: &str) -> DeviceError {
    DeviceError::Failed(format!("interface `{name}` is being deleted"))
}

/// Creates a sub-interface, `PARENT.ID`, which is down. The sub-interface receives the frames of
/// its parent that `matches` describes.
///
/// # Errors
/// If the parent cannot have one, the number, the name or the tags are in use, an id is out of
/// range, or the table is full. Nothing has changed then.
pub fn create_sub(
    c: &mut Control,
    parent: SwIfIndex,
    id: u32,
    matches: TagMatch,
) -> Result<SwIfIndex, DeviceError> {
    matches.check()?;
    if id == 0 {
        let (min, max) = (1, u32::MAX.into());
        return Err(DeviceError::Range { what: "sub-interface number", min, max, found: 0 });
    }
    let p = view(c, parent)?;
    let name = format!("{}.{id}", p.name);
    let all = c.state::<Interfaces>();
    let tx = {
        let mut a = all.borrow_mut();
        if a.by_name.contains_key(&name) {
            return Err(DeviceError::Exists(name));
        }
        let i = a.row(parent)?;
        if i.is_going {
            return Err(going(&p.name));
        }
        let tx = i.tx.filter(|_| p.ethernet && p.parent.is_none());
        let of_tags =
            i.children.as_ref().map_or(SwIfIndex(0), |children| children.subs.get(matches));
        let Some(tx) = tx else {
            let (kind, what) = (p.dev_type.into(), "a sub-interface".into());
            return Err(DeviceError::Unsupported { name: p.name, kind, what });
        };
        if let Some(other) = a.get(of_tags).filter(|_| of_tags != SwIfIndex(0)) {
            return Err(DeviceError::TagsInUse { name: other.name.clone(), matches });
        }
        tx
    };
    let sw_if = create::new_index(c, &name)?;
    let failed = |e| DeviceError::Failed(format!("{e}"));
    c.set_arc_end("interface-output", sw_if, Some(tx)).map_err(failed)?;
    let view = InterfaceView {
        sw_if,
        name,
        kind: Kind::Sub,
        dev_type: "sub-interface",
        admin_up: false,
        link_up: p.is_up(),
        state_since: clock::ticks(),
        mtu: Mtu { l3: p.mtu.l3, ..Mtu::default() },
        promiscuous: false,
        tag: String::new(),
        mode: Mode::Routed,
        secondary_macs: Arc::default(),
        shares_output: true,
        parent: Some(parent),
        sub: Some((id, matches)),
        tags: matches.tags().unwrap_or_default(),
        rewrite: TagRewrite::NONE,
        twin: None,
        ..p
    };
    {
        let mut a = all.borrow_mut();
        let device = a.sub_device.clone();
        a.add(Interface::new(view, device, None));
        a.publish(c, sw_if);
        let i = a.row(parent)?;
        let is_first = i.children.is_none();
        let new = || Box::new(Children { subs: Arc::default(), all: BTreeSet::new() });
        let children = i.children.get_or_insert_with(new);
        children.all.insert(sw_if);
        // Workers have its row by now.
        children.subs.set(matches, sw_if);
        if is_first {
            a.publish(c, parent);
        }
    }
    c.publish(InterfaceEvent::Created(sw_if));
    Ok(sw_if)
}

impl Interfaces {
    /// Returns the sub-interfaces of an interface.
    pub fn subs_of(&self, sw_if: SwIfIndex) -> impl Iterator<Item = SwIfIndex> + '_ {
        let i = self.list.get(sw_if.index()).and_then(Option::as_ref);
        i.and_then(|i| i.children.as_ref()).into_iter().flat_map(|c| c.all.iter().copied())
    }

    /// Takes a sub-interface that goes from its parent.
    pub(super) fn leave_parent(&mut self, c: &Control, gone: &InterfaceView) {
        let (Some(parent), Some((_, matches))) = (gone.parent, gone.sub) else { return };
        let Ok(i) = self.row(parent) else { return };
        let Some(children) = i.children.as_mut() else { return };
        children.subs.set(matches, SwIfIndex(0));
        children.all.remove(&gone.sw_if);
        if children.all.is_empty() {
            i.children = None;
            self.publish(c, parent);
        }
    }

    fn next_step(&mut self) -> Option<Step> {
        loop {
            let (&parent, &from) = self.follow.jobs.first_key_value()?;
            let i = self.list.get(parent.index()).and_then(Option::as_ref);
            let is_going = i.is_some_and(|i| i.is_going);
            let from = if is_going { SwIfIndex(0) } else { from };
            let children = i.and_then(|i| i.children.as_ref());
            let next = children.and_then(|c| c.all.range(from..).next().copied());
            match next {
                Some(sub) if is_going => return Some(Step::Delete(sub)),
                Some(sub) => {
                    self.follow.jobs.insert(parent, SwIfIndex(sub.0 + 1));
                    return Some(Step::Refresh(sub));
                }
                None if is_going => return Some(Step::Delete(parent)),
                None => _ = self.follow.jobs.remove(&parent),
            }
        }
    }
}

/// Makes the sub-interfaces of an interface follow a change of it, or go with it.
pub(super) fn follow(c: &mut Control, parent: SwIfIndex) {
    let all = c.state::<Interfaces>();
    let is_running = {
        let mut a = all.borrow_mut();
        if a.row(parent).map_or(true, |i| i.children.is_none()) {
            return;
        }
        a.follow.jobs.insert(parent, SwIfIndex(0));
        std::mem::replace(&mut a.follow.is_running, true)
    };
    if !is_running {
        run_slice(c);
    }
}

fn run_slice(c: &mut Control) {
    let (all, began) = (c.state::<Interfaces>(), Instant::now());
    loop {
        let step = all.borrow_mut().next_step();
        let mut waits = false;
        match step {
            Some(Step::Refresh(sub)) => refresh(c, sub),
            Some(Step::Delete(sw_if)) => {
                delete_one(c, sw_if);
                // Its subscribers see it after what is being delivered.
                waits = all.borrow().get(sw_if).is_some();
            }
            None => break all.borrow_mut().follow.is_running = false,
        }
        if waits || began.elapsed() >= SLICE {
            c.after(Duration::ZERO, run_slice);
            break;
        }
    }
}

/// Copies the settings of its parent to a sub-interface.
fn refresh(c: &mut Control, sub: SwIfIndex) {
    let all = c.state::<Interfaces>();
    let events = {
        let mut a = all.borrow_mut();
        let parent = a.get(sub).and_then(|v| v.parent);
        let Some(p) = parent.and_then(|parent| a.get(parent)).cloned() else { return };
        let Ok(i) = a.row(sub) else { return };
        let v = &mut i.view;
        let state = (v.link_up, v.speed_kbps) != (p.is_up(), p.speed_kbps);
        if v.link_up != p.is_up() {
            // A sub-interface goes down with its parent, though it learns of that only now.
            v.state_since = v.state_since.max(p.state_since);
        }
        (v.link_up, v.speed_kbps, v.caps) = (p.is_up(), p.speed_kbps, p.caps);
        let mtu = v.link_mtu != p.link_mtu;
        if v.mtu.l3 == v.link_mtu || v.mtu.l3 > p.link_mtu {
            v.mtu.l3 = p.link_mtu;
        }
        v.link_mtu = p.link_mtu;
        let mac = std::mem::replace(&mut v.mac, p.mac) != p.mac;
        if mac {
            a.publish(c, sub);
        }
        [
            mac.then_some(InterfaceEvent::Mac(sub)),
            mtu.then_some(InterfaceEvent::Mtu(sub)),
            state.then_some(InterfaceEvent::State(sub)),
        ]
    };
    events.into_iter().flatten().for_each(|event| c.publish(event));
}
