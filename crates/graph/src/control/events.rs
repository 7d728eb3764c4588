//! Events between features on the main thread: one publishes that something has changed, others
//! subscribe.
//!
//! Subscribers of an event all see it before they see the next one of its type: an event that is
//! published while another of its type is being delivered waits for its turn. Events of different
//! types do not wait for each other. No feature's state is borrowed while events are
//! delivered, so that a subscriber may use any.

use super::{Control, LocalJob};
use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

type Subscriber<E> = Rc<dyn Fn(&mut Control, &E)>;

/// Subscribers and waiting events of one type.
struct Channel<E> {
    subscribers: Vec<Subscriber<E>>,
    /// Events, and what follows once they are delivered.
    waiting: VecDeque<(E, Option<LocalJob>)>,
    delivering: bool,
}

impl<E> Default for Channel<E> {
    fn default() -> Self {
        Channel { subscribers: Vec::new(), waiting: VecDeque::new(), delivering: false }
    }
}

impl Control {
    fn channel<E: Any>(&mut self) -> Option<Rc<RefCell<Channel<E>>>> {
        let new = || Rc::new(RefCell::new(Channel::<E>::default()));
        let any = self.channels.entry(TypeId::of::<E>()).or_insert_with(|| new());
        any.clone().downcast().ok()
    }

    /// Calls `f` with each event of type `E`, after those that subscribed earlier.
    pub fn subscribe<E: Any>(&mut self, f: impl Fn(&mut Control, &E) + 'static) {
        if let Some(channel) = self.channel::<E>() {
            channel.borrow_mut().subscribers.push(Rc::new(f));
        }
    }

    /// Passes an event to its subscribers. They have seen it when this returns, unless a subscriber
    /// calls it while an event of the same type is being delivered: the new one waits then.
    ///
    /// No feature's state may be borrowed meanwhile; debug builds check it.
    pub fn publish<E: Any>(&mut self, event: E) {
        self.deliver(event, None);
    }

    /// Does the same, and calls `then` once all subscribers have seen the event.
    pub fn publish_then<E: Any>(&mut self, event: E, then: impl FnOnce(&mut Control) + 'static) {
        self.deliver(event, Some(Box::new(then)));
    }

    fn deliver<E: Any>(&mut self, event: E, then: Option<LocalJob>) {
        debug_assert_eq!(self.borrowed_state(), None, "borrowed while an event is published");
        let Some(channel) = self.channel::<E>() else { return };
        channel.borrow_mut().waiting.push_back((event, then));
        if std::mem::replace(&mut channel.borrow_mut().delivering, true) {
            return;
        }
        loop {
            let next = channel.borrow_mut().waiting.pop_front();
            let Some((event, then)) = next else { break };
            // Go by position: a subscriber may add another.
            let mut i = 0;
            loop {
                let subscriber = channel.borrow().subscribers.get(i).cloned();
                let Some(subscriber) = subscriber else { break };
                subscriber(self, &event);
                i += 1;
            }
            if let Some(then) = then {
                then(self);
            }
        }
        channel.borrow_mut().delivering = false;
    }

    /// Returns the type of a state that is borrowed at present.
    fn borrowed_state(&self) -> Option<&'static str> {
        self.states.values().find(|s| (s.is_borrowed)(&*s.cell)).map(|s| s.type_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EngineConfig;
    use thalweg_buffer::PoolConfig;

    #[derive(Default)]
    struct Seen(Vec<String>);

    fn control() -> Control {
        let pool = PoolConfig { buffers: 512, ..PoolConfig::default() };
        let mut c = Control::new(EngineConfig { pool, ..EngineConfig::default() }).unwrap();
        c.insert(Seen::default());
        c
    }

    fn note(c: &mut Control, text: String) {
        c.state::<Seen>().borrow_mut().0.push(text);
    }

    fn seen(c: &Control) -> Vec<String> {
        c.state::<Seen>().borrow().0.clone()
    }

    #[test]
    fn an_event_published_by_a_subscriber_waits_for_its_turn() {
        let mut c = control();
        c.subscribe(|c, n: &u32| {
            note(c, format!("first {n}"));
            if *n < 2 {
                let next = n + 1;
                c.publish_then(next, move |c| note(c, format!("after {next}")));
            }
        });
        c.subscribe(|c, n: &u32| note(c, format!("second {n}")));
        c.publish(0u32);
        let expected = [
            "first 0", "second 0", "first 1", "second 1", "after 1", "first 2", "second 2",
            "after 2",
        ];
        assert_eq!(seen(&c), expected);
    }

    #[test]
    fn events_of_different_types_do_not_wait() {
        let mut c = control();
        c.subscribe(|c, n: &u32| {
            c.publish(format!("text {n}"));
            note(c, format!("number {n}"));
        });
        c.subscribe(|c, text: &String| note(c, text.clone()));
        c.publish(7u32);
        assert_eq!(seen(&c), ["text 7", "number 7"]);
    }

    #[test]
    fn a_subscriber_that_subscribes_another_loses_nothing() {
        let mut c = control();
        c.subscribe(|c, n: &u32| {
            note(c, format!("first {n}"));
            c.subscribe(|c, n: &u32| note(c, format!("later {n}")));
        });
        c.publish(1u32);
        assert_eq!(seen(&c), ["first 1", "later 1"]);
    }

    #[test]
    fn without_subscribers_what_follows_is_done_all_the_same() {
        let mut c = control();
        c.publish_then(1u32, |c| note(c, "done".into()));
        assert_eq!(seen(&c), ["done"]);
    }

    #[test]
    #[should_panic(expected = "borrowed while an event is published")]
    fn publishing_with_a_state_borrowed_is_a_fault() {
        let mut c = control();
        let state = c.state::<Seen>();
        let _held = state.borrow();
        c.publish(1u32);
    }
}
