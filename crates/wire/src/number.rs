//! Types for numbers that must not be taken for one another, such as an interface's index and a
//! table's id.

/// Declares a type that holds a number and is as large as it. The type prints, sorts and parses as
/// the number does; arithmetic is left out, as a sum of two indices means nothing.
///
/// ```
/// thalweg_wire::number! {
///     /// Number of a shelf.
///     pub struct Shelf(u16);
/// }
/// assert_eq!(Shelf(7).get() + 1, 8);
/// assert_eq!(format!("{:>3}", Shelf(7)), "  7");
/// assert_eq!("7".parse(), Ok(Shelf(7)));
/// ```
#[macro_export]
macro_rules! number {
    ($(#[$meta:meta])* $vis:vis struct $name:ident($of:ident);) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        $vis struct $name(pub $of);

        impl $name {
            /// The smallest number.
            pub const MIN: $name = $name($of::MIN);
            /// The largest number.
            pub const MAX: $name = $name($of::MAX);

            /// Returns the number.
            #[inline(always)]
            #[must_use]
            pub const fn get(self) -> $of {
                self.0
            }

            /// Returns the number as an index into a slice.
            #[inline(always)]
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<$of> for $name {
            #[inline(always)]
            fn from(number: $of) -> $name {
                $name(number)
            }
        }

        impl From<$name> for $of {
            #[inline(always)]
            fn from(of: $name) -> $of {
                of.0
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(&self.0, f)
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Debug::fmt(&self.0, f)
            }
        }

        impl core::str::FromStr for $name {
            type Err = core::num::ParseIntError;

            fn from_str(text: &str) -> core::result::Result<$name, core::num::ParseIntError> {
                text.parse().map($name)
            }
        }
    };
}
