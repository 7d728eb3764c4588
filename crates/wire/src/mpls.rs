//! MPLS label stacks (RFC 3032, RFC 5462).

use crate::Result;
use crate::bytes::{be32, header, put, room};

crate::number! {
    /// A label, 20 bits.
    pub struct Label(u32);
}

/// Bytes in a stack entry.
pub const ENTRY_LEN: usize = 4;
/// The largest label.
pub const MAX_LABEL: Label = Label(0xf_ffff);
/// First label without a reserved meaning.
pub const FIRST_UNRESERVED: Label = Label(16);

/// Reserved labels (RFC 3032 section 2.1, RFC 7274).
pub mod label {
    use super::Label;

    /// Pop and route by the IPv4 header.
    pub const IPV4_EXPLICIT_NULL: Label = Label(0);
    /// Deliver the packet to the router itself.
    pub const ROUTER_ALERT: Label = Label(1);
    /// Pop and route by the IPv6 header.
    pub const IPV6_EXPLICIT_NULL: Label = Label(2);
    /// Signalled only: the previous router pops.
    pub const IMPLICIT_NULL: Label = Label(3);
    /// An entropy label follows.
    pub const ENTROPY_INDICATOR: Label = Label(7);
    /// An OAM alert.
    pub const GAL: Label = Label(13);
}

const WHAT: &str = "MPLS label stack entry";

/// One entry of a label stack, as its 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct Entry(pub u32);

impl Entry {
    /// Returns an entry; bits beyond each field's width are ignored.
    pub const fn new(label: Label, traffic_class: u8, bottom: bool, ttl: u8) -> Self {
        let class = (traffic_class as u32 & 7) << 9;
        Self((label.0 & MAX_LABEL.0) << 12 | class | (bottom as u32) << 8 | ttl as u32)
    }

    /// Parses the entry at the start of `data`; returns it and the bytes after it.
    ///
    /// # Errors
    /// `Truncated` below four bytes.
    #[inline]
    pub fn parse(data: &[u8]) -> Result<(Self, &[u8])> {
        let (h, rest) = header::<ENTRY_LEN>(data, WHAT)?;
        Ok((Self(be32(h, 0)), rest))
    }

    /// Writes the entry.
    ///
    /// # Errors
    /// `NoRoom` below four bytes.
    #[inline]
    pub fn emit(self, buf: &mut [u8]) -> Result<usize> {
        put(room::<ENTRY_LEN>(buf, WHAT)?, 0, self.0.to_be_bytes());
        Ok(ENTRY_LEN)
    }

    /// The label.
    #[inline]
    pub const fn label(self) -> Label {
        Label(self.0 >> 12)
    }

    /// The traffic class (once "experimental"), 3 bits.
    #[inline]
    pub const fn traffic_class(self) -> u8 {
        (self.0 >> 9 & 7) as u8
    }

    /// True for the last entry of the stack.
    #[inline]
    pub const fn is_bottom(self) -> bool {
        self.0 & 0x100 != 0
    }

    /// The TTL.
    #[inline]
    pub const fn ttl(self) -> u8 {
        self.0 as u8
    }

    /// Returns the entry with another label.
    #[inline]
    pub const fn with_label(self, label: Label) -> Self {
        Self(self.0 & 0xfff | (label.0 & MAX_LABEL.0) << 12)
    }

    /// Returns the entry with another TTL.
    #[inline]
    pub const fn with_ttl(self, ttl: u8) -> Self {
        Self(self.0 & !0xff | ttl as u32)
    }
}

/// Walks a label stack from the top; ends after its bottom or at the end of the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Stack<'a> {
    rest: &'a [u8],
    bottom: bool,
}

impl<'a> Stack<'a> {
    /// The stack at the start of `data`.
    #[inline]
    pub fn new(data: &'a [u8]) -> Self {
        Self { rest: data, bottom: false }
    }

    /// The bytes after the entries that were walked.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.rest
    }

    /// True once the bottom entry was walked.
    #[inline]
    pub fn reached_bottom(&self) -> bool {
        self.bottom
    }
}

impl Iterator for Stack<'_> {
    type Item = Entry;

    #[inline]
    fn next(&mut self) -> Option<Entry> {
        if self.bottom {
            return None;
        }
        let (entry, rest) = Entry::parse(self.rest).ok()?;
        self.rest = rest;
        self.bottom = entry.is_bottom();
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn a_stack_of_two() {
        let data = [0x00, 0x01, 0x00, 0x3f, 0x00, 0x01, 0x1b, 0x40, 0x45];
        let mut stack = Stack::new(&data);
        let entries: Vec<Entry> = stack.by_ref().collect();
        assert_eq!(
            entries,
            [Entry::new(Label(16), 0, false, 63), Entry::new(Label(17), 5, true, 64)]
        );
        assert!(stack.reached_bottom());
        assert_eq!(stack.payload(), &[0x45]);
    }

    proptest! {
        #[test]
        fn fields_come_back(label in 0..=MAX_LABEL.0, class in 0u8..8, bottom: bool, ttl: u8) {
            let e = Entry::new(Label(label), class, bottom, ttl);
            let mut buf = [0; 4];
            e.emit(&mut buf).unwrap();
            prop_assert_eq!(Entry::parse(&buf).unwrap().0, e);
            prop_assert_eq!(
                (e.label().0, e.traffic_class(), e.is_bottom(), e.ttl()), (label, class, bottom, ttl)
            );
            prop_assert_eq!(e.with_label(Label(7)).with_ttl(9), Entry::new(Label(7), class, bottom, 9));
        }

        #[test]
        fn any_bytes_are_walked(data in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut stack = Stack::new(&data);
            let walked = stack.by_ref().count();
            prop_assert_eq!(walked * 4 + stack.payload().len(), data.len());
        }
    }
}
