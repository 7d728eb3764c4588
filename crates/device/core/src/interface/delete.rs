//! Deletion of interfaces: features give up what they have of one, in slices; then it goes at once.

use super::set::{self, set_promiscuous};
use super::{InterfaceEvent, Interfaces, SwIfIndex, create, family, view};
use crate::DeviceError;
use std::rc::Rc;
use std::time::Duration;
use thalweg_graph::{Control, clock};

/// A feature's work before an interface is deleted: see [`before_delete`].
pub(super) type Leaver = Rc<dyn Fn(&mut Control, SwIfIndex) -> bool>;

/// Deletes an interface: brings it down, publishes [`InterfaceEvent::Deleted`], and deletes its
/// nodes and rows once all subscribers have seen it. Its sub-interfaces go first; if they are many,
/// all that goes on after this has returned.
///
/// # Errors
/// If the interface does not exist, is being deleted, or is `local0`.
pub fn delete(c: &mut Control, sw_if: SwIfIndex) -> Result<(), DeviceError> {
    if sw_if == SwIfIndex(0) {
        return Err(DeviceError::Failed("local0 cannot be deleted".into()));
    }
    let all = c.state::<Interfaces>();
    match all.borrow_mut().row(sw_if)? {
        i if i.is_going => return Err(DeviceError::Unknown(i.view.name.clone())),
        _ => {}
    }
    // Its driver may report a change, which others follow, before it goes.
    set::down(c, sw_if);
    let (has_subs, last) = match all.borrow_mut().row(sw_if) {
        Ok(i) => {
            i.is_going = true;
            // One whose driver failed receives on.
            let last = if i.view.admin_up { Some(c.domain().tag()) } else { i.down_since };
            (i.children.is_some(), last)
        }
        Err(_) => return Ok(()),
    };
    // Features leave it next: what they do to packets, they do to all that it has received.
    if let Some(last) = last {
        create::drain_of(c, last);
    }
    if has_subs {
        family::follow(c, sw_if);
    } else {
        delete_one(c, sw_if);
    }
    Ok(())
}

/// Deletes an interface without sub-interfaces, unless that goes on already.
pub(super) fn delete_one(c: &mut Control, sw_if: SwIfIndex) {
    if !c.state::<Interfaces>().borrow_mut().ending.insert(sw_if) {
        return;
    }
    set::down(c, sw_if);
    if view(c, sw_if).is_ok_and(|v| v.parent.is_some()) {
        // Its parent's device need not receive all frames for it.
        let _ = set_promiscuous(c, sw_if, false);
    }
    leave(c, sw_if);
}

/// Registers what a feature does before an interface of which it may have very much is deleted: a
/// slice of a few milliseconds, after which it returns whether something is left. The interface is
/// down by then.
pub fn before_delete(c: &Control, f: impl Fn(&mut Control, SwIfIndex) -> bool + 'static) {
    c.state::<Interfaces>().borrow_mut().leavers.push(Rc::new(f));
}

/// Deletes an interface once its features have given up what they have of it.
fn leave(c: &mut Control, sw_if: SwIfIndex) {
    let leavers = c.state::<Interfaces>().borrow().leavers.clone();
    if leavers.iter().any(|leaver| leaver(c, sw_if)) {
        c.after(Duration::ZERO, move |c| leave(c, sw_if));
        return;
    }
    c.publish_then(InterfaceEvent::Deleted(sw_if), move |c| remove(c, sw_if));
}

/// Deletes an interface's nodes and rows.
fn remove(c: &mut Control, sw_if: SwIfIndex) {
    let all = c.state::<Interfaces>();
    let gone = {
        let mut a = all.borrow_mut();
        a.ending.remove(&sw_if);
        let Some(gone) = a.list.get_mut(sw_if.index()).and_then(Option::take) else { return };
        a.by_name.remove(&gone.view.name);
        a.follow_tag(sw_if, &gone.view.tag, "");
        a.leave_parent(c, &gone.view);
        a.publish(c, sw_if);
        if !a.kept.contains(&sw_if) {
            a.indices.give_back(sw_if.get());
        }
        gone
    };
    c.remove_interface(sw_if);
    if let Some(tx) = gone.tx {
        gone.device.delete(c, sw_if);
        if !gone.view.shares_output {
            c.remove_node(gone.view.output);
            c.remove_node(tx);
        }
    }
    // From here on, workers that begin a loop do not see it.
    let left = c.domain().tag();
    let mut all = all.borrow_mut();
    all.left.insert(sw_if, left);
    all.former.insert(sw_if, (gone.view.name, clock::ticks()));
}
