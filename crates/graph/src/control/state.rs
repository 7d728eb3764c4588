//! Features' state: of the main thread, shared with workers, and of each worker.

use super::Control;
use crate::worker::PerWorker;
use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;
use std::sync::Arc;

/// Things by their types.
pub(super) type ByType<T> = HashMap<TypeId, T, BuildHasherDefault<TypeHasher>>;

/// Hashes a type's number as itself: the compiler has made it by hashing, and looking up state is
/// what commands do most.
#[derive(Default)]
pub(super) struct TypeHasher(u64);

impl Hasher for TypeHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 ^= number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A feature's state on the main thread.
pub(super) struct State {
    /// A `RefCell` of its type.
    pub(super) cell: Rc<dyn Any>,
    pub(super) type_name: &'static str,
    pub(super) is_borrowed: fn(&dyn Any) -> bool,
}

impl Control {
    /// Stores a feature's state on the main thread.
    pub fn insert<T: Any>(&mut self, state: T) {
        self.insert_as(state, |cell| {
            cell.downcast_ref::<RefCell<T>>().is_some_and(|c| c.try_borrow_mut().is_err())
        });
    }

    /// Stores the state of what runs commands or requests, and is borrowed meanwhile. Subscribers
    /// of events must not use it.
    pub fn insert_runner<T: Any>(&mut self, state: T) {
        self.insert_as(state, |_| false);
    }

    fn insert_as<T: Any>(&mut self, state: T, is_borrowed: fn(&dyn Any) -> bool) {
        let type_name = std::any::type_name::<T>();
        let state = State { cell: Rc::new(RefCell::new(state)), type_name, is_borrowed };
        self.states.insert(TypeId::of::<T>(), state);
    }

    /// Returns a feature's state.
    ///
    /// # Panics
    /// If no state of that type was inserted, which is a bug in the feature's `init`.
    #[expect(clippy::panic, reason = "features are listed in the wrong order")]
    pub fn state<T: Any>(&self) -> Rc<RefCell<T>> {
        let any = self.states.get(&TypeId::of::<T>()).map(|s| s.cell.clone());
        any.and_then(|a| a.downcast::<RefCell<T>>().ok())
            .unwrap_or_else(|| panic!("no state of type {}", std::any::type_name::<T>()))
    }

    /// Shares a value with workers' nodes.
    pub fn share<T: Any + Send + Sync>(&mut self, thing: Arc<T>) {
        self.shared.insert(TypeId::of::<T>(), thing);
    }

    /// Returns a shared value.
    ///
    /// # Panics
    /// If nothing of that type was shared.
    #[expect(clippy::panic, reason = "features are listed in the wrong order")]
    pub fn shared<T: Any + Send + Sync>(&self) -> Arc<T> {
        self.find_shared()
            .unwrap_or_else(|| panic!("nothing shared of type {}", std::any::type_name::<T>()))
    }

    /// Returns a shared value, if a feature has shared one of that type.
    pub fn find_shared<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let any = self.shared.get(&TypeId::of::<T>()).cloned();
        any.and_then(|a| a.downcast::<T>().ok())
    }

    /// Returns the handle of a value that each worker has one of, and that its nodes share. A
    /// worker has none until a node or a call puts one there.
    pub fn per_worker<T: Any + Send>(&self) -> PerWorker<T> {
        let mut all = self.per_worker.borrow_mut();
        let id = TypeId::of::<T>();
        let index = all.iter().position(|t| *t == id).unwrap_or_else(|| {
            all.push(id);
            all.len() - 1
        });
        PerWorker::new(index as u16)
    }
}
