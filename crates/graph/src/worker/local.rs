//! State that the nodes of one worker share.
//!
//! The state belongs to the worker, so it needs no lock. A node takes it for a frame and puts it
//! back: a pointer moves, and nodes can use their worker meanwhile.

use super::{Core, NodeCx};
use std::any::Any;
use std::marker::PhantomData;

/// Handle of a value that each worker has one of. The main thread allots it by
/// [`Control::per_worker`](crate::Control::per_worker); nodes keep it.
#[derive(Debug)]
pub struct PerWorker<T> {
    index: u16,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for PerWorker<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for PerWorker<T> {}

impl<T> PerWorker<T> {
    pub(crate) fn new(index: u16) -> PerWorker<T> {
        PerWorker { index, of: PhantomData }
    }
}

/// The values of a worker, by index of their handles.
#[derive(Default)]
pub(super) struct Locals(Vec<Option<Box<dyn Any + Send>>>);

impl Locals {
    #[inline]
    fn take<T: Any + Send>(&mut self, at: PerWorker<T>) -> Option<Box<T>> {
        self.0.get_mut(usize::from(at.index))?.take()?.downcast().ok()
    }

    #[inline]
    fn put<T: Any + Send>(&mut self, at: PerWorker<T>, value: Box<T>) {
        let index = usize::from(at.index);
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index] = Some(value);
    }
}

impl Core {
    /// Takes this worker's value, `None` if it has none or it is in use.
    #[inline]
    pub fn take_local<T: Any + Send>(&mut self, at: PerWorker<T>) -> Option<Box<T>> {
        self.locals.take(at)
    }

    /// Puts the value back, or gives this worker one.
    #[inline]
    pub fn put_local<T: Any + Send>(&mut self, at: PerWorker<T>, value: Box<T>) {
        self.locals.put(at, value);
    }

    /// Runs a function on this worker's value, if it has one.
    pub fn with_local<T: Any + Send, R>(
        &mut self,
        at: PerWorker<T>,
        f: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        let mut value = self.take_local(at)?;
        let answer = f(&mut value);
        self.put_local(at, value);
        Some(answer)
    }
}

impl NodeCx<'_> {
    /// See [`Core::take_local`].
    #[inline]
    pub fn take_local<T: Any + Send>(&mut self, at: PerWorker<T>) -> Option<Box<T>> {
        self.core.take_local(at)
    }

    /// See [`Core::put_local`].
    #[inline]
    pub fn put_local<T: Any + Send>(&mut self, at: PerWorker<T>, value: Box<T>) {
        self.core.put_local(at, value);
    }

    /// See [`Core::with_local`].
    pub fn with_local<T: Any + Send, R>(
        &mut self,
        at: PerWorker<T>,
        f: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        self.core.with_local(at, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_where_it_was_put() {
        let (first, second) = (PerWorker::<u64>::new(0), PerWorker::<String>::new(1));
        let mut locals = Locals::default();
        assert_eq!(locals.take(second), None);
        locals.put(second, Box::new("two".to_string()));
        assert_eq!(locals.take(first), None);
        locals.put(first, Box::new(1));
        assert_eq!(locals.take(second).as_deref().map(String::as_str), Some("two"));
        assert_eq!(locals.take(second), None, "in use");
        assert_eq!(locals.take(first), Some(Box::new(1)));
    }
}
